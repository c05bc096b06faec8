"""Every layout whatever: a bank for each chunk of words, as a colouring; by counting, by CP-SAT.

Vectors that are kept whole make chunks of words with consecutive banks; a chunk's colour is which
of those banks it has. A layout meets the bound if in no group of lanes a bank has more of the
wanted words than the group takes at least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from warploom.errors import InternalError, UnsupportedError, missing_extra
from warploom.layout.language.ir import Table
from warploom.layout.solver.task import Answer, Least, Task
from warploom.search.budget import BudgetSpentError, governing_budget
from warploom.search.engine import Watch
from warploom.search.outcome import Reason

MOST_CHUNKS = 4096
_MOST_TRIED = 200_000  # sets looked at for the argument by counting
_ASK_EVERY = 256  # of these sets the budget is asked
BY_SOLVER = "by CP-SAT, no certificate"
_MOST_TOTAL = 1 << 60  # the solver's whole numbers have 64 bits
_MOST_SECONDS = 60.0  # of processor time for the solver, where nobody set a limit
_WORKERS = 2  # threads of the solver, which share its time
_LOOK_EVERY = 0.05  # seconds


@dataclass(frozen=True, slots=True)
class Wanted:
    """Words wanted together as (chunk, place in it); what a wavefront costs; the least of them."""

    words: tuple[tuple[int, int], ...]
    weight: Fraction
    least: int


@dataclass(frozen=True, slots=True)
class Colouring:
    """`first[chunk]` is its first element; a chunk has `width` words, and there are `colours`."""

    first: tuple[int, ...]
    width: int
    colours: int
    groups: tuple[Wanted, ...]


def colouring_of(task: Task) -> Colouring | None:
    """None where chunks are not all alike, or smaller than a word: then it is no colouring. What
    costs nothing asks for nothing."""
    problem, chunks = task.problem, task.chunks
    bytes_each = problem.bytes_of(chunks.length)
    word = problem.serving.word_bytes
    if (bytes_each != bytes_each[0]).any() or bytes_each[0] < word:
        return None
    first, number = np.unique(chunks.first, return_inverse=True)
    if len(first) > MOST_CHUNKS:
        return None
    width = int(bytes_each[0]) // word
    counted: dict[tuple[tuple[tuple[int, int], ...], int], Fraction] = {}
    for place in range(len(problem.accesses)):
        weight = task.meter.weights[place]
        if not weight:
            continue
        groups, least = task.meter.groups[place], task.floors[place]
        for row, wanted, floor in zip(groups.elements, groups.wanted, least.tolist(), strict=True):
            governing_budget().check()
            elements = row[wanted]
            start = problem.bytes_of(chunks.place[elements]) // word
            more = range(max(1, problem.element_bytes // word))
            words = {
                (int(number[e]), int(s) + i)
                for e, s in zip(elements, start, strict=True)
                for i in more
            }
            key = (tuple(sorted(words)), floor)
            counted[key] = counted.get(key, Fraction(0)) + weight
    wanted_words = tuple(Wanted(words, weight, floor) for (words, floor), weight in counted.items())
    colours = problem.serving.banks // width
    return Colouring(tuple(first.tolist()), width, colours, wanted_words)


def any_layout(task: Task, watch: Watch, best: Answer | None) -> Iterator[Answer | Least]:
    """Whether any layout meets the bound: by counting, else by CP-SAT; then the least, by that.

    For the worst access that is another question, which nobody asks the solver.
    """
    colouring = None if task.worst else colouring_of(task)
    if colouring is None:
        raise BudgetSpentError(Reason.SOLVER)
    # What a layout costs at least that does not meet the bound: one wavefront more somewhere.
    more = task.least + min((group.weight for group in colouring.groups), default=Fraction(0))
    if crowded(colouring) is None:
        yield from _solved(task, colouring, watch, best, more)
        return
    yield Least(more, "by counting")
    try:
        model = _Model(task, colouring, watch)
    except UnsupportedError:  # the question is answered without the solver
        return
    yield from _better(task, model, best)


# -- by counting -----------------------------------------------------------------------------------


def crowded(colouring: Colouring) -> int | None:
    """A number of chunks so many of which never fit into one colour, while some colour must have as
    many; None if there is none, or it was not found."""
    limits, chunks = _limits(colouring), len(colouring.first)
    for count in range(2, -(-chunks // colouring.colours) + 1):
        fits = _fits(limits, chunks, count)
        if not fits:
            return count if fits is False else None
    return None


def _limits(colouring: Colouring) -> list[tuple[frozenset[int], int]]:
    """Sets of chunks of which one colour may have so many at most."""
    found: dict[frozenset[int], int] = {}
    for group in colouring.groups:
        by_place: dict[int, set[int]] = {}
        for chunk, place in group.words:
            by_place.setdefault(place, set()).add(chunk)
        for chunks in by_place.values():
            key = frozenset(chunks)
            found[key] = min(found.get(key, group.least), group.least)
    return [(chunks, most) for chunks, most in found.items() if len(chunks) > most]


def _fits(limits: list[tuple[frozenset[int], int]], chunks: int, count: int) -> bool | None:
    """Whether so many chunks can have one colour; None if too many sets would have to be tried."""
    member: list[list[int]] = [[] for _ in range(chunks)]
    for number, (some, _) in enumerate(limits):
        for chunk in some:
            member[chunk].append(number)
    left = [most for _, most in limits]
    tried = 0

    def extend(start: int, needed: int) -> bool | None:
        nonlocal tried
        if not needed:
            return True
        for chunk in range(start, chunks - needed + 1):
            tried += 1
            if tried > _MOST_TRIED:
                return None
            if tried % _ASK_EVERY == 0:
                governing_budget().check()
            if all(left[number] for number in member[chunk]):
                for number in member[chunk]:
                    left[number] -= 1
                found = extend(chunk + 1, needed - 1)
                for number in member[chunk]:
                    left[number] += 1
                if found is not False:
                    return found
        return False

    return extend(0, count)


def apart(colouring: Colouring) -> list[int]:
    """Chunks that have a colour each: a group that takes one wavefront wants the same place of all
    of them. Words of other places do not meet, whatever their chunks' colours are."""
    wanted = (
        [chunk for chunk, at in group.words if at == place]
        for group, place in product(colouring.groups, range(colouring.width))
        if group.least == 1
    )
    return max(wanted, key=len, default=[])


