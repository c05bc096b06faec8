"""CUDA text, PTX text and CuPy's `RawKernel`: compiled where that is needed, lines kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.errors import DeviceError
from warploom.process import find_program
from warploom.ptx.launch import load
from warploom.ptx.patience import deadline_of, within
from warploom.runtime.compile import Compiler, compile_cuda
from warploom.without_gpu.arrays import memory_of
from warploom.without_gpu.prepared import Prepared, bracket, byte_count, no_names

_BRACKET = ("grid", "block", "shared bytes")
_PTX = re.compile(r"^\s*\.version\s", re.MULTILINE)
_ENDS = (".cu", ".cuh", ".cpp", ".ptx")
# Where NVRTC, and nvcc on a file of our own, say that a line comes from.
_OURS = re.compile(r'(\.file\s+\d+\s+)"[^"]*\bkernel\.cu"')
_COMPLAINT = re.compile(r"(?<![\w.])/?kernel\.cu(?=[(\":])")
_ARCHITECTURE = ("-arch", "--gpu-architecture", "--gpu-name")


def is_cupy(kernel: Any) -> bool:
    return type(kernel).__module__.startswith("cupy.") and hasattr(kernel, "code")


def is_text(kernel: Any) -> bool:
    return isinstance(kernel, str | Path)


def compiled_text(
    text: str, shown_as: str, arch: str, options: Sequence[str] = (), compiler: Compiler = "auto"
) -> str:
    """PTX of CUDA text, its lines called after the file or name that the text has. Of a file,
    headers that lie beside it are found."""
    file = Path(shown_as)
    beside = (f"-I{file.resolve().parent}",) if file.is_file() else ()
    try:
        made = compile_cuda(
            text, arch, compiler=compiler, options=("-lineinfo", *beside, *options)
        ).text
    except DeviceError as error:
        said = _COMPLAINT.sub(lambda _: shown_as, error.message)
        raise DeviceError(said, error.span, error.advice) from None
    return _OURS.sub(lambda found: f'{found[1]}"{shown_as}"', made)


@dataclass(frozen=True, slots=True)
class _Given:
    """What is loaded: PTX, what errors call it, and the texts that it was made of."""

    ptx: str
    name: str
    texts: dict[str, str] | None = None


class CudaKernel:
    """A kernel of a text; `name` is needed where it has several."""

    def __init__(self, kernel: Any, name: str | None, arch: str, seconds: float | None) -> None:
        """`seconds` are those for reading PTX, which compilers do not take from."""
        if is_cupy(kernel):
            options = [each for each in kernel.options if not each.startswith(_ARCHITECTURE)]
            given = _compile(str(kernel.code), str(kernel.name), arch, options)
            name = name or str(kernel.name)
        else:
            text, file = _read(kernel)
            if _PTX.search(text):
                given = _Given(text, file or "<ptx>")
            else:
                given = _compile(text, file or "<cuda>", arch, ())
        with within(deadline_of(seconds), "reading the PTX"):
            self.kernel = load(given.ptx, given.name, given.texts).kernel(name)

    def prepare(self, launch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Prepared:
        no_names(named)
        grid, block, *shared = bracket(launch, _BRACKET)
        passed = [_passed(arg, number) for number, arg in enumerate(args)]
        return Prepared(self.kernel, grid, block, passed, byte_count(shared[0] if shared else 0))


def _passed(arg: Any, number: int) -> Any:
    memory = memory_of(arg, f"argument {number}")
    return arg if memory is None else memory.raw


def _read(kernel: str | Path) -> tuple[str, str]:
    """A text, and the file that it came from if it did."""
    if isinstance(kernel, str) and not (kernel.endswith(_ENDS) and "\n" not in kernel):
        return kernel, ""
    path = Path(kernel)
    try:
        return path.read_text("utf-8", "surrogateescape"), str(path.resolve())
    except OSError as error:
        raise DeviceError(f"cannot read '{path}': {error.strerror or error}") from None


def _compile(text: str, shown_as: str, arch: str, options: Sequence[str]) -> _Given:
    # nvcc knows the headers of the host, which CUDA text for a whole program may include.
    whole = Path(shown_as).is_file() and find_program("nvcc") is not None
    made = compiled_text(text, shown_as, arch, options, "nvcc" if whole else "auto")
    return _Given(made, f"{Path(shown_as).name}, as PTX", {shown_as: text})
