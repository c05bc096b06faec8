"""Why a sketch is impossible: every part of the answer is judged by brute force or asked again."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from bench.common.sketch.generate import seeded
from bench.common.sketch.nested import FLATTEN, nested_sketch, plain
from tests.sketch.explain import brute

from warploom import Budget, Sketch
from warploom.errors import CheckError, SearchError, UnsupportedError
from warploom.search.outcome import Found, Impossible
from warploom.sketch.explain import blame, suggest
from warploom.sketch.explain.cut import cut
from warploom.sketch.explain.reason import Explanation, explain
from warploom.sketch.explain.show import lines
from warploom.sketch.front import load_text
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Program
from warploom.sketch.term.laws import laws_said
from warploom.sketch.term.show import to_swflow

HEAD = "x: [12] = range(0, 12)\nregs: [4,3] = load_rep(x)\n"
SUM = "sum: [4] = + identity{fold_len=3}(t)\ngoal: [4] trove_sum{n=3}\n"


def transposed(order: str, rows: int, columns: int, kind: str = "xforms") -> Program:
    s = Sketch(f"{order} {rows}x{columns}")
    t = s.apply("load_rep", s.input("x", rows * columns), shape=(rows, columns), name="loaded")
    for number, letter in enumerate(order, 1):
        function = ("row_" if letter == "c" else "col_") + kind
        t = s.hole(function, t, name=f"s{number}")
    s.goal("trove")
    return s.program()


TEXTS = {
    "a rotation cannot copy": """x: [4] = range(0, 4)
y: [4] = ?rots{main=0,second=0,out=0}(x)
goal: [4] = [0, 0, 1, 2]
""",
    "only lanes move": HEAD + "t: [4,3] = ?col_xforms(regs)\n" + SUM,
    "only registers move": HEAD + "t: [4,3] = ?row_xforms(regs)\n" + SUM,
    "rotations are too few": HEAD + "s: [4,3] = ?row_rots(regs)\nt: [4,3] = ?col_rots(s)\n" + SUM,
    "the load drops what is wanted": """x: [5] = range(0, 5)
y: [4] = load_trunc(x)
z: [4] = ?rots{main=0,second=0,out=0}(y)
goal: [4] = [4, 0, 1, 2]
""",
    "a zero that nobody makes": """x: [4] = range(0, 4)
y: [4] = ?rots{main=0,second=0,out=0}(x)
goal: [4] = [0, 1, 2, ()]
""",
    "too many zeros": """x: [2,4] = range(0, 8)
y: [2,4] = ?cond_keep(x)
z: [2] = + identity{fold_len=4}(y)
goal: [2] = [+(0,1,2,3), +(4,6)]
""",
    "selected from the wrong side": """x: [8] = range(0, 8)
r: [4,2] = load_rep(x)
s: [4,3] = ?reg_select(r)
goal: [4,3] = [[0,4,1], [1,5,2], [2,6,3], [3,7,0]]
""",
    "a product where a sum is inside": """x: [2,2] = range(0, 4)
y: [2,2] = ?row_xforms(x)
p: [2] = * identity{fold_len=2}(y)
z: [2] = ?rots{main=0,second=0,out=0}(p)
goal: [2] = [*(0,1), *(0,3)]
""",
    "two steps must change": """define either([4]) -> [1] = {a = [0], b = [1]}
