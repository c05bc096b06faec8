"""Certificates of warp sketches: the program in them is what was solved, and is run again."""

from __future__ import annotations

import copy
import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples
from tests.sketch.simt.random_sketches import traced_sketches

from warploom import warp_sketch
from warploom.bench import inventor_sketches as paper
from warploom.errors import CheckError, WarploomError
from warploom.pipeline.certificate import certificate
from warploom.pipeline.warp_record import warp_record
from warploom.search.outcome import Found, Verdict
from warploom.sketch.simt.evaluate import interpret
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.order import follow
from warploom.sketch.simt.solve import Filled, solve
from warploom.sketch.simt.space import candidates
from warploom.sketch.term.ir import Constant, Fold, Symbol, Term, Undefined
from warploom.sketch.term.verify import Verification
from warploom.trust.checked import Work, digest
from warploom.trust.expression import Expression
from warploom.trust.fill import check_fill
from warploom.trust.terms import UNDEFINED, ZERO, Terms
from warploom.trust.warp import run_warp


@cache
def written() -> str:
    return json.dumps(certificate(solve(paper.stencil_1d.at(warp=8, taps=3))))


def test_it_states_its_steps_and_its_tile() -> None:
    checked = check_fill(json.loads(written()))
    assert checked.shown[2:] == (
        "said to be built at warp=8, taps=3",
        "one tile of one warp, lanes lane=8",
        "  input x [10], tiles [8] apart",
        "  output y [8], tiles [8] apart",
        "  register r [2]",
        "  for j in 0 … 1:",
        "    v1 = x[j * 8 + lane]",
        "    r[j] = v1",
        "  for i in 0 … 2:",
        "    v2 = r[lane < i]",
        "    v3 = v2 of lane [(lane + i) % 8]",
        "    acc += v3",
        "  v4 = mean(acc)",
        "  y[lane] = v4",
    )
    assert checked.not_covered == (
        "rounding and overflow",
        "what 'mean' computes",
        "other tiles than this one",
    )


WRONG = {
    "another lane": (("program", 1, "body", 1, "lane"), ["lane"], "does not hold its goal"),
    "another register": (("program", 1, "body", 0, "index"), ["0"], "does not hold its goal"),
    "outside": (("program", 0, "body", 0, "index"), ["j * 12 + lane"], "is undefined"),
    "a lane less": (("lanes",), [["lane", 7]], "is undefined|does not hold"),
    "an iteration less": (("program", 1, "count"), 2, "does not hold its goal"),
    "another operator": (("accumulators", "acc", "outer"), "*", "does not hold its goal"),
    "a start": (("accumulators", "acc", "init"), 1, "does not hold its goal"),
    "no accumulation": (("program", 1, "body", 2, "if"), "0", "does not hold its goal"),
    "lanes that race": (("program", 3, "index"), ["lane // 2"], "race at 'y'"),
    "an input is written": (("program", 3, "array"), "x", "is an input"),
    "two arrays of a name": (("arrays", 2, "name"), "x", "one name"),
    "a larger tile": (("arrays", 0, "shape"), [12], "tiles of its program"),
    "no such statement": (("program", 3), {"goto": 0}, "no statement has the parts"),
    "a loop without end": (("program", 1, "count"), 1 << 40, "more than 65536 statements"),
    "code": (("program", 3, "index"), ["__import__('os')"], "no index expression"),
    "a type": (("accumulators", "acc", "only"), ["f32"], "element types other than f32"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_program_that_is_another_is_refused(name: str) -> None:
    path, value, message = WRONG[name]
    record = json.loads(written())
    place = record["warp"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(CheckError, match=message):
        check_fill(record | {"digest": digest(record)})


def test_the_steps_are_about_the_symbols_of_the_program() -> None:
    """An array that holds one thing to the program and another to the steps is no array."""
    record = json.loads(written())
    held, (read, *_) = record["steps"][0]["values"], record["steps"][1:]
    held[0], held[1] = held[1], held[0]
    table = {0: 1, 1: 0}
    cells = list(range(math.prod(read["cells"])))
    places = Expression(
        read["reads"]["offset"],
        {f"x{i}": at.ravel() for i, at in enumerate(np.indices(read["cells"]))},
        len(cells),
        Work(1 << 31),
    ).value
    read["reads"] = {"table": [table.get(at, at if at >= 0 else -2) for at in places.tolist()]}
    with pytest.raises(CheckError, match="other symbols"):
        check_fill(record | {"digest": digest(record)})


def plain(term: Term) -> Any:
    match term:
        case Undefined():
            return "?"
        case Symbol(number):
            return number
        case Constant(value):
            return {"number": value}
        case Fold(operator, items):
            return [operator, *map(plain, items)]
    return None


@examples(60)
@given(traced_sketches(), st.randoms(use_true_random=False))
def test_the_program_is_run_as_the_language_says(traced: Traced, random: Any) -> None:
    """Any fill, right or wrong, without laws: cell by cell what the sketches' evaluator holds."""
    sets = {name: candidates(hole, 1) for name, hole in traced.holes.items()}
    fill = {name: each.expression(random.randrange(len(each))) for name, each in sets.items()}
    numbers = frozenset(s.number for s in traced.statements)
    found = Filled(traced, 1, numbers, fill, Verification(Verdict.PROVED), (0, 0), False, 0, 0, ())
    terms, refused = Terms(False, []), ""
    try:
        held = run_warp(terms, json.loads(json.dumps(warp_record(found))))
    except CheckError as error:
        refused = error.message
    if refused:  # for a reason that there is
        assert "zero" in refused or follow(traced, fill, numbers).conflict is not None
        return
    wanted = [terms.read(plain(term)) for term in interpret(traced, fill)]
    same = [ZERO if cell < UNDEFINED else cell for cell in held.tolist()]
    assert same == wanted


def test_what_solve_returns_is_taken_and_what_is_none_is_said() -> None:
    @warp_sketch
    def none(k: Any, warp: int = 4) -> None:
        lane = k.warp(warp)
        x, y = k.input("x", warp), k.output("y", warp)
        y[lane] = x[lane]

    none.specification(lambda x, warp: x[::-1])
    with pytest.raises(WarploomError, match="no fill, so there is no certificate"):
        certificate(solve(none))
    found = solve(paper.stencil_1d.at(warp=8, taps=3))
    assert isinstance(found, Found)
    assert certificate(found) == certificate(found.answer) == json.loads(written())
    for junk in (None, 3, "x"):
        with pytest.raises(WarploomError, match="a filled sketch is wanted"):
            certificate(junk)  # type: ignore[arg-type]


def test_a_barrier_is_stated_and_needed() -> None:
    """Through shared memory: without its barrier lanes race."""

    @warp_sketch
    def reverse(k: Any, warp: int = 4) -> None:
        lane = k.warp(warp)
        x, y, s = k.input("x", warp), k.output("y", warp), k.shared("s", warp)
        s[lane] = x[lane]
        k.barrier()
        y[lane] = s[k.swizzle(lane, warp)]

    reverse.specification(lambda x, warp: x[::-1])
    record = json.loads(json.dumps(certificate(solve(reverse))))
    assert "  barrier of the warp" in check_fill(record).shown
    less = copy.deepcopy(record)
    less["warp"]["program"].remove({"sync": True})
    with pytest.raises(CheckError, match="race at 's'"):
        check_fill(less | {"digest": digest(less)})
