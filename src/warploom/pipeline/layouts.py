"""`warploom.solve_layout`: how a tensor is used in, the layout with the fewest wavefronts out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warploom.emit.index_function import exported
from warploom.emit.parts import noted_text
from warploom.errors import located
from warploom.layout.formats.function_name import function_name
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.read import read_pattern
from warploom.layout.solver.certificate import certificate
from warploom.layout.solver.choose import Chosen, best_way
from warploom.layout.solver.front import Front, known_class, usual_class
from warploom.layout.solver.front_json import front_record, ways_record
from warploom.layout.solver.task import Answer
from warploom.layout.wavefronts.picture import Compared, worst_request
from warploom.pictured import PublicResult
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.outcome import Found, NothingFoundError, Outcome, Undecided


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LayoutResult(PublicResult):
    """What `solve_layout` found: the best layout of the class that was asked for.

    The outcome is found where no layout of any kind takes fewer wavefronts. It is impossible where
    the class has none as good as that bound, which is proved; the best of the class is there, too.
    """

    chosen: Chosen

    @property
    def front(self) -> Front:
        """The best way to do the accesses, with all classes that were looked at."""
        return self.chosen.best.front

    @property
    def outcome(self) -> Outcome[Answer]:
        return self.front.asked.outcome

    @property
    def best(self) -> Layout:
        """The layout itself; an error says why where there is none."""
        found = self.front.best
        if found is None:
            name = self.front.task.problem.name
            raise NothingFoundError(f"'{name}' has no layout: {self.outcome}", self.outcome)
        return self.front.task.layout(found)

    @property
    def layout(self) -> str:
        """The layout as text, such as `S<5,0,5> o (32,32):(32,1)`."""
        return show(self.best)

    @property
    def wavefronts(self) -> tuple[float, ...]:
        """Wavefronts per request of each access."""
        found = self.front.best
        return () if found is None else tuple(float(each) for each in found.score.per_request)

    @property
    def bound(self) -> tuple[float, ...]:
        """What no layout of any kind is below, likewise."""
        task = self.front.task
        return () if task.torn is not None else tuple(map(float, task.bound.per_request))

    @property
    def places(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Where each element lies, in the shape of the tensor."""
        ensured, task = self.front.best, self.front.task
        if ensured is None:
            _ = self.best  # which says why
        assert ensured is not None
        return task.addresses(ensured.map).reshape(task.problem.shape)

    @located
    def text(self, language: str = "cuda", name: str | None = None) -> str:
        """The index function to paste, or the layout in the words of `cute` or `triton`.

        `name` is that of the function; by default it is made from that of the pattern."""
        problem = self.front.task.problem
        called = name or place_name(problem)
        size, packed = problem.element_bytes, problem.packed
        text = exported(self.best, language, called, size, packed)
        return noted_layout(text, language, self.front)

    def save(self, path: str | Path, name: str | None = None) -> None:
        """Writes a file, as all results do; `name` is that of the function in a text."""
        PublicResult.above("save")(self, path, name=name)

    def record(self) -> dict[str, Any]:
        """What `warploom layout solve --json` writes."""
        more = ways_record(self.chosen) if len(self.chosen.tried) > 1 else {}
        return front_record(self.front) | more

    @located
    def certificate(self) -> dict[str, Any]:
        """The proof as plain data; written as JSON, `warploom verify FILE` checks it."""
        return certificate(self.front.task, self.front.solved)

    def compared(self) -> Compared:
        """The access that waits longest, in rows as they are and in this layout."""
        lines = str(self).splitlines()
        return worst_request(self.front.task, self.places.reshape(-1), self.layout, lines)

    def __str__(self) -> str:
        problem = self.front.task.problem
        if self.front.best is None:
            return f"{problem.name}: {self.outcome}"
        names = [access.name for access in problem.accesses]
        counts = ", ".join(
            f"{name} {count:g} (bound {least:g})"
            for name, count, least in zip(names, self.wavefronts, self.bound, strict=True)
        )
        verdict = verdict_of(self.front)
        return f"{problem.name}: {self.layout}\n  wavefronts per request: {counts}\n  {verdict}"

    def __repr__(self) -> str:
        return f"<{self}>"


def verdict_of(front: Front) -> str:
    """What is known of the best layout, in a few words."""
    match front.asked.outcome:
        case Found():
            return "no layout of any kind takes fewer: proved"
        case Undecided(reason):
            return f"undecided: {reason.value}"
        case _:
            return f"the least of the class '{front.asked.klass}'" + ": proved" * front.asked.proved


def place_name(problem: Problem) -> str:
    """What the index function is called where nobody names it."""
    return function_name("place", problem.name)


def noted_layout(text: str, language: str, front: Front, *notes: str) -> str:
    """The text of the best layout, with what is known of it; bases of Triton are JSON, which has
    no comments."""
    if language == "triton":
        return text
    verdict = f"Verdict: {verdict_of(front)}."
    return noted_text(text, f"Pattern: {front.task.problem.name}", verdict, *notes)


@located
def layout_solved(
    pattern: str | Path | Problem,
    klass: str | None = None,
    *,
    worst: bool = False,
    no_waste: bool = False,
    vary: str | Iterable[str] = (),
    machine: str | None = None,
    seconds: float | None = None,
    memory: float | None = None,
) -> LayoutResult:
    """Finds the layout of shared memory that serves all accesses in the fewest wavefronts.

    `pattern` is a name such as `transpose:32x32:f32`, or a TOML file with the accesses. `klass` is
    the class of layouts (`--class` of the command: none, pad, swizzle, xor, mixed, any, tma). With
    `worst` the largest access counts alone, with `no_waste` no place stays unused; `vary` names
    what of the accesses is decided, too.

    >>> import warploom
    >>> found = warploom.solve_layout("transpose:32x32:f32", "swizzle")
    >>> print(found)
    transpose:32x32:f32: S<5,0,5> o (32,32):(32,1)
      wavefronts per request: store rows 1 (bound 1), load columns 1 (bound 1)
      no layout of any kind takes fewer: proved
    >>> place = warploom.compile(found)  # where the elements of column 0 lie
    >>> place([0, 1, 2], [0, 0, 0]).tolist()
    [0, 33, 66]
    """
    known_class(klass)
    what = tuple(vary.split(",")) if isinstance(vary, str) else tuple(vary)
    budget = Budget(seconds, memory)
    try:
        with budget.interruptible(), budget.governing():
            problem = read_pattern(pattern, machine)
            return LayoutResult(
                best_way(
                    problem,
                    what,
                    klass or usual_class(problem),
                    worst=worst,
                    waste=not no_waste,
                    budget=budget,
                )
            )
    except STOPS as stop:
        outcome = Undecided(reason_of(stop))
        raise NothingFoundError(
            f"nothing was tried: {outcome}", outcome, advice="give it more seconds"
        ) from None
