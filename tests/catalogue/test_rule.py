"""Settings by rule: always ones that build, the right strategy for a size, nothing overruled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import of
from hypothesis import given
from hypothesis import strategies as st
from tests.catalogue.agreement import check_agreement
from tests.runtime import fakes
from tests.runtime.fakes import Machine, aligned
from tests.sampled import examples

import warploom
from warploom.catalogue import Entry, entries, find
from warploom.catalogue.rule import AUTO, STRATEGIES
from warploom.errors import CheckError
from warploom.machine.record import CUDA, H200

MOVES = ("aos-to-soa", "soa-to-aos")
STRUCTURES = (*MOVES, "aos-sum")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with fakes.pretended(monkeypatch) as made:
        yield made


def chosen(name: str, n: int | None, **given: Any) -> dict[str, Any]:
    return find(name).settings(given, None if n is None else {"n": n}, H200)


@pytest.mark.parametrize("entry", entries().values(), ids=lambda each: str(each.name))
def test_nothing_stays_open_and_nothing_given_is_overruled(entry: Entry) -> None:
    for variant in entry.variants:
        for size in (None, entry.sizes(**entry.settings(variant))[-1]):
            found = entry.settings(variant, size)
            assert found | variant == found
            assert entry.settings(found, size) == entry.settings(found) == found
            if found.get("strategy", "registers") == "registers":
                assert AUTO not in found.values()


@examples(60)
@given(
    name=st.sampled_from(STRUCTURES),
    fields=st.integers(1, 64),
    dtype=st.sampled_from(["float32", "float64", "uint8", "int16", "int64"]),
    strategy=st.sampled_from([AUTO, *STRATEGIES]),
    n=st.one_of(st.none(), st.integers(1, 10**7)),
)
def test_whatever_is_chosen_fits_the_machine(
    name: str, fields: int, dtype: str, strategy: str, n: int | None
) -> None:
    found = chosen(name, n, fields=fields, dtype=dtype, strategy=strategy)
    if found["strategy"] == "registers":
        return  # built elsewhere, with its fill
    if found["block"] == 32 and fields * np.dtype(dtype).itemsize > 256:
        return  # may need more shared memory than there is
    kernel = find(name).kernel(**found)
    assert kernel.block[0] == found["block"]


def test_arrays_that_begin_within_a_line_go_through_shared_memory() -> None:
    for n, strategy in ((4096, "registers"), (4097, "shared"), (4096 + 16, "shared")):
        assert chosen("aos-to-soa", n, fields=5)["strategy"] == strategy
    assert chosen("aos-to-soa", 4096 + 16, fields=5, dtype="float64")["strategy"] == "registers"
    assert chosen("aos-to-soa", 4097, fields=1)["strategy"] == "registers"
    assert chosen("aos-to-soa", None, fields=5)["strategy"] == "registers"
    assert chosen("soa-to-aos", 4097, fields=5)["strategy"] == "registers"


def test_structures_of_few_fields_and_whole_accesses() -> None:
    for n in (4096, 4097):
        assert chosen("soa-to-aos", n, fields=2)["strategy"] == "shared"
        assert chosen("soa-to-aos", n, fields=3)["strategy"] == "shared"
        assert chosen("soa-to-aos", n, fields=3, dtype="float64")["strategy"] == "shared"
        assert chosen("soa-to-aos", n, fields=6)["strategy"] == "registers"
        assert chosen("soa-to-aos", n, fields=3, dtype="float16")["strategy"] == "registers"
    assert chosen("soa-to-aos", 4097, fields=1)["strategy"] == "registers"
    for name in MOVES:
        assert chosen(name, 4096, fields=4)["strategy"] == "direct"
        assert chosen(name, 4096, fields=2, dtype="float64")["strategy"] == "direct"


@pytest.mark.parametrize(("n", "pack"), [(4096, 4), (4098, 2), (4097, 1)])
def test_structures_are_packed_as_their_number_allows(n: int, pack: int) -> None:
    assert chosen("soa-to-aos", n, fields=5)["pack"] == pack
    assert chosen("soa-to-aos", n, fields=16)["pack"] == min(pack, 2)
    assert chosen("soa-to-aos", n, fields=5, order="rcr")["pack"] == 1


def test_what_belongs_to_registers_chooses_them() -> None:
    assert chosen("aos-to-soa", 4097, fields=5, pack=2)["strategy"] == "registers"
    assert chosen("aos-to-soa", 4097, fields=5, order="rcr")["strategy"] == "registers"
    for extra in ({"pack": 2}, {"order": "crc"}):
        with pytest.raises(CheckError, match="for the exchange in registers"):
            chosen("aos-to-soa", 4097, fields=5, strategy="shared", **extra)
    with pytest.raises(CheckError, match="no strategy 'magic'"):
        chosen("aos-to-soa", 4097, strategy="magic")
    with pytest.raises(CheckError, match="streaming accesses of 'direct'"):
        find("aos-to-soa").kernel(strategy="direct", streaming=1)


def test_small_images_are_cut_into_more_strips() -> None:
    entry = find("convolution-2d")
    large, small = {"height": 8192, "columns": 8192}, {"height": 600, "columns": 700}
    assert entry.settings({"taps": 9}, large, H200)["rows"] == 96
    assert of(int, entry.settings({"taps": 9}, small, H200)["rows"]) < 96
    assert entry.settings({"taps": 9}, small, CUDA)["rows"] == 96
    assert entry.settings({"taps": 9, "rows": 50}, small, H200)["rows"] == 50


@pytest.mark.parametrize("taps", [11, 13, 15])
@pytest.mark.parametrize("height", [64, 600, 1500, 4096, 8192, 10000])
def test_large_windows_spread_their_rows_evenly(taps: int, height: int) -> None:
    """The multiprocessor with most blocks has no more to do than with any strip of a round size."""
    size = {"height": height, "columns": 8192}
    found = find("convolution-2d").settings({"taps": taps}, size, H200)

    def most(rows: int) -> int:
        blocks = -(-height // rows) * (8192 // 512)
        return max(4, -(-blocks // (H200.multiprocessors or 1))) * (rows + taps - 1)

    assert most(int(found["rows"])) <= min(most(rows) for rows in (32, 64, 96, 128, 192, 256))
    assert found["exchange"] == ("shuffle" if taps == 15 else "load")


def test_long_windows_have_more_rows() -> None:
    rows = [find("convolution-1d").settings({"taps": taps})["rows"] for taps in (3, 13, 17, 21, 31)]
    assert rows == [1, 2, 2, 4, 4]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("fields", [2, 3, 4, 7])
def test_the_choice_for_a_size_is_right_on_it(name: str, fields: int) -> None:
    for n in (1, 257, 640, 1024):
        found = chosen(name, n, fields=fields)
        check_agreement(find(name), found, "simulator", [{"n": n}])


def test_a_loaded_kernel_has_a_strategy_for_each_size(machine: Machine) -> None:
    move = warploom.load("aos-to-soa", fields=3)
    for n in (256, 257, 256):
        x = aligned((n, 3), np.float32)
        x[:] = np.arange(3 * n).reshape(n, 3)
        assert np.array_equal(move(fakes.Tensor(x)).array, x.T)
    grids = [each.grid[0] for each in machine.cuda.launched]
    assert grids == [1, 1, 1]
    assert len(move._functions) == 2
    assert move.kernel.doc != move.function(move.settings_for({"n": 257})).kernel.doc


def test_a_slice_that_begins_anywhere_is_moved_by_single_elements(machine: Machine) -> None:
    for name in MOVES:
        move = warploom.load(name, fields=4)
        memory = aligned((1025,), np.float32)
        memory[:] = np.arange(1025)
        x = fakes.Tensor(memory[1:])
        shape = (-1, 4) if name == "aos-to-soa" else (4, -1)
        wanted = memory[1:].reshape(shape).T.reshape(-1)
        assert np.array_equal(move(x).array.reshape(-1), wanted)
        out = fakes.there(np.zeros(1024, np.float32))
        move.prepare(x, out)()
        assert np.array_equal(out.array, wanted)
    with pytest.raises(warploom.WarploomError, match="multiple of 16 bytes"):
        warploom.load("aos-to-soa", fields=4, width=4)(x)


def test_what_shapes_say_is_not_said_otherwise() -> None:
    image = warploom.load("convolution-2d", taps=3)
    pixels, weights = np.ones((4, 40), np.float32), np.ones(9, np.float32)
    assert image(pixels, weights, height=4).shape == (4, 40)
    with pytest.raises(warploom.WarploomError, match=r"'height' is 4 by the shapes .*, not 8"):
        image(pixels, weights, height=8, columns=20)
    with pytest.raises(warploom.WarploomError, match="'image' has the shape") as caught:
        image(pixels.reshape(-1), weights, height=4, columns=40)
    assert caught.value.advice == "reshape it"
    for name in STRUCTURES:
        with pytest.raises(warploom.WarploomError, match="'x' has no axes"):
            warploom.load(name)(np.array(1, np.float32))
