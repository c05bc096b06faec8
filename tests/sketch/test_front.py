from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import ParseError, WarploomError
from warploom.sketch.front import load_file, load_text
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.show import to_swflow
from warploom.sketch.term.verify import Verifier, verify

CONVOLUTION = """
goal: [32] weight_conv {k=3}
x: [34] = range(0, 34)
loaded: [32, 2] = load_trunc(x)
to_send: [32, 3] = ?reg_select_no_consts(loaded)
turned: [32, 3] = ?col_xforms_no_group(to_send)
received: [32, 3] = ?col_rots_no_group(turned)
w: [3] = range(34, 37)
w: [32, 3] = broadcast(w)
products: [32, 3] = * stack{fold_len=2}(received, w)
out: [32] = + ?cond_keep_no_consts{fold_len=3}(products)
"""
MULTIPLICATION = """
a: [4] = range(0, 4)
b: [4] = range(4, 8)
a: [4, 4] = broadcast(a)
b: [4, 4] = broadcast(b)
a1: [4, 4] = ?xforms_no_group{main=0,second=1,out=1}(a)
b1: [4, 4] = ?rots_no_group{main=0,second=1,out=1}(b)
products: [4, 4] = fold stack{fold_len=2}(a1, b1)
two: [4, 2, 4] = broadcast{group=1}(products)
left: [4, 2, 4] = cond_keep_no_consts{restrict=[1, 0]}(two)
right: [4, 2, 4] = cond_keep_no_consts{restrict=[1, 1]}(left)
sum: [4, 2, 4] = fold right
t: [2, 4] = transpose(sum)
out: [8] = reshape(t)
goal: [8] poly_mult {w=4}
"""
VECTORS = """
init: [3, 8] = [[1, 3, 5, 7, 9, 11, 13, 15], [2, 4, 6, 8, 10, 12, 14, 16], [-1, -1, -1, -1, -1, -1, -1, 0]]
side: [8] = {
  o: [4, 8] = ?hvx_2x1{in_lim=3,fresh}(init)
  define last([4, 8]) -> [8] = [((3,0)), ((3,1)), ((3,2)), ((3,3)), ((3,4)), ((3,5)), ((3,6)), ((3,7))]
  l: [8] = last(o)
}
goal: [8] = [0, 1, 3, 5, 7, 9, 11, 13]
"""  # noqa: E501


def first_right_fill(program: Program) -> list[int]:
    """For a sketch with one hole: the choices that are right, one by one."""
    (hole,) = program.holes
    step = program.steps[hole]
    assert isinstance(step, Apply)
    verifier = Verifier(program, program.goals[0])
    return [choice for choice in range(len(step.gathers)) if verifier.verify([choice])]


@pytest.mark.parametrize("text", [CONVOLUTION, MULTIPLICATION, VECTORS])
def test_sketches_of_the_literature_load_and_print_back(text: str) -> None:
    program = load_text(text, "t")
    printed = to_swflow(program)
    again = load_text(printed, "t")
    for one, other in zip(program.steps, again.steps, strict=True):
        assert one.shape == other.shape
        if isinstance(one, Apply):
            assert isinstance(other, Apply)
            assert np.array_equal(one.gathers.tables, other.gathers.tables)
            assert (one.fold, one.operator, one.args) == (other.fold, other.operator, other.args)
    fill = [0] * len(program.holes)
    assert evaluate(program, fill) == evaluate(again, fill)
    assert [g.values for g in program.goals] == [g.values for g in again.goals]


def test_an_aligned_vector_load_is_found_by_trying_all() -> None:
    program = load_text(VECTORS, "t")
    assert program.holes == (1,)
    right = first_right_fill(program)
    step = program.steps[1]
    assert isinstance(step, Apply)
    assert right
    assert all("align" in step.gathers.describe(choice) for choice in right)


def test_a_fold_does_not_hide_the_defaults_of_a_function() -> None:
    program = load_text(
        "x: [4, 3] = range(0, 12) y: [4, 3] = fold row_xforms(x) goal: [4] trove_sum{n=3}", "t"
    )
    assert program.steps[1].shape == (4,)
    assert first_right_fill(program)


def test_repeated_terms_and_a_second_goal() -> None:
    program = load_text(
        "x: [1] = [0] y: [1, 2] = fold broadcast(x) goal: [1] = [(0, 0)] goal: [1] = [(0,)]"
        .replace("broadcast(x)", "stack(x, x)"), "t",
    )  # fmt: skip
    assert [bool(verify(program, goal)) for goal in program.goals] == [True, False]


def test_errors_of_a_function_are_at_its_name() -> None:
    with pytest.raises(WarploomError) as caught:
        load_text("x: [4] = range(0, 4)\ny: [3, 2] = transpose(x)\ngoal: [3, 2] id", "a.swflow")
    assert str(caught.value).startswith("a.swflow:2:13: transpose")
    with pytest.raises(WarploomError) as caught:
        load_text("x: [4] = range(0, 4)\ny: [4] = reshap(x)\ngoal: [4] id", "a.swflow")
    assert "did you mean 'reshape'?" in str(caught.value)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.swflow"
    path.write_text("\ufeffx: [4] = range(0, 4) # Größe\ngoal: [4] id\n", "utf-8")
    assert len(load_file(path).steps) == 1
    path.write_bytes(b"x: [4] = \n  \xff\xfe")
    with pytest.raises(ParseError) as caught:
        load_file(path)
    assert str(caught.value).split("\n")[0] == f"{path}:2:3: byte 0xFF is not UTF-8"
    with pytest.raises(ParseError, match="cannot read"):
        load_file(tmp_path / "none.swflow")
    with pytest.raises(ParseError, match="cannot read"):
        load_file(tmp_path)


PIECES = st.sampled_from(
    [
        "x: [4, 3] = range(0, 12)", "y: [4, 3] = ?row_rots(x)", "y: [4, 3] = fold ?col_rots(x)",
        "z: [3, 4] = transpose(y)", "z: [12] = load_rep(x)", "w: [4] = +", "cond_keep{restrict=",
        "[1, 0]}(y)", "goal: [4, 3] id", "goal: [4] trove_sum{n=3}", "hvx_2x1{fresh}(x)",
        "v: [5, 3] = ", "rot_idx{r=1}(y)", "grouped_perms{axis=0,group=", "4}(x)",
        "general_select{axis=1}(x)",
    ]
)  # fmt: skip


@examples(150)
@given(st.one_of(st.lists(PIECES, max_size=7).map(" ".join), st.text(max_size=60)))
def test_any_text_loads_or_is_one_located_error(text: str) -> None:
    found = None
    try:
        load_text(text, "t")
    except WarploomError as error:
        found = error
    assert found is None or found.span is not None


@examples(60)
@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "a.swflow"
    path.write_bytes(data)
    with pytest.raises(WarploomError):
        load_file(path)


def test_a_large_stencil_is_verified_quickly() -> None:
    program = load_text(
        """x: [16, 16] = range(0, 256)
        tiles: [4, 4, 13, 13] = window(x)
        out: [4, 4] = + reshape{fold_len=169}(tiles)
        goal: [4, 4] stencil_2d {k=13}""".replace(
            "tiles: [4",
            "define window([16, 16]) -> [4, 4, 13, 13] = "
            + str([
                (i + a) * 16 + j + b
                for i in range(4) for j in range(4) for a in range(13) for b in range(13)
            ])
            + "\ntiles: [4",
        ),
        "t",
    )  # fmt: skip
    begin = time.process_time()
    assert verify(program, program.goals[0])
    assert time.process_time() - begin < 10
