"""A user's own index arithmetic: what is right, and what is wrong with the lanes that show it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bench.common.layout.mutants import mutated

from warploom.cli.check import examined_lines
from warploom.errors import CheckError
from warploom.layout.own import Examined, SharedTile, Use, examine

Place = Callable[[int, int], int]


def swizzled(row: int, column: int) -> int:
    return row * 64 + (column ^ (row % 8 * 8))


def tile(store: Place = swizzled, load: Place = swizzled, **more: Any) -> SharedTile:
    """Rows of 16 bytes stored, matrices loaded, of 64×64 elements of two bytes."""

    def stored(lane: int, step: int) -> tuple[int, int]:
        return step * 4 + lane // 8, lane % 8 * 8

    def loaded(lane: int, step: int) -> tuple[int, int]:
        return step // 4 * 16 + lane % 16, (step % 4 * 2 + lane // 16) * 8

    uses = (
        Use("store", stored, lambda lane, step: store(*stored(lane, step)), "st", 8, 16,
            wavefronts=4),
        Use("load", loaded, lambda lane, step: load(*loaded(lane, step)), "ldmatrix", 8, 16,
            wavefronts=4),
    )  # fmt: skip
    return SharedTile((64, 64), 2, uses, **more)


def wrong(found: Examined) -> str:
    return "\n".join(found.wrong)


def test_a_right_tile() -> None:
    found = examine(tile(places=4096))
    assert found.right
    assert found.wavefronts == found.bound == (4, 4)
    assert found.tried == 2 * 16 * 32


def test_a_load_that_looks_elsewhere() -> None:
    found = examine(tile(load=lambda row, column: row * 64 + (column ^ (row % 4 * 8))))
    assert "the element (4, 0) is at place 288 for store, lane 0 of step 1" in wrong(found)
    assert "and at place 256 for load, lane 4 of step 0" in wrong(found)


def test_another_layout_than_stated() -> None:
    def other(row: int, column: int) -> int:  # as good, and not what was meant
        return row * 64 + (column ^ ((row % 8 ^ row // 8 % 8) * 8))

    meant = "S<3,3,3> o (64,64):(64,1)"
    assert examine(tile(layout=meant)).right
    assert examine(tile(layout="SwizzledSharedLayout(8, 1, 8)")).right
    assert examine(tile(other, other)).right
    assert (
        "the element (8, 0) is at place 512 for the layout, and at place 520 for store, lane 0 of"
        " step 2" in wrong(examine(tile(other, other, layout=meant)))
    )
    with pytest.raises(CheckError, match="and the tensor of 64×64"):
        examine(tile(layout="(32,32):(32,1)"))


def test_conflicts_that_were_not_stated() -> None:
    def plain(row: int, column: int) -> int:
        return row * 64 + column

    found = examine(tile(plain, plain))
    assert wrong(found) == (
        "load takes 32 wavefronts, not 4: step 0 takes 32, bank 0: lane 0 word 0 (element 0,0); "
        "lane 1 word 32 (element 1,0); lane 2 word 64 (element 2,0); lane 3 word 96 (element 3,0) "
        "and 4 more"
    )
    assert found.wavefronts == (4, 32)


def test_two_elements_at_one_place() -> None:
    def folded(row: int, column: int) -> int:
        return row % 32 * 64 + column

    found = examine(tile(folded, folded))
    assert "the elements (0, 0) (store, lane 0 of step 0) and (32, 0)" in wrong(found)
    assert "both at place 0" in wrong(found)


def test_places_outside_and_vectors_that_begin_anywhere() -> None:
    def padded(row: int, column: int) -> int:
        return row * 72 + column

    assert "goes to place 4104, and there are 4096" in wrong(
        examine(tile(padded, padded, places=4096))
    )
    assert examine(tile(padded, padded)).right

    def shifted(row: int, column: int) -> int:
        return row * 65 + column

    assert "begins at place 65, which is no multiple of it" in wrong(
        examine(tile(shifted, shifted))
    )


def test_what_nobody_stored() -> None:
    whole = tile()
    half = replace(whole, uses=(replace(whole.uses[0], steps=8), whole.uses[1]))
    assert "nobody stored the element (32, 0) that load, lane 0 of step 8 loads" in wrong(
        examine(half)
    )


def test_idle_lanes_and_warps() -> None:
    uses = (
        Use("store", lambda lane, warp: warp * 32 + lane, lambda lane, warp: warp * 33 + lane,
            "st", warps=4),
        Use("load", lambda lane: lane * 4 if lane < 31 else None,
            lambda lane: lane * 4 // 32 * 33 + lane * 4 % 32),
    )  # fmt: skip
    found = examine(SharedTile((128,), 4, uses))
    assert found.right
    assert found.wavefronts == (1, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"element": lambda lane: (0, 64)}, "outside"),
        ({"element": lambda lane: (0,)}, "coordinates"),
        ({"element": lambda lane: 1.5}, "no whole number"),
        ({"place": lambda thread: thread}, "a parameter is called 'thread'"),
        ({"place": lambda lane: 1 // (lane - 3)}, "ZeroDivisionError.*lane = 3"),
        ({"element": lambda lane: lane - 1}, "element -1"),  # which is no idle lane
        ({"place": lambda lane: 10**30}, "too large"),
        ({"kind": "atom"}, "no access is a 'atom'"),
        ({"wavefronts": float("nan")}, "nan wavefronts"),
        ({"steps": 0}, "0 lanes and steps"),
        ({"steps": 10**9}, "lanes and steps"),
        ({"width": 3}, "vectors are powers of two"),
        ({"steps": 1.5}, "steps is 1.5, no whole number"),
        ({"place": max}, "does not say its parameters"),
        ({"place": 3}, "does not say its parameters"),
        ({"place": lambda lane: sys.exit(0)}, "SystemExit: 0 at lane = 0"),
        ({"name": None}, "a use is called None"),
        ({"wavefronts": "4"}, "'4' wavefronts are stated"),
        (
            {"element": lambda step, warp: warp * 4089 + step * 8, "warps": 2, "lanes": 1},
            "store, lane 0 of step 0 of warp 1: element 4096, and the last is 4095",
        ),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    first, *rest = tile().uses
    with pytest.raises(CheckError, match=message):
        examine(SharedTile((64, 64), 2, (replace(first, **change), *rest)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": "ab"}, "the shape is 'ab'"),
        ({"shape": (0, 64)}, "a tensor of"),
        ({"shape": ()}, "a tensor of"),
        ({"shape": (1 << 40, 1 << 40)}, "a tensor of"),
        ({"uses": tile().uses[0]}, "tuple of Use"),
        ({"uses": ()}, "there is no use"),
        ({"uses": (Use("load", lambda: None, lambda: 0),)}, "no lane uses anything"),
        ({"element_bytes": 2.0}, "an element of 2.0 bytes"),
        ({"element_bytes": True}, "an element of True bytes"),
        ({"places": "many"}, "there are 'many' places"),
        ({"places": 0}, "there are 0 places"),
        ({"layout": 5}, "the layout of a tile is 5"),
        ({"name": None}, "the name of a tile is None"),
        ({"serving": "h200"}, "served by 'h200'"),
    ],
)
def test_refused_tiles(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        examine(replace(tile(), **change))
    with pytest.raises(CheckError, match="a list is no SharedTile"):
        examine([tile()])  # type: ignore[arg-type]


def test_wavefronts_that_are_no_whole_number() -> None:
    def steps(stated: float) -> SharedTile:  # the third step collides
        use = Use("load", lambda lane, step: step * 32 + lane,
                  lambda lane, step: step * 32 + lane * (2 if step == 2 else 1),
                  steps=3, wavefronts=stated)  # fmt: skip
        return SharedTile((96,), 4, (use,))

    assert examine(steps(4 / 3)).right
    assert wrong(examine(steps(1.33))) == (
        "load takes 1.33333 wavefronts, not 1.33: step 2 takes 2, bank 0: lane 0 word 64 "
        "(element 64); lane 16 word 96 (element 80)"
    )


def test_fewer_wavefronts_than_stated_have_lanes_that_show_it_too() -> None:
    use = Use("load", lambda lane, step, warp: step * 32 + lane + 64 * warp,
              lambda lane, step, warp: step * 32 + lane + 64 * warp,
              steps=2, warps=2, wavefronts=2)  # fmt: skip
    assert wrong(examine(SharedTile((128,), 4, (use,)))) == (
        "load takes 1 wavefronts, not 2: step 0 takes 1, lanes 0-31 want no two words of one bank"
    )


def test_what_was_looked_at() -> None:
    half = replace(tile().uses[0], steps=8)
    found = examine(replace(tile(places=4096), uses=(half,)))
    assert (found.right, found.used, found.size, found.reach) == (True, 2048, 4096, 2048)
    said = examined_lines(found)[0]
    assert (
        "one place for each of 2048 elements (nobody uses the other 2048), inside of 4096" in said
    )
    said = examined_lines(examine(tile()))[0]
    assert "each element, from 0 to 4095 (how many places there are was not said)" in said


def test_mutants_are_noticed_or_none() -> None:
    found = mutated(16)
    assert found["noticed"] + found.get("noticed as a layout: torn vectors", 0) == 16
    assert found["noticed"] > 4
    assert found["noticed"] >= found["where no layout is stated"]["noticed"]
