"""Operators and laws in the search: every engine finds what brute force finds, up to the laws."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from bench.common.sketch.generate import seeded
from bench.common.sketch.nested import FLATTEN, all_fills, nested_sketch
from tests.sketch.synth.test_search import SMALL_LIMITS

from warploom import Budget, Sketch, spec
from warploom.errors import CheckError, SearchError
from warploom.search.outcome import Found, Impossible, Verdict
from warploom.sketch.synth.problem import Move, lower
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.verify import verify

SIGNS = (("+",), ("+", "*"), ("max", "^", "+"), ("+", "*", "mean()"))


def drawn(seed: int, operators: tuple[str, ...], laws: tuple[str, ...]) -> Program:
    return nested_sketch(seeded(seed), operators, laws)


def attempt(program: Program, engine: str) -> Result | CheckError | SearchError:
    try:
        return synthesize(program, engine=engine)
    except (CheckError, SearchError) as refused:
        return refused


def agree(program: Program, engines: tuple[str, ...]) -> str:
    """Compares with brute force; what became of it."""
    wanted = all_fills(program, program.goals[0])
    for engine in engines:
        result = attempt(program, engine)
        if isinstance(result, CheckError):
            assert "would be" in result.message or not wanted  # zeros; or no fill could be right
            return "checked"
        if isinstance(result, SearchError):
            assert "take both apart" in result.message or engine == "smt"
            return "too far"
        assert [tuple(row) for row in result.fills.choices.tolist()] == wanted, engine
        assert result.fills.count == len(wanted)
        assert result.complete
        assert isinstance(result.outcome, Found if wanted else Impossible)
        assert all(verdict.verdict is Verdict.PROVED for verdict in result.verdicts)
    return "found" if wanted else "impossible"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("laws", [FLATTEN, ()], ids=["flatten", "none"])
@pytest.mark.parametrize("operators", SIGNS, ids=" ".join)
def test_nested_folds(operators: tuple[str, ...], laws: tuple[str, ...]) -> None:
    seen = Counter(
        agree(drawn(seed, operators, laws), ("default", "pairs")) for seed in range(5000, 5025)
    )
    assert seen["found"] >= 7
    assert seen["impossible"] >= 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("operators", SIGNS[:2], ids=" ".join)
def test_nested_folds_with_small_limits(
    operators: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in SMALL_LIMITS:
        monkeypatch.setattr(module, name, value)
    for seed in range(6000, 6030):
        agree(drawn(seed, operators, FLATTEN), ("default", "pairs"))


def test_nested_folds_by_the_solver() -> None:
    for seed in range(7000, 7025):
        program = drawn(seed, ("+", "*"), FLATTEN)
        if len(all_fills(program, program.goals[0])) <= 20:
            agree(program, ("smt",))


@pytest.mark.slow
@pytest.mark.parametrize("operators", SIGNS, ids=" ".join)
@pytest.mark.parametrize("first", range(100_000, 104_000, 1000))
def test_many_nested_folds(operators: tuple[str, ...], first: int) -> None:
    for seed in range(first, first + 1000):
        agree(drawn(seed, operators, FLATTEN if seed % 4 else ()), ("default", "pairs"))


def test_the_sample_has_what_it_should_have() -> None:
    """Bags that are carried, passed on and also packed; sketches that the search refuses."""
    seen: Counter[str] = Counter()
    for seed in range(5000, 5200):
        program = drawn(seed, ("+", "*"), FLATTEN)
        try:
            moves = lower(program, program.goals[0]).steps.values()
        except (CheckError, SearchError) as refused:
            seen[type(refused).__name__] += 1
            continue
        steps = [move for move in moves if isinstance(move, Move)]
        seen["carried"] += any(move.bag > 1 for move in steps)
        seen["passed"] += any(move.passed is not None for move in steps)
        seen["also packed"] += any(move.position >= len(program.steps) for move in steps)
    assert seen["carried"] >= 20
    assert seen["passed"] >= 5
    assert seen["also packed"] >= 3
    assert seen["CheckError"] >= 5


# -- reductions and scans --------------------------------------------------------------------------


def all_reduce(lanes: int, partners: dict[str, np.ndarray]) -> Sketch:
    """Each round adds what a partner holds; which partner is open."""
    s = Sketch(f"all-reduce over {lanes} lanes")
    v = s.input("x", lanes)
    for _ in range(lanes.bit_length() - 1):
        v = s.sum("stack", v, s.choices(partners, v))
    s.goal(lambda x: [spec.total(x)] * lanes)
    return s


def butterflies(lanes: int, distances: list[int]) -> dict[str, np.ndarray]:
    return {f"^{d}": np.arange(lanes) ^ d for d in distances}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["default", "pairs", "smt"])
def test_butterfly_over_8_lanes(engine: str) -> None:
    """Every basis of three bits will do: (8 - 1) (8 - 2) (8 - 4) of them."""
    program = all_reduce(8, butterflies(8, list(range(1, 8)))).program()
    result = synthesize(program, engine=engine)
    assert (result.fills.count, result.complete, result.verdict) == (168, True, Verdict.PROVED)
    assert "reassociated: +" in result.verdicts[0].laws[0]
    assert "floating point" in result.verdicts[0].laws[0]


@pytest.mark.slow
def test_butterfly_over_32_lanes() -> None:
    """All bases of five bits that can be made of these distances, and nothing else."""
    distances = [1, 2, 3, 4, 6, 8, 16]
    result = synthesize(all_reduce(32, butterflies(32, distances)).program())
    picks = np.array(list(np.ndindex(*[7] * 5)))
    masks = np.arange(32)[:, None] >> np.arange(5) & 1
    sums = np.bitwise_xor.reduce(np.array(distances)[picks][:, None] * masks, axis=2)
    bases = picks[[len(set(row)) == 32 for row in sums.tolist()]]
    assert result.fills.choices.tolist() == bases.tolist()
    assert len(bases) == result.fills.count > 120
    assert result.complete
    assert result.verdict is Verdict.PROVED


def test_rotations_over_32_lanes() -> None:
    """A family of ours: each lane reads another, so many lanes further."""
    s = Sketch("all-reduce by rotations")
    v = s.input("x", (32, 1))
    for _ in range(5):
        v = s.sum("stack", v, s.hole("col_rots_no_group", v))
    s.goal(lambda x: [[spec.total(x)]] * 32)
    result = synthesize(s.program(), mode="first", budget=Budget(120))
    assert result.verdict is Verdict.PROVED
    tables = [s.gathers.tables for s in result.program.steps if isinstance(s, Apply)]
    rotated = [tables[2 * n][choice, 0] for n, choice in enumerate(result.fills.choices[0])]
    masks = np.arange(32)[:, None] >> np.arange(5) & 1
    assert sorted((masks * rotated).sum(axis=1) % 32) == list(range(32))


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [8, 32])
def test_log_step_scan(lanes: int) -> None:
    """Each round adds what stands some lanes before, where there is such a lane."""
    s = Sketch(f"inclusive scan over {lanes} lanes")
    v, lane = s.input("x", lanes), np.arange(lanes)
    rounds = lanes.bit_length() - 1
    for _ in range(rounds):
        up = {f"up {d}": np.where(lane < d, -1, lane - d) for d in range(1, lanes)}
        v = s.sum("stack", v, s.choices(up, v))
    s.goal(np.cumsum)
    result = synthesize(s.program())
    assert result.fills.count == {8: 6, 32: 120}[lanes]
    distances = {f"up {1 << r}" for r in range(rounds)}
    for number in range(len(result.fills)):
        assert set(result.described(number).values()) == distances
    assert result.verdict is Verdict.PROVED
    assert "a fold of one item is the item: +" in result.verdicts[0].laws


def test_a_scan_whose_shift_and_mask_are_both_open() -> None:
    s = Sketch("inclusive scan")
    v, lane = s.input("x", 8), np.arange(8)
    for _ in range(3):
        moved = s.choices({f"rotate {d}": (lane - d) % 8 for d in range(8)}, v)
        kept = s.choices({f"from {d}": np.where(lane < d, -1, lane) for d in range(8)}, moved)
        v = s.sum("stack", v, kept)
    s.goal(lambda x: [spec.total(x[: i + 1]) for i in range(8)])
    result = synthesize(s.program())
    assert (result.fills.count, result.verdict) == (6, Verdict.PROVED)


def test_without_laws_there_is_no_butterfly() -> None:
    program = all_reduce(8, butterflies(8, [1, 2, 4])).program()
    assert isinstance(synthesize(program, laws="none").outcome, Impossible)
    fill = synthesize(program).fills.as_dict(0)
    assert verify(program, program.goals[0], fill)
    assert not verify(program, program.goals[0], fill, laws="none")


def test_laws_are_the_goals_to_say() -> None:
    def sketch(**laws: Any) -> Program:
        s = Sketch("sum of sums")
        x = s.input("x", (2, 2))
        s.sum("reshape", s.sum("identity", x), shape=(1, 2))
        s.goal(lambda x: [x.sum()], **laws)
        return s.program()

    assert synthesize(sketch()).verdict is Verdict.PROVED
    assert synthesize(sketch(laws="flatten")).verdict is Verdict.PROVED
    assert isinstance(synthesize(sketch(laws="none")).outcome, Impossible)
    with pytest.raises(CheckError, match="unknown laws 'associate'"):
        sketch(laws="associate")


def test_what_goes_too_far_is_said() -> None:
    """A value that holds sums and products, and is added up as well as multiplied."""
    s = Sketch("both")
    x = s.input("x", 4)
    added, multiplied = s.sum("reshape", x, shape=(1, 4)), s.product("reshape", x, shape=(1, 4))
    both = s.choices({"add": [0], "multiply": [1]}, added, multiplied, name="both")
    s.gather([0, 1], s.sum("stack", both, added), s.product("stack", both, multiplied))
    s.goal(lambda x: [spec.total([x, x]), spec.product([x, x])])
    with pytest.raises(SearchError, match=r"'both' holds folds with \* and with \+"):
        synthesize(s.program())
    assert isinstance(synthesize(s.program(), laws="none").outcome, Impossible)


def test_flattening_has_its_limits() -> None:
    s = Sketch("long")
    x = s.input("x", 1)
    v = x
    for _ in range(3):
        v = s.sum("reshape", s.apply("broadcast", v, shape=(2000, 1)), shape=(1, 2000))
    s.goal(lambda x: [x[0]])
    with pytest.raises((CheckError, SearchError), match="laws"):
        synthesize(s.program())
