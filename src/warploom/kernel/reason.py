"""What can be shown of index expressions at the places of one kernel.

A goal is tried on every thread and iteration where it depends on these alone, and proved otherwise.
Where that fails, parts of it that depend on threads and iterations alone are taken for numbers of
which only the least and the greatest value are known, found by trying them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.facts import Facts
from warploom.index.ir import Binary, Const, Expr, Unary, Var, children, fold_up, rebuild, variables
from warploom.index.prove import EFFORT, follows
from warploom.index.ranges import TRUE, Range, Ranges
from warploom.index.trial import box_axes, box_size, holds_in_box
from warploom.kernel.bounds import Bounds
from warploom.kernel.scope import Scopes

QUICKLY_TRIED = 1 << 13
MOST_TRIED = 1 << 20
FIRST_EFFORT = 600


def reasoning(scopes: Scopes) -> Reasoning:
    """About the variables of a kernel. What is shown depends on their bounds alone, so passes over
    one kernel that leave its loops as they are share it: none proves what another one did."""
    return _reasoning(tuple(scopes.bounds.items()))


@lru_cache(maxsize=4)
def _reasoning(bounds: tuple[tuple[str, tuple[int, int]], ...]) -> Reasoning:
    return Reasoning(dict(bounds))


class Reasoning:
    """Remembers what was shown: many accesses of a kernel ask the same."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._ranges = Ranges(bounds)
        self._facts: dict[tuple[Expr, ...], Facts] = {(): Facts.about(bounds)}
        self._shown: dict[tuple[Expr, tuple[Expr, ...]], bool] = {}
        self._parts: dict[Expr, Range | None] = {}

    def shows(self, goal: Expr, guards: tuple[Expr, ...]) -> bool:
        """Whether a goal holds in every launch, thread and iteration for which the guards do."""
        if isinstance(goal, Const):
            return goal.value != 0
        key = (goal, guards)
        if key not in self._shown:
            self._shown[key] = self._show(goal, guards)
        return self._shown[key]

    def _show(self, goal: Expr, guards: tuple[Expr, ...]) -> bool:
        if any(goal in _conjuncts(guard) for guard in guards):
            return True
        if self._ranges.of(goal) == TRUE:  # guards take longer to read than this
            return True
        facts = self._facts_of(guards)
        if follows(goal, facts, effort=0):
            return True
        names = variables(goal)
        box = {name: self._bounds[name] for name in names & self._bounds.keys()}
        size = box_size(box) if len(box) == len(names) else MOST_TRIED + 1
        if size <= QUICKLY_TRIED and holds_in_box(goal, guards, box):
            return True
        if follows(goal, facts, FIRST_EFFORT) or self._coarsely(goal, guards, facts):
            return True
        if QUICKLY_TRIED < size <= MOST_TRIED and holds_in_box(goal, guards, box):
            return True
        return follows(goal, facts, EFFORT)

    def _facts_of(self, guards: tuple[Expr, ...]) -> Facts:
        if guards not in self._facts:
            self._facts[guards] = self._facts_of(guards[:-1]).assuming(guards[-1])
        return self._facts[guards]

    # -- parts of which only the ends are known

    def _coarsely(self, goal: Expr, guards: tuple[Expr, ...], facts: Facts) -> bool:
        """Whether the goal follows with all parts over few values taken for unknown numbers."""
        found: dict[Expr, Var] = {}

        def visit(part: Expr, parts: tuple[Expr, ...]) -> Expr:
            if not _is_part(part) or self._ends(part) is None:
                return rebuild(part, parts)
            return found.setdefault(part, Var(f"part#{len(found)}"))

        coarse = fold_up(goal, visit)
        if not found:
            return False
        known: list[Expr] = []
        for part, name in found.items():
            ends = self._ends(part)
            assert ends is not None
            known += [name.ge(ends.low), name.le(ends.high)]
        known += [coarser for guard in guards if (coarser := _with(guard, found)) is not guard]
        return follows(coarse, facts.assuming(*known), EFFORT // 4)

    def _ends(self, part: Expr) -> Range | None:
        """The least and greatest value of an expression over few values."""
        if part not in self._parts:
            names = variables(part)
            box = {name: self._bounds[name] for name in names & self._bounds.keys()}
            self._parts[part] = None
            if 0 < len(box) == len(names) and box_size(box) <= QUICKLY_TRIED:
                try:
                    values = evaluate(part, box_axes(box))
                except CheckError:
                    return None
                if not isinstance(values, int):
                    self._parts[part] = Range(int(values.min()), int(values.max()))
        return self._parts[part]


def _conjuncts(guard: Expr) -> Iterator[Expr]:
    """What a guard says, sentence by sentence: what is asked word by word needs no proof."""
    if isinstance(guard, Binary) and guard.op == "and":
        yield from _conjuncts(guard.left)
        yield from _conjuncts(guard.right)
    else:
        yield guard


def _with(expr: Expr, found: Mapping[Expr, Var]) -> Expr:
    return fold_up(expr, lambda part, parts: found[part] if part in found else rebuild(part, parts))


def _is_part(expr: Expr) -> bool:
    """Whether an expression is more than a sum of multiples, which proofs take apart anyway."""
    match expr:
        case Const() | Var():
            return False
        case Unary("-", _) | Binary("+" | "-" | "*", _, _):
            return any(_is_part(child) for child in children(expr))
        case _:
            return True
