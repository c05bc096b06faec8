"""What is judged at one shape: a launch or several, their arguments as memory, which of them are
what, and what the reference is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import ParseError
from warploom.machine import rounding
from warploom.ptx.emulate.arguments import Fresh
from warploom.ptx.launch import Kernel
from warploom.verdict.argument import Said, dtype_of, extents, whole
from warploom.verdict.inputs import drawn

Array = npt.NDArray[Any]
_POISON = 0xA5


@dataclass(slots=True, eq=False)
class Argument:
    """An array of a launch, or a float that is an argument itself: `memory` is what the kernel
    gets; of a float it is the one number. `start` is what it holds at first, if that is fixed.
    `is_mapped`: it is reached by a tensor map, and no argument itself."""

    said: Said
    shape: tuple[int, ...]
    memory: Array
    start: Array | None
    is_mapped: bool = False

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
    with np.errstate(invalid="ignore"):  # NaNs that are signals
        return memory.astype(np.float64)


@dataclass(slots=True, eq=False)
class Launch:
    """One launch. Where memory or a named float goes, `args` have its `Argument`. `kernel` is None
    for the kernel that is judged."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    shared: int
    args: list[Any]
    kernel: Kernel | None = None

    def passed(self, fresh: Mapping[str, Fresh] | None = None) -> list[Any]:
        """The arguments as a launch takes them; those in `fresh` as what nobody has written."""
        known = fresh or {}
        return [
            known.get(each.name, _passed(each)) if isinstance(each, Argument) else each
            for each in self.args
        ]

    def takes(self, argument: Argument) -> bool:
        return argument.is_mapped or any(each is argument for each in self.args)

    def names(self) -> dict[int, str]:
        """What its arguments are called, by number."""
        found = enumerate(self.args)
        return {at: each.name for at, each in found if isinstance(each, Argument)}


def _passed(argument: Argument) -> Any:
    return argument.memory.reshape(-1)[0] if argument.is_scalar else argument.memory


@dataclass(slots=True, eq=False)
class Case:
    """The launches of one shape, one after another."""

    sizes: dict[str, int]
    launches: list[Launch]
    named: dict[str, Argument] = field(default_factory=dict)  # arrays, and floats by name
    whole: dict[str, int] = field(default_factory=dict)  # numbers that are arguments

    def kernels(self, own: Kernel) -> list[Kernel]:
        """The kernel of each launch, where `own` is the one that is judged."""
        return [own if each.kernel is None else each.kernel for each in self.launches]

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
        return [
            each for each in self.named.values()
            if not (each.said.is_output or each.said.is_scratch or each.is_scalar)
        ]  # fmt: skip

    def fresh(self) -> dict[str, Fresh]:
        """What nobody has written before the first launch, by name."""
        return {
            each.name: Fresh.of(each.memory)
            for each in self.named.values()
            if each.said.start in ("out", "scratch") and not each.is_mapped
        }

    def launch(self, kernel: str) -> dict[str, Any] | None:
        """The launch as `ptx run --launch` reads it, beside its arrays; None where tensor maps are
        among its arguments, or where there are several launches."""
        own = self.launches[0]
        args = [_recorded(each) for each in own.args]
        if len(self.launches) > 1 or not all(
            isinstance(each, dict | int | float | None) for each in args
        ):
            return None
        cluster = {} if own.cluster is None else {"cluster": list(own.cluster)}
        return {
            "kernel": kernel, "grid": list(own.grid), "block": list(own.block), **cluster,
            "shared": own.shared, "args": args,
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
            if each.said.start not in ("out", "out:zeros") and not each.said.is_scratch:
                numbers = each.numbers().reshape(each.shape)
                found[each.name] = numbers if each.shape or not each.is_scalar else numbers[()]
        return found


def _recorded(given: Any) -> Any:
    """An argument as a recorded launch has it."""
    if not isinstance(given, Argument):
        return given
    if not given.is_scalar:
        return {"array": given.name}
    return float(floats_of(given.memory, given.said.kind).reshape(-1)[0])


def case_of(
    said: Sequence[Said], sizes: Mapping[str, int], grid: str, block: str, cluster: str | None,
    shared: str, seed: int,
) -> Case:  # fmt: skip
    """What is said of a launch, at a shape."""
    launch = Launch(
        extents(grid, sizes), extents(block, sizes),
        None if cluster is None else extents(cluster, sizes), whole(shared, sizes, shared), [],
    )  # fmt: skip
    found = Case(dict(sizes), [launch])
    draw = np.random.default_rng(seed)
    for each in said:
        if each.name in found.named or each.name in found.whole:
            raise ParseError(f"two arguments are called '{each.name}'")
        if each.sizes is None and each.values is None and not each.is_float:
            value = whole(each.start, sizes, each.text)
            found.whole[each.name] = value
            launch.args.append(value)
            continue
        found.named[each.name] = argument_of(each, sizes, draw)
        launch.args.append(found.named[each.name])
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


def argument_of(said: Said, sizes: Mapping[str, int], draw: np.random.Generator) -> Argument:
    """Its memory, which holds nothing yet."""
    shape = said.shape(sizes)
    memory = np.zeros(shape or (1,), dtype_of(said.kind))
    return Argument(said, shape, memory, start_of(said, shape, draw))


def start_of(said: Said, shape: tuple[int, ...], draw: np.random.Generator) -> Array | None:
    """What an argument holds at first, where that is the same in all runs."""
    if said.values is not None:
        return np.ascontiguousarray(said.values).reshape(shape)
    if said.sizes is None:
        return None if said.is_free else _number(said)
    if said.start not in ("", "out", "inout", "scratch"):
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
        case "zeros" | "out:zeros" | "scratch:zeros":
            return np.zeros(shape)
        case "ones":
            return np.ones(shape)
        case "range":
            count = int(np.prod(shape, dtype=np.int64))
            return np.arange(count, dtype=np.float64).reshape(shape)
    if said.is_float:
        return draw.standard_normal(shape)
    return draw.integers(0, 100, shape).astype(np.float64)
