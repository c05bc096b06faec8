"""How precise a kernel is: in which types its sums are held, how often its results are rounded on
their longest path, what cancels, and how far they are from the reference on hard inputs.

The first two are what the run on elements saw its instructions do (`ptx/field/roundings.py`). The
last two are of inputs that were tried, and no bound for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, KernelError, ParseError, one_of
from warploom.ptx.field.elements import NotKnown
from warploom.ptx.field.roundings import TYPES
from warploom.verdict.case import Argument, Case, floats_of, rounded
from warploom.verdict.exact import Exactly, Went
from warploom.verdict.floats import SMALLEST, Launches, doubles, shaken, values
from warploom.verdict.inputs import HARD, SPECIAL, UNIT
from warploom.verdict.reference import Reference

Array = npt.NDArray[Any]
USUAL = "normal"
SHAKEN = 3
DOUBLE = 2.0**-52
SURE = 8.0  # times less than what is measured are the reference's own roundings
NAMES = {
    "float64": "f64", "float32": "f32", "tensorfloat32": "tf32", "float16": "f16",
    "bfloat16": "bf16", **{name: name for name in TYPES},
}  # fmt: skip
# By type of sums, in which types they may be held where it is asked for.
AS_WIDE = {
    "f64": ("f64",), "f32": ("f64", "f32"), "tf32": ("f64", "f32", "tf32"),
    "f16": ("f64", "f32", "tf32", "f16"), "bf16": ("f64", "f32", "tf32", "bf16"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """What is asked for: `tried`, hard inputs; at least which type for sums; at most how many units
    in the last place."""

    tried: bool = False
    accumulate: str | None = None
    ulps: float | None = None

    @staticmethod
    def of(tried: bool, accumulate: str | None, ulps: float | None) -> Limits:
        if accumulate is not None and accumulate not in NAMES:
            advice = one_of(str(accumulate), NAMES)
            raise ParseError(f"sums are to be held in '{accumulate!s:.40}'", advice=advice)
        good = ulps is None or (isinstance(ulps, int | float) and 0 <= ulps < np.inf)
        if not good:
            raise CheckError(f"a limit of {ulps!r:.40} ulps", advice="give a number, 0 or more")
        kind = None if accumulate is None else NAMES[accumulate]
        return Limits(tried or ulps is not None, kind, ulps)


@dataclass(slots=True)
class Precise:
    """One output. `ulps` is None where nothing was measured; `at` is the element that is furthest,
    on inputs of the distribution `ulps_by`."""

    name: str
    accumulators: tuple[str, ...] | None = None  # None: the run on elements does not follow it
    roundings: int = 0
    additions: int = 0
    tried: bool = False
    cancelled: float = 0.0  # bits
    cancelled_by: str = ""
    ulps: float | None = None
    ulps_by: str = ""
    special: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        if self.accumulators is not None:
            sums = f"sums are held in {', '.join(self.accumulators)}"
            if not self.accumulators:
                sums = "nothing is accumulated"
            yield f"{self.name}: {sums}; {self.roundings} roundings on the longest path"
        if self.tried and self.accumulators is not None:
            by = f", with inputs that are {self.cancelled_by}" if self.cancelled else ""
            yield f"{self.name}: at most {self.cancelled:.0f} bits cancel{by}"
        if self.ulps is not None:
            yield (
                f"{self.name}: at most {self.ulps:.3g} ulps from the reference, "
                f"with inputs that are {self.ulps_by}"
            )
        yield from (f"{self.name}: {each}" for each in self.special)

    def record(self) -> dict[str, Any]:
        known = self.accumulators is not None
        return {
            "output": self.name,
            "accumulators": None if self.accumulators is None else list(self.accumulators),
            "roundings": self.roundings if known else None,
            "additions": self.additions if known else None,
            "cancellation_bits": self.cancelled if known and self.tried else None,
            "cancellation_inputs": self.cancelled_by,
            "ulps": None if self.ulps is None else float(min(self.ulps, 1e300)),
            "ulps_inputs": self.ulps_by, "special": self.special,
        }  # fmt: skip


@dataclass(slots=True)
class Furthest:
    """The element that is furthest from the reference, of all that was measured."""

    ulps: float
    argument: Argument
    at: int
    found: Array
    wanted: Array
    how: str
    inputs: dict[str, Any]


@dataclass(slots=True)
class Measured:
    """What is measured of one shape, by output."""

    kernel_run: Launches
    case: Case
    reference: Reference
    exactly: Exactly
    seed: int
    outputs: dict[str, Precise] = field(default_factory=dict)
    furthest: Furthest | None = None

    def passed(self, went: dict[str, Went]) -> None:
        """What the run on elements saw."""
        for each in self.case.outputs:
            self.outputs[each.name] = Precise(each.name)
            if each.name in went:
                seen = went[each.name]
                self.outputs[each.name] = Precise(
                    each.name, seen.accumulators, seen.roundings, seen.additions
                )

    def hard(self, narrow: int | None) -> None:
        """Hard inputs, on elements and on floats."""
        for each in self.outputs.values():
            each.tried = True
        for number, how in enumerate((USUAL, *HARD)):
            self._cancelled(how, self.seed + number, narrow)
            self._distance(how, self.seed + number)
        for how in SPECIAL:
            self._special(how)

    def _cancelled(self, how: str, seed: int, narrow: int | None) -> None:
        if all(each.accumulators is None for each in self.outputs.values()):
            return
        with suppress(NotKnown):
            self.exactly.again(how, seed, narrow)
            for name, seen in self.exactly.went.items():
                if seen.cancelled > self.outputs[name].cancelled:
                    self.outputs[name].cancelled = seen.cancelled
                    self.outputs[name].cancelled_by = how

    def _launched(self, how: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """What inputs held, as memory and as doubles."""
        case = self.case
        case.fill(np.random.default_rng(seed), how)
        inputs = {each.name: each.memory.copy() for each in case.named.values()}
        given = {name: np.copy(value) for name, value in case.given().items()}
        with suppress(KernelError):
            self.kernel_run.run(case)
        return inputs, given

    def _distance(self, how: str, seed: int) -> None:
        case = self.case
        inputs, given = self._launched(how, seed)
        wanted = self._doubles(given)
        noise = self._moved(given, DOUBLE)
        for number, each in enumerate(case.outputs):
            if not each.said.is_float:
                continue
            unit = 2.0 ** UNIT[each.said.kind]
            found = values([each])[0]
            far = distance(
                found, wanted[number], self._moved(given, unit)[number], noise[number],
                each.said.kind,
            )  # fmt: skip
            if not np.isnan(far).all():
                at = int(np.nanargmax(far))
                self._keep(Furthest(float(far[at]), each, at, found, wanted[number], how, inputs))

    def _keep(self, seen: Furthest) -> None:
        of = self.outputs[seen.argument.name]
        if of.ulps is None or seen.ulps > of.ulps:
            of.ulps, of.ulps_by = seen.ulps, seen.how
        if self.furthest is None or seen.ulps > self.furthest.ulps:
            self.furthest = seen

    def _doubles(self, given: dict[str, Any]) -> list[Array]:
        return doubles(self.case, self.reference, {k: np.copy(v) for k, v in given.items()})

    def _moved(self, given: dict[str, Any], unit: float) -> list[Array]:
        """How far results of the reference move as inputs do, by a unit in the last place."""
        wanted, draw = self._doubles(given), np.random.default_rng(self.seed)
        moved = [np.zeros(each.shape) for each in wanted]
        for _ in range(SHAKEN):
            near = self._doubles(shaken(self.case, given, unit, draw))
            with np.errstate(all="ignore"):
                moved = [
                    np.fmax(old, np.abs(x - y))
                    for old, x, y in zip(moved, near, wanted, strict=True)
                ]
        return moved

    def _special(self, how: str) -> None:
        if not self.case.free:
            return
        _, given = self._launched(how, self.seed)
        wanted = self._doubles(given)
        for each, found, right in zip(
            self.case.outputs, values(self.case.outputs), wanted, strict=True
        ):
            if each.said.is_float:
                self.outputs[each.name].special += told_apart(found, right, how, each.said.kind)


def distance(found: Array, wanted: Array, moved: Array, noise: Array, kind: str) -> Array:
    """In units in the last place of the result, or in what it moves as inputs do by such a unit,
    whichever is more. NaN where the reference is no number of the type, or not known so well."""
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.abs(wanted)))
        unit = np.exp2(np.nan_to_num(exponent, neginf=-2000.0) + UNIT[kind])
        unit = np.maximum(np.maximum(unit, SMALLEST[kind]), np.nan_to_num(moved))
        far = np.abs(found - wanted) / unit
        far = np.where(np.isfinite(found), far, np.inf)
        known = np.isfinite(floats_of(rounded(wanted, kind), kind))
        known &= np.isfinite(moved) & (SURE * noise <= unit)
    return np.where(known, far, np.nan)


def told_apart(found: Array, wanted: Array, how: str, kind: str) -> list[str]:
    """Where infinite numbers and NaNs come out as others, in words."""
    type_has = floats_of(rounded(wanted, kind), kind)
    tests: tuple[tuple[Callable[[Array], Array], str], ...] = (
        (np.isnan, "are NaN"), (np.isinf, "are infinite"), (np.isfinite, "are finite"),
    )  # fmt: skip
    out = []
    for test, says in tests:
        for other, but in tests:
            count = int((test(found) & other(type_has)).sum())
            if other is not test and count:
                out.append(
                    f"{how} among the inputs {count} of {found.size} results {says} where those "
                    f"of the reference {but}"
                )
    return out
