from __future__ import annotations

import pytest

from warploom.errors import CheckError
from warploom.sketch.term.goals import built_in, known, recognise, show_call
from warploom.sketch.term.ir import Shape, Symbol, Term, Zero, fold_of


def pack(*items: int | Term, operator: str = "+") -> Term:
    return fold_of([Symbol(i) if isinstance(i, int) else i for i in items], operator)


def times(*items: int) -> Term:
    return pack(*items, operator="*")


@pytest.mark.parametrize(
    ("name", "options", "declared", "shape", "values"),
    [
        ("id", {}, (2, 2), (2, 2), tuple(map(Symbol, range(4)))),
        ("trove", {}, (2, 3), (2, 3), tuple(map(Symbol, range(6)))),
        ("trove_sum", {"n": 3}, (2,), (2,), (pack(0, 1, 2), pack(3, 4, 5))),
        ("trove_sum", {}, (2, 3), (2,), (pack(0, 1, 2), pack(3, 4, 5))),
        ("trove_sum", {"n": 1}, (2,), (2,), (pack(0), pack(1))),
        ("conv_dealg", {}, (3, 2), (3, 2), tuple(map(Symbol, (0, 1, 1, 2, 2, 3)))),
        ("conv", {"k": 2}, (3,), (3,), (pack(0, 1), pack(1, 2), pack(2, 3))),
        ("weight_conv", {"k": 2}, (2,), (2,),
         (pack(times(0, 3), times(1, 4)), pack(times(1, 3), times(2, 4)))),
        ("stencil_2d", {"k": 2}, (2, 2), (2, 2),
         (pack(0, 1, 3, 4), pack(1, 2, 4, 5), pack(3, 4, 6, 7), pack(4, 5, 7, 8))),
        ("poly_mult", {"w": 2}, (4,), (4,),
         (pack(times(0, 2)), pack(times(0, 3), times(1, 2)), pack(times(1, 3)), Zero())),
    ],
)  # fmt: skip
def test_built_in_goals(
    name: str, options: dict[str, int], declared: Shape, shape: Shape, values: tuple[Term, ...]
) -> None:
    goal = built_in(name, options, declared)
    assert (goal.shape, goal.values) == (shape, values)
    found = recognise(shape, values)
    assert found is not None
    assert name in known()


def test_a_goal_like_no_built_in_is_not_recognised() -> None:
    assert recognise((2,), (Symbol(1), Symbol(0))) is None
    assert recognise((2,), (pack(0, 1), pack(0, 1))) is None
    assert recognise((2,), (times(0, 1), times(2, 3))) is None
    assert recognise((2,), (pack(0, 1, operator="fold"), pack(2, 3, operator="fold"))) is None
    assert recognise((2,), (pack(0, 1), pack(2, 3))) == "trove_sum{n=2}"
    assert recognise((1,), (Zero(),)) is None


def test_options_print_in_order() -> None:
    assert show_call("f", (("b", (1, 2)), ("a", None), ("c", 3))) == "f{a,b=[1,2],c=3}"
    assert show_call("f", ()) == "f"


def test_an_error_without_a_text_has_no_place() -> None:
    with pytest.raises(CheckError, match=r"^goal 'conv' needs option 'k'"):
        built_in("conv", {}, (3,))
