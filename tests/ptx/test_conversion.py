"""printf's conversions, held to those of the C library of this machine."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from warploom.ptx.emulate.conversion import LARGEST_FIELD, filled

LIBC = ctypes.CDLL(None)


class Given:
    """Values as bytes, aligned as a compiler puts them."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)

    def take(self, kind: str) -> Any:
        value = self.values.pop(0)
        if kind == "d":
            return float(value)
        size = struct.calcsize(kind)
        raw = (int(value) % (1 << 8 * size)).to_bytes(size, "little")
        return struct.unpack("<" + kind, raw)[0]

    def text(self) -> str:
        return str(self.values.pop(0))


def by_c(text: str, values: Sequence[Any]) -> str:
    out = ctypes.create_string_buffer(1 << 14)
    passed: list[Any] = []
    for value in values:
        if isinstance(value, float):
            passed.append(ctypes.c_double(value))
        elif isinstance(value, str):
            passed.append(ctypes.c_char_p(value.encode()))
        else:
            passed.append(ctypes.c_longlong(value))
    LIBC.snprintf(out, len(out), text.encode(), *passed)
    return out.value.decode()


FLAGS = ["", "-", "+", " ", "#", "0", "-0", "+0", " 0", "#0", "-+", "#-"]
SIZES = ["", "1", "12", ".0", ".3", "12.3", "4.9", ".14"]
WHOLE = [0, 1, -1, 8, 255, 70000, -70000, 2**31 - 1, -(2**31), 2**40, -(2**63)]
REAL = [0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, 123456.789, 2.5, 3.5, float("inf"), -float("inf")]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("kind", "diouxX")
@pytest.mark.parametrize("length", ["", "h", "hh", "l", "ll", "z", "j", "t"])
def test_whole_numbers(kind: str, length: str) -> None:
    for flags, size, value in product(FLAGS, SIZES, WHOLE):
        text = f"<%{flags}{size}{length}{kind}>"
        assert filled(text, Given([value])) == by_c(text, [value]), (text, value)


@pytest.mark.parametrize("kind", "eEfFgGaA")
def test_real_numbers(kind: str) -> None:
    flags = [each for each in FLAGS if kind not in "aA" or not {"0", " "} & set(each)]
    for flag, size, value in product(flags, SIZES, REAL):
        if kind in "aA" and value == 5e-324:  # the library does not normalise it
            continue
        if not np.isfinite(value) and "0" in flag:
            continue
        text = f"<%{flag}{size}{kind}>"
        if kind in "aA" and size in (".0", ".3", "12.3", "4.9") and value not in (0.0, 1.0, 2.5):
            continue  # which digit comes first where it is rounded is the library's choice
        assert filled(text, Given([value])) == by_c(text, [value]), (text, value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("%s|%10s|%-10s|%.2s|%10.1s", ["text", "right", "left", "cut", "one"]),
        ("%c%5c%-5c|", [65, 66, 67]),
        ("%p %20p %-20p|", [16, 4096, 1 << 45]),
        ("%p", [0]),
        ("100%% of %d%%", [5]),
        ("%*d|%-*d|%.*f|%*.*f", [6, 42, 6, 42, 2, 3.14159, 9, 3, 2.0]),
        ("%*d|%.*f", [-6, 42, -1, 0.5]),
        ("%d %s %g", [1, "two", 3.0]),
    ],
)
def test_the_others(text: str, values: list[Any]) -> None:
    assert filled(text, Given(values)) == by_c(text, values)


def test_what_is_no_conversion_stays() -> None:
    assert filled("%q %k 50% %", Given([])) == "%q %k 50% %"


def test_no_width_takes_all_memory() -> None:
    assert len(filled("%999999999d", Given([1]))) == LARGEST_FIELD
    assert len(filled("%.999999999f", Given([1.0]))) == LARGEST_FIELD + 2
    assert len(filled("%*s", Given([2**31 - 1, "x"]))) == LARGEST_FIELD
