"""From columns to a linear layout: a matrix that keeps the vectors whole and has those banks."""

from __future__ import annotations

from warploom.errors import InternalError
from warploom.index.bits import BitMap
from warploom.layout.language.ir import Matrix
from warploom.layout.solver.columns import Choice
from warploom.layout.solver.frame import Frame
from warploom.layout.solver.share import kernel_basis
from warploom.layout.solver.subspace import Span


def matrix_of(frame: Frame, choice: Choice) -> Matrix:
    """A bijective matrix; bank bits that the columns do not use go to other elements."""
    inside = min(frame.word_bits, len(frame.directions))
    vectors = frame.basis[inside:]  # coordinates as the columns have them
    sources, images = list(frame.directions[:inside]), [1 << bit for bit in range(inside)]
    for bit, vector in enumerate(choice.shared):
        sources.append(_element(vectors, vector))
        images.append(1 << (inside + bit))
    banks, shared = Span(), Span(choice.shared)
    for vector, column in zip(vectors, choice.columns, strict=True):
        if banks.add(column):
            sources.append(vector)
            images.append(column << frame.word_bits)
    unused = [1 << bit for bit in range(frame.bank_bits) if banks.add(1 << bit)]
    rest = [each for each in kernel_basis(choice.columns) if shared.add(each)]
    above = range(frame.word_bits + frame.bank_bits, frame.bits + frame.word_bits + frame.bank_bits)
    places = [*(bit << frame.word_bits for bit in unused), *(1 << bit for bit in above)]
    sources += [_element(vectors, each) for each in rest]
    images += places[: len(rest)]
    return _matrix(frame, sources, _packed(images, frame.bits))


def _element(vectors: tuple[int, ...], coordinates: int) -> int:
    result = 0
    for place, vector in enumerate(vectors):
        result ^= vector if coordinates >> place & 1 else 0
    return result


def _packed(images: list[int], bits: int) -> list[int]:
    """Images without gaps: a tensor smaller than all banks leaves the highest bits unused."""
    used = 0
    for image in images:
        used |= image
    kept = [bit for bit in range(used.bit_length()) if used >> bit & 1]
    if len(kept) != bits:
        raise InternalError("there are not as many address bits as element bits")
    return [sum((image >> bit & 1) << place for place, bit in enumerate(kept)) for image in images]


def _matrix(frame: Frame, sources: list[int], images: list[int]) -> Matrix:
    into = BitMap(tuple(sources), 0, frame.bits, (frame.bits,)).inverse()
    linear = BitMap(tuple(images), 0, frame.bits, (frame.bits,)) @ into
    offset = sum((linear(first) >> bit & 1) << bit for bit, first in enumerate(frame.firsts))
    return Matrix(linear.columns, offset)
