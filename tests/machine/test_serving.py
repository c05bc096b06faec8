"""Who is served together: what an H200 was seen to do, published groups, and counting by sets."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import UnsupportedError
from warploom.machine.record import KNOWN, NVIDIA, machine_named
from warploom.machine.serving import (
    RequestKind,
    Serving,
    cosets,
    serve,
)

SERVINGS = {n: machine_named(n).serving for n in KNOWN if "serving" in vars(machine_named(n))}
GFX942, GFX950 = SERVINGS["gfx942"], SERVINGS["gfx950"]
MEASURED = Path(__file__).with_name("h200_banks.txt")
ADDRESSED = {"x1": 8, "x2": 16, "x4": 32}  # the lanes that give an address to ldmatrix and stmatrix


def measured() -> list[tuple[str, int, int, list[int]]]:
    """Instruction, bytes, wavefronts, and for each lane its address or -1."""
    rows = []
    for line in MEASURED.read_text().splitlines():
        if not line.startswith("#"):
            name, width, wavefronts, *lanes = line.split()
            asked = [address for text in lanes for address in addresses(text)]
            units = [int(width) * a if a >= 0 else -1 for a in asked]
            rows.append((name, int(width), int(wavefronts), units))
    return rows


def addresses(text: str) -> list[int]:
    if text == ".":
        return [-1]
    found = re.fullmatch(r"(\d+)(?:([+-]\d+)\*(\d+))?", text)
    assert found is not None
    first, step, more = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    return [first + step * n for n in range(more + 1)]


def kind_of(name: str) -> RequestKind:
    for kind in ("ldmatrix", "stmatrix", "ld", "st"):
        if name.startswith(kind):
            return kind
    assert name.startswith("red")
    return "st"


def counted(serving: Serving, asked: list[int], width: int, kind: RequestKind) -> int:
    row = np.array([asked])
    return int(serve(serving, row, width, kind, row >= 0).wavefronts[0])


def test_what_an_h200_was_seen_to_do() -> None:
    rows = [row for row in measured() if not row[0].startswith("cp.async")]
    assert len(rows) == 360
    wrong = []
    for name, width, wavefronts, asked in rows:
        lanes = next((n for suffix, n in ADDRESSED.items() if f".{suffix}" in name), 32)
        if counted(NVIDIA, asked[:lanes], width, kind_of(name)) != wavefronts:
            wrong.append((name, asked))
    assert wrong == []


def test_asynchronous_copies_past_the_first_cache_are_not_counted() -> None:
    """The profiler shows 3 for `.cg` whatever the addresses, and 3 more than a store for `.ca`."""
    rows = [row for row in measured() if row[0].startswith("cp.async")]
    by_name = {name: list(group) for name, group in groupby(rows, key=lambda row: row[0])}
    assert [wavefronts for _, _, wavefronts, _ in by_name["cp.async.cg.16"]] == [3] * 9
    for _, width, wavefronts, asked in by_name["cp.async.ca.16"]:
        if len(set(asked)) == 32:
            assert wavefronts == 3 + counted(NVIDIA, asked, width, "st")


def ranges(*pairs: tuple[int, int]) -> list[int]:
    return [lane for first, last in pairs for lane in range(first, last + 1)]


def test_groups_of_amd_are_the_published_ones() -> None:
    first = cosets(GFX942.group("ld", 16).basis, 64).tolist()
    assert len(first) == 8
    assert first[0] == ranges((0, 3), (20, 23))
    assert first[1] == ranges((4, 7), (16, 19))
    wide = cosets(GFX950.group("ld", 16).basis, 64).tolist()
    assert len(wide) == 4
    assert wide[0] == ranges((0, 3), (12, 15), (20, 23), (24, 27))
    for name, width, members in (
        ("gfx942", 4, 32), ("gfx942", 8, 16), ("gfx950", 4, 64), ("gfx950", 8, 32),
        ("gfx1100", 4, 32), ("gfx1100", 8, 16), ("gfx1201", 16, 8),
    ):  # fmt: skip
        serving = machine_named(name).serving
        rows = cosets(serving.group("ld", width).basis, serving.lanes)
        assert np.array_equal(rows, np.arange(serving.lanes).reshape(-1, members))
    assert cosets(SERVINGS["gfx1100"].group("ld", 16).basis, 32)[0].tolist() == first[0]
    assert cosets(GFX942.group("st", 16).basis, 64)[0].tolist() == ranges((0, 7))
    assert cosets(GFX950.group("st", 8).basis, 64)[0].tolist() == ranges((0, 15))


def test_what_nobody_published_says_so() -> None:
    assert GFX950.group("st", 16).known == GFX950.group("st", 4).known == "assumed"
    assert GFX942.group("st", 16).known == "published"
    assert NVIDIA.group("ld", 16).known == "measured"


@pytest.mark.parametrize("serving", SERVINGS.values(), ids=lambda s: s.name)
def test_groups_are_a_partition(serving: Serving) -> None:
    for group in serving.groups.values():
        for basis in (group.basis, group.when_paired().basis if group.paired else group.basis):
            rows = cosets(basis, serving.lanes)
            assert rows.shape[1] == 1 << len(basis)
            assert sorted(rows.ravel().tolist()) == list(range(serving.lanes))


def by_sets(serving: Serving, asked: list[int], width: int, kind: RequestKind) -> tuple[int, int]:
    """The same by counting: no array, no sorting."""
    group = serving.group(kind, width)
    basis = list(group.basis)
    for partner in (1, 2) if group.paired else ():
        pairs = [(asked[lane], asked[lane ^ partner]) for lane in range(serving.lanes)]
        if all(a < 0 or b < 0 or a == b for a, b in pairs):
            basis.append(group.paired)
            break
    span = {0}
    for vector in basis:
        span |= {each ^ vector for each in span}
    total = ideal = 0
    for lane in range(serving.lanes):
        if any(lane ^ v < lane for v in span):
            continue
        words = {
            asked[lane ^ v] // 4 + i
            for v in span
            if asked[lane ^ v] >= 0
            for i in range(max(1, width // 4))
        }
        banks = [word % serving.banks for word in words]
        total += max((banks.count(bank) for bank in set(banks)), default=0)
        ideal += bool(words)
    return total, ideal


NAMES = st.sampled_from(sorted(SERVINGS))


@given(NAMES, st.integers(0, 10_000), st.integers(1, 300), st.integers(0, 2))
@examples(60)
def test_against_sets(name: str, seed: int, spread: int, repeat: int) -> None:
    random = np.random.default_rng(seed)
    serving = SERVINGS[name]
    for kind, width in serving.groups:
        lanes = np.arange(serving.lanes)
        asked = random.integers(0, spread, (3, serving.lanes))[:, lanes & ~repeat] * width
        asked[random.random(asked.shape) < random.random() / 2] = -1
        served = serve(serving, asked, width, kind, asked >= 0)
        for row, wavefronts, ideal in zip(asked, served.wavefronts, served.ideal, strict=True):
            assert (wavefronts, ideal) == by_sets(serving, row.tolist(), width, kind)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="gfx906"):
        machine_named("gfx906")
    with pytest.raises(UnsupportedError, match="ldmatrix"):
        serve(GFX942, np.zeros((1, 64), np.int64), 16, "ldmatrix")
    with pytest.raises(UnsupportedError, match="12 bytes") as caught:
        NVIDIA.group("ld", 12)
    assert caught.value.advice == "ld is known for 1, 2, 4, 8, 16 bytes"
