"""Joins two sets of states on what they must have in common, instead of trying every pair.

A condition gives each row of either side a small code and says which codes go together. Rows are
grouped by the codes of one condition after another; only groups that go together are refined
further, and only the rows of the groups that remain are paired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.sketch.synth.demand import Cover, Flags
from warploom.sketch.synth.domain import Domain, Ids
from warploom.sketch.synth.problem import Move
from warploom.sketch.synth.rows import Index, Rows

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
    left: Rows, right: Rows, conditions: list[Condition], at_once: int
) -> Iterator[tuple[Index, Index]]:
    """Pairs of rows that agree on shared keys and meet the conditions, in chunks."""
    left_group, right_group = _key_groups(left, right)
    both = np.intersect1d(left_group, right_group)
    pair_left, pair_right = both, both
    for condition in conditions:
        new_left, old_left, code_left = _refine(left_group, condition.left)
        new_right, old_right, code_right = _refine(right_group, condition.right)
        refined = _refine_pairs(pair_left, pair_right, old_left, old_right)
        if refined is None:
            break
        a, b = refined
        fit = condition.together[code_left[a], code_right[b]]
        pair_left, pair_right = a[fit], b[fit]
        left_group, right_group = new_left, new_right
    yield from _expand(left_group, right_group, pair_left, pair_right, at_once)


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
    pair_left: Index, pair_right: Index, old_left: Index, old_right: Index
) -> tuple[Index, Index] | None:
    """All pairs of new groups whose old groups were paired; None: too many."""
    # New groups are sorted by their old one, so those of an old group are a run.
    a0, a1 = np.searchsorted(old_left, pair_left), np.searchsorted(old_left, pair_left, "right")
    b0, b1 = np.searchsorted(old_right, pair_right), np.searchsorted(old_right, pair_right, "right")
    sizes = (a1 - a0) * (b1 - b0)
    if int(sizes.sum()) > MAX_GROUP_PAIRS:
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
    # Cut the left runs so that no chunk is larger than asked for.
    a0, a1, b0, b1 = _cut(a0, a1, b0, b1, at_once)
    sizes = (a1 - a0) * (b1 - b0)
    chunk = np.cumsum(sizes) // max(1, at_once)
    for number in np.unique(chunk):
        pick = chunk == number
        a, b = _cross_runs(a0[pick], b0[pick], (b1 - b0)[pick], sizes[pick])
        if len(a):
            yield left_rows[a], right_rows[b]


def _cut(
    a0: Index, a1: Index, b0: Index, b1: Index, at_once: int
) -> tuple[Index, Index, Index, Index]:
    rows = np.maximum(1, at_once // np.maximum(b1 - b0, 1))
    parts = -(-(a1 - a0) // rows)
    pair = np.repeat(np.arange(len(a0)), parts)
    nth = np.arange(len(pair)) - (np.cumsum(parts) - parts)[pair]
    start = a0[pair] + nth * rows[pair]
    return start, np.minimum(start + rows[pair], a1[pair]), b0[pair], b1[pair]


def fold_conditions(
    move: Move, table: Ids, sides: tuple[Ids, Ids], out_flags: Flags
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
    found = []
    for cell in mixed[::stride]:
        a = _code(forms.weights[left[:, runs[cell][in_left[cell]]]])
        b = _code(forms.weights[right[:, runs[cell][in_right[cell]] - left.shape[1]]])
        if len(a[0]) * len(b[0]) > MAX_CODE_PAIRS:
            continue
        together = out_flags[cell][forms.fold(a[0][:, None] + b[0][None, :])]
        if not together.all():
            found.append(Condition(a[1], b[1], together))
    found.sort(key=lambda condition: float(condition.together.mean()))
    return found[:CELLS_TO_USE]


def _code(weights: np.ndarray) -> tuple[np.ndarray, Index]:
    sums, code = np.unique(weights.sum(axis=1, dtype=np.uint64), return_inverse=True)
    return sums, code.ravel().astype(np.int64)


def cover_conditions(
    domain: Domain, table: Ids, sides: tuple[Ids, Ids], covers: tuple[Cover, ...]
) -> list[Condition]:
    """The two sides together must contain what each group of cells needs."""
    left, right = sides
    found = []
    for cover in covers:
        places = table[cover.slots]
        words = np.flatnonzero(cover.need)
        need = cover.need[words]
        here = places[places < left.shape[1]]
        there = places[(places >= left.shape[1]) & (places < left.shape[1] + right.shape[1])]
        a = _contained(domain, left[:, here], words, need)
        b = _contained(domain, right[:, there - left.shape[1]], words, need)
        if len(a[0]) * len(b[0]) > MAX_CODE_PAIRS:
            continue
        together = ((a[0][:, None] | b[0][None, :]) == need).all(axis=2)
        if not together.all():
            found.append(Condition(a[1], b[1], together))
    found.sort(key=lambda condition: float(condition.together.mean()))
    return found[:CELLS_TO_USE]


def _contained(
    domain: Domain, values: Ids, words: Index, need: np.ndarray
) -> tuple[np.ndarray, Index]:
    if values.shape[1] == 0:
        return np.zeros((1, len(words)), np.uint64), np.zeros(len(values), np.int64)
    together = np.bitwise_or.reduce(domain.contains[:, words][values], axis=1) & need
    sets, code = np.unique(together, axis=0, return_inverse=True)
    return sets, code.ravel().astype(np.int64)
