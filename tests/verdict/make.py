"""Writes `triton/`: what Triton makes of `triton_kernels.py` and `triton_more.py`, for sm_90.

    PYTHONPATH=src:. python -m tests.verdict.make     # in an environment that has Triton; no GPU

A text has the three kernels of a computation. Its first line says of each how it is launched. Whole
numbers are compiled without being known, so that a text runs for every size.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import triton
from bench.common.verdict.triton_computations import ALL, FOLDER, KINDS, SETTINGS
from tests.verdict import triton_kernels, triton_more
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "i32": "i32"}


def signature(name: str) -> dict[str, str]:
    """The types of a kernel's arguments, as Triton writes them."""
    found = {}
    for each, said in ALL[name].args.items():
        if isinstance(said, np.ndarray):
            found[each] = f"*i{8 * said.dtype.itemsize}"
            continue
        kind = TYPES[re.split(r"[\[=]", said)[0]]
        found[each] = f"*{kind}" if "[" in said else kind
    return found


def compiled(name: str, kind: int) -> Any:
    function = getattr(triton_kernels, name, None) or getattr(triton_more, name)
    constants = {"KIND": kind, "BLOCK": SETTINGS[name].block}
    types = {each: TYPES.get(said, said) for each, said in signature(name).items()}
    at = {(function.arg_names.index(each),): value for each, value in constants.items()}
    source = ASTSource(function, types | dict.fromkeys(constants, "constexpr"), at)
    options = {"num_warps": SETTINGS[name].warps}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def parts(text: str, name: str, kind: int) -> tuple[list[str], str]:
    """The lines before a kernel, and the kernel under the name that it has here."""
    lines = [re.sub(r"\s*//.*", "", line) for line in text.split("\n")]
    lines = [line for line in lines if line.strip()]
    begin = next(n for n, line in enumerate(lines) if line.startswith(".visible .entry"))
    body = "\n".join(lines[begin:])
    full = f"{name}{KINDS[kind]}"
    body = re.sub(rf"\b{name}(?=\(|_param_)", full, body).replace("$L__BB0_", f"$L__BB{kind}_")
    return lines[:begin], body


def write(name: str) -> None:
    head: list[str] = []
    launches, bodies = {}, []
    count = len(ALL[name].args)
    for kind, word in enumerate(KINDS):
        made = compiled(name, kind)
        before, body = parts(made.asm["ptx"], name, kind)
        head += [line for line in before if line not in head]
        bodies.append(body)
        launches[name + word] = {
            "threads": 32 * made.metadata.num_warps, "shared": made.metadata.shared,
            "scratch": body.partition(")")[0].count(".param") - count,
        }  # fmt: skip
    text = "\n".join([f"// {json.dumps(launches)}", *head, "", "\n\n".join(bodies), ""])
    (FOLDER / f"{name}.ptx").write_text(text)


def main() -> None:
    triton.knobs.compilation.disable_line_info = True
    FOLDER.mkdir(exist_ok=True)
    for name in ALL:
        write(name)


if __name__ == "__main__":
    main()