x: [4] = range(0, 4)
y: [4] = range(4, 8)
one: [1] = ?either(x)
two: [1] = ?either(y)
sum: [1] = + stack{fold_len=2}(one, two)
goal: [1] = [+(2, 6)]
""",
}


def sketches() -> dict[str, Program]:
    texts = {name: load_text(text, name) for name, text in TEXTS.items()}
    tables = [("crc", 4, 2), ("crc", 6, 4), ("rcr", 6, 4), ("crc", 16, 6), ("rcr", 16, 6)]
    return texts | {f"{o} {m}x{n}": transposed(o, m, n) for o, m, n in tables}


SKETCHES = sketches()
FREE = {"the load drops what is wanted"}  # nothing that a hole could do
SEVERAL = {"two steps must change"}


@cache
def explained(name: str) -> Explanation:
    return explain(SKETCHES[name], budget=Budget(30))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SKETCHES)
def test_the_answer_names_cell_and_hole_and_the_cut_sketch_is_impossible(
    name: str,
) -> None:
    program, why = SKETCHES[name], explained(name)
    assert isinstance(synthesize(program).outcome, Impossible)
    assert why.minimal
    assert 1 <= len(why.cells) <= 6
    assert isinstance(synthesize(why.cut).outcome, Impossible)
    for reason in why.cells:  # a minimal core: each part of it can be right
        cells = [other.number for other in why.cells if other is not reason]
        part = cut(program, program.goals[0], cells) if cells else None
        assert part is None or isinstance(synthesize(part, mode="first").outcome, Found)
    text = "\n".join(lines(why))
    assert f"goal cell ({', '.join(map(str, why.cells[0].cell))})" in text
    wanted = "none" if name in FREE else "several" if name in SEVERAL else "one"
    assert why.blame.kind == wanted
    assert wanted == "none" or all(f"'{hole.name}'" in text for hole in why.blamed)


def test_there_are_enough_of_them() -> None:
    assert len(SKETCHES) >= 12


@pytest.mark.parametrize("name", TEXTS)
def test_small_ones_by_brute_force(name: str) -> None:
    judge(SKETCHES[name], explained(name))


def judge(program: Program, why: Explanation) -> None:
    goal = program.goals[0]
    cells = [reason.number for reason in why.cells]
    assert not brute.has_fill(program, goal, cells)
    if why.minimal:
        for cell in cells:
            assert len(cells) == 1 or brute.has_fill(program, goal, [c for c in cells if c != cell])
    flatten = bool(goal.laws)
    for reason in why.cells:
        named = {plain(term, flatten) for term in reason.reached.values}
        others = brute.held(program, goal, reason.number) - named
        assert not others or reason.reached.others
        assert plain(reason.wanted, flatten) not in others
    alone = {h: brute.would_do(program, goal, cells, [h]) for h in brute.live_holes(program)}
    match why.blame.kind:
        case "one":
            assert all(alone[hole] in (True, None) for hole in why.blame.holes)
            if why.blame.every:
                assert {h for h, said in alone.items() if said} <= set(why.blame.holes)
        case "several":
            assert not any(alone.values())
            assert brute.would_do(program, goal, cells, why.blame.holes) in (True, None)
        case "none":
            assert not any(alone.values())
            assert not brute.would_do(program, goal, cells, brute.live_holes(program))
        case "unknown":
            assert why.blame.note


def judged(seed: int, operators: tuple[str, ...], laws: tuple[str, ...]) -> str:
    program = nested_sketch(seeded(seed), operators, laws)
    try:
        result = synthesize(program)
    except (CheckError, SearchError):
        return "refused"
    if not isinstance(result.outcome, Impossible):
        return "found"
    why = explain(program, budget=Budget(20))
    judge(program, why)
    assert isinstance(synthesize(why.cut).outcome, Impossible)
    return why.blame.kind


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("laws", [(), FLATTEN], ids=["none", "flatten"])
@pytest.mark.parametrize("operators", [("+",), ("+", "max")], ids=" ".join)
def test_generated_ones_by_brute_force(operators: tuple[str, ...], laws: tuple[str, ...]) -> None:
    seen = Counter(judged(seed, operators, laws) for seed in range(80_000, 80_050))
    assert seen["one"] + seen["several"] + seen["none"] >= 5
    assert seen["unknown"] <= 4  # a zero there may be refused


@pytest.mark.slow
@pytest.mark.parametrize("first", range(90_000, 92_000, 250))
def test_many_generated_ones(first: int) -> None:
    for seed in range(first, first + 250):
        judged(seed, ("+", "*", "max")[: 1 + seed % 3], FLATTEN if seed % 2 else ())


def test_the_cut_sketch_prints_and_loads() -> None:
    for name in ("rotations are too few", "crc 6x4", "two steps must change"):
        again = load_text(to_swflow(explained(name).cut))
        assert isinstance(synthesize(again).outcome, Impossible)


def test_the_text() -> None:
    said = list(lines(explained("only lanes move")))
    assert said == [
        "ruled out: all 14 fills of 't' (col_xforms, 14 choices on [4, 3])",
        "goal cell (0) should hold +(0, 1, 2); only values that are nowhere in the goal can "
        "reach it; 1, 2 cannot become part of that fold",
        "blocked by 't' (only lanes move:3:1): a gather of any kind in its place could fill it",
        f"the laws used: {laws_said(())}",
    ]
    (_, cell, _) = lines(explained("the load drops what is wanted"))
    assert cell.startswith("goal cell (0) should hold 4; only 0, 1, 2 and values that are nowhere")
    both = list(lines(explained("two steps must change")))
    (blocked,) = (line for line in both if "blocked by 'one'" in line)
    assert "'two'" in blocked


def test_a_spent_budget_names_the_whole_goal() -> None:
    program = SKETCHES["rcr 16x6"]
    why = explain(program, budget=Budget(0.0))
    assert why.is_whole
    assert not why.minimal
    assert isinstance(synthesize(why.cut).outcome, Impossible)
    assert "no single fill gets all 96 goal cells right" in list(lines(why))


def test_without_the_solver_what_is_tried_is_still_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise UnsupportedError("no z3 here")

    monkeypatch.setattr(blame, "load_z3", missing)
    assert explain(SKETCHES["only lanes move"]).blame.kind == "one"
    several = explain(SKETCHES["two steps must change"]).blame
    assert (several.kind, "no z3 here" in several.note) == ("unknown", True)


# -- other families --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["crc", "rcr"])
def test_16_by_6_needs_linear_rows(order: str) -> None:
    found = suggest.suggest(SKETCHES[f"{order} 16x6"], budget=Budget(60)).found
    assert any(c.function == "row_linear" and c.instead_of == "row_xforms"
               for each in found for c in each.changes)  # fmt: skip


def test_a_suggestion_is_a_sketch_with_a_fill() -> None:
    found = suggest.suggest(SKETCHES["rotations are too few"], budget=Budget(60))
    texts = [str(each) for each in found.found]
    assert found.complete
    assert (
        "row_xforms instead of row_rots for 's' and col_xforms instead of col_rots for 't': "
        "has a fill, proved"
    ) in texts
    changed = TEXTS["rotations are too few"].replace("_rots", "_xforms")
    assert isinstance(synthesize(load_text(changed)).outcome, Found)


def test_no_suggestion_where_no_hole_is_to_blame() -> None:
    found = suggest.suggest(SKETCHES["the load drops what is wanted"], budget=Budget(60))
    assert (found.found, found.complete) == ((), True)
    assert found.tried > 0


ROTATED_MAXIMUM = """define part([6]) -> [6] = {
  r1 = [1,2,3,4,5,0], r2 = [2,3,4,5,0,1], r4 = [4,5,0,1,2,3] }
