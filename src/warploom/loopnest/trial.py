"""An implementation tried: run on the simulator beside what its program means.

In come an implementation and a seed; out goes what was run and whether it was right. Axes are cut
short to a few tiles, the last as partial as it was: every loop, condition and barrier is there, and
it takes a second. Inputs have both signs. Infinities and what is no number have to be where they
should be; integers are compared exactly, unless they come from floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from warploom.index.ir import Const
from warploom.kernel.dtype import DType, memory_of, numbers_of
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel, Operation, TensorKind, Value, walk_value
from warploom.kernel.tensor import leading_bits
from warploom.loopnest.computation import Computation, Loaded
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import Evaluation, Numbers, elements, rows_of, written
from warploom.loopnest.ir import (
    Array,
    Axis,
    ByData,
    Compute,
    Load,
    Program,
    Result,
    Store,
    leaves,
    results,
)
from warploom.loopnest.lower import lower
from warploom.loopnest.noise import Noise
from warploom.loopnest.pieces import in_pieces
from warploom.search.branching.candidate import Flags
from warploom.search.outcome import Reason

Launching: TypeAlias = Callable[[Kernel, list[Any]], Sequence[object]]
# Tiles along each axis: the first, one between (where a pipeline is filled), the last.
ITERATIONS = 3
# How far a sum in single precision may be from one in double precision, of the largest element.
CLOSE = 1e-4
SHORT = 1e-3  # the same for sums of products of floats of eight bits, or of rounded factors
# How much of the noise counts beside that: all of it and more, but never more than elements of 1.
NOISE = 16 / CLOSE
# Integers that are put in; those without a sign from zero on.
SMALLEST, LARGEST = -100, 100
# Of so many integers that say what is loaded one names nothing.
OUTSIDE = 16
# Numbers that are drawn for one array.
MOST_DRAWN = 1_000_003
# What is in an array before: between the rows of a shortened one it has to stay there.
UNTOUCHED = 77


@dataclass(frozen=True, slots=True)
class Tried:
    """`wrong` names a race, or an element that is not what it should be; it is empty if all is
    right, or if the trial was `stopped`, which shows nothing. `after` is that of the kernel that
    runs next, where there is one."""

    sizes: dict[str, int]
    wrong: str = ""
    stopped: Reason | None = None
    after: Tried | None = None

    def __str__(self) -> str:
        return self._own if self.after is None else f"{self._own}; the next kernel {self.after}"

    @property
    def _own(self) -> str:
        if self.stopped is not None:
            return f"was not run on the simulator to its end: {self.stopped.value}"
        sizes = ", ".join(f"{axis} = {size}" for axis, size in self.sizes.items())
        return self.wrong or f"equals the reference evaluator on the simulator at {sizes}"


def tried(implementation: Implementation, seed: int = 0, iterations: int = ITERATIONS) -> Tried:
    """Raises where the kernel does what no kernel may: a race, an access outside its array."""
    made = implementation.shortened(iterations)
    seen = made.target.tensor if "TENSOR" in made.kind.values() else None
    return tried_kernel(made.program, lower(made), made.sizes, seed, seen)


def simulated(kernel: Kernel, given: list[Any]) -> Sequence[object]:
    """Runs a kernel on the simulator, and tells of races."""
    return run(kernel, given).races


def tried_kernel(
    program: Program,
    kernel: Kernel,
    sizes: Mapping[Axis, int],
    seed: int = 0,
    seen: TensorKind | None = None,
    part: float | None = None,
) -> Tried:
    """The kernel of a program along axes of these sizes, run on the simulator."""
    return tried_kernels(program, (kernel,), sizes, seed, seen, part)


def tried_kernels(
    program: Program,
    kernels: Sequence[Kernel],
    sizes: Mapping[Axis, int],
    seed: int = 0,
    seen: TensorKind | None = None,
    part: float | None = None,
    launch: Launching = simulated,
) -> Tried:
    """Kernels that compute a program one after the other. `part` says how near numbers are, of the
    largest, where they are not what sums in single precision are."""
    sample = Sample.of(program, sizes, seed, seen, part)
    given = sample.given()
    wrong = sample.run(kernels, given, launch) or sample.wrong(given)
    return Tried({axis.name: size for axis, size in sizes.items()}, wrong)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Inputs of a program along axes of some sizes, and what it makes of them."""

    program: Program
    sizes: Mapping[Axis, int]
    numbers: Mapping[str, float]
    kept: Mapping[str, Numbers]
    wanted: Mapping[str, Numbers]
    noise: Mapping[str, float]
    part: float | None

    @classmethod
    def of(
        cls,
        program: Program,
        sizes: Mapping[Axis, int],
        seed: int = 0,
        seen: TensorKind | None = None,
        part: float | None = None,
    ) -> Sample:
        arrays, numbers = some_inputs(program, np.random.default_rng(seed), sizes, seen)
        meant = Evaluation(program, arrays, numbers, sizes)
        wanted, noise = meant.outputs(), Noise(meant).outputs()
        kept = {array.name: each for array, each in before(meant, arrays)}
        return cls(program, sizes, numbers, kept, wanted, noise, part)

    def given(self) -> dict[str, Numbers]:
        """Arrays for kernels, in the order of the program's."""
        return {array.name: self.kept[array.name].copy() for array in self.program.arrays}

    def run(
        self,
        kernels: Sequence[Kernel],
        given: Mapping[str, Numbers],
        launch: Launching = simulated,
    ) -> str:
        """Runs kernels one after the other; what is between them is no number before. Names a race,
        if there is any. `launch` runs a kernel on its arguments and tells of races."""
        between: dict[str, Numbers] = {}
        for kernel in kernels:
            known = {**between, **given}
            races = launch(kernel, list(_arguments(kernel, known, self.numbers, between)))
            if races:
                return f"threads store the same at once: {races[0]}"
        return ""

    def wrong(self, given: Mapping[str, Numbers]) -> str:
        """Names an element that kernels left and that is not what it should be, if any."""
        stored = written(self.program, self.sizes)
        for name, each in self.wanted.items():
            off = ~agrees(self.program, name, given[name], each, self.noise[name], self.part)
            apart = np.where(stored[name], off, given[name] != self.kept[name])
            if apart.any():
                at = int(np.argmax(apart))
                dtype = dtype_of(self.program, name)
                got, right = (numbers_of(x[at : at + 1], dtype)[0] for x in (given[name], each))
                return f"{name}[{at}] is {got:.6g} and should be {right:.6g}"
        return ""


