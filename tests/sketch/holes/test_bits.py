"""Bit operations against arithmetic on Python integers, and the sketches that need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from warploom.errors import CheckError
from warploom.index.bits import from_expression
from warploom.search.outcome import Verdict
from warploom.sketch.build import Sketch
from warploom.sketch.holes import build, known
from warploom.sketch.holes.bits import SECOND, BitForms, Bits, Second
from warploom.sketch.synth.show import show_fill
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.transfer import counterparts, transfer
from warploom.sketch.term.gather import Sense
from warploom.sketch.term.ir import GatherSet, Program, Shape

Sound = Callable[..., None]
Moved = Callable[[int, int], int]


def backwards(value: int, bits: int) -> int:
    return int(format(value, f"0{bits}b")[::-1], 2) if bits else 0


def turned(value: int, bits: int, by: int) -> int:
    return (value >> by | value << (bits - by)) & (1 << bits) - 1


def _moved(
    matrix: Callable[[int], int], mask: Callable[[int], int], offset: int, x: int, k: int
) -> int:
    return matrix(x) ^ mask(k) ^ offset


def reference(size: int, seconds: int) -> Iterator[Moved]:
    """Everything that must be there, one small function at a time."""
    bits = size.bit_length() - 1
    matrices: list[Callable[..., int]] = [lambda x: x, lambda x: backwards(x, bits)]
    matrices += [lambda x, by=by: turned(x, bits, by) for by in range(1, bits)]
    matrices += [
        lambda x, n=n: x >> n << n | backwards(x & (1 << n) - 1, n) for n in range(2, bits)
    ]
    matrices += [
        lambda x, n=n: x & (1 << n) - 1 | backwards(x >> n, bits - n) << n
        for n in range(1, bits - 1)
    ]
    masks: list[Callable[..., int]] = [lambda k: 0]
    for mask in (
        lambda k: k,
        lambda k: k + 1,
        lambda k: 1 << k,
        lambda k: size // 2 >> k,
        lambda k: (2 << k) - 1,
    ):
        values = [mask(k) for k in range(seconds)]
        if seconds > 1 and max(values) < size and min(values[-1:]) > 0:
            masks.append(mask)
    pairs = [(matrix, mask) for matrix in matrices for mask in masks]
    pairs += [(matrices[0], lambda k, m=m: k & m) for m in adjacent(min(size, seconds))]
    for matrix, mask in pairs:
        for offset in range(size):
            yield partial(_moved, matrix, mask, offset)


def adjacent(below: int) -> list[int]:
    """The masks below a number whose bits are neighbours."""
    return [m for m in range(1, below) if "01" not in format(m, "b")[::-1].strip("0")]


def table(size: int, seconds: int, moved: Moved) -> bytes:
    cells = [moved(x, k) * seconds + k for x in range(size) for k in range(seconds)]
    return np.array(cells, np.int32).tobytes()


@pytest.mark.parametrize(("size", "seconds"), [(8, 1), (8, 3), (16, 4), (8, 7), (4, 9), (2, 2)])
def test_the_set_holds_every_form_it_promises(size: int, seconds: int, sound: Sound) -> None:
    gathers = build("col_bits", {}, ((size, seconds),), (size, seconds))
    sound(gathers, most=60)
    tables = {row.tobytes() for row in gathers.tables}
    for moved in reference(size, seconds):
        assert table(size, seconds, moved) in tables


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_all_are_permutations_along_the_axis(size: int) -> None:
    gathers = build("row_bits", {}, ((5, size),), (5, size))
    moved = np.sort(gathers.tables.reshape(-1, 5, size) % size, axis=-1)
    assert (moved == np.arange(size)).all()


@pytest.mark.parametrize(("shape", "most"), [((32, 1), 500), ((32, 5), 3000), ((32, 32), 1500)])
def test_the_set_is_small(shape: Shape, most: int) -> None:
    assert 400 < len(build("col_bits", {}, (shape,), shape)) <= most


def test_a_factor_is_shifted_by_the_second_coordinate() -> None:
    """x ^ (3 << k) for two k, and every other factor that fits."""
    gathers = build("col_bits", {}, ((16, 2),), (16, 2))
    tables = {row.tobytes() for row in gathers.tables}
    for factor in range(1, 8):
        assert table(16, 2, lambda x, k: x ^ factor << k) in tables  # noqa: B023


def test_each_row_is_a_matrix_and_an_offset() -> None:
    gathers = build("bits", {"main": 0}, ((16, 3),), (16, 3))
    family = gathers.family
    assert isinstance(family, Bits)
    for choice in range(0, len(gathers), 17):
        row = gathers.row(choice)
        assert row[SECOND] == Second.NONE
        expr = family.value(row)
        assert from_expression(expr, {"x0": 4}, 4) == family.functions.matrix(row)


def test_texts() -> None:
    gathers = build("col_bits", {}, ((32, 5),), (32, 5))
    texts = {text for text, _ in gathers.spellings()}
    assert gathers.describe(0) == "id"
    assert {
        "bits[xor=7]",
        "bits[reverse]",
        "bits[rotate=2]",
        "bits[reverse=low 3]",
        "bits[reverse=high 3,xor=1]",
        "bits[reverse,rotate=1]",
        "bits[xor=1<<x1]",
        "bits[xor=16>>x1]",
        "bits[xor=x1+1 ^ 3]",
        "bits[xor=(2<<x1)-1]",
        "bits[xor=x1&2]",
        "bits[xor=x1&6 ^ 1]",
    } <= texts
    assert len(texts) == len(gathers.spelled)


@pytest.mark.parametrize(
    ("name", "options", "shape", "message"),
    [
        ("col_bits", {}, (12, 2), "length 12, which is no power of two"),
        ("bits", {}, (8, 2), "needs the options main, second and out"),
        ("bits", {"main": 0, "second": 1, "out": 1}, (8, 2), "moves along its main axis 0"),
        ("bits", {"main": 2}, (8, 2), "axis 2 is out of range"),
        ("col_bits", {}, (8,), "two or more dimensions"),
        ("col_bits", {}, (2048, 8), "is too large"),
    ],
)
def test_errors(name: str, options: dict[str, int], shape: Shape, message: str) -> None:
    with pytest.raises(CheckError) as caught:
        build(name, options, (shape,), shape)
    assert message in caught.value.message
    assert caught.value.advice
    assert {"bits", "row_bits", "col_bits"} <= set(known())


# -- in sketches ---------------------------------------------------------------------------------


def reversal_sketch(lanes: int) -> Program:
    s = Sketch("lane bit reversal")
    x = s.input("x", lanes)
    s.hole("bits", x, main=0, name="moved")
    s.goal(np.array([backwards(lane, lanes.bit_length() - 1) for lane in range(lanes)]))
    return s.program()


def butterfly(lanes: int, steps: int) -> Program:
    """Partner i of lane l is l ^ 2^i."""
    s = Sketch("butterfly")
    x = s.apply("broadcast", s.input("x", lanes), shape=(lanes, steps), group=1)
    s.hole("col_bits", x, name="partner")
    lane, step = np.indices((lanes, steps))
    s.goal(lane ^ 1 << step)
    return s.program()


def exchanged(rows: int, columns: int, bit: int) -> Program:
    """One step of Eklundh's transposition: that bit of the row and of the column change places."""
    s = Sketch("exchange of one bit")
    x = s.input("x", (rows, columns))
    s.hole("row_bits", s.hole("col_bits", s.hole("row_bits", x, name="a"), name="b"), name="c")
    row, column = np.indices((rows, columns))
    other = 1 << bit
    s.goal((row & ~other | column & other) * columns + (column & ~other | row & other))
    return s.program()


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (8, 8), (16, 4), (32, 8)])
def test_single_bits_are_exchanged(rows: int, columns: int) -> None:
    """By masked coordinates, among others."""
    for bit in range(min(rows, columns).bit_length() - 1):
        result = synthesize(exchanged(rows, columns, bit))
        assert result.verdict is Verdict.PROVED
        masked = [f"bits[xor=x{axis}&{1 << bit}]" for axis in (0, 1, 0)]
        fills = [list(result.described(n).values()) for n in range(len(result.fills))]
        assert masked in fills


