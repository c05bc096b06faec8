"""Certificates of layouts: they hold, a changed one does not, and the checker shares no code."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from bench.common.layout.brute import random_vectors
from bench.common.trust.altered import with_another_field
from bench.common.trust.layout import changes, signed, written

from warploom.errors import CheckError
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.patterns.named import pattern
from warploom.layout.solver import columns
from warploom.layout.solver.certificate import certificate
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.machine.record import KNOWN, machine_named
from warploom.machine.serving import cosets
from warploom.search.budget import Budget
from warploom.search.engine import Watch
from warploom.trust import cases as cases_checker
from warploom.trust import serving as serving_table
from warploom.trust.layout import check_layout
from warploom.trust.layout_text import check_layout_and_text
from warploom.trust.problem import problem_of


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "klass", "shown"),
    [
        ("blocks:32x32", "xor", "no layout whatever costs less than 192"),
        pytest.param(
            "blocks:32x32",
            "pad",
            "no layout of the class pad costs less than 320",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "rcd:32x32",
            "swizzle",
            "no layout of the class swizzle costs less than 128",
            marks=pytest.mark.slow,
        ),
        ("but-two:4x32", "xor", "no layout of the class xor costs less than 28"),
        ("stencil:34x34:f32", "swizzle", "no layout of the class swizzle costs less than 324"),
        ("but-two:4x32", "none", "no layout of the class none costs less than 96"),
        ("ldmatrix:64x48:f16", "mixed", "no layout whatever costs less than 96"),
        ("mfma:64x64:f16@gfx950", "swizzle", "no layout whatever costs less than 64"),
        ("transpose:32x32:f16", "xor", "no layout whatever costs less than 64"),
        ("fft:1x1024:c64:radix=32", "xor", "no layout whatever costs less than 128"),
    ],
)
def test_they_hold(name: str, klass: str, shown: str) -> None:
    found = check_layout(written(Task(pattern(name)), klass))
    assert found.shown[-1] == shown
    assert found.open == ""


def test_a_certificate_of_the_first_version_is_checked_by_its_own_objective() -> None:
    """It says the sum of what accesses take per request; as the tile's wavefronts it is wrong."""
    record = json.loads(Path(__file__).with_name("layout_version_1.json").read_text())
    found = check_layout(record)
    assert found.open == ""
    assert found.shown[0] == "the layout costs 7 (wavefronts per request, added up)"
    for changed in ({"version": 2}, {"version": 2, "objective": "total"}, {"objective": "total"}):
        with pytest.raises(CheckError):
            check_layout(signed(record | changed))


def test_counting_leaves_the_least_open() -> None:
    found = check_layout(written(Task(pattern("but-two:4x32")), "any"))
    assert found.shown[-1] == "no layout of the class any costs less than 25"
    assert found.open == "whether 28 is the least"


def test_cases_that_were_not_written_out_in_time_leave_it_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "_PAUSE_EVERY", 1)
    task = Task(pattern("but-two:4x32"))
    spent = Watch(Budget(seconds=0))
    found = check_layout(certificate(task, solve(task, "xor"), spent))
    assert found.open == "whether anything costs less than 28"


def test_a_count_that_is_not_whole_shows_nothing() -> None:
    """No set has so many words; two rows of 32 words can all be had at once."""
    rows = np.arange(64).reshape(2, 32, 1)
    task = Task(Problem("rows", (64,), 4, (Access("rows", rows, "ld"),)))
    twice = written(task, "any") | {
        "least": "3",
        "cost": "4",
        "layout": "64:2",
        "addresses": list(range(0, 128, 2)),
        "wavefronts": [4],
    }
    for count in (2, 2.5, 1.5):
        with pytest.raises(CheckError, match="have room"):
            check_layout(signed(twice | {"proof": {"by": "counting", "count": count}}))


def test_members_that_waste_places_do_not_count_where_none_may() -> None:
    tall = Problem("columns", (8, 16), 4, (Access("c", np.arange(0, 128, 16).reshape(1, 8, 1)),))
    record = written(Task(tall, waste=False), "pad")
    assert None in [counts for _, counts in record["proof"]["members"]]
    shown = check_layout(record).shown[-1]
    assert shown == "no layout of the class pad without unused places costs less than 4"
    with pytest.raises(CheckError, match="takes"):
        check_layout(signed(record | {"waste": True}))


def test_random_impossible_problems_have_proofs_that_hold() -> None:
    random = np.random.default_rng(5)
    proved = 0
    for _ in range(2):
        accesses = []
        for number in range(16):
            lanes = np.zeros(32, np.int64)
            for bit in range(5):
                lanes ^= np.where(np.arange(32) >> bit & 1, random.integers(0, 128), 0)
            accesses.append(Access(f"a{number}", lanes.reshape(1, 32, 1), "ld"))
        task = Task(Problem("random", (128,), 4, tuple(accesses)))
        record = written(task, "xor")
        proved += record["proof"]["by"] == "cases"
        assert check_layout(record).open == ""
    assert proved


