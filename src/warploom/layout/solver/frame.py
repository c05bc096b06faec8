"""What a linear layout is free to choose: the bank of each vector of a basis; the rest follows.

A linear layout gives element e the address L(e) ^ c, with a bijective matrix L over F2. Its address
bits are, from the lowest: those inside a word, those that choose the bank, and the rest. Two
subspaces decide what every access costs: T, the differences that stay in one word, and K ⊇ T, those
that stay in one bank. Vectors that are kept whole fix some of this:

    L(v_j) = 2^j for the direction v_j in which bit j of a vector's number goes, and
    bit j of L(a ^ b) = 0 for any two first elements a, b of vectors with more than 2^j elements.

The second line is about Z_j, the span of such a ^ b; Z_0 ⊇ Z_1 ⊇ …
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.index.bits import BitMap
from warploom.layout.language.evaluate import Numbers, pause_if_long
from warploom.layout.patterns.access import IDLE, Problem
from warploom.layout.solver.subspace import Span


@dataclass(frozen=True, slots=True)
class Free:
    """A vector of the basis whose bank is to be chosen; `places`: which of the bank bits that a
    vector's places take up may be set there, as a mask."""

    vector: int
    places: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A basis of all elements' numbers: the directions of vectors, then what is free.

    `word_bits` are address bits inside a word, `bank_bits` those that choose the bank (less those
    inside an element larger than a word).
    """

    bits: int
    word_bits: int
    bank_bits: int
    directions: tuple[int, ...]
    free: tuple[Free, ...]
    firsts: tuple[int, ...]  # for each direction a first element of vectors that go along it

    @property
    def place_bits(self) -> int:
        """Bank bits that are places in a vector."""
        return max(0, len(self.directions) - self.word_bits)

    @property
    def loose_bits(self) -> int:
        """Bits inside a word that no vector fixes."""
        return max(0, self.word_bits - len(self.directions))

    @property
    def basis(self) -> tuple[int, ...]:
        return (*self.directions, *(each.vector for each in self.free))

    def coordinates(self) -> BitMap:
        """From an element's number to its coordinates, without those inside a word."""
        whole = BitMap(self.basis, 0, self.bits, (self.bits,)).inverse()
        inside = min(self.word_bits, len(self.directions))
        columns = tuple(column >> inside for column in whole.columns)
        return BitMap(columns, 0, self.bits - inside, (self.bits,))

    @property
    def fixed(self) -> tuple[int, ...]:
        """The banks of the first coordinates: places of a vector."""
        return tuple(1 << place for place in range(self.place_bits))


@dataclass(frozen=True, slots=True)
class NoFrame:
    """Why no linear layout keeps all vectors whole, or there is none at all."""

    why: str


def frame_of(problem: Problem) -> Frame | NoFrame:
    size = problem.size
    if size & (size - 1):
        return NoFrame(f"{size} elements are no power of two")
    directions = _directions(problem)
    if isinstance(directions, NoFrame):
        return directions
    firsts = [_first_elements(problem, 1 << j) for j in range(len(directions))]
    spans = [Span((each ^ each[0]).tolist()).basis for each in firsts]
    bits = size.bit_length() - 1
    whole = problem.serving.word_bytes
    word_bits = max(1, problem.elements_in(whole)).bit_length() - 1
    inside = max(1, problem.element_bytes // whole).bit_length() - 1
    bank_bits = problem.serving.banks.bit_length() - 1 - inside
    first = tuple(int(each[0]) for each in firsts)
    free = _free(bits, directions, spans, min(word_bits, len(directions)))
    frame = Frame(bits, word_bits, bank_bits, directions, free, first)
    return (
        frame
        if _can_align(frame, spans)
        else NoFrame("the first elements of vectors cannot all be aligned")
    )


def _directions(problem: Problem) -> tuple[int, ...] | NoFrame:
    """The direction of each bit of a vector's number: the same in all vectors of all accesses."""
    found: dict[int, int] = {}
    for access in problem.accesses:
        pause_if_long(access.elements.size)
        vectors = access.elements[access.elements[:, :, 0] != IDLE]
        apart = vectors ^ vectors[:, :1]
        if len(apart) and (apart != apart[0]).any():
            return NoFrame(f"vectors of {access.name} go in different directions")
        row = apart[0].tolist() if len(apart) else []
        for place, distance in enumerate(row):
            if found.setdefault(place, distance) != distance:
                return NoFrame(f"vectors of {access.name} and others go in different directions")
    directions = [found[1 << j] for j in range(len(found).bit_length() - 1)] if found else []
    for place, distance in found.items():
        if _sum(directions, place) != distance:
            return NoFrame("the elements of a vector are no subspace")
    if len(Span(directions)) < len(directions):
        return NoFrame("a vector has an element twice")
    return tuple(directions)


def _sum(vectors: list[int], chosen: int) -> int:
    result = 0
    for place, vector in enumerate(vectors):
        if chosen >> place & 1:
            result ^= vector
    return result


def _first_elements(problem: Problem, more_than: int) -> Numbers:
    """The first elements of all vectors with more than so many elements."""
    firsts = [access.elements[:, :, 0] for access in problem.accesses if access.width > more_than]
    found = np.unique(np.concatenate([first[first != IDLE] for first in firsts]))
    return np.asarray(found)


def _free(
    bits: int, directions: tuple[int, ...], spans: list[list[int]], inside: int
) -> tuple[Free, ...]:
    """Vectors that complete the directions to a basis: first of the smallest Z_j, then of larger
    ones. A vector of Z_j has no place bits up to j; `inside` of the places are within a word."""
    known, found, count = Span(directions), [], len(directions)
    for j in range(count - 1, -1, -1):
        later = sum(1 << place for place in range(j + 1, count)) >> inside
        found += [Free(vector, later) for vector in spans[j] if known.add(vector)]
    everything = ((1 << count) - 1) >> inside
    found += [Free(1 << bit, everything) for bit in range(bits) if known.add(1 << bit)]
    return tuple(found)


def _can_align(frame: Frame, spans: list[list[int]]) -> bool:
    """Whether Z_j has nothing of v_j: then bit j can be 0 on all of it."""
    whole = BitMap(frame.basis, 0, frame.bits, (frame.bits,)).inverse()
    return not any(whole(v) >> j & 1 for j, vectors in enumerate(spans) for v in vectors)