# -- by CP-SAT -------------------------------------------------------------------------------------


def load_cp_sat() -> Any:
    """The solver, for whoever asks; where it is missing, the error names the extra."""
    try:
        return import_module("ortools.sat.python.cp_model")
    except ImportError:
        raise missing_extra("ortools", "cp") from None


def _solved(
    task: Task, colouring: Colouring, watch: Watch, best: Answer | None, more: Fraction
) -> Iterator[Answer | Least]:
    """First whether the bound is met; if not, the least sum."""
    model = _Model(task, colouring, watch)
    status, colours = model.meets()
    if status == "unknown":
        raise BudgetSpentError(Reason.SOLVER)
    if colours is not None:
        yield _answer(task, colouring, colours)
    else:
        yield Least(more, BY_SOLVER)
        yield from _better(task, model, best)


def _better(task: Task, model: _Model, best: Answer | None) -> Iterator[Answer | Least]:
    if best is None:
        return
    colours, least = model.least(best.cost)
    answer = None if colours is None else _answer(task, model.colouring, colours)
    if answer is not None and answer.cost < best.cost:
        yield answer
    yield Least(least, BY_SOLVER)


def _seconds(watch: Watch) -> float:
    watch.pause("colours")
    left = watch.budget.seconds_left
    most = _MOST_SECONDS if left is None else min(left, _MOST_SECONDS)
    return max(0.01, most / _WORKERS)


