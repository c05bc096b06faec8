"""Where shared variables of a kernel lie: those that its text names, dynamic ones at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.errors import UnsupportedError
from warploom.ptx.emulate.compile import alignment, byte_size
from warploom.ptx.emulate.driver import GIVEN, reserved_bytes
from warploom.ptx.ir import Function, Module, Variable
from warploom.ptx.patience import timed


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """The place of each variable, the bytes of all that are static, and what a driver is asked."""

    places: dict[str, int]
    size: int
    asked_of_driver: set[str]


def shared_layout(module: Module, kernel: Function) -> SharedLayout:
    """Offsets of all shared variables the kernel can see; extern ones start at the end."""
    bodies = [f for f in module.functions if f.kind == "func" or f is kernel]
    variables = [v for v in module.variables if v.space == "shared"]
    for function in timed(bodies):
        declared = (s for s in timed(function.flat()) if isinstance(s, Variable))
        variables += [v for v in declared if v.space == "shared"]
    used = _words(module, bodies)
    places, place = dict[str, int](), reserved_bytes(used)
    dynamic: list[Variable] = []
    for variable in variables:
        if variable.name not in used:
            continue
        if "extern" in variable.linkage or not byte_size(variable):
            dynamic.append(variable)
            continue
        if variable.name in places:
            raise UnsupportedError(
                f"two shared variables are called '{variable.name}'", module.span(variable)
            )
        align = alignment(variable)
        place = -(-place // align) * align
        places[variable.name] = place
        place += byte_size(variable)
    if dynamic:
        align = max(16, *[alignment(v) for v in dynamic])
        place = -(-place // align) * align
    places |= {v.name: place for v in dynamic}
    return SharedLayout(places, place, used & set(GIVEN))


def _words(module: Module, functions: Sequence[Function]) -> set[str]:
    """All names that stand in the bodies, as a cheap upper bound of the variables used."""
    separators = str.maketrans(dict.fromkeys(",;[](){}+-|\t\n", " "))
    text = module.text.source.text
    return {
        word
        for f in functions
        for word in text[f.body_start : f.body_end].translate(separators).split()
    }