def test_an_exchange_is_carried_over() -> None:
    small = synthesize(exchanged(8, 8, 1), mode="best")
    carried = transfer(small, exchanged(32, 16, 1))
    assert carried.verdict is Verdict.PROVED


def test_lane_bit_reversal_is_found_and_proved() -> None:
    result = synthesize(reversal_sketch(32))
    assert (result.fills.count, result.verdict) == (1, Verdict.PROVED)
    assert result.described(0) == {"moved": "bits[reverse]"}
    assert show_fill(result).endswith(
        "x.flat[x0 >> 4 ^ (x0 & 8) >> 2 ^ x0 & 4 ^ (x0 & 2) << 2 ^ (x0 & 1) << 4]"
    )


@pytest.mark.parametrize(
    ("make", "small", "large"),
    [
        (reversal_sketch, (32,), (64,)),
        (reversal_sketch, (8,), (256,)),
        (butterfly, (32, 5), (64, 6)),
    ],
)
def test_bit_operations_carry_over(
    make: Callable[..., Program], small: tuple[int, ...], large: tuple[int, ...]
) -> None:
    found = synthesize(make(*small))
    carried = transfer(found, make(*large), readings=(Sense.NATURAL,))
    assert carried.verdict is Verdict.PROVED
    assert carried.described(0) == found.described(0)


def at(small: int, text: str, large: int, reading: Sense) -> set[str]:
    one, two = (build("bits", {"main": 0}, ((n,),), (n,)) for n in (small, large))
    found = counterparts(one, dict(one.spellings())[text], two, reading)
    return {two.describe(choice) for choice in found}


def test_what_bits_mean_at_another_size() -> None:
    assert at(32, "bits[xor=3]", 64, Sense.NATURAL) == {"bits[xor=3]"}
    assert at(32, "bits[xor=31]", 64, Sense.NATURAL) == {"bits[xor=63]"}
    assert at(32, "bits[xor=16]", 64, Sense.SHARE) == {"bits[xor=32]"}
    assert at(32, "bits[rotate=4]", 64, Sense.NATURAL) == {"bits[rotate=5]"}  # one to the left
    assert at(32, "bits[reverse=high 2]", 64, Sense.NATURAL) == {"bits[reverse=high 2]"}
    assert at(32, "bits[reverse=low 4]", 64, Sense.ANY) >= {
        "bits[reverse=low 4]", "bits[reverse=low 5]",
    }  # fmt: skip
    assert at(64, "bits[reverse]", 32, Sense.NATURAL) == {"bits[reverse]"}
    assert at(64, "bits[xor=40]", 32, Sense.NATURAL) == set()
    assert len(at(8, "bits[xor=1]", 16, Sense.FORM)) == 16


def test_every_choice_is_its_own_counterpart() -> None:
    gathers: GatherSet = build("col_bits", {}, ((8, 3),), (8, 3))
    for choice in range(len(gathers)):
        for reading in Sense:
            assert choice in counterparts(gathers, choice, gathers, reading)


def test_counts_are_told_before_anything_is_made() -> None:
    for extents in ((32,), (32, 5), (32, 32), (64, 6), (8, 2)):
        forms = BitForms(extents[0], extents, 0, 1 if len(extents) > 1 else None)
        assert forms.count == len(forms.rows())