class _Model:
    """One truth for each chunk and colour."""

    def __init__(self, task: Task, colouring: Colouring, watch: Watch) -> None:
        self._cp, self._task, self.colouring = load_cp_sat(), task, colouring
        self._watch = watch

    def _new(self) -> tuple[Any, list[list[Any]]]:
        model, colouring = self._cp.CpModel(), self.colouring
        has = [[model.new_bool_var("") for _ in range(colouring.colours)] for _ in colouring.first]
        for row in has:
            self._watch.pause("colours")
            model.add_exactly_one(row)
        if not self._task.waste:  # the last row of places may be a part of one
            for colour in range(colouring.colours):
                rows = len(range(colour, len(has), colouring.colours))
                model.add(sum(row[colour] for row in has) <= rows)
        return model, has

    def _wanted(self, has: list[list[Any]], group: Wanted) -> list[list[Any]]:
        """For each bank the truths of the words that may lie there."""
        self._watch.pause("colours")
        by_place: dict[int, list[int]] = {}
        for chunk, place in group.words:
            by_place.setdefault(place, []).append(chunk)
        return [
            [has[chunk][colour] for chunk in chunks]
            for chunks in by_place.values()
            for colour in range(self.colouring.colours)
            if len(chunks) > 1
        ]

    def meets(self) -> tuple[str, list[int] | None]:
        model, has = self._new()
        for group in self.colouring.groups:
            for some in self._wanted(has, group):
                if group.least == 1:
                    model.add_at_most_one(some)
                elif len(some) > group.least:
                    model.add(sum(some) <= group.least)
        if self._task.waste or len(has) % self.colouring.colours == 0:  # colours are all alike
            for colour, chunk in enumerate(apart(self.colouring)):
                model.add(has[chunk][colour] == 1)
        solver, status = self._run(model)
        if status in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return "yes", _colours(solver, has)
        return ("no" if status == self._cp.INFEASIBLE else "unknown"), None

    def least(self, below: Fraction) -> tuple[list[int] | None, Fraction]:
        """A layout, if one is found; and the least cost, as far as it is proved. An optimum is
        counted again from whole numbers: what the solver says of it is a float."""
        model, has = self._new()
        groups, counts = self.colouring.groups, []
        for group in groups:
            count = model.new_int_var(group.least, max(group.least, len(group.words)), "")
            for some in self._wanted(has, group):
                model.add(sum(some) <= count)
            counts.append(count)
        weights, scale = whole_weights(groups)
        total = sum(weight * count for weight, count in zip(weights, counts, strict=True))
        model.add(total <= math.floor(below * scale))
        model.minimize(total)
        solver, status = self._run(model)
        if status == self._cp.OPTIMAL:
            pairs = zip(weights, counts, strict=True)
            proved = sum(weight * int(solver.value(count)) for weight, count in pairs)
        else:
            proved = rounded_down(solver.best_objective_bound)
        known = status in (self._cp.OPTIMAL, self._cp.FEASIBLE)
        return (_colours(solver, has) if known else None), proved / scale

    def _run(self, model: Any) -> tuple[Any, Any]:
        """The solver in a thread of its own, so that Ctrl-C reaches us, who stop it then; what it
        has found by then counts."""
        solver = self._cp.CpSolver()
        solver.parameters.max_time_in_seconds = _seconds(self._watch)
        solver.parameters.num_workers = _WORKERS
        solver.parameters.random_seed = 1
        solver.parameters.catch_sigint_signal = False
        # Here, not at the top: it brings logging along, and few problems come this far.
        from concurrent.futures import ThreadPoolExecutor, wait

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(solver.solve, model)
            while not wait([running], timeout=_LOOK_EVERY).done:
                if self._watch.budget.is_spent():
                    solver.stop_search()
        return solver, running.result()


def whole_weights(groups: Sequence[Wanted]) -> tuple[list[int], Fraction]:
    """What a wavefront of each group costs, in whole numbers that the solver's sums have room for;
    such a cost divided by the scale is a cost, or less where weights are too fine for that."""
    scale = Fraction(math.lcm(*(group.weight.denominator for group in groups)))
    scale /= math.gcd(*(int(group.weight * scale) for group in groups))
    counts = (group.weight * max(group.least, len(group.words)) for group in groups)
    most = sum(counts, Fraction(0))
    scale = min(scale, _MOST_TOTAL / most)
    return [math.floor(group.weight * scale) for group in groups], scale


def rounded_down(bound: float) -> int:
    """A whole number that is no more than what a float stands for, though that was rounded."""
    if not math.isfinite(bound) or bound <= 0:
        return 0
    return math.ceil(bound - 1e-6) if bound < 1 << 50 else int(bound) - (int(bound) >> 50)


def _colours(solver: Any, has: list[list[Any]]) -> list[int]:
    return [next(c for c, truth in enumerate(row) if solver.value(truth)) for row in has]


def _answer(task: Task, colouring: Colouring, colours: list[int]) -> Answer:
    """The colouring as a table of addresses: chunks of one colour lie one above another."""
    problem, rows = task.problem, Counter[int]()
    per_word = Fraction(problem.serving.word_bytes * problem.packed, problem.element_bytes)
    start = np.zeros(problem.size, dtype=np.int64)
    for first, colour in zip(colouring.first, colours, strict=True):
        word = rows[colour] * problem.serving.banks + colour * colouring.width
        start[first] = int(word * per_word)
        rows[colour] += 1
    addresses = start[task.chunks.first] + task.chunks.place
    answer = task.answer(Table(tuple(addresses.tolist())))
    if answer is None:
        raise InternalError("a colouring tears a vector, or wastes places")
    return answer
