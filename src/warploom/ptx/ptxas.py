"""`warploom-ptxas`: a drop-in for ptxas that puts shuffles into its input first.

Comes in: the argument list of ptxas. Goes out: what the real ptxas does with the same arguments,
the input file replaced by a rewritten copy in a temporary folder, and its exit status. Whatever
goes wrong on our side costs one line on standard error and nothing else: the original is assembled.
Only an assembler that calls `warploom-ptxas` again is an error: it would do so for ever.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warploom.errors import WarploomError
from warploom.machine.record import nearest
from warploom.options import for_ptxas, from_environment
from warploom.ptx.shuffle import rewrite

NOT_FOUND = 127  # what a shell answers for a command that is not there
NOT_RUNNABLE = 126  # and for one that is no program
NO_END = 125  # it would call itself again
_CHAIN = "error: {} calls warploom-ptxas again; set WARPLOOM_PTXAS to the path of the real ptxas"
# Options whose value is the next argument; a value is never taken for the input.
_WITH_VALUE = (
    "-o --output-file -arch --gpu-name -m --machine -O --opt-level -e --entry -maxrregcount "
    "--maxrregcount -dlcm --def-load-cache -dscm --def-store-cache -optf --options-file -ias "
    "--input-as-string -rdc --relocatable-device-code -split-compile --split-compile -t "
    "-Ofc --Ofast-compile -minnctapersm --minnctapersm -maxntid --maxntid -func-maxrregcount "
    "--device-function-maxrregcount -pic --position-independent-code -fmad --fmad -sanitize "
    "--sanitize -regUsageLevel --register-usage-level -flcm --force-load-cache -fscm "
    "--force-store-cache -allow-expensive-optimizations --allow-expensive-optimizations "
    "-device-stack-protector --device-stack-protector"
)
WITH_VALUE = frozenset(_WITH_VALUE.split())


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = from_environment()
    if options.called_by is not None:
        _say(_CHAIN.format(options.called_by))
        return NO_END
    real = find_ptxas(options.real_ptxas, options.path)
    if real is None:
        _warn("no real ptxas on PATH; set WARPLOOM_PTXAS to its path")
        return NOT_FOUND
    try:
        with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
            changed = with_shuffles(arguments, Path(folder))
            if changed is not None:
                done = subprocess.run(
                    [real, *changed], capture_output=True, check=False, env=for_ptxas(real)
                )
                in_a_chain = _CHAIN.format(real).encode() in done.stderr
                if done.returncode == 0 or in_a_chain:
                    sys.stdout.buffer.write(done.stdout)
                    sys.stderr.buffer.write(done.stderr)
                    sys.stdout.flush()
                    return done.returncode
                _warn("ptxas did not accept the rewritten PTX; the original is assembled")
    except OSError as error:
        if error.filename != real:  # no folder to write to; what cannot be run is said below
            _warn(f"the PTX is assembled as it is: {error}")
    return _status(real, arguments)


def _status(real: str, arguments: Sequence[str]) -> int:
    """Runs the assembler; its exit status, or for a signal what a shell answers."""
    try:
        command = [real, *arguments]
        status = subprocess.run(command, check=False, env=for_ptxas(real)).returncode
    except OSError as error:
        _warn(f"{real} cannot be run: {error.strerror}")
        return NOT_RUNNABLE
    return status if status >= 0 else 128 - status


def with_shuffles(arguments: list[str], folder: Path) -> list[str] | None:
    """The arguments with every input replaced by its rewritten copy; None if none changed."""
    result = list(arguments)
    for place in inputs(arguments):
        path = Path(arguments[place])
        try:
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            new = rewrite(text, str(path), machine=nearest(target_of(arguments, text))).text
            if new != text:
                copy = folder / str(place) / path.name
                copy.parent.mkdir()
                copy.write_bytes(new.encode("utf-8", "surrogateescape"))
                result[place] = str(copy)
        except (WarploomError, OSError) as error:
            _warn(f"{path} is assembled as it is: {str(error).splitlines()[0]}")
        except Exception as error:  # noqa: BLE001 - a build must not break because of us
            _warn(f"{path} is assembled as it is: {type(error).__name__}: {error}")
    return result if result != arguments else None


def inputs(arguments: Sequence[str]) -> list[int]:
    """Places of the input files among the arguments."""
    return [
        place
        for place, argument in enumerate(arguments)
        if not argument.startswith("-")
        and (place == 0 or arguments[place - 1] not in WITH_VALUE)
        and Path(argument).is_file()
    ]


def target_of(arguments: Sequence[str], text: str) -> str:
    """The architecture that is asked for, or else the one the file names."""
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name in ("-arch", "--gpu-name"):
            return value or (arguments[place + 1] if place + 1 < len(arguments) else "")
    after = text.partition(".target")[2].split(maxsplit=1)
    return after[0].strip(",") if after else ""


def find_ptxas(asked: str | None, path: str) -> str | None:
    """The asked-for assembler, or the first `ptxas` on the path that is not this program."""
    own = {Path(sys.argv[0]).resolve()}
    wrapper = shutil.which("warploom-ptxas", path=path)
    if wrapper is not None:
        own.add(Path(wrapper).resolve())
    if asked is not None:
        found = shutil.which(asked)
        return found if found is not None and Path(found).resolve() not in own else None
    for folder in path.split(os.pathsep):
        found = shutil.which("ptxas", path=folder) if os.path.isabs(folder) else None
        if found is not None and Path(found).resolve() not in own:
            return found
    return None


def _warn(message: str) -> None:
    _say(f"warning: {message}")


def _say(message: str) -> None:
    sys.stderr.write(f"warploom-ptxas: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
