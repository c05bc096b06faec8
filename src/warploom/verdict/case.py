"""One launch that is judged: its arguments as memory, which of them are what, and what the
reference is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import ParseError
from warploom.machine import rounding
from warploom.ptx.emulate.arguments import Fresh
from warploom.verdict.argument import Said, dtype_of, extents, whole
from warploom.verdict.inputs import drawn

Array = npt.NDArray[Any]
_POISON = 0xA5


@dataclass(slots=True, eq=False)
class Argument:
    """An array of a launch, or a float that is an argument itself: `memory` is what the kernel
    gets; of a float it is the one number. `start` is what it holds at first, if that is fixed."""

    said: Said
    place: int
    shape: tuple[int, ...]
    memory: Array
    start: Array | None

    @property
    def name(self) -> str:
        return self.said.name

    @property
    def is_scalar(self) -> bool:
        return self.said.sizes is None and self.said.values is None

    def put(self, values: Array) -> None:
        """Numbers, rounded to the type."""
        self.memory[...] = rounded(values, self.said.kind).reshape(self.memory.shape)

    def numbers(self) -> Array:
        """What is there, as doubles, or as whole numbers."""
        return floats_of(self.memory, self.said.kind) if self.said.is_float else self.memory


def rounded(values: Array, kind: str) -> Array:
    """Doubles as memory of a type."""
    with np.errstate(all="ignore"):
        if kind == "bf16":
            return rounding.double_to_bf16(np.asarray(values, np.float64))
        return np.asarray(values).astype(dtype_of(kind))


def floats_of(memory: Array, kind: str) -> Array:
    if kind == "bf16":
        return rounding.bf16_to_single(memory).astype(np.float64)
    return memory.astype(np.float64)


@dataclass(slots=True, eq=False)
class Case:
    """A launch of one shape."""

    sizes: dict[str, int]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    shared: int
    args: list[Any]  # as a launch takes them
    named: dict[str, Argument] = field(default_factory=dict)  # arrays, and floats by name
    whole: dict[str, int] = field(default_factory=dict)  # numbers that are arguments

    @property
    def free(self) -> list[Argument]:
        """What stands for any value."""
        return [each for each in self.named.values() if each.said.is_free]

    @property
    def outputs(self) -> list[Argument]:
        return [each for each in self.named.values() if each.said.is_output]

    @property
    def kept(self) -> list[Argument]:
        """What a kernel is not to change."""
        return [e for e in self.named.values() if not e.said.is_output and not e.is_scalar]

    def passed(self, fresh: bool = False) -> list[Any]:
        """The arguments of a launch; `fresh`: outputs are what nobody has written."""
        args = list(self.args)
        for each in self.named.values():
            if each.is_scalar:
                args[each.place] = each.memory.reshape(-1)[0]
            elif fresh and each.place >= 0 and each.said.start == "out":
                args[each.place] = Fresh.of(each.memory)
        return args

    def launch(self, kernel: str) -> dict[str, Any] | None:
        """The launch as `ptx run --launch` reads it, beside its arrays; None where tensor maps are
        among its arguments."""
        args: list[Any] = list(self.args)
        for each in self.named.values():
            if each.place >= 0 and not each.is_scalar:
                args[each.place] = {"array": each.name}
            elif each.place >= 0:
                number = floats_of(each.memory, each.said.kind)
                args[each.place] = float(number.reshape(-1)[0])
        if not all(isinstance(each, dict | int | float | None) for each in args):
            return None
        cluster = {} if self.cluster is None else {"cluster": list(self.cluster)}
        return {
            "kernel": kernel, "grid": list(self.grid), "block": list(self.block), **cluster,
            "shared": self.shared, "args": args,
        }  # fmt: skip

    def fill(self, draw: np.random.Generator, how: str) -> None:
        """Numbers for all that is free, of a distribution; the rest as it starts."""
        for each in self.named.values():
            if each.start is not None:
                each.memory[...] = each.start
            elif each.said.is_free:
                each.put(drawn(draw, how, each.shape, each.said.kind))
            else:
                each.memory.reshape(-1).view(np.uint8)[:] = _POISON

    def given(self) -> dict[str, Any]:
        """What a reference may ask for, by name: doubles and whole numbers."""
        found: dict[str, Any] = {**self.sizes, **self.whole}
        for each in self.named.values():
            if each.said.start not in ("out", "out:zeros"):
                numbers = each.numbers().reshape(each.shape)
                found[each.name] = numbers if each.shape or not each.is_scalar else numbers[()]
        return found


def case_of(
    said: Sequence[Said], sizes: Mapping[str, int], grid: str, block: str, cluster: str | None,
    shared: str, seed: int,
) -> Case:  # fmt: skip
    """What is said of a launch, at a shape."""
    found = Case(
        dict(sizes), extents(grid, sizes), extents(block, sizes),
        None if cluster is None else extents(cluster, sizes), whole(shared, sizes, shared), [],
    )  # fmt: skip
    draw = np.random.default_rng(seed)
    for place, each in enumerate(said):
        if each.name in found.named or each.name in found.whole:
            raise ParseError(f"two arguments are called '{each.name}'")
        if each.sizes is None and each.values is None and not each.is_float:
            value = whole(each.start, sizes, each.text)
            found.whole[each.name] = value
            found.args.append(value)
            continue
        made = _argument(each, place, sizes, draw)
        found.named[each.name] = made
        found.args.append(made.memory)
    check_names(found)
    return found


def check_names(case: Case) -> None:
    for name in {*case.named, *case.whole} & {*case.sizes}:
        value = case.whole.get(name)
        if value != case.sizes[name]:
            advice = "give one of them another name"
            raise ParseError(f"'{name}' is an argument and a size, and they differ", advice=advice)
    if not case.outputs:
        advice = "mark what the kernel writes: y=f32[n]=out"
        raise ParseError("no argument is an output", advice=advice)


def _argument(
    said: Said, place: int, sizes: Mapping[str, int], draw: np.random.Generator
) -> Argument:
    shape = said.shape(sizes)
    memory = np.zeros(shape or (1,), dtype_of(said.kind))
    return Argument(said, place, shape, memory, start_of(said, shape, draw))


def start_of(said: Said, shape: tuple[int, ...], draw: np.random.Generator) -> Array | None:
    """What an argument holds at first, where that is the same in all runs."""
    if said.values is not None:
        return np.ascontiguousarray(said.values).reshape(shape)
    if said.sizes is None:
        return None if said.is_free else _number(said)
    if said.start not in ("", "out", "inout"):
        return rounded(_begun(said, shape, draw), said.kind)
    if said.start == "inout" and not said.is_float:
        advice = "write a start of its own: k=i32[n]=range"
        raise ParseError(f"'{said.text[:80]}': whole numbers do not vary", advice=advice)
    return None


def _number(said: Said) -> Array:
    try:
        return rounded(np.array([float(said.start)]), said.kind)
    except ValueError:
        advice = "write scale=f32=0.125, or scale=f32 for any value"
        raise ParseError(f"'{said.text[:80]}' is no number", advice=advice) from None


def _begun(said: Said, shape: tuple[int, ...], draw: np.random.Generator) -> Array:
    match said.start:
        case "zeros" | "out:zeros":
            return np.zeros(shape)
        case "ones":
            return np.ones(shape)
        case "range":
            count = int(np.prod(shape, dtype=np.int64))
            return np.arange(count, dtype=np.float64).reshape(shape)
    if said.is_float:
        return draw.standard_normal(shape)
    return draw.integers(0, 100, shape).astype(np.float64)
