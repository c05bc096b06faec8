"""A short certificate may ask for a check without an end: it is left open, and soon."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest

from warploom import Sketch, synthesize
from warploom.errors import CheckError
from warploom.layout.solver.certificate import digest
from warploom.pipeline.certificate import certificate
from warploom.trust.fill import check_fill
from warploom.trust.impossible import NUMBERS, OTHER_LAWS, check_impossible
from warploom.trust.layout import check_layout
from warploom.trust.schedule import check_schedule
from warploom.trust.terms import Terms
from warploom.trust.warp import run_warp

Json = dict[str, Any]

SUMS = """x: [4] = range(0, 4)
y: [4] = identity(x)
z: [2] = + identity{fold_len=2}(y)
goal: [2] = [+(0, 1), +(2, 3)]"""


def signed(record: Json) -> Json:
    return record | {"digest": digest(record)}


def sums() -> Json:
    found: Json = json.loads(json.dumps(certificate(synthesize(Sketch.from_text(SUMS)))))
    return found


def test_an_index_of_many_words_and_cells() -> None:
    record = sums()
    step = record["steps"][1]
    step["shape"] = step["cells"] = [1 << 22]
    step["reads"] = {"argument": "0", "offset": "x0" + " + 0" * 10_000}
    assert "more than" in check_fill(signed(record)).open


@pytest.mark.parametrize("inner", [[], [{"for": "j", "count": 10**6, "body": []}]])
def test_a_loop_over_nothing(inner: list[Json]) -> None:
    warp = {
        "lanes": [["lane", 2]],
        "arrays": [{"name": "y", "space": "output", "shape": [2], "step": []}],
        "accumulators": {},
        "fill": {},
        "program": [{"for": "i", "count": 10**9, "body": inner}],
    }
    with pytest.raises(CheckError, match="more than"):
        run_warp(Terms(False, []), warp)


def pentagons(count: int) -> Json:
    """Each has 5 blocks of 16 elements, and neighbours are wanted together: of 5 blocks, 2 have
    room in a bank. It is true that none meets the bound, and takes too long to be seen."""
    wanted = [
        [[80 * k + (16 * i + j) % 80] for j in range(32)] for k in range(count) for i in range(5)
    ]
    access = {"name": "a", "kind": "ld", "weight": "1", "elements": wanted}
    size, taken = 80 * count, sum(_most([each for [each] in group]) for group in wanted)
    return signed({
        "kind": "layout", "version": 2, "objective": "total", "waste": True, "class": "any",
        "problem": {"name": "", "machine": "cuda", "shape": [size], "element_bytes": 4,
                    "accesses": [access], "copies": []},
        "bound": str(5 * count), "least": str(5 * count + 1), "cost": str(taken),
        "layout": f"({size}):(1)", "addresses": [*range(size)], "wavefronts": [taken],
        "proof": {"by": "counting", "count": 2 * count + 1},
    })  # fmt: skip


def _most(elements: list[int]) -> int:
    banks = [element % 32 for element in elements]
    return max(map(banks.count, banks))


def test_counting_that_tries_too_many_sets() -> None:
    assert "class any" in check_layout(pentagons(1)).shown[-1]
    assert "more than" in check_layout(pentagons(4)).open


def test_under_laws_fold_stands_for_nothing() -> None:
    record = sums()
    record["steps"][-1]["operator"] = "fold"
    record["goal"]["values"] = [["fold", 0, 1], ["fold", 2, 3]]
    record["not_covered"] += ["what 'fold' computes"]
    record |= {"operators": ["fold"], "laws": ["flatten"]}
    check_fill(signed(record))
    with pytest.raises(CheckError, match="stands for"):
        check_fill(signed(record | {"words": ["fold", "*"]}))


def test_a_size_is_said_to_be_one() -> None:
    assert "said to be built at n=9" in check_fill(signed(sums() | {"size": {"n": 9}})).shown


def cycles(count: int) -> Json:
    """Each cell can be had, but not all of them together: every fill is run."""
    cells = [*range(count)]
    moved = [{"argument": "0", "offset": f"(x0 + {by}) % {count}"} for by in range(3)]
    hole = {"name": "y", "shape": [count], "cells": [count], "args": [0], "function": None,
            "choices": moved, "fold": None, "operator": None}  # fmt: skip
    goal = {"number": 1, "of": 1, "text": "", "shape": [count], "cells": cells,
            "values": [(cell + cell % 3) % count for cell in cells]}  # fmt: skip
    return signed({
        "kind": "impossible", "version": 1, "name": "", "size": {},
        "steps": [{"name": "x", "shape": [count], "values": cells}, hole], "words": [],
        "goal": goal, "laws": [], "blocked": [], "verdict": "impossible", "not_covered": [NUMBERS],
    })  # fmt: skip


def test_very_many_cells_are_left_open() -> None:
    assert "all fills were run" in check_impossible(cycles(300)).shown[1]
    some = cycles(1 << 12)
    with mock.patch("warploom.trust.impossible._MOST_WORK", 1 << 20):
        assert "more than" in check_impossible(some).open


def test_shares_of_very_many_folds_are_found_at_once() -> None:
    """Of each fold that a step makes, only the wanted folds with its rarest item are looked at."""
    count = 1500
    record = cycles(2 * count)
    fold = record["steps"][1] | {"shape": [count], "cells": [2 * count], "fold": 2, "operator": "+"}
    values = [["+", k, (k * 7 + 3) % (2 * count), (k * 5 + 1) % (2 * count)] for k in range(count)]
    goal = record["goal"] | {"shape": [count], "cells": [*range(count)], "values": values}
    both = {"steps": [record["steps"][0], fold], "goal": goal, "laws": ["flatten"]}
    more = {"not_covered": [NUMBERS, OTHER_LAWS]}
    with mock.patch("warploom.trust.impossible._MOST_WORK", 1 << 24):  # 2 billion for all pairs
        assert check_impossible(signed(record | both | more)).shown


def layout(lanes: int, size: int, element_bytes: int, **more: Any) -> Json:
    """One access to `lanes` elements, without a conflict; what is claimed comes in `more`."""
    wanted = [[[element] for element in range(lanes)]]
    access = {"name": "a", "kind": "ld", "weight": "1", "elements": wanted}
    return {
        "kind": "layout", "version": 2, "objective": "total", "waste": True, "class": "xor",
        "problem": {"name": "", "machine": "cuda", "shape": [size], "element_bytes": element_bytes,
                    "accesses": [access], "copies": []},
        "bound": "1", "least": "2", "cost": "1", "layout": f"({size}):(1)",
        "addresses": [*range(size)], "wavefronts": [1], **more,
    }  # fmt: skip


def test_a_basis_of_very_many_vectors() -> None:
    """All of its sums would not fit into any memory."""
    proof = {"by": "cases", "basis": [2] * 28, "cases": []}
    with pytest.raises(CheckError, match="no basis"):
        check_layout(signed(layout(32, 64, 4, proof=proof)))


def test_very_many_ways_to_share_words() -> None:
    """Where nine columns are 0, any two of 511 vectors may be those that share a word."""
    cases: Any = {}
    for _ in range(9):
        cases = {"0": cases or [0], "1": [0]}
    proof = {"by": "cases", "basis": [1 << bit for bit in range(9)], "cases": cases}
    assert "more than" in check_layout(signed(layout(32, 512, 1, proof=proof))).open


def test_sums_of_fractions_of_many_digits() -> None:
    record = layout(1, 2, 4, proof={"by": "bound"})
    (access,) = record["problem"]["accesses"]
    for digits, said in ((1990, "too many digits"), (200, "no common denominator")):
        many = [{**access, "weight": f"1/{10**digits + 2 * k + 1}"} for k in range(3)]
        problem = {**record["problem"], "accesses": many}
        with pytest.raises(CheckError, match=said):
            check_layout(signed(record | {"problem": problem, "wavefronts": [1] * 3}))


def test_addresses_are_counted_in_numbers_that_hold_them() -> None:
    with pytest.raises(CheckError, match="address is too large"):
        check_layout(signed(layout(1, 1, 16, proof={"by": "bound"}, addresses=[1 << 60])))


@pytest.mark.parametrize(("family", "rows"), [("xforms", 600), ("rots", 1 << 19)])
def test_a_family_of_very_many_members(family: str, rows: int) -> None:
    """They are not made to see that they are too many."""
    record = cycles(6)
    said = {"family": family, "axes": [0, 1, 0], "whole": True, "argument": 0}
    shape = [rows, 2]
    spread = record["steps"][1] | {"shape": shape, "cells": shape}
    hole = spread | {"args": [1], "choices": said}
    goal = record["goal"] | {"shape": shape}
    steps = [record["steps"][0], spread, hole]
    assert "more than" in check_impossible(signed(record | {"steps": steps, "goal": goal})).open


def test_tables_of_many_holes_together() -> None:
    record, cells = cycles(6), 1 << 12
    hole = record["steps"][1] | {"shape": [cells], "cells": [cells]}
    hole["choices"] = [{"argument": "0", "offset": str(by)} for by in range(6)]
    goal = record["goal"] | {"shape": [cells]}
    steps = [record["steps"][0], *[hole] * 3]
    with mock.patch("warploom.trust.impossible.MOST_HELD", 17 << 12):
        assert "more than" in check_impossible(signed(record | {"steps": steps, "goal": goal})).open


def test_folds_of_very_many_items() -> None:
    record = sums()
    record["steps"][2] |= {"shape": [1 << 11], "cells": [1 << 12]}
    for argument in ("0", "1"):  # zeros are items, too
        record["steps"][2]["reads"] = {"argument": argument, "offset": "x0 % 4"}
        with mock.patch("warploom.trust.terms._MOST_PARTS", 1 << 11):
            assert "more than" in check_fill(signed(record)).open


REGISTERS = "the kernel is compiled for 128 registers of a thread"


def a_schedule(block: list[int], agents: list[Json], registers: int | None = None) -> Json:
    batch = {"first": 0, "cluster": 1, "mbarriers": [], "flags": [], "loops": [], "agents": agents}
    return signed({
        "kind": "schedule", "version": 3, "name": "k", "grid": [1, 1, 1], "block": block,
        "reach": "all schedules and all data", "assumed": [REGISTERS] if registers else [],
        "registers": registers, "batches": [batch],
    })  # fmt: skip


def test_a_launch_of_more_threads_than_memory_holds() -> None:
    end = {"block": 0, "threads": 32, "warps": [0], "events": [["exit", None, 0, 0, 0, []]]}
    with pytest.raises(CheckError, match="other threads"):
        check_schedule(a_schedule([1 << 40, 1, 1], [end]))


def test_registers_asked_for_one_after_another() -> None:
    """Of 24 warps no two wait at one time; of any two that is seen at once."""
    count = 24
    agents = []
    for warp in range(count):
        events: list[list[Any]] = []
        for turn in range(count):
            asks = [["go", ["registers", 0], 0, 32, 0, []]] * (turn == warp)
            meet = [[act, ["barrier", 0, 0], turn, 0, 0, []] for act in ("come", "go")]
            events += [*asks, *meet]
        events.append(["exit", None, 0, 0, 0, []])
        agents.append({"block": 0, "threads": 32, "warps": [warp], "events": events})
    found = check_schedule(a_schedule([32 * count, 1, 1], agents, 128))
    assert f"{32 * count} threads" in found.shown[0]