def _arguments(
    kernel: Kernel,
    given: Mapping[str, Numbers],
    numbers: Mapping[str, float],
    between: dict[str, Numbers],
) -> Iterator[Numbers | float]:
    """What a kernel takes, by name; an array that is none of the program's is made, and kept."""
    for each in kernel.params:
        if not isinstance(each, ArrayParam):
            yield numbers[each.name]
        elif each.name in given:
            yield given[each.name]
        else:
            assert isinstance(each.size, Const)
            between[each.name] = np.full(each.size.value, np.nan, each.dtype.numpy)
            yield between[each.name]


def before(meant: Evaluation, arrays: Mapping[str, Numbers]) -> Iterator[tuple[Array, Numbers]]:
    """What is in every array before: something else in those that are stored, unless they are
    loaded, too."""
    for array in meant.program.arrays:
        given = arrays[array.name]
        is_output = array.name in meant.written() and array not in meant.updated
        yield array, np.full_like(given, UNTOUCHED) if is_output else given


def some_inputs(
    program: Program,
    random: np.random.Generator,
    sizes: Mapping[Axis, int] | None = None,
    seen: TensorKind | None = None,
) -> tuple[dict[str, Numbers], dict[str, float]]:
    """Arrays and numbers for a program, each of its type; those that it stores are among them."""
    below, words = named_below(program, bool(sizes)), shifted(program)
    arrays = {
        array.name: _words(array.dtype, count, random)
        if array in words
        else _inputs(array.dtype, count, random, seen, below.get(array))
        for array, count in elements(program, sizes or {}).items()
    }
    return arrays, {each.name: _number(each.dtype, random) for each in program.parameters}


def shifted(program: Program) -> set[Array]:
    """Arrays of integers whose bits are taken apart by shifts."""
    source, found = Computation.of(program), set[Array]()
    values = [
        each.value for each in (*source.leaves, *source.stores) if not isinstance(each, Loaded)
    ]
    for value in values:
        for part in walk_value(value):
            if isinstance(part, Operation) and part.op in ("<<", ">>"):
                inside = walk_value(part.operands[0])
                found |= {each.access.array for each in inside if isinstance(each, Loaded)}
    return found


def _words(dtype: DType, count: int, random: np.random.Generator) -> Numbers:
    """Integers with any bits."""
    drawn = random.integers(0, 256, min(count, MOST_DRAWN) * dtype.bytes, dtype=np.uint8)
    return np.resize(drawn.view(dtype.numpy), count)


