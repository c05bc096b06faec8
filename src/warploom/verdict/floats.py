"""A case on floats: plain launches, what they find, and inputs on which two functions differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.report import Report
from warploom.ptx.launch import Kernel, LoadedModule
from warploom.ptx.patience import left
from warploom.verdict.case import Argument, Case, Launch
from warploom.verdict.reference import Reference

Array = npt.NDArray[Any]
ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
# The smallest number above 0 of a type: what is nearer to 0 may be 0.
SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-126, "f64": 2.0**-1022}
APART = 8.0  # times the rounding that was seen, and times a unit in the last place
GROSS = 64.0  # likewise, where rounding is only estimated


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Inputs on which the kernel's result is not that of the reference, whatever is rounded."""

    output: str
    index: tuple[int, ...]
    kernel: float
    reference: float
    how: str  # the distribution of the inputs
    seed: int
    arrays: dict[str, Array]  # what they hold as the launch begins
    launch: dict[str, Any] | None = None  # as `ptx run --launch` reads it, beside these

    @property
    def text(self) -> str:
        at = ",".join(map(str, self.index))
        place = f"{self.output}[{at}]" if self.index else self.output
        return (
            f"{place} is {self.kernel:.9g}, and {self.reference:.9g} by the reference "
            f"({self.how} inputs, seed {self.seed})"
        )


class Launches:
    """Launches of a case, each time with the modules' variables as they were at first."""

    def __init__(self, kernel: Kernel, deadline: float | None) -> None:
        self.kernel, self.deadline = kernel, deadline
        self.marks: dict[str, Array] = {}  # of the run that was last: which bytes it wrote
        self.last: Launch | None = None  # that was begun
        self._variables: dict[str, tuple[LoadedModule, Array]] = {}
        self._changed: set[str] = set()
        self._keep(kernel.owner)

    def _keep(self, owner: LoadedModule) -> None:
        for name, value in owner.variables.items():
            self._variables.setdefault(f"{id(owner)} {name}", (owner, value.copy()))

    def restore(self) -> None:
        for key, (owner, value) in self._variables.items():
            owner.variables[key.partition(" ")[2]][...] = value

    def changed(self) -> list[str]:
        """Variables that did not hold what they do at first, after some launch of the run that was
        last: what a later launch may find."""
        return sorted(each.partition(" ")[2] for each in self._changed)

    def _look(self) -> None:
        for key, (owner, value) in self._variables.items():
            if owner.variables[key.partition(" ")[2]].tobytes() != value.tobytes():
                self._changed.add(key)

    def run(
        self, case: Case, *, prove: bool = False, keep: bool = False, benign: bool = False
    ) -> list[Report]:
        """`prove`: with all checks, and outputs that nobody wrote. `benign`: writes of the same do
        not race."""
        kernels = case.kernels(self.kernel)
        for each in kernels:
            self._keep(each.owner)
        if not keep:
            self.restore()
        fresh = case.fresh() if prove else {}
        self.marks = {name: each.marks for name, each in fresh.items()}
        self._changed.clear()
        reports = []
        for self.last, kernel in zip(case.launches, kernels, strict=True):
            reports.append(
                kernel.launch(
                    self.last.grid, self.last.block, self.last.passed(fresh),
                    shared_bytes=self.last.shared, cluster=self.last.cluster,
                    races="all" if prove else False, prove=prove, benign=benign,
                    seconds=left(self.deadline), engine="numpy" if prove else "auto",
                )
            )  # fmt: skip
            self._look()
        return reports


def unwritten(case: Case, marks: dict[str, Array]) -> list[tuple[str, int, int]]:
    """Outputs that are not written as a whole: the first element that is not, and how many."""
    found = []
    for name in (each.name for each in case.outputs if each.name in marks):
        each = marks[name]
        size = case.named[name].memory.dtype.itemsize
        missing = ~each.reshape(-1, size).all(axis=1)
        if missing.any():
            found.append((name, int(missing.argmax()), int(missing.sum())))
    return found


def values(compared: list[Argument]) -> list[Array]:
    """What outputs hold, as doubles."""
    return [each.numbers().astype(np.float64).reshape(-1) for each in compared]


def furthest(found: Array, kernel: Array, references: list[Array], kind: str) -> int | None:
    """The element that is furthest from the reference, for another reason than rounding: `kernel`
    is what it would be without. None if rounding may be all, or may be so by one of `references`,
    which have constants that are rounded or are not."""
    far = np.min([_far(found, kernel, each, kind) for each in references], axis=0)
    return int(far.argmax()) if far.any() else None


def _far(found: Array, kernel: Array, reference: Array, kind: str) -> Array:
    """How many times further than rounding explains each element is; 0 of those that are not."""
    with np.errstate(all="ignore"):
        good = np.isfinite(found) & np.isfinite(kernel) & np.isfinite(reference)
        rounded = np.abs(found - kernel)
        scale = np.maximum(np.abs(kernel), np.abs(reference))
        relative = rounded[good] / np.maximum(np.abs(kernel[good]), 1e-300)
        usual = float(np.quantile(relative, 0.9)) if relative.size else 0.0
        noise = np.maximum(rounded, min(usual, 1.0) * np.abs(kernel))
        apart = np.minimum(np.abs(kernel - reference), np.abs(found - reference))
        unit = np.maximum(ROUNDING.get(kind, 0.0) * scale, SMALLEST.get(kind, 0.0))
        limit = APART * np.maximum(noise, unit)
        return np.where(good & (apart > limit), apart / np.maximum(limit, 1e-300), 0.0)


def grossly(found: Array, reference: Array, shaken: list[Array], unit: float) -> int | None:
    """The same where it is not known what the kernel gives without rounding: by how much the
    reference changes as its inputs do, a little."""
    with np.errstate(all="ignore"):
        good = np.isfinite(reference)
        moved = np.max([np.abs(each - reference) for each in shaken], axis=0)
        largest = float(np.abs(reference[good]).max(initial=0))
        limit = GROSS * (np.nan_to_num(moved) + unit * np.abs(reference)) + unit * largest
        wrong = ~np.isfinite(found) | (np.abs(found - reference) > limit)
        far = np.where(good & wrong, np.nan_to_num(np.abs(found - reference), nan=np.inf), -1.0)
    return int(far.argmax()) if (far >= 0).any() else None


def doubles(case: Case, reference: Reference, given: dict[str, Any]) -> list[Array]:
    """The results of the reference on doubles."""
    made = reference.of(given, case)
    return [np.asarray(each, np.float64).reshape(-1) for each in made]


def shaken(case: Case, given: dict[str, Any], unit: float, draw: np.random.Generator) -> Any:
    """The inputs, each a little away."""
    found = dict(given)
    for each in case.free:
        value = np.asarray(given[each.name], np.float64)
        found[each.name] = value * (1 + unit * draw.uniform(-1, 1, value.shape))
    return found
