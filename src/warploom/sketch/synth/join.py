"""Joins two sets of states on what they must have in common, instead of trying every pair.

A condition gives each row of either side a small code and says which codes go together. Rows are
grouped by the codes of one condition after another; only groups that go together are refined
further, and only the rows of the groups that remain are paired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.search.budget import Budget
from warploom.sketch.synth.bounds import pieces
from warploom.sketch.synth.demand import Cover, Flags
from warploom.sketch.synth.problem import Move
from warploom.sketch.synth.rows import Index, Rows
from warploom.sketch.synth.subterms import Bits, Forms, Ids, Subterms

MAX_GROUP_PAIRS = 1 << 21
MAX_CODE_PAIRS = 1 << 22
CELLS_TO_TRY = 32
CELLS_TO_USE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    left: Index  # code of each left row
    right: Index
    together: Flags  # [left codes, right codes]


def pairs(
    left: Rows, right: Rows, conditions: list[Condition], at_once: int, budget: Budget
) -> Iterator[tuple[Index, Index]]:
    """Pairs of rows that agree on shared keys and meet the conditions, in chunks."""
    budget.room_for(64 * (len(left) + len(right)))
    left_group, right_group = _key_groups(left, right)
    both = np.intersect1d(left_group, right_group)
    pair_left, pair_right = both, both
    for condition in conditions:
        budget.check()
        new_left, old_left, code_left = _refine(left_group, condition.left)
        new_right, old_right, code_right = _refine(right_group, condition.right)
        limit = budget.at_once(MAX_GROUP_PAIRS, 64)
        refined = _refine_pairs(pair_left, pair_right, old_left, old_right, limit)
        if refined is None:
            break
        a, b = refined
        fit = condition.together[code_left[a], code_right[b]]
        pair_left, pair_right = a[fit], b[fit]
        left_group, right_group = new_left, new_right
    for chunk in _expand(left_group, right_group, pair_left, pair_right, at_once):
        budget.check()
        yield chunk


def _key_groups(left: Rows, right: Rows) -> tuple[Index, Index]:
    """Rows that use the same rows of the steps they share are in groups of the same number."""
    shared = [key for key in left.keys if key in right.keys]
    if not shared:
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64)
    table = np.concatenate(
        [
            np.stack([left.keys[k] for k in shared], axis=1),
            np.stack([right.keys[k] for k in shared], axis=1),
        ]
    )
    _, group = np.unique(table, axis=0, return_inverse=True)
    group = group.ravel().astype(np.int64)
    return group[: len(left)], group[len(left) :]


def _refine(group: Index, code: Index) -> tuple[Index, Index, Index]:
    """(new group of each row, old group of each new one, code of each new one)."""
    width = int(code.max(initial=0)) + 1
    keys, new = np.unique(group * width + code, return_inverse=True)
    return new.ravel().astype(np.int64), keys // width, keys % width


def _refine_pairs(
    pair_left: Index, pair_right: Index, old_left: Index, old_right: Index, limit: int
) -> tuple[Index, Index] | None:
    """All pairs of new groups whose old groups were paired; None: too many."""
    # New groups are sorted by their old one, so those of an old group are a run.
    a0, a1 = np.searchsorted(old_left, pair_left), np.searchsorted(old_left, pair_left, "right")
    b0, b1 = np.searchsorted(old_right, pair_right), np.searchsorted(old_right, pair_right, "right")
    sizes = (a1 - a0) * (b1 - b0)
    if int(sizes.sum()) > limit:
        return None
    return _cross_runs(a0, b0, b1 - b0, sizes)


def _cross_runs(a0: Index, b0: Index, width: Index, sizes: Index) -> tuple[Index, Index]:
    """For each pair of runs starting at a0 and b0 all pairs of their members."""
    pair = np.repeat(np.arange(len(sizes)), sizes)
    nth = np.arange(len(pair)) - (np.cumsum(sizes) - sizes)[pair]
    one, two = np.divmod(nth, width[pair])
    return a0[pair] + one, b0[pair] + two


def _expand(
    left_group: Index, right_group: Index, pair_left: Index, pair_right: Index, at_once: int
) -> Iterator[tuple[Index, Index]]:
    left_rows = np.argsort(left_group, kind="stable")
    right_rows = np.argsort(right_group, kind="stable")
    lg, rg = left_group[left_rows], right_group[right_rows]
    a0, a1 = np.searchsorted(lg, pair_left), np.searchsorted(lg, pair_left, "right")
    b0, b1 = np.searchsorted(rg, pair_right), np.searchsorted(rg, pair_right, "right")
    sizes = (a1 - a0) * (b1 - b0)
    ends = np.cumsum(sizes)
    # All pairs, numbered through; each chunk is so many of these numbers.
    for start in range(0, int(ends[-1]) if len(ends) else 0, at_once):
        end = min(start + at_once, int(ends[-1]))
        run_of_first, run_of_last = np.searchsorted(ends, (start, end - 1), "right")
        runs = slice(run_of_first, run_of_last + 1)
        before = ends[runs] - sizes[runs]
        shares = np.minimum(ends[runs], end) - np.maximum(before, start)
        run = np.repeat(np.arange(len(before)), shares)
        nth = np.arange(start, end) - before[run]
        one, two = np.divmod(nth, (b1 - b0)[runs][run])
        yield left_rows[a0[runs][run] + one], right_rows[b0[runs][run] + two]


def fold_conditions(
    move: Move, table: Ids, sides: tuple[Ids, Ids], out_flags: Flags, budget: Budget
) -> list[Condition]:
    """For cells whose fold takes items from both sides: which left items go with which right ones.

    `sides` are the two halves of the source, [rows, places]; the left one comes first and the two
    constants belong to neither. A fold's fingerprint is a sum, so each side is added up alone.
    """
    left, right = sides
    forms = move.forms
    assert forms is not None
    runs = table.reshape(move.out_cells, move.fold)
    in_left = runs < left.shape[1]
    in_right = ~in_left & (runs < left.shape[1] + right.shape[1])
    mixed = np.flatnonzero(in_left.any(axis=1) & in_right.any(axis=1))
    stride = max(1, len(mixed) // CELLS_TO_TRY)
    found: list[Condition] = []
    for cell in mixed[::stride]:
        budget.check()
        a = _code(forms, left, runs[cell][in_left[cell]], budget)
        b = _code(forms, right, runs[cell][in_right[cell]] - left.shape[1], budget)
        if len(a[0]) * len(b[0]) > MAX_CODE_PAIRS:
            continue
        together = np.empty((len(a[0]), len(b[0])), dtype=np.bool_)
        for part in pieces(len(a[0]), len(b[0]), budget):
            together[part] = out_flags[cell][forms.fold(a[0][part, None] + b[0][None, :])]
        found = _best(found, Condition(a[1], b[1], together))
    return found


def _best(found: list[Condition], one: Condition) -> list[Condition]:
    """The most selective conditions so far."""
    if one.together.all():
        return found
    ordered = sorted([*found, one], key=lambda condition: float(condition.together.mean()))
    return ordered[:CELLS_TO_USE]


def _code(forms: Forms, values: Ids, slots: Ids, budget: Budget) -> tuple[np.ndarray, Index]:
    """The fingerprints that the slots add up to, and which of them each row has."""
    total = np.zeros(len(values), dtype=np.uint64)
    for part in pieces(len(values), len(slots), budget):
        total[part] = forms.weights[values[part][:, slots]].sum(axis=1, dtype=np.uint64)
    sums, code = np.unique(total, return_inverse=True)
    return sums, code.ravel().astype(np.int64)


def cover_conditions(
    domain: Subterms,
    table: Ids,
    sides: tuple[Ids, Ids],
    covers: tuple[Cover, ...],
    budget: Budget,
) -> list[Condition]:
    """The two sides together must contain what each group of cells needs."""
    left, right = sides
    found: list[Condition] = []
    for cover in covers:
        budget.check()
        places = table[cover.slots]
        words = np.flatnonzero(cover.need)
        need = cover.need[words]
        here = places[places < left.shape[1]]
        there = places[(places >= left.shape[1]) & (places < left.shape[1] + right.shape[1])]
        a = _contained(domain, left, here, cover.need, budget)
        b = _contained(domain, right, there - left.shape[1], cover.need, budget)
        if len(a[0]) * len(b[0]) > MAX_CODE_PAIRS:
            continue
        together = np.empty((len(a[0]), len(b[0])), dtype=np.bool_)
        for part in pieces(len(a[0]), len(b[0]) * len(words), budget):
            together[part] = ((a[0][part, None] | b[0][None, :]) == need).all(axis=2)
        found = _best(found, Condition(a[1], b[1], together))
    return found


def _contained(
    domain: Subterms, values: Ids, slots: Ids, need: Bits, budget: Budget
) -> tuple[Bits, Index]:
    """What the slots contain of what is needed, and which of these sets each row has."""
    words = np.flatnonzero(need)
    together = np.zeros((len(values), len(words)), np.uint64)
    contains = domain.contains[:, words] & need[words]
    for part in pieces(len(values), len(slots) * len(words), budget):
        together[part] = np.bitwise_or.reduce(contains[values[part][:, slots]], axis=1)
    sets, code = np.unique(together, axis=0, return_inverse=True)
    return sets, code.ravel().astype(np.int64)
