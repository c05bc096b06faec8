"""Vectors stay whole: what that alone says about where elements lie, for every layout.

A vector of w elements lies at w consecutive addresses, the first a multiple of w. So each of its
elements has a known place in an aligned chunk of w, and vectors that share an element share the
chunk. Where that cannot be, no layout keeps all vectors whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE, Access, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """For each element the chunk it is in (numbered by its first element), how many elements that
    chunk has, and its place there. An element that no vector moves is a chunk by itself."""

    first: Numbers
    length: Numbers
    place: Numbers


@dataclass(frozen=True, slots=True)
class Torn:
    """Two vectors that no layout keeps whole together; `why` says which."""

    why: str


def chunks_of(problem: Problem) -> Chunks | Torn:
    numbers = np.arange(problem.size, dtype=np.int64)
    chunks = Chunks(numbers.copy(), np.ones_like(numbers), np.zeros_like(numbers))
    owner = np.full(problem.size, -1)
    wide = [(number, each) for number, each in enumerate(problem.accesses) if each.width > 1]
    for number, access in sorted(wide, key=lambda pair: -pair[1].width):
        vectors = _each_once(access.elements[access.elements[:, :, 0] != IDLE])
        torn = _join(problem, chunks, owner, number, vectors)
        if torn is not None:
            return torn
    return chunks


def _each_once(vectors: Numbers) -> Numbers:
    """Rows that differ, in order. Where rows of one first element are equal, which is usual, the
    first elements are all that has to be sorted."""
    ordered = vectors[np.argsort(vectors[:, 0], kind="stable")]
    repeated = ordered[1:, 0] == ordered[:-1, 0]
    if (repeated & (ordered[1:] != ordered[:-1]).any(axis=1)).any():
        return np.unique(vectors, axis=0)
    found: Numbers = ordered[np.append(True, ~repeated)[: len(ordered)]]
    return found


def _join(
    problem: Problem, chunks: Chunks, owner: Numbers, number: int, vectors: Numbers
) -> Torn | None:
    width = vectors.shape[1]
    steps = np.arange(width)
    known = chunks.length[vectors] > 1
    # Inside a chunk that is there already a vector must be a part of it, in order and aligned.
    fits = (
        known.all(axis=1)
        & (chunks.first[vectors] == chunks.first[vectors[:, :1]]).all(axis=1)
        & (chunks.place[vectors] == chunks.place[vectors[:, :1]] + steps).all(axis=1)
        & (chunks.place[vectors[:, 0]] % width == 0)
    )
    bad = known.any(axis=1) & ~fits
    if bad.any():
        row = int(np.argmax(bad))
        element = int(vectors[row][int(np.argmax(known[row]))])
        return _torn(problem, number, vectors[row], element, int(owner[element]))
    new = vectors[~known.any(axis=1)]
    counts = np.bincount(new.ravel())
    if counts.max(initial=1) > 1:
        element = int(np.argmax(counts > 1))
        row = np.nonzero((new == element).any(axis=1))[0][0]
        return _torn(problem, number, new[int(row)], element, number)
    chunks.first[new] = new[:, :1]
    chunks.length[new] = width
    chunks.place[new] = steps
    owner[new] = number
    return None


def _torn(problem: Problem, number: int, vector: Numbers, element: int, other: int) -> Torn:
    one, two = problem.accesses[number].name, problem.accesses[other].name
    whom = f"another vector of {one}" if number == other else f"a vector of {two}"
    shown = ", ".join(map(str, vector.tolist()))
    return Torn(
        f"no layout keeps all vectors whole: {one} moves elements {shown} together, and element "
        f"{element} is at another place of {whom}"
    )


def keeps_whole(access: Access, addresses: Numbers) -> bool:
    """Whether a layout, given as the address of each element, keeps the vectors of an access."""
    if access.width == 1:
        return True
    vectors = access.elements[access.elements[:, :, 0] != IDLE]
    found = addresses[vectors]
    steps = np.arange(access.width)
    return bool((found == found[:, :1] + steps).all() and (found[:, 0] % access.width == 0).all())
