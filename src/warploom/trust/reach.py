"""A sketch of a certificate, run with every choice of its holes: what its last cells may hold.

Terms that are no part of what is wanted are all one, `UNDEFINED`: whatever is made of them is no
part of it either. Under the laws a fold is a part, too, if its items are among those of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import TooMuchError, Work, distinct_rows, numbered_rows
from warploom.trust.terms import UNDEFINED, ZERO, Terms

Numbers = npt.NDArray[np.int64]
Values = frozenset[int] | None  # None: not known, anything

_MOST_VALUES = 256  # of a cell that are told apart
_MOST_COMBINED = 1 << 12  # items of a run in all combinations
_MOST_STATES = 1 << 24  # numbers in all states of a step, before equal ones are looked for
_MOST_HELD = 1 << 25  # numbers in states that are different
_EACH = 512  # numbers that are computed while one cell or one term is looked at
_ITEM = 64  # numbers that are computed while one item of a run is looked at
_MOST_LOOKED = 1 << 28  # numbers, to see which states lack a symbol


@dataclass(frozen=True, slots=True)
class Step:
    """An input with its terms, or a step: each row of `tables` is one choice."""

    size: int
    values: Numbers | None
    args: tuple[int, ...]
    tables: Numbers
    fold: int | None
    operator: str


class Sketch:
    """Steps, and the cells of the last one that are asked for, with what they should hold."""

    def __init__(
        self, steps: list[Step], cells: list[int], wanted: list[int], terms: Terms, work: Work
    ) -> None:
        self._steps, self._cells, self._wanted, self._terms = steps, cells, wanted, terms
        self._work = work
        self._parts: set[int] = set()
        self._folds_with: dict[tuple[str, int], list[Counter[int]]] = {}  # parts, by an item
        for each in wanted:
            self._note(each)
        self._known: dict[int, bool] = {}
        self._symbols: dict[int, frozenset[int]] = {}  # of a term
        self._folds: dict[tuple[str, bytes], int] = {}
        self._needed = self._backwards()

    def _note(self, term: int) -> None:
        if term < 0 or term in self._parts:
            return
        self._parts.add(term)
        fold = self._terms.fold_of(term)
        if fold is None:
            return
        operator, items = fold
        self._work.take(_EACH + len(items))
        counted = Counter(items)
        for item in counted:
            self._folds_with.setdefault((operator, item), []).append(counted)
            self._note(item)

    def _useful(self, term: int) -> bool:
        """Whether it may be a part of what is wanted."""
        if term not in self._known:
            self._known[term] = term in self._parts or self._is_share(term)
        return self._known[term]

    def _is_share(self, term: int) -> bool:
        fold = self._terms.fold_of(term)
        if fold is None or not self._terms.flattens(fold[0]):
            return False
        own = Counter(fold[1])
        with_each = (self._folds_with.get((fold[0], item), []) for item in own)
        others = min(with_each, key=len)
        self._work.take(_EACH + len(fold[1]) * 8 * (1 + len(others)))
        return any(own <= other for other in others)

    def _plain(self, term: int) -> int:
        return term if term < 0 or self._useful(term) else UNDEFINED

    def _fold(self, step: Step, row: Numbers) -> int:
        key = step.operator, row.tobytes()
        if key not in self._folds:
            self._folds[key] = self._plain(self._terms.bare(step.operator, row.tolist()))
        return self._folds[key]

    # -- which cells matter ------------------------------------------------------------------------

    def _backwards(self) -> list[Numbers]:
        """The cells of each step that those asked for may depend on."""
        flags = [np.zeros(step.size, np.bool_) for step in self._steps]
        flags[-1][self._cells] = True
        for position in reversed(range(len(self._steps))):
            step = self._steps[position]
            if step.values is None and flags[position].any():
                read = np.unique(step.tables[:, _before(step, np.flatnonzero(flags[position]))])
                for arg, start in self._starts(step):
                    end = start + self._steps[arg].size
                    flags[arg][read[(read >= start) & (read < end)] - start] = True
        return [np.flatnonzero(each) for each in flags]

    def _starts(self, step: Step) -> Iterator[tuple[int, int]]:
        """Each argument, and where it begins among all of them."""
        at = 0
        for arg in step.args:
            yield arg, at
            at += self._steps[arg].size

    # -- cell by cell ------------------------------------------------------------------------------

    def reached(self) -> list[Values]:
        """What each of the cells may hold at most, of the parts of what is wanted."""
        held: list[dict[int, Values]] = []
        for position, step in enumerate(self._steps):
            cells = self._needed[position].tolist()
            if step.values is not None:
                values = step.values
                held.append({c: frozenset([self._plain(int(values[c]))]) for c in cells})
                continue
            source: dict[int, Values] = {ZERO: frozenset([ZERO]), UNDEFINED: frozenset([UNDEFINED])}
            for arg, start in self._starts(step):
                source |= {start + cell: each for cell, each in held[arg].items()}
            held.append({cell: self._may_hold(step, cell, source) for cell in cells})
        return [held[-1][cell] for cell in self._cells]

    def _may_hold(self, step: Step, cell: int, source: dict[int, Values]) -> Values:
        runs = distinct_rows(step.tables[:, _before(step, np.array([cell]))])
        self._work.take(_EACH + step.tables.shape[0] + runs.size * _ITEM)
        found: set[int] = set()
        for run in runs.tolist():
            items = [source[place] for place in run]
            known = [each for each in items if each is not None]
            if len(known) < len(items):
                return None
            if step.fold is None:
                found |= known[0]
            elif np.prod([len(each) for each in known], dtype=np.float64) > _MOST_COMBINED:
                return None
            else:
                for row in product(*(sorted(each) for each in known)):
                    self._work.take(len(row) * _ITEM)
                    found.add(self._fold(step, np.sort(np.array(row, np.int64))))
            if len(found) > _MOST_VALUES:
                return None
        return frozenset(found)

    # -- all fills ---------------------------------------------------------------------------------

    def is_filled(self) -> bool:
        """Whether some fill gives all cells what is wanted: all choices, step by step. States that
        are equal in all that is still read are one; one that lacks a symbol leads nowhere."""
        states, at = np.zeros((1, 0), np.int64), dict[int, int]()
        for position, step in enumerate(self._steps):
            if not len(self._needed[position]):
                continue
            states, at = self._after(position, step, states, at)
            if not len(states):
                return False
        last = states[:, at[len(self._steps) - 1] :]
        order = np.searchsorted(self._needed[-1], self._cells)
        return bool((last[:, order] == np.array(self._wanted)).all(axis=1).any())

    def _after(
        self, position: int, step: Step, states: Numbers, at: dict[int, int]
    ) -> tuple[Numbers, dict[int, int]]:
        """The states with a step, less what nobody reads any more; where each step begins."""
        read = {arg for later in self._steps[position + 1 :] for arg in later.args}
        kept = [other for other in at if other in read]
        rest = np.array(
            [at[o] + c for o in kept for c in range(len(self._needed[o]))], np.int64
        )  # fmt: skip
        need = self._needed[position]
        if step.values is not None:
            new = np.array([self._plain(int(step.values[cell])) for cell in need], np.int64)
            self._work.take(len(states) * (len(rest) + len(new)))
            together = np.hstack([states[:, rest], np.tile(new, (len(states), 1))])
        else:
            together = self._tried(step, need, states, rest, at)
        found, width = dict[int, int](), 0
        for other in [*kept, position]:
            found[other] = width
            width += len(self._needed[other])
        return self._complete(position, together), found

    def _tried(
        self, step: Step, need: Numbers, states: Numbers, rest: Numbers, at: dict[int, int]
    ) -> Numbers:
        columns = np.full(sum(self._steps[arg].size for arg in step.args) + 2, -1)
        for arg, start in self._starts(step):
            columns[start + self._needed[arg]] = at.get(arg, 0) + np.arange(len(self._needed[arg]))
        width = states.shape[1]
        columns[UNDEFINED], columns[ZERO] = width, width + 1
        tail = np.tile(np.array([UNDEFINED, ZERO], np.int64), (len(states), 1))
        source, kept = np.hstack([states, tail]), states[:, rest]
        tables = distinct_rows(columns[step.tables[:, _before(step, need)]])
        found: list[Numbers] = []
        count = 0
        _check_room(len(states) * (tables.shape[1] + len(rest)))
        for table in tables:
            self._work.take(len(states) * (len(table) + len(rest)) * 4)
            new = source[:, table]
            if step.fold is not None:
                new = self._folded(step, new.reshape(-1, step.fold)).reshape(len(states), -1)
            found.append(distinct_rows(np.hstack([kept, new])))
            count += found[-1].size
            if count > _MOST_STATES:
                found, count = [distinct_rows(np.vstack(found))], 0
                count = found[0].size
                _check_room(count)
                self._work.take(16 * count)
        return distinct_rows(np.vstack(found))

    def _folded(self, step: Step, rows: Numbers) -> Numbers:
        different, which = numbered_rows(np.sort(rows, axis=1))
        made = np.array([self._fold(step, row) for row in different], np.int64)
        found: Numbers = made[which]
        return found

    def _complete(self, position: int, states: Numbers) -> Numbers:
        """Those in which, with the inputs that come later, every symbol that is wanted is left."""
        symbols = [part for part in sorted(self._parts) if self._terms.fold_of(part) is None]
        order = np.unique(states)
        later = [step.values[need] for step, need in zip(
            self._steps[position + 1 :], self._needed[position + 1 :], strict=True
        ) if step.values is not None]  # fmt: skip
        there = {leaf for v in later for term in v.tolist() for leaf in self._leaves(term)}
        with_each: dict[int, list[int]] = {symbol: [] for symbol in symbols if symbol not in there}
        for place, term in enumerate(order.tolist()):
            for symbol in self._leaves(term) & with_each.keys():
                with_each[symbol].append(place)
        where = np.searchsorted(order, states)
        fine = np.ones(len(states), np.bool_)
        # A state that lacks a symbol is not wrong to keep: of very many, only some are looked at.
        cost = len(order) + states.size
        for places in list(with_each.values())[: 1 + _MOST_LOOKED // cost]:
            self._work.take(cost // 8)
            has = np.zeros(len(order), np.bool_)
            has[places] = True
            fine &= has[where].any(axis=1)
        return states[fine]

    def _leaves(self, term: int) -> frozenset[int]:
        if term < 0:
            return frozenset()
        if term not in self._symbols:
            fold = self._terms.fold_of(term)
            inner = map(self._leaves, () if fold is None else fold[1])
            self._symbols[term] = frozenset[int]({term} if fold is None else ()).union(*inner)
            self._work.take(_EACH + len(self._symbols[term]))
        return self._symbols[term]


def _check_room(numbers: int) -> None:
    if numbers > _MOST_HELD:
        raise TooMuchError(f"whether it holds: states of more than {_MOST_HELD} numbers")


def _before(step: Step, cells: Numbers) -> Numbers:
    """The cells of a step before its fold."""
    if step.fold is None:
        return cells
    return (cells[:, None] * step.fold + np.arange(step.fold)).reshape(-1)
