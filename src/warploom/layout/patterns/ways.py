"""Other ways to do what a pattern does: every lane moves the same elements, by other accesses.

Wider or narrower vectors, a lane's steps in an order of its own, matrices by ldmatrix and stmatrix
where lanes hold words as those give them. Which way is best depends on the layout, and which layout
on the way; so each way is a problem, and the solver takes them one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from warploom.choices import VARIED
from warploom.errors import CheckError, UnsupportedError
from warploom.layout.language.evaluate import Numbers, pause_if_long
from warploom.layout.patterns.access import IDLE, Access, AccessKind, Problem

WIDEST = 16  # bytes of a lane
ROW = 16  # bytes of a row of a matrix, which four lanes hold as words
MOST_WAYS = 256  # of a problem: combinations over its accesses
MOVED_BY_LANES = ("ld", "st")


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """What was changed, in words; empty: nothing."""

    name: str
    problem: Problem


def ways_of(problem: Problem, what: tuple[str, ...]) -> list[Way]:
    """The problem as it is, then every combination of other ways to do its accesses."""
    for name in what:
        if name not in DECISIONS:
            raise UnsupportedError(
                f"'{name[:40]}' is no decision about accesses",
                advice=f"known are {', '.join(DECISIONS)}",
            )
    each = [_of_access(problem, access, what) for access in problem.accesses]
    if (count := prod(map(len, each))) > MOST_WAYS:
        raise CheckError(
            f"there are {count} ways to do these accesses", advice=f"at most {MOST_WAYS} are tried"
        )
    found = []
    for chosen in product(*each):
        named = [f"{access.name} {words}" for access, words in chosen if words]
        accesses = tuple(access for access, _ in chosen)
        found.append(Way(", ".join(named), replace(problem, accesses=accesses)))
    return found


def _of_access(problem: Problem, access: Access, what: tuple[str, ...]) -> list[tuple[Access, str]]:
    """The access, then others that move the same; of those that are the same access one."""
    found = [(access, "")]
    for name in (each for each in DECISIONS if each in what):
        for known, words in list(found):
            if known.kind in MOVED_BY_LANES:
                for one, said in DECISIONS[name](problem, known):
                    pause_if_long(one.elements.size)
                    found.append((one, f"{words} {said}".strip()))
    kept: dict[tuple[str, bytes, tuple[int, ...]], tuple[Access, str]] = {}
    for one, words in found:
        key = (one.kind, one.elements.tobytes(), one.elements.shape)
        kept.setdefault(key, (one, words))
    return list(kept.values())


# -- widths ----------------------------------------------------------------------------------------


def _widths(problem: Problem, access: Access) -> Iterator[tuple[Access, str]]:
    """Vectors cut in halves again and again, and joined as long as they go on from step to step."""
    size, packed = problem.element_bytes, problem.packed
    narrower = access.elements
    while narrower.shape[2] > packed:
        narrower = _cut(narrower)
        yield _with(access, narrower), f"by {size * narrower.shape[2] // packed} bytes"
    wider: Numbers | None = access.elements
    while wider is not None and 2 * wider.shape[2] * size <= WIDEST * packed:
        wider = _joined(wider)
        if wider is not None:
            yield _with(access, wider), f"by {size * wider.shape[2] // packed} bytes"


def _cut(elements: Numbers) -> Numbers:
    """Each step as two: the first half of every vector, then the second."""
    steps, lanes, width = elements.shape
    halves = elements.reshape(steps, lanes, 2, width // 2)
    return np.ascontiguousarray(halves.transpose(0, 2, 1, 3).reshape(2 * steps, lanes, width // 2))


def _joined(elements: Numbers) -> Numbers | None:
    """Pairs of steps as one, where every vector of the one goes on in the other."""
    width, taken, rows = elements.shape[2], set[int](), []
    after = {row.tobytes(): step for step, row in enumerate(elements)}
    for step, row in enumerate(elements):
        follower = after.get(np.where(row == IDLE, IDLE, row + width).tobytes())
        begins = bool(((row[:, 0] == IDLE) | (row[:, 0] % (2 * width) == 0)).all())
        if begins and follower is not None:
            taken |= {step, follower}
            rows.append(np.concatenate([row, elements[follower]], axis=1))
    return np.stack(rows) if len(taken) == len(elements) == 2 * len(rows) else None


# -- order of steps --------------------------------------------------------------------------------


def _orders(_: Problem, access: Access) -> Iterator[tuple[Access, str]]:
    """Each lane begins at a step of its own: steps exchanged, or turned, by bits of its number."""
    steps, lanes = access.steps, np.arange(access.lanes)
    step = np.arange(steps)[:, None]
    for low in range(max(1, access.lanes.bit_length() - 1)):
        by = lanes >> low
        shown = "lane" if not low else f"(lane >> {low})"
        if steps > 1 and not steps & (steps - 1):
            yield _with(access, access.elements[step ^ by % steps, lanes]), f"at step ^ {shown}"
        elif steps > 1:
            turned = (step + by) % steps
            yield _with(access, access.elements[turned, lanes]), f"at step + {shown}"


# -- matrices --------------------------------------------------------------------------------------


def _matrices(problem: Problem, access: Access) -> Iterator[tuple[Access, str]]:
    """Four steps of words as one of matrices: lane 4g + t holds word t of row g, as ldmatrix gives
    it and stmatrix takes it. Transposed: the two halves of a word are of rows 2t and 2t + 1."""
    if not problem.serving.has_matrices or access.lanes != problem.serving.lanes:
        return
    for trans in (False, True):
        rows = _rows(problem, access, trans)
        if rows is not None:
            kind: AccessKind = "ldmatrix" if access.kind == "ld" else "stmatrix"
            if trans:
                kind = "ldmatrix.trans" if access.kind == "ld" else "stmatrix.trans"
            made = _of_rows(rows, problem.elements_in(ROW), access.lanes)
            yield replace(access, elements=made, kind=kind), f"by {kind}"


def _rows(problem: Problem, access: Access, trans: bool) -> Numbers | None:
    """The first elements of the eight rows of each matrix, if the steps are matrices."""
    elements = access.elements
    lane = np.arange(access.lanes)
    row, word = lane // 4, lane % 4
    if (elements == IDLE).any():
        return None
    if not trans:
        if problem.bytes_of(access.width) != 4:
            return None
        first = elements[:, ::4, 0]
        fits = elements[:, :, 0] == first[:, row] + word * problem.elements_in(4)
    else:
        if problem.bits != 16 or access.width != 1 or access.steps % 2:
            return None
        pairs = elements[:, :, 0].reshape(-1, 2, access.lanes)
        first = pairs[:, :, :4].transpose(0, 2, 1).reshape(-1, 8)  # rows 2t + i, of column 0
        fits = (pairs == first.reshape(-1, 4, 2).transpose(0, 2, 1)[:, :, word] + row).all(axis=1)
    whole = first % problem.elements_in(ROW) == 0
    return first if bool(fits.all() and whole.all()) else None


def _of_rows(rows: Numbers, width: int, lanes: int) -> Numbers:
    """Up to four matrices in a step; lane 8j + i has row i of matrix j."""
    count = next(c for c in (4, 2, 1) if len(rows) % c == 0)
    first = rows.reshape(-1, 8 * count)
    wide = first[:, :, None] + np.arange(width)
    return np.pad(wide, ((0, 0), (0, lanes - 8 * count), (0, 0)), constant_values=IDLE)


def _with(access: Access, elements: Numbers) -> Access:
    return replace(access, elements=np.ascontiguousarray(elements))


DECISIONS: dict[str, Callable[[Problem, Access], Iterator[tuple[Access, str]]]] = dict(
    zip(VARIED, (_widths, _matrices, _orders), strict=True)
)
