"""A case on elements of prime fields: what the kernel writes, and what its reference gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.ptx.field.arrays import Exact, Literals
from warploom.ptx.field.digits import Digits
from warploom.ptx.field.elements import LOG2_E, LOW_LOG2_E, Elements, NotKnown
from warploom.ptx.field.equal import FEW, Answer, decided
from warploom.ptx.field.floats import Field
from warploom.ptx.field.roundings import code_of, names_of
from warploom.ptx.field.run import UNWRITTEN, Floats, run
from warploom.ptx.ir import Immediate, Spelling
from warploom.ptx.launch import Kernel
from warploom.ptx.types import types_of
from warploom.verdict.case import Argument, Case, Launch
from warploom.verdict.reference import Reference

Array = npt.NDArray[Any]
SINGLES = frozenset({"f32", "f16", "bf16", "f16x2", "bf16x2", "tf32"})
Pairs = list[tuple[Array, Array]]


@dataclass(frozen=True, slots=True)
class Went:
    """What an output went through: types of sums to which more was added, roundings and additions
    on its longest paths, bits that cancelled."""

    accumulators: tuple[str, ...]
    roundings: int
    additions: int
    cancelled: float


@dataclass(slots=True)
class Exactly:
    """`real`: by output, the values of the draw that was last for inputs that are numbers, of the
    kernel and of the reference. `taken`: constants of the reference, and for which floats of the
    kernel they were taken. `went`: by output, what the last draw saw; `holding`: by type, where
    sums of it are first added to."""

    kernel: Kernel
    case: Case
    reference: Reference
    deadline: float | None
    literal: str = "f4"  # the type whose floats stand for constants of the reference
    inverted: bool = False  # also for one over a constant that something is divided by
    log2_e: float | None = None  # as the kernel has it, in two parts
    racing: bool = False  # threads write the same to one place, which elements are to show
    how: str = "normal"
    seed: int = 0
    real: list[tuple[Array, Array]] = field(default_factory=list)
    taken: dict[float, float] = field(default_factory=dict)
    went: dict[str, Went] = field(default_factory=dict)
    holding: dict[str, Span] = field(default_factory=dict)

    @property
    def compared(self) -> list[Argument]:
        """What has to be as the reference has it: outputs, and inputs, which stay as they are."""
        return [*self.case.outputs, *self.case.kept]

    def once(self, drawn: Field, r: Random, narrow: int | None) -> Pairs:
        e, case = drawn.elements, self.case
        self.went = {}
        if self.racing:
            e.merging = e.by_key = True
        case.fill(np.random.default_rng(self.seed), self.how)
        floats = self._floats(e, r, narrow)
        before = {name: each.numbers.copy() for name, each in floats.items()}
        given = self._given(e, before)
        for launch, kernel in zip(case.launches, case.kernels(self.kernel), strict=True):
            self._launched(kernel, launch, floats, drawn, r)
        pairs = self._pairs(e, given, before, floats)
        self.real = [(e["real"][x], e["real"][y]) for x, y in pairs]
        self.holding = e.holding
        self.went = {
            each.name: _went(e, floats[each.name].numbers.reshape(-1))
            for each in case.outputs
            if each.name in floats
        }
        return pairs

    def _launched(
        self, kernel: Kernel, launch: Launch, floats: dict[str, Floats], drawn: Field, r: Random
    ) -> None:
        """One launch: what it wrote is what the next one finds."""
        taken = [each for each in self.case.named.values() if launch.takes(each)]
        given = []
        for each in taken:
            if each.name in floats:
                one = floats[each.name]
                one.argument = launch.args.index(each) if each.is_scalar else None
                given.append(one)
        others = [each.memory for each in taken if each.name not in floats]
        run(
            kernel, launch.grid, launch.block, launch.passed(), given, drawn, r,
            shared_bytes=launch.shared, deadline=self.deadline, cluster=launch.cluster or 1,
            others=others, racing=self.racing,
        )  # fmt: skip

    def _floats(self, e: Elements, r: Random, narrow: int | None) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        free = [each.name for each in self.case.free]
        for each in self.case.named.values():
            if not each.said.is_float:
                continue
            values = each.numbers().reshape(-1)
            if each.said.is_free:
                few = FEW if narrow is not None and free[narrow] == each.name else 0
                numbers = e.inputs(values.size, r, few, values)
                e["type"][numbers] = code_of(each.said.kind)
            elif each.start is None:
                numbers = np.full(values.size, UNWRITTEN)
            else:
                numbers = e.constants(values)
            bits = each.memory.view(f"u{each.memory.dtype.itemsize}")
            found[each.name] = Floats(each.said.kind, numbers.reshape(each.memory.shape), bits)
        return found

    def _literals(self, e: Elements) -> Literals:
        kernels = self.case.kernels(self.kernel)
        among, beyond = None, "f8"
        if self.literal == "f2":
            among, beyond = halves_of(kernels), "f4"
        elif self.literal == "f4" and any(each.said.kind == "f64" for each in self.case.outputs):
            among = singles_of(kernels)
        return Literals(
            e, self.literal, self.taken, self.inverted, self.log2_e, among, beyond
        )  # fmt: skip

    def _given(self, e: Elements, numbers: dict[str, Array]) -> dict[str, Any]:
        """What the reference is called with, at the start of the launch."""
        literals = self._literals(e)
        found = self.case.given()
        for name, each in numbers.items():
            if name in found:
                found[name] = Exact(literals, each.reshape(self.case.named[name].shape).copy())
        return found

    def _pairs(
        self, e: Elements, given: dict[str, Any], before: dict[str, Array],
        floats: dict[str, Floats],
    ) -> Pairs:  # fmt: skip
        wanted = self.reference.of(given, self.case)
        pairs: Pairs = []
        for name, result in zip((e.name for e in self.case.outputs), wanted, strict=True):
            if name not in floats:
                pairs.append(self._whole(e, name, result))
                continue
            found = floats[name].numbers.reshape(-1)
            if (found == UNWRITTEN).any():
                at = int((found == UNWRITTEN).argmax())
                raise NotKnown(f"{name}[{at}] is no number: unwritten, or with changed bits")
            literals = self._literals(e)
            numbers = result.numbers if isinstance(result, Exact) else literals.elements_of(result)
            pairs.append((found, np.asarray(numbers).reshape(-1)))
        for each in self.case.kept:
            if each.name in floats:
                now = floats[each.name].numbers.reshape(-1)
                if (now == UNWRITTEN).any():
                    raise NotKnown(f"the input {each.name} is no number any more")
                pairs.append((now, before[each.name].reshape(-1)))
            else:
                start = np.asarray(each.start).reshape(-1)
                pairs.append(_told_apart(e, each.memory.reshape(-1), start))
        return pairs

    def _whole(self, e: Elements, name: str, result: Any) -> tuple[Array, Array]:
        """Whole numbers are the same in all draws."""
        if isinstance(result, Exact):
            raise NotKnown(f"'{name}' holds whole numbers, and the reference gives floats")
        found = self.case.named[name].memory.reshape(-1)
        wanted = np.asarray(result).reshape(-1)
        if wanted.dtype.kind not in "biu":
            raise NotKnown(f"'{name}' holds whole numbers, and the reference gives floats")
        return _told_apart(e, found, wanted)

    def answer(self) -> Answer:
        """Whether both are the same; by which floats constants are taken does not matter."""
        found = Answer("unknown")
        kernels = self.case.kernels(self.kernel)
        scales = (LOG2_E, None) if any(map(has_log2_e, kernels)) else (None,)
        for way in product(literals_of(kernels), (False, True), scales):
            self.literal, self.inverted, self.log2_e = way
            self.taken.clear()
            found = decided(self.once, len(self.case.free), self.seed)
            last = self.inverted and self.log2_e is None
            if found.verdict != "different" or (not self.taken and last):
                break
        return found

    def again(self, how: str, seed: int, narrow: int | None) -> None:
        """One more draw, with other numbers for the inputs; then `real` has its values."""
        self.how, self.seed = how, seed
        r = Random(seed)
        drawn = Field(Elements.drawn(r), Digits.drawn(r))
        drawn.elements.by_key = drawn.elements.free_exponentials = True
        self.once(drawn, r, narrow)


def _went(e: Elements, numbers: Array) -> Went:
    most = {name: e[name][numbers].max(initial=0) for name in ("roundings", "sums", "cancelled")}
    return Went(
        names_of(int(np.bitwise_or.reduce(e["held"][numbers], initial=0))),
        int(most["roundings"]), int(most["sums"]), float(most["cancelled"]),
    )  # fmt: skip


def _told_apart(e: Elements, found: Array, wanted: Array) -> tuple[Array, Array]:
    """Whole numbers as constants: those of 64 bits that differ do so as doubles, too."""
    x, y = found.astype(np.float64), wanted.astype(np.float64)
    differ = found.astype(object) != wanted.astype(object)
    return e.constants(x), e.constants(np.where(differ & (x == y), np.nextafter(y, np.inf), y))


def has_log2_e(kernel: Kernel) -> bool:
    """Whether it has the second part of what expf multiplies with."""
    operands = (each for step in kernel.function.instructions() for each in step.operands)
    return any(isinstance(each, Immediate) and each.value == LOW_LOG2_E for each in operands)


def halves_of(kernels: Sequence[Kernel]) -> Array:
    """The floats of f16 that stand in them, or in variables: constants that they may compute with
    in that type. A single that is near to one is another constant."""
    return _floats_in(kernels, Spelling.INTEGER, "<f2")


def singles_of(kernels: Sequence[Kernel]) -> Array:
    """Likewise the singles, where results are doubles: one near to a single is another."""
    return _floats_in(kernels, Spelling.SINGLE, "<f4")


def _floats_in(kernels: Sequence[Kernel], spelling: Spelling, dtype: str) -> Array:
    steps = (step for each in kernels for step in each.function.instructions())
    operands = (each for step in steps for each in step.operands)
    words = [each.value & 0xFFFFFFFF for each in operands
             if isinstance(each, Immediate) and each.spelling is spelling]  # fmt: skip
    stored = [each.tobytes() for one in kernels for each in one.owner.variables.values()]
    size = np.dtype(dtype).itemsize
    parts = [raw[: len(raw) // size * size] for raw in stored]
    whole = b"".join([np.array(words, "<u4").tobytes(), *parts])
    with np.errstate(invalid="ignore"):
        return np.unique(np.frombuffer(whole, dtype).astype(np.float64))


def literals_of(kernels: Sequence[Kernel]) -> Sequence[str]:
    """Types whose floats constants may be rounded to, the likeliest first: those that the kernels
    compute with, so that the single of a constant is not what a kernel of doubles should have."""
    steps = [step for each in kernels for step in each.function.instructions()]
    used = {kind for step in steps for kind in types_of(step)}
    doubles = ["f8"] if "f64" in used else []
    if doubles and not used & SINGLES:
        return doubles
    return ["f4", *doubles, *(["f2"] if used & {"f16", "f16x2"} else [])]