def named_below(program: Program, short: bool) -> dict[Array, int]:
    """Arrays of integers that say what of others is loaded, and how many elements there are."""
    found: dict[Array, int] = {}
    for inst in in_pieces(program).instructions:
        if isinstance(inst.action, Load):
            access = inst.action.access
            for each, rows in zip(access.subscripts, rows_of(access, short), strict=True):
                if isinstance(each, ByData):
                    found |= dict.fromkeys(_loaded_for(each.value), rows)
    return found


def _loaded_for(value: Value) -> Iterator[Array]:
    """The arrays of integers that a value is made of."""
    for each in leaves(value):
        if not isinstance(each, Result):
            continue
        if each.instruction.dtype.is_real:
            continue
        if isinstance(each.instruction.action, Load):
            yield each.instruction.action.access.array
        for operand in each.instruction.operands:
            yield from _loaded_for(operand)


def _inputs(
    dtype: DType,
    count: int,
    random: np.random.Generator,
    seen: TensorKind | None = None,
    below: int | None = None,
) -> Numbers:
    """With the few bits that tensor cores look at, products are exact. Of many the first are
    repeated, a prime number of them, so that no two rows are alike. Integers `below` a number name
    what there is, and one of sixteen something beside it."""
    if count > MOST_DRAWN:
        return np.resize(_inputs(dtype, MOST_DRAWN, random, seen, below), count)
    if below is not None:
        limits = np.iinfo(dtype.numpy)
        inside = random.integers(0, min(below, limits.max), count)
        beside = np.where(random.integers(0, 2, count), min(below, limits.max), max(-1, limits.min))
        return np.where(random.integers(0, OUTSIDE, count), inside, beside).astype(dtype.numpy)
    if dtype.is_real:
        drawn = memory_of(random.standard_normal(count), dtype)
        return leading_bits(drawn, seen) if seen and dtype is DType.F32 else drawn
    return random.integers(SMALLEST if dtype.is_signed else 0, LARGEST, count).astype(dtype.numpy)


def _number(dtype: DType, random: np.random.Generator) -> float:
    value = _inputs(dtype, 1, random)[0]
    return float(value) if dtype.is_float else int(value)


def dtype_of(program: Program, name: str) -> DType:
    return next(array.dtype for array in program.arrays if array.name == name)


def nearness(program: Program) -> float:
    """How far sums may be off, of the largest: tensor cores add products of floats of eight bits
    with fewer bits than single precision has; and what is rounded to bf16 before it is multiplied,
    as weights of attention are, is rounded beside another number in another order."""
    short = any(each.dtype.is_code and each.dtype.bytes == 1 for each in program.instructions)
    return SHORT if short or _rounds(program) else CLOSE


def _rounds(program: Program) -> bool:
    """Whether something computed is rounded to bf16 and not only stored."""
    return any(
        each.instruction.dtype is DType.BF16 and isinstance(each.instruction.action, Compute)
        for inst in in_pieces(program).instructions
        if not isinstance(inst.action, Store)
        for each in results(inst)
    )


def agrees(
    program: Program,
    name: str,
    got: Numbers,
    wanted: Numbers,
    noise: float = math.inf,
    part: float | None = None,
) -> Flags:
    """Which elements of an array are what a program means: exactly, where it has no floats."""
    dtype = dtype_of(program, name)
    if any(each.dtype.is_real for each in program.instructions):
        held = numbers_of(got, dtype), numbers_of(wanted, dtype)
        return close(*held, noise, dtype, nearness(program) if part is None else part)
    found: Flags = got == wanted
    return found


def close(
    got: Numbers,
    wanted: Numbers,
    noise: float = math.inf,
    dtype: DType = DType.F32,
    part: float = CLOSE,
) -> Flags:
    """Which elements are near enough to what they should be. The largest that is finite says what
    is near, and the noise of their sums where that is known; what is not finite is itself. Codes
    may be neighbours: what they are of lies near the middle between two."""
    finite = np.isfinite(wanted)
    largest = float(np.abs(wanted[finite]).max(initial=0.0))
    near: Numbers | float = part * largest + part * min(1.0, NOISE * noise)
    with np.errstate(invalid="ignore"):
        if dtype.is_code:
            own, least = dtype.rounding
            near = near + 2 * np.maximum(own * np.abs(wanted), least)
        apart = np.abs(got.astype(np.float64) - wanted)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    found: Flags = np.where(finite, apart <= near, same)
    return found
