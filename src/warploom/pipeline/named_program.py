"""Which array expression is meant: a name, rewritten to tiles where there is a recipe; its sizes.

The command and `warploom.map_array` ask here, so that both refuse the same with the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warploom.array import workload
from warploom.array.language.ir import Program
from warploom.array.recipe import convolution, matmul, stencil
from warploom.errors import CheckError, ParseError, one_of, spelled

NAMES: Mapping[str, Callable[[], Program]] = {
    "total": workload.total,
    "dot": workload.dot,
    "matvec": workload.matvec,
    "matmul": workload.matmul,
    "stencil-1d": workload.stencil_1d,
    "stencil-2d": workload.stencil_2d,
    "conv": workload.convolution,
}
RECIPES: Mapping[str, Callable[[Program], Program]] = {
    "matmul": matmul.mid_level,
    "stencil-2d": stencil.mid_level,
    "conv": convolution.mid_level,
}


def named_program(name: str, plain: bool, otherwise: Callable[[str], str] | None = None) -> Program:
    """One of the known expressions, in tiles unless it is to be left alone; `otherwise` may know
    what to do with another name."""
    if name not in NAMES:
        raise ParseError(
            f"no expression is called '{name[:80]}'",
            advice=(otherwise and otherwise(name)) or one_of(name, [*NAMES, "FILE.py::NAME"]),
        )
    if plain and name not in RECIPES:
        raise ParseError(
            f"'{name}' is not rewritten", advice=f"leave {spelled('--plain', 'plain')} out"
        )
    program = NAMES[name]()
    return program if plain or name not in RECIPES else RECIPES[name](program)


def sizes_of_layer(name: str, layer: str | None, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes that are given, after those of the layer of VGG-16."""
    for each, value in given.items():
        if not 1 <= value < 1 << 31:
            raise CheckError(f"the size {each} is {value}", advice="sizes are from 1 to 2**31 - 1")
    if layer is None:
        return dict(given)
    if name != "conv":
        raise CheckError(
            f"{name} has no layers", advice=f"{spelled('--layer', 'layer')} is for conv"
        )
    if layer not in workload.VGG_16:
        raise ParseError(
            f"no layer is called '{layer[:80]}'", advice=one_of(layer, workload.VGG_16)
        )
    return {**workload.VGG_16[layer].sizes(), **given}