x: [6] = range(0, 6)
a1: [6] = ?part(x)
b1: [6] = max stack{fold_len=2}(x,a1)
a2: [6] = ?part(b1)
b2: [6] = max stack{fold_len=2}(b1,a2)
a3: [6] = ?part(b2)
b3: [6] = max stack{fold_len=2}(b2,a3)
@flatten goal: [6] = max [[0,1,2,3,4,5],[0,1,2,3,4,5],[0,1,2,3,4,5],[0,1,2,3,4,5],[0,1,2,3,4,5],
  [0,1,2,3,4,5]]
"""


def told(text: str) -> str:
    program = load_text(text)
    assert isinstance(synthesize(program).outcome, Impossible)
    return "\n".join(lines(explain(program)))


def test_a_fill_that_is_right_by_a_law_that_is_not_known_is_named() -> None:
    said = told(ROTATED_MAXIMUM)  # some items come twice
    assert (
        "a fill that differs from the goal as a term is equal on the numbers tried: 'a1' " in said
    )
    assert "idempotence (max(x, x) = x)" in said
    assert "equal on the numbers" not in told(ROTATED_MAXIMUM.replace("max", "+"))
    assert "the laws used" not in told(TEXTS["a rotation cannot copy"])  # nothing is folded


@pytest.mark.parametrize(
    ("operator", "goal", "equal"), [("max", "0", True), ("^", "0", False), ("+", "0", False)]
)
def test_what_differs_as_a_term_only_is_not_called_wrong(
    operator: str, goal: str, equal: bool
) -> None:
    text = f"x: [1] = range(0, 1)\ns: [1,2] = stack(x, x)\no: [1] = {operator} identity(s)\n"
    said = told(f"{text.replace('identity', 'identity{fold_len=2}')}goal: [1] = [{goal}]\n")
    assert ("differs from its goal as a term (equal on the numbers tried)" in said) is equal
    assert "no hole blocks" not in said
