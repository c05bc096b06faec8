"""`warploom.solve`: a warp sketch in; its fill, what is proved of it, and its kernel out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from warploom.errors import located
from warploom.index.ir import Expr
from warploom.index.show import show
from warploom.pictured import PublicResult
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome, Verdict
from warploom.search.outcome_json import outcome_record
from warploom.sketch.simt.function import SketchFunction
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import Filled, filled_of, reinstantiate, solve, traced_of
from warploom.sketch.simt.space import SPACES


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WarpResult(PublicResult):
    """What `solve` found: the fill of a warp sketch, or why there is none.

    `print(result)` shows the index arithmetic of each hole. `warploom.compile(result)` makes the
    kernel a function on arrays.
    """

    sketch: Traced
    outcome: Outcome[Filled]

    def __str__(self) -> str:
        match self.outcome:
            case Found(answer=filled):
                return str(filled)
            case _:
                return f"{self.sketch.name}: {self.outcome}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def filled(self) -> Filled:
        """The sketch with its holes filled; an error says why where there is no fill."""
        return filled_of(self.outcome, "fill")

    @property
    def fill(self) -> Mapping[str, Expr]:
        """The index arithmetic, by the name of the hole."""
        return self.filled.fill

    @property
    def statements(self) -> int:
        """Accumulate statements that the fill needs."""
        return self.filled.statements

    @property
    def verdict(self) -> Verdict:
        match self.outcome:
            case Found(answer=filled):
                return filled.verification.verdict
            case Impossible():
                return Verdict.IMPOSSIBLE
        return Verdict.UNKNOWN

    def record(self) -> dict[str, Any]:
        """What `warploom synth --json` writes of one size."""
        found = {"size": dict(self.sketch.sizes), **outcome_record(self.outcome)}
        found |= {"verdict": self.verdict.value, "fills": []}
        match self.outcome:
            case Found(answer=filled):
                found["fills"] = [{hole: show(expr) for hole, expr in filled.fill.items()}]
            case Impossible(why):
                found["why"] = why
        return found

    @located
    def certificate(self, sizes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The proof as plain data; written as JSON, `warploom verify FILE` checks it."""
        found: dict[str, Any] = PublicResult.above("certificate")(self.outcome, 0, sizes)
        return found

    @located
    def transfer(
        self, larger: Traced | SketchFunction, *, budget: Budget | None = None
    ) -> WarpResult:
        """The same fill at another size, proved there: `result.transfer(sketch.at(lanes=64))`.

        A constant of a fill may mean itself or its distance to a size: the likeliest readings are
        tried first, then all of them are offered to the search at the new size.
        """
        traced = traced_of(larger)
        return WarpResult(traced, reinstantiate(self.outcome, traced, budget=budget))


@located
def solved(
    sketch: Traced | SketchFunction,
    *,
    optimum: bool = False,
    spaces: Iterable[int] = SPACES,
    laws: str | None = None,
    budget: Budget | None = None,
) -> WarpResult:
    """Fills the holes of a warp sketch with the fewest statements, and proves the fill.

    Of such fills it is the cheapest of those that are listed in the time. `laws`, "flatten" or
    "none", says which rewrites count as equal; by default the goal says. With `optimum`
    no fill of any of the `spaces` has fewer statements. A spent budget is undecided; impossible is
    a proof under the laws used. A sketch without holes is checked. A sketch whose lanes race is
    refused. A sketch function is taken at its own sizes.

    >>> from warploom import solve, warp_sketch
    >>> @warp_sketch
    ... def reversal(k, lanes=8):
    ...     lane = k.warp(lanes)
    ...     x, y = k.input("x", lanes), k.output("y", lanes)
    ...     r = k.load(x, rounds=1)
    ...     y[lane] = k.shuffle(r[0], lanes - 1 - lane)
    >>> _ = reversal.specification(lambda x, lanes: x[::-1])
    >>> solve(reversal).verdict.value
    'proved'
    """
    traced = traced_of(sketch)
    return WarpResult(
        traced, solve(traced, optimum=optimum, spaces=spaces, laws=laws, budget=budget)
    )