def test_proofs_about_elements_of_other_sizes_and_vectors() -> None:
    """Few lanes of a large machine; columns of bytes are two or four to a word as one likes."""
    random = np.random.default_rng(6)
    proved = 0
    for _ in range(6):
        small = random_vectors(random)
        accesses = tuple(Access(a.name, a.elements, "ld", a.weight) for a in small.accesses)
        task = Task(Problem("vectors", small.shape, small.element_bytes, accesses))
        solved = solve(task, "xor")
        if solved.best is not None:
            record = json.loads(json.dumps(certificate(task, solved)))
            assert check_layout(record).open == ""
            proved += 1
    assert proved > 2


@pytest.mark.slow
def test_proofs_where_words_are_shared_as_one_likes() -> None:
    """Half words, no vectors, and more patterns than can all be served at once."""
    random = np.random.default_rng(8)
    proved = 0
    for _ in range(3):
        accesses = []
        for number in range(14):
            lanes = np.zeros(32, np.int64)
            for bit in range(5):
                lanes ^= np.where(np.arange(32) >> bit & 1, random.integers(0, 128), 0)
            accesses.append(Access(f"a{number}", lanes.reshape(1, 32, 1), "ld"))
        task = Task(Problem("halves", (128,), 2, tuple(accesses)))
        record = written(task, "xor")
        proved += record["proof"]["by"] == "cases"
        assert check_layout(record).open == ""
    assert proved


def test_a_changed_certificate_is_refused() -> None:
    record = written(Task(pattern("but-two:4x32")), "xor")
    assert check_layout(record).open == ""
    made = changes(record)
    assert len(made) > 15
    for name, changed in made.items():
        with pytest.raises(CheckError, match="changed after it was written"):
            check_layout(changed)
        try:
            found = check_layout(signed(changed))
        except CheckError:
            continue
        # Cases may close in another basis, too; all else that still holds must show less.
        assert found.open or name == "another basis", name


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_each_of_many_with_another_field_is_refused(count: int) -> None:
    for klass in ("xor", "none"):
        record = written(Task(pattern("but-two:4x32")), klass)
        check_layout_and_text(record)
        for changed in with_another_field(record, count, Random(klass)):
            with pytest.raises(CheckError):
                check_layout_and_text(changed)


FORGED = {
    "a number is rounded": lambda r: r["addresses"].__setitem__(5, r["addresses"][5] + 0.5),
    "an element is rounded": lambda r: r["problem"]["accesses"][0]["elements"][0].__setitem__(
        3, [3.5]
    ),
    "lanes that no warp has": lambda r: [
        step.extend([[0]] * 32) for step in r["problem"]["accesses"][0]["elements"]
    ],
    "an element before the first": lambda r: r["problem"]["accesses"][0]["elements"][0].__setitem__(
        3, [-2]
    ),
    "sizes below zero": lambda r: r["problem"].__setitem__("shape", [-4, -32]),
    "a size that is no number": lambda r: r["problem"].__setitem__("shape", ["4", "32"]),
    "another text": lambda r: r.__setitem__("layout", "(4,32):(32,1)"),
    "a text of nothing": lambda r: r.__setitem__("layout", "__import__('os')"),
    "a text of another shape": lambda r: r.__setitem__("layout", "128:1"),
    "a word for no waste": lambda r: r.__setitem__("waste", "no"),
    "a class that there is not": lambda r: r.__setitem__("class", "linear"),
    "no text": lambda r: r.__setitem__("layout", None),
    "a text without end": lambda r: r.__setitem__("layout", "S<1,1,1> o " * 300 + "(4,32):(32,1)"),
    "a least of a thousand million digits": lambda r: r.__setitem__("least", "1e999999999"),
    "such a weight": lambda r: r["problem"]["accesses"][0].__setitem__("weight", "1e999999999"),
    "a weight so small": lambda r: r["problem"]["accesses"][0].__setitem__(
        "weight", "1e-999999999"
    ),
    "another kind": lambda r: r.__setitem__("kind", "fill"),
    "a version that is true": lambda r: r.__setitem__("version", True),
    "true for an address": lambda r: r["addresses"].__setitem__(r["addresses"].index(1), True),
    "elements of true bytes": lambda r: r["problem"].__setitem__("element_bytes", True),
    "elements of 4.0 bytes": lambda r: r["problem"].__setitem__("element_bytes", 4.0),
    "wavefronts that were measured": lambda r: r["wavefronts"].__setitem__(
        0, float(r["wavefronts"][0])
    ),
    "a weight that was rounded": lambda r: r["problem"]["accesses"][0].__setitem__("weight", 1.0),
}


