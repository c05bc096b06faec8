"""What a layout costs: wavefronts of each access; and the bound that no layout of any kind beats.

A layout is here the address of each element, counted in elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE, SERVED_AS, Access, Problem, pieces
from warploom.layout.wavefronts.lower_bound import Chunks, keeps_whole
from warploom.machine.serving import asked_in_pairs, cosets, passes

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The elements that are wanted together, one row for each group of lanes of each step; -1 fills
    rows up. Of a vector within a word, only its first element is there: the others come along."""

    elements: Numbers
    step: Numbers

    @property
    def wanted(self) -> Mask:
        return np.asarray(self.elements != IDLE)


def groups_of(problem: Problem, access: Access) -> Groups:
    parts = []
    for piece in pieces(access.steps, access.lanes * access.width):
        part = _grouped(problem, replace(access, elements=access.elements[piece]))
        parts.append(replace(part, step=part.step + piece.start))
    most = max(part.elements.shape[1] for part in parts)
    elements = np.concatenate([_filled(part.elements, most) for part in parts])
    return Groups(elements, np.concatenate([part.step for part in parts]))


def _filled(rows: Numbers, most: int) -> Numbers:
    return np.pad(rows, ((0, 0), (0, most - rows.shape[1])), constant_values=IDLE)


def _grouped(problem: Problem, access: Access) -> Groups:
    serving = problem.serving
    group = serving.group(SERVED_AS[access.kind], problem.bytes_of(access.width))
    per_word = max(1, problem.elements_in(serving.word_bytes))
    shown = access.elements[:, :, ::per_word]
    # Equal elements have equal addresses in every layout: who asks in pairs does not depend on it.
    first = access.elements[:, :, 0]
    paired = np.zeros(access.steps, bool)
    if group.paired:
        paired = asked_in_pairs(first, first != IDLE)
    idle = np.full((access.steps, 1, shown.shape[2]), IDLE)
    padded = np.concatenate([shown, idle], axis=1)
    rows, steps = [], []
    for chosen, used in ((~paired, group), (paired, group.when_paired())):
        if chosen.any():
            lanes = np.minimum(cosets(used.basis, serving.lanes), access.lanes)
            rows.append(padded[chosen][:, lanes].reshape(int(chosen.sum()) * len(lanes), -1))
            steps.append(np.repeat(np.nonzero(chosen)[0], len(lanes)))
    most = max(row.shape[1] for row in rows)
    elements, step = np.concatenate([_filled(row, most) for row in rows]), np.concatenate(steps)
    busy = (elements != IDLE).any(axis=1)
    return Groups(elements[busy], step[busy])


@dataclass(frozen=True, slots=True)
class Score:
    """For each access its wavefronts over all steps, and how many steps there are."""

    wavefronts: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def per_request(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(w, s) for w, s in zip(self.wavefronts, self.steps, strict=True))

    def weighted(self, weights: tuple[Fraction, ...], worst: bool = False) -> Fraction:
        """The objective: all wavefronts of the tile, each access by its weight; or the largest of
        the accesses."""
        # Weights are whole nearly always, and sums of integers are much faster.
        each = [
            weight.numerator * n if weight.denominator == 1 else weight * n
            for weight, n in zip(weights, self.wavefronts, strict=True)
        ]
        return Fraction(max(each) if worst else sum(each))

    def __str__(self) -> str:
        return "/".join(f"{float(each):.4g}" for each in self.per_request)


def _pieces(rows: Numbers) -> Iterator[slice]:
    return pieces(*rows.shape)


class Meter:
    """Counts wavefronts of layouts for one problem; what does not depend on them is kept."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.groups = [groups_of(problem, access) for access in problem.accesses]
        self._steps = tuple(access.steps for access in problem.accesses)

    def score(self, addresses: Numbers) -> Score | None:
        """None if the layout does not keep the vectors whole."""
        if not all(keeps_whole(access, addresses) for access in self.problem.accesses):
            return None
        counts = tuple(int(self.passes(n, addresses).sum()) for n in range(len(self.groups)))
        return Score(counts, self._steps)

    def passes(self, number: int, addresses: Numbers) -> Numbers:
        """The wavefronts of each group of one access."""
        elements = self.groups[number].elements
        return np.concatenate(
            [self.served(addresses[elements[p]], elements[p] != IDLE) for p in _pieces(elements)]
        )

    def served(self, addresses: Numbers, wanted: Mask) -> Numbers:
        """The wavefronts of each row of addresses that are wanted together."""
        return passes(*self._words(addresses, wanted), self.problem.serving.banks)

    def by_step(self, number: int, addresses: Numbers) -> Numbers:
        """The wavefronts of each request of one access."""
        groups = self.groups[number]
        each = self.passes(number, addresses)
        counted = np.bincount(groups.step, each, minlength=self._steps[number])
        return counted.astype(np.int64)

    def _words(self, addresses: Numbers, wanted: Mask) -> tuple[Numbers, Mask]:
        return words_of(addresses, wanted, self.problem)

    def least(self, number: int, chunks: Chunks) -> Numbers:
        """The wavefronts that each group of one access takes at least, in any layout.

        A group that wants n different words takes n / banks. Where vectors are kept whole, an
        element's place in its chunk is known, so that words of one place modulo m lie in banks of
        that number modulo m, of which there are banks / m.
        """
        elements = self.groups[number].elements
        found = [self._least(number, elements[piece], chunks) for piece in _pieces(elements)]
        return np.concatenate(found)

    def _least(self, number: int, elements: Numbers, chunks: Chunks) -> Numbers:
        problem, wanted = self.problem, elements != IDLE
        banks, word_bytes = problem.serving.banks, problem.serving.word_bytes
        in_chunk = problem.bytes_of(chunks.length[elements])
        known = wanted & (in_chunk >= word_bytes)
        apart = 64  # words of a chunk at most
        place, wide = words_of(chunks.place[elements], known, problem)
        copies = place.shape[1] // elements.shape[1]
        words = np.repeat(chunks.first[elements], copies, axis=1) * apart + place
        chunk_words = np.repeat(in_chunk // word_bytes, copies, axis=1)
        # Elements smaller than a word that no vector binds may share words with one another.
        moved = min(problem.bytes_of(problem.accesses[number].width), word_bytes)
        total, alone = passes(words, wide, 1), wanted & ~known
        if alone.any():
            total += -(-passes(elements, alone, 1) * moved // word_bytes)
        found = -(-total // banks)
        modulus = 2
        while modulus <= min(banks, int(chunk_words.max(initial=1))):
            fullest = passes(words, wide & (chunk_words >= modulus), modulus)
            found = np.maximum(found, -(-fullest // (banks // modulus)))
            modulus *= 2
        least: Numbers = np.maximum(found, 1)
        return least

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        return self.problem.weights


def words_of(addresses: Numbers, wanted: Mask, problem: Problem) -> tuple[Numbers, Mask]:
    """The words of elements, and which of them are wanted; a large element has several."""
    element_bytes, word_bytes = problem.element_bytes, problem.serving.word_bytes
    if element_bytes <= word_bytes:
        # A word has a power of two of elements: a shift takes a fraction of a division's time.
        per_word = problem.elements_in(word_bytes)
        return addresses >> per_word.bit_length() - 1 if per_word > 1 else addresses, wanted
    count = element_bytes // word_bytes
    words = addresses[:, :, None] * count + np.arange(count)
    return words.reshape(len(addresses), words.shape[1] * count), np.repeat(wanted, count, axis=1)
