"""Patterns by name, `NAME:ROWSxCOLUMNS[:TYPE][:key=value…][@MACHINE]`, and the fifty of the table.

>>> pattern("transpose:32x32:f32").shape
(32, 32)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from warploom.errors import CheckError, ParseError, nearest
from warploom.layout.formats.operand import read_by_wgmma
from warploom.layout.language.check import MOST_ELEMENTS
from warploom.layout.patterns import operands, strides, usual
from warploom.layout.patterns.access import Operand, Problem, check_problem
from warploom.layout.patterns.usual import Accesses, Tensor
from warploom.machine.record import machine_named

TYPES = {
    "f64": 8, "c64": 8, "i64": 8, "u64": 8, "f32": 4, "tf32": 4, "i32": 4, "u32": 4,
    "f16": 2, "bf16": 2, "i16": 2, "u16": 2, "e4m3": 1, "e5m2": 1, "i8": 1, "u8": 1,
    "ue8m0": 1,
}  # fmt: skip
PACKED = {"u4": 2, "i4": 2, "e2m1": 2}  # elements of a byte: packed weights, scaled numbers
ELEMENTS = (*TYPES, *PACKED)


def element_of(word: str) -> tuple[int, int] | None:
    """The bytes of a type, and how many elements share them; None where there is no such type.

    >>> element_of("f16"), element_of("u4")
    ((2, 1), (1, 2))
    """
    if word in PACKED:
        return 1, PACKED[word]
    return (TYPES[word], 1) if word in TYPES else None


@dataclass(frozen=True, slots=True)
class Usual:
    """A pattern with a name: what makes it, which options it takes, whether rows mean something,
    what tensor copies do if they move it, whether wgmma reads it by descriptors."""

    build: Callable[[Tensor], Accesses]
    options: tuple[str, ...] = ()
    flat: bool = False
    copied: str = ""
    read: bool = False


USUAL: dict[str, Usual] = {
    "transpose": Usual(usual.transpose, ("store", "load")),
    "columns": Usual(usual.columns, ("store", "load")),
    "rcd": Usual(usual.rcd),
    "blocks": Usual(usual.blocks),
    "ldmatrix": Usual(operands.ldmatrix),
    "ldmatrix-copied": Usual(operands.ldmatrix_copied),
    "ldmatrix-trans": Usual(operands.ldmatrix_trans),
    "ldmatrix-tma": Usual(operands.ldmatrix_tensor, copied="store"),
    "stmatrix": Usual(operands.stmatrix),
    "mma-a": Usual(operands.mma_a),
    "mma-b": Usual(operands.mma_b),
    "mma-c": Usual(operands.mma_c),
    "wgmma": Usual(operands.wgmma_tensor, ("rows", "mn"), copied="fill", read=True),
    "wgmma-copied": Usual(operands.wgmma_copied, ("rows", "mn"), read=True),
    "wgmma-c": Usual(operands.wgmma_c, copied="take"),
    "mfma": Usual(operands.mfma, ("store", "load")),
    "blocked": Usual(operands.blocked),
    "fft": Usual(strides.fft, ("radix",)),
    "bitonic": Usual(strides.bitonic),
    "strides": Usual(strides.strides),
    "reduction": Usual(strides.reduction),
    "but-two": Usual(strides.but_two),
    "every-bits": Usual(strides.every_bits),
    "aos": Usual(strides.aos),
    "stencil": Usual(strides.stencil, ("points",)),
    "halo": Usual(strides.halo),
    "histogram": Usual(strides.histogram),
}

# The fifty problems of the published table, in its order.
FIFTY: tuple[str, ...] = (
    "transpose:32x32:f32", "transpose:32x32:f16", "transpose:32x32:f64", "transpose:16x32:f32",
    "transpose:32x32:f32:store=16", "transpose:64x64:f16:store=16:load=4", "rcd:32x32",
    "blocks:32x32", "ldmatrix:64x64:f16", "ldmatrix-copied:128x32:f16",
    "ldmatrix-copied:128x16:f16", "ldmatrix-trans:32x128:f16", "ldmatrix-trans:8x128:f16",
    "mma-a:16x64:f16", "mma-c:16x64:f32", "mma-c:16x64:f16", "stmatrix:16x64:f16",
    "mma-a:16x32:tf32", "ldmatrix:128x64:e4m3", "blocked:32x32:f32", "columns:32x64:f32:load=16",
    "fft:32x32:f32", "fft:1x1024:c64:radix=32", "bitonic:1x1024:f32", "strides:32x32:f32",
    *(f"aos:32x{words}:f32" for words in (2, 3, 4, 5, 6, 7, 8, 12)),
    "transpose:32x24:f32", "transpose:32x48:f32",
    "ldmatrix:64x24:f16", "ldmatrix:64x48:f16", "ldmatrix:64x96:f16", "ldmatrix:64x80:f16",
    "stencil:34x34:f32", "halo:34x34:f32", "histogram:256x32:u32", "histogram:1x256:u32",
    "reduction:32x32:f32",
    "mfma:64x64:f16@gfx942", "mfma:16x128:f16:load=8@gfx942", "transpose:64x64:f32@gfx942",
    "mfma:64x64:f16@gfx950", "mfma:16x128:f16:load=8@gfx950", "transpose:64x64:f32@gfx950",
)  # fmt: skip

MOST_ROWS = 256  # of m or n that one wgmma takes
_SHAPE = re.compile(r"([0-9]{1,9})(?:x([0-9]{1,9}))?")


def pattern(text: str) -> Problem:
    """The problem that a name stands for."""
    body, _, machine = text.partition("@")
    name, *parts = body.split(":")
    if name not in USUAL:
        raise ParseError(f"no pattern is called '{name[:40]}'", advice=_nearest(name))
    found = USUAL[name]
    rows, columns = _sizes(text, parts.pop(0) if parts else "")
    word = parts[0] if parts else ""
    found_element = element_of(word)
    if parts and "=" not in parts[0]:
        parts.pop(0)
        if found_element is None:
            advice = f"known: {', '.join(ELEMENTS)}"
            raise ParseError(f"no element type '{word[:20]}'", advice=advice)
    options = _options(name, parts)
    serving = machine_named(machine if "@" in text else "cuda").serving
    size, packed = found_element or (4, 1)
    tensor = Tensor(rows, columns, size, serving, options, packed)
    problem = usual.problem_of(text, tensor, found.build(tensor), found.flat)
    if found.copied:
        problem = replace(problem, copies=(found.copied,))
    if found.read:
        turned = bool(options.get("mn"))
        taken = options.get("rows") or min(columns if turned else rows, MOST_ROWS)
        problem = read_by_wgmma(problem, Operand("wgmma reads", taken, "mn" if turned else "k"))
    return check_problem(problem)


def _sizes(text: str, word: str) -> tuple[int, int]:
    found = _SHAPE.fullmatch(word)
    if found is None:
        raise ParseError(
            f"the pattern '{text[:60]}' does not say its sizes", advice="write transpose:32x32:f32"
        )
    rows, columns = (int(found[1]), int(found[2])) if found[2] else (1, int(found[1]))
    if not rows or not columns:
        raise CheckError(f"the tensor {word} is empty", advice="every size is at least 1")
    if rows * columns > MOST_ELEMENTS:
        raise CheckError(f"a tensor of {rows * columns} elements is too large")
    return rows, columns


def _options(name: str, parts: list[str]) -> dict[str, int]:
    options: dict[str, int] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key not in USUAL[name].options or not re.fullmatch(r"[0-9]{1,6}", value):
            known = ", ".join(f"{option}=NUMBER" for option in USUAL[name].options) or "none"
            raise ParseError(
                f"'{part[:40]}' is no option of {name}", advice=f"its options: {known}"
            )
        options[key] = int(value)
    return options


def _nearest(name: str) -> str:
    return nearest(name, USUAL, f"known are {', '.join(USUAL)}", cutoff=0.5)
