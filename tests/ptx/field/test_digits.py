"""Numbers of elements survive moves, and nothing else."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from warploom.ptx.field.digits import COPIES, FORMATS, Digits

DIGITS = Digits.drawn(Random(3))
NUMBERS = np.array([0, 1, 2, 77, 65535, 65536, (1 << 31) - 1])
KINDS = tuple(FORMATS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_encoded_is_decoded(kind: str) -> None:
    words = DIGITS.encoded(NUMBERS, kind)
    assert words.shape == (COPIES, NUMBERS.size)
    assert 8 * words.itemsize == FORMATS[kind][1]
    found, bad, _ = DIGITS.decoded(words, kind)
    assert not bad.any()
    assert found.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_may_change(kind: str) -> None:
    words = DIGITS.encoded(NUMBERS, kind)
    for bit in range(8 * words.itemsize):
        for flipped in (words ^ words.dtype.type(1 << bit), words | words.dtype.type(1 << bit)):
            changed = (flipped != words).any(axis=0)
            assert DIGITS.decoded(flipped, kind)[1][changed].all()


def test_copies_are_not_exchanged() -> None:
    words = DIGITS.encoded(NUMBERS, "f32")
    assert DIGITS.decoded(words[[1, 0, 2, 3, 4]], "f32")[1].all()


def test_another_run_has_another_code() -> None:
    other = Digits.drawn(Random(4))
    assert other.decoded(DIGITS.encoded(NUMBERS, "f32"), "f32")[1].all()


def test_a_bf16_is_the_upper_half_of_a_single_and_of_nothing_else() -> None:
    single = DIGITS.encoded(NUMBERS, "f32")
    upper = (single >> np.uint32(16)).astype(np.uint16)
    assert (upper == DIGITS.encoded(NUMBERS, "bf16")).all()
    found, bad, _ = DIGITS.decoded(upper.astype(np.uint32) << np.uint32(16), "f32")
    assert found.tolist() == NUMBERS.tolist()
    assert not bad.any()
    assert DIGITS.decoded(upper, "f16")[1].all()
    double = DIGITS.encoded(NUMBERS, "f64")
    assert DIGITS.decoded((double >> np.uint64(32)).astype(np.uint32), "f32")[1].all()
    assert DIGITS.decoded((double >> np.uint64(48)).astype(np.uint16), "bf16")[1].all()
    assert DIGITS.decoded((double >> np.uint64(48)).astype(np.uint16), "f16")[1].all()


def test_halves_of_two_singles_are_none() -> None:
    words = DIGITS.encoded(NUMBERS, "f32")
    low, high = np.uint32(0xFFFF), np.uint32(0xFFFF0000)
    mixed = words & high | np.roll(words, 1, axis=1) & low
    assert DIGITS.decoded(mixed, "f32")[1].all()
    swapped = words >> np.uint32(16) | words << np.uint32(16)
    assert DIGITS.decoded(swapped, "f32")[1].all()
