"""The names that the headers of C, CUDA and OpenCL own, as the preprocessors of this machine say.

    python -m bench.kernel.header_names [--update] [--include FOLDER]… [--out FILE]

Kernels are called, and their variables, like every one of these names; the texts are compiled by
NVRTC, nvcc and the C compiler, many in one text, and the record says which do not compile. With
--update names that are new are added to `src/warploom/emit/header_names.txt` first; a name that
headers of some version have is never dropped. --include gives folders with other versions of
CUDA's headers, such as those of the packages nvidia-cuda-runtime, -crt and -cccl.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import NamedTuple, get_args

from bench.harness import arguments, environment, save

from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.reserved import (
    HEADER_NAMES,
    KINDS,
    Kind,
    header_names,
    is_reserved,
    is_reserved_function,
)
from warploom.errors import DeviceError
from warploom.index.ir import Var
from warploom.kernel.build import Builder, from_index
from warploom.kernel.dtype import i32
from warploom.kernel.ir import Kernel
from warploom.native import c_compiler, compile_c
from warploom.process import run_command
from warploom.runtime.compile import Compiler, compile_cuda, include_folders
from warploom.runtime.host import FLAGS

C_HEADERS = ["math.h", "stdint.h", "stddef.h", "stdlib.h", "stdio.h", "string.h", "time.h"]
CUDA_HEADERS = ["cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h"]
BATCH = 200
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\S')


class Names(NamedTuple):
    """What headers own: macros, and what they declare for the whole text."""

    macros: set[str]
    globals: set[str]


# -- asking ----------------------------------------------------------------------------------------


def global_names(text: str) -> set[str]:
    """All identifiers outside of parentheses and braces, in preprocessed C or C++: what is
    declared, and the types and keywords beside it. The constants of enumerations count, too."""
    tokens = _TOKEN.findall(re.sub(r"^#.*$", "", text, flags=re.MULTILINE))
    found: set[str] = set()
    closed: list[str] = []  # what each open brace begins
    parentheses = angles = 0
    for at, token in enumerate(tokens):
        if token == "{":
            closed.append(_opens(tokens, at))
        elif token == "}":
            closed = closed[:-1]
        elif token in "()":
            parentheses += 1 if token == "(" else -1
        elif token == "<" and (angles or tokens[at - 1] == "template"):
            angles += 1
        elif token == ">" and angles:
            angles -= 1
        elif token.isidentifier() and not parentheses and not angles and "body" not in closed:
            found.add(token)
    return found


def _opens(tokens: Sequence[str], at: int) -> str:
    """Whether the brace opens something whose names are global, too."""
    if at > 1 and tokens[at - 1].startswith('"') and tokens[at - 2] == "extern":
        return "linkage"
    for token in reversed(tokens[max(0, at - 8) : at]):
        if token in ";{})":
            break
        if token == "enum":
            return "enum"
    return "body"


def _asked(command: Sequence[str], text: str, suffix: str, macros: Sequence[str]) -> Names:
    """What a preprocessor says of a text."""
    with TemporaryDirectory() as folder:
        source = Path(folder, f"names{suffix}")
        source.write_text(text)
        said = []
        for more in ((), macros):
            ran = run_command([*command, "-E", *more, str(source)], "it could not be asked")
            if ran.returncode:
                raise DeviceError(f"{command[0]} does not take the headers:\n{ran.stderr}")
            said.append(ran.stdout)
    return Names(set(re.findall(r"^#define (\w+)", said[1], re.MULTILINE)), global_names(said[0]))


def _including(headers: Sequence[str]) -> str:
    return "".join(f"#include <{each}>\n" for each in headers)


def c_names() -> Iterator[Names]:
    compiler = c_compiler()
    for standard in ("-std=c11", "-std=gnu17") if compiler else ():
        yield _asked([str(compiler), standard], _including(C_HEADERS), ".c", ["-dM"])


def cuda_names(folders: Sequence[str]) -> Iterator[Names]:
    """As nvcc sees them. NVRTC has the same headers built in, and cannot be asked."""
    text = _including(CUDA_HEADERS)
    if shutil.which("nvcc"):
        yield _asked(["nvcc", "-std=c++17", "-arch=sm_90"], text, ".cu", ["-Xcompiler", "-dM"])
    compiler = shutil.which("g++") or shutil.which("c++")
    for folder in folders if compiler else ():
        include = [f"-I{folder}{each}" for each in ("", "/cccl", "/cccl/nv")]
        command = [str(compiler), "-std=c++17", "-D__CUDACC__", *include]
        yield _asked(command, text, ".cc", ["-dM"])


def opencl_names() -> Iterator[Names]:
    """Of the header that clang brings along, and PoCL with it."""
    spec, compiler = find_spec("pocl_binary_distribution"), c_compiler()
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if compiler is None:
        return
    for header in (each for root in folders for each in Path(root).rglob("opencl-c.h")):
        options = ["-nostdinc", "-x", "c", "-D__OPENCL_C_VERSION__=300", "-D__OPENCL_VERSION__=300"]
        options += [f"-Dcl_khr_{each}" for each in ("fp16", "fp64", "subgroups", "depth_images")]
        if compiler:
            yield _asked(
                [compiler, *options, f"-I{header.parent}"], header.read_text(), ".h", ["-dM"]
            )


def asked_names(language: Language, folders: Sequence[str] = ()) -> Names:
    """The names that headers on this machine own, those that every text leaves alone left out."""
    ways: dict[Language, Callable[[], Iterator[Names]]] = {
        "c": c_names,
        "cuda": lambda: cuda_names([*include_folders(), *folders]),
        "opencl": opencl_names,
    }
    macros, found = set[str](), set[str]()
    for names in ways[language]():
        macros |= {each for each in names.macros if "__" not in each and each[0] != "_"}
        found |= {each for each in names.globals if "__" not in each and each[0] != "_"}
    return Names(macros, found - macros)


# -- keeping ---------------------------------------------------------------------------------------


def unknown(language: Language, names: Names) -> Names:
    """Those of the names that `emit/reserved.py` does not know."""
    return Names(
        {each for each in names.macros if not is_reserved(each, language)},
        {each for each in names.globals if not is_reserved_function(each, language)},
    )


def update(folders: Sequence[str]) -> int:
    """Adds what is not known to the file; how many there were."""
    sections: dict[tuple[Language, Kind], set[str]] = {
        (language, kind): set(header_names(language, kind))
        for language in get_args(Language)
        for kind in KINDS
    }
    added = 0
    for language in get_args(Language):
        new = unknown(language, asked_names(language, folders))
        sections[language, "macros"] |= new.macros
        sections[language, "globals"] |= new.globals
        added += len(new.macros) + len(new.globals)
    parts = [
        f"[{language} {kind}]\n{fill(' '.join(sorted(words)), 118, break_on_hyphens=False)}\n"
        for (language, kind), words in sections.items()
    ]
    HEADER_NAMES.write_text("\n".join(parts))
    header_names.cache_clear()
    return added


# -- compiling -------------------------------------------------------------------------------------


def named(kernel: str, scalar: str, array: str, cell: str, let: str, counter: str) -> Kernel:
    """y[i] = i · scalar + 3, with all kinds of names."""
    k = Builder(kernel, block=32)
    k.scalar(scalar)
    y = k.array(array, i32, 32)
    k.register(cell, i32, 0)
    v = k.registers(f"{cell}_row", i32, 2, 0)
    k.let(let, k.thread * Var(scalar))
    with k.loop(counter, 2) as i:
        v[i] = from_index(Var(let) + i)
    y[k.thread] = v[0] + v[1] + 2
    return k.done()


def kernels(names: Sequence[str]) -> list[Kernel]:
    """As many kernels as names; each name has every part in one of them."""
    count = len(names)
    return [named(*(names[(at + part) % count] for part in range(6))) for at in range(count)]


def refused(
    made: Sequence[Kernel], language: Language, compile_text: Callable[[str], object]
) -> list[str]:
    """The kernels whose text does not compile; halves are looked for in what fails together."""
    try:
        compile_text("\n".join(emit(each, language) for each in made))
    except DeviceError:
        if len(made) == 1:
            return [made[0].name]
        half = len(made) // 2
        parts = made[:half], made[half:]
        return [name for part in parts for name in refused(part, language, compile_text)]
    return []


def compilers(language: Language) -> dict[str, Callable[[str], object]]:
    """What can compile a text here."""

    def cuda_by(compiler: Compiler) -> Callable[[str], object]:
        return lambda text: compile_cuda(text, compiler=compiler, contract=False)

    if language == "c":
        flags = [each for each in FLAGS if each != "-march=native"]
        return {"cc": lambda text: compile_c(text, ("-O0", *flags))} if c_compiler() else {}
    if language == "cuda":
        found = ["nvrtc"] if find_spec("cuda") and find_spec("cuda.bindings") else []
        found += ["nvcc"] if shutil.which("nvcc") else []
        return {each: cuda_by(each) for each in found}  # type: ignore[arg-type]
    return {}


def tried(language: Language, names: Sequence[str]) -> dict[str, object]:
    """Every name in every part, by every compiler that is here."""
    made = kernels(names)
    rows: dict[str, object] = {"names": len(names)}
    for compiler, compile_text in compilers(language).items():
        started = time.process_time()
        wrong = [
            name
            for at in range(0, len(made), BATCH)
            for name in refused(made[at : at + BATCH], language, compile_text)
        ]
        spent = time.process_time() - started
        rows[compiler] = {"kernels": len(made), "refused": wrong, "cpu_seconds": round(spent, 1)}
        print(f"{language} by {compiler}: {len(made)} kernels, {len(wrong)} refused {wrong[:9]}")
    return rows


def main() -> int:
    parser = arguments(__doc__, "header_names.json")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--include", action="append", default=[])
    given = parser.parse_args()
    if given.update:
        print(f"{update(given.include)} names added to {HEADER_NAMES.name}")
    rows: dict[str, dict[str, object]] = {}
    right = True
    for language in get_args(Language):
        names = asked_names(language, given.include)
        left = unknown(language, names)
        rows[language] = tried(language, sorted(names.macros | names.globals))
        rows[language]["unknown"] = sorted(left.macros | left.globals)
        right &= not rows[language]["unknown"]
        right &= not any(
            each["refused"] for each in rows[language].values() if isinstance(each, dict)
        )
    record = {
        **environment(),
        "languages": rows,
    }
    save(given.out, record)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
