"""What a synthesis run gives back: the outcome, the fills, their verification, and statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warploom.errors import located
from warploom.pictured import PublicResult
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided, Verdict
from warploom.search.outcome_json import stopped_by
from warploom.sketch.synth.fills import Fills
from warploom.sketch.synth.show import fill_text, show_fill
from warploom.sketch.term.ir import Apply, Goal, Program
from warploom.sketch.term.verify import Verification


@dataclass(frozen=True, slots=True)
class HoleStats:
    """One hole: how many candidates were looked at, how many went on, what stopped the others."""

    name: str
    options: int
    visited: int
    kept: int
    pruned: dict[str, int]


@dataclass(frozen=True, slots=True)
class Stats:
    """`states` counts candidates of which any cell was evaluated; `oracle` what a search would
    visit that knows which prefixes can be completed (None if not all fills are known)."""

    states: int
    holes: tuple[HoleStats, ...]
    raw_space: int
    tree: int
    oracle: int | None
    phases: dict[str, float]  # CPU seconds
    seconds: float
    cpu_seconds: float
    peak_mb: float

    @property
    def never_visited(self) -> float:
        """Share of the nodes of the whole search tree that were never looked at."""
        return 1.0 - min(1.0, self.states / self.tree) if self.tree else 1.0

    @property
    def factor(self) -> float | None:
        """The ineffectiveness factor: states visited over those an oracle would visit."""
        return self.states / self.oracle if self.oracle else None

    @property
    def pruned(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for hole in self.holes:
            for test, count in hole.pruned.items():
                total[test] = total.get(test, 0) + count
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Result(PublicResult):
    """What `synthesize` found: the fills of a sketch, what is proved of them, and the kernel.

    `print(result)` shows the first fill. `.kernel`, `.text("cuda")` and `.save("sums.cu")` are of
    the first fill, too; `warploom.compile(result)` makes it a function on arrays.
    """

    program: Program
    goal: Goal
    outcome: Found[Fills] | Impossible | Undecided
    fills: Fills
    verdicts: tuple[Verification, ...]
    stats: Stats
    sizes: tuple[str, ...] = field(default=())  # sizes at which the fills were checked

    @property
    def complete(self) -> bool:
        """Nothing else exists."""
        return isinstance(self.outcome, Impossible) or (
            isinstance(self.outcome, Found) and self.outcome.complete
        )

    @property
    def stopped(self) -> Reason | None:
        return stopped_by(self.outcome)

    @property
    def verdict(self) -> Verdict:
        """Proved if every listed fill was, refuted if one was; impossible if there is no fill."""
        if isinstance(self.outcome, Impossible):
            return Verdict.IMPOSSIBLE
        if any(v.verdict is Verdict.REFUTED for v in self.verdicts):
            return Verdict.REFUTED
        whole = len(self.verdicts) == len(self.fills) > 0
        return Verdict.PROVED if whole else Verdict.UNKNOWN

    def __str__(self) -> str:
        """What was found, and the first fill, a line for each hole."""
        if not isinstance(self.outcome, Found):
            none = "no fill is equal to the goal under the laws used"
            why = "" if str(self.outcome) != "impossible" else f": {none}"
            return f"{self.program.name}: {self.outcome}{why}"
        count = f"{self.fills.count} fill{'' if self.fills.count == 1 else 's'}"
        rest = ", all there are" if self.complete else ""
        head = f"{self.program.name}: found, {count}{rest}; {self.verdict.value}"
        return "\n".join([head, fill_text(self.program, self.fills, 0, "  ")]).rstrip()

    def __repr__(self) -> str:
        return f"<{self}>"

    @located
    def fill_text(self, number: int = 0) -> str:
        """A fill as index arithmetic, a line for each hole; fills are counted from 0."""
        return show_fill(self, number)

    @located
    def certificate(
        self, number: int = 0, sizes: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The proof of one fill as plain data; written as JSON, `warploom verify FILE` checks it.

        `sizes` is what the sketch was built at, for the reader.
        """
        found: dict[str, Any] = PublicResult.above("certificate")(self, number, sizes)
        return found

    @located
    def transfer(self, larger: Any, *, budget: Budget | None = None) -> Result:
        """The first fill that has a right counterpart in the same sketch at another size.

        `undecided` if there is none, which says nothing of other fills.
        """
        found: Result = PublicResult.above("transferred")(self, larger, budget)
        return found

    def described(self, number: int) -> dict[str, str]:
        """Fill `number` as text, by the name of the hole."""
        out = {}
        for hole, choice in self.fills.as_dict(number).items():
            step = self.program.steps[hole]
            assert isinstance(step, Apply)
            out[step.name] = step.gathers.describe(choice)
        return out


def search_tree(options: list[int]) -> int:
    """Nodes of the tree that tries every choice of every hole in order."""
    total, level = 0, 1
    for size in options:
        level *= size
        total += level
    return total


def raw_space(options: list[int]) -> int:
    return math.prod(options)