@cache
def genuine() -> str:
    record = written(Task(pattern("but-two:4x32")), "xor")
    assert check_layout_and_text(record).open == ""
    return json.dumps(record)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_certificate_is_refused(name: str) -> None:
    record = json.loads(genuine())
    FORGED[name](record)
    with pytest.raises(CheckError, match="certificate"):
        check_layout_and_text(signed(record))


def test_what_is_accepted_is_true() -> None:
    """An element changed and the digest made to fit: refused, or true of the changed problem."""
    record = written(Task(pattern("but-two:4x32")), "xor")
    random = np.random.default_rng(7)
    refused = 0
    for _ in range(4):
        changed = copy.deepcopy(record)
        access = changed["problem"]["accesses"][int(random.integers(6))]
        step, lane = int(random.integers(4)), int(random.integers(32))
        access["elements"][step][lane][0] ^= 1 << int(random.integers(7))
        with pytest.raises(CheckError, match="changed after it was written"):
            check_layout(changed)
        try:
            check_layout(signed(changed))
        except CheckError:
            refused += 1
            continue
        accesses = tuple(
            Access(a["name"], np.array(a["elements"]), a["kind"])
            for a in changed["problem"]["accesses"]
        )
        again = solve(Task(Problem("changed", (4, 32), 4, accesses)), "xor")
        assert again.least >= Fraction(changed["least"])
    assert refused > 0


def all_cases(cases: cases_checker.Cases, more: tuple[int, ...] = ()) -> Any:
    """The tree of cases that the checker asks for, closed wherever it lets one close."""
    columns, every = [1 << p for p in range(cases._places)] + [*more], [*range(len(cases._shapes))]
    if cases._cost(columns, every) >= cases._claimed:
        return every
    return {str(m): all_cases(cases, (*more, m)) for m in sorted(cases._menu(columns))}


def test_a_basis_of_numbers_that_are_no_elements_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hyperplanes of 64 words with only word 1 outside all of them, and a vector of words 0 and 32:
    one word in each bank if 0 and 1 share one. A basis outside the tensor gave words other numbers,
    so that 1 seemed to be the vector's direction, and "no linear layout" was accepted."""
    planes = [[e for e in range(64) if (e & mask).bit_count() % 2 == 0] for mask in (1, 3, 5, 9)]
    planes += [[e for e in range(64) if (e & mask).bit_count() % 2 == 0] for mask in (17, 33)]
    accesses = [Access(f"h{i}", np.array([p])[:, :, None], "ld") for i, p in enumerate(planes)]
    vector = Access("vector", np.array([[[0, 32]]]), "ld")
    task = Task(Problem("planes", (8, 8), 4, (vector, *accesses)))
    record = written(task, "xor")
    assert record["cost"] == record["least"] == "7"
    proof: dict[str, Any] = {"by": "cases", "basis": [64, 128, 256, 512, 1024], "cases": []}
    forged = record | {"least": "8", "proof": proof}
    problem = problem_of(forged)
    least = [[1 for _ in access.groups] for access in problem.accesses]
    with monkeypatch.context() as patch:
        patch.setattr(cases_checker, "require", lambda holds, message: None)
        proof["cases"] = all_cases(cases_checker.Cases(problem, least, Fraction(8), proof))
    with pytest.raises(CheckError, match="basis of no elements"):
        check_layout(signed(forged))


def test_padding_and_swizzles_are_counted_again() -> None:
    record = written(Task(pattern("rcd:32x32")), "pad")
    record["proof"]["members"][3][1][1] += 1
    with pytest.raises(CheckError, match="takes"):
        check_layout(signed(record))
    record = written(Task(pattern("rcd:32x32")), "pad")
    record["proof"]["members"].pop()
    with pytest.raises(CheckError, match="not all members"):
        check_layout(signed(record))


@pytest.mark.parametrize("junk", [{}, {"kind": "layout"}, {"problem": 3}])
def test_junk_is_one_error(junk: dict[str, Any]) -> None:
    with pytest.raises(CheckError):
        check_layout(junk)


@pytest.mark.parametrize("name", [n for n in KNOWN if "serving" in vars(machine_named(n))])
def test_its_machines_are_ours(name: str) -> None:
    serving = serving_table.serving_of(name)
    assert serving == machine_named(name).serving
    for (kind, width), group in serving.groups.items():
        basis, paired = serving_table.served(serving, kind, width)
        assert np.array_equal(cosets(basis, serving.lanes), cosets(group.basis, serving.lanes))
        assert paired == group.paired
