"""Programs are graphs: what is shared is walked, shown and computed once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warploom import LoopNest, explore, map_array
from warploom.array import build as al
from warploom.array.language.effort import effort
from warploom.array.language.ir import Term
from warploom.array.language.show import show as show_array
from warploom.errors import CheckError
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Choose, Number, Operation, Value, tree_size, walk, walk_value
from warploom.kernel.traverse import values_of
from warploom.loopnest.build import choose, maximum
from warploom.loopnest.computation import Computation
from warploom.loopnest.ir import Axis
from warploom.loopnest.show import show, show_value

STEPS: dict[str, Callable[[Axis, Value], Value]] = {
    "square": lambda i, v: v * v,
    "difference": lambda i, v: v - v * 0.5,
    "greatest": lambda i, v: maximum(v, v * 0.5),
    "by value": lambda i, v: choose(v.lt(0.5), v, v * 2.0),
    "by index": lambda i, v: choose(i.expr.lt(3), v - v * 2.0, v),
}


def chain(step: Callable[[Axis, Value], Value], length: int) -> LoopNest:
    nest = LoopNest("chain")
    i = nest.axis("n", 64, (32, 64))
    x, y = nest.array("x", i), nest.array("y", i)
    value: Value = x[i]
    for _ in range(length):
        value = step(i, value)
    y[i] = value
    return nest


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STEPS)
def test_a_chain_is_as_long_as_its_steps(name: str) -> None:
    nest = chain(STEPS[name], 40)
    found = explore(nest, evaluations=1, model=True)
    assert found.trial is not None
    assert found.trial.wrong == ""
    assert len(show(nest.done())) < 20_000


def test_each_step_is_computed_once() -> None:
    found = explore(chain(STEPS["difference"], 5), evaluations=1, model=True)
    products = [
        part
        for stmt in found.kernel.body
        for part in _values(stmt)
        if isinstance(part, Operation) and part.op == "*"
    ]
    assert len(products) >= 5
    assert max(map(tree_size, products)) <= 4


def _values(node: object) -> list[Value]:
    return [part for s in walk((node,)) for v in values_of(s) for part in walk_value(v)]  # type: ignore[arg-type]


def test_what_is_shared_has_a_name_where_it_is_long() -> None:
    nest = chain(STEPS["square"], 60)
    store = Computation.of(nest.done()).stores[0]
    assert tree_size(store.value) == 1  # a name of its own, in the published form
    kept = next(leaf for leaf in nest.computation().leaves if leaf.name.startswith("value"))
    text = show_value(kept.value)  # type: ignore[union-attr]
    assert text.startswith("*(part_59, part_59) where part_1 = *(x_1, x_1), part_2 = ")


def test_a_value_too_deep_is_refused_where_it_is_stored() -> None:
    with pytest.raises(CheckError, match="more than 200 operators deep"):
        chain(STEPS["square"], 300)


def test_equal_values_are_one_and_unequal_zeros_are_two() -> None:
    x = Number(2.0, f32)
    assert x * x is Number(2.0, f32) * x
    assert Number(0.0, f32) is not Number(-0.0, f32)
    assert Choose(Operation("+", (x, x)).lt(x), x, x) is Choose((x + x).lt(x), x, x)


def test_leaves_of_two_nests_are_not_one() -> None:
    one, other = chain(STEPS["square"], 1), chain(STEPS["square"], 1)
    assert one.computation().leaves[0] != other.computation().leaves[0]
    stored = [n.computation().leaves[1].value for n in (one, other)]  # type: ignore[union-attr]
    assert stored[0] is not stored[1]


@pytest.mark.parametrize("name", ["square", "difference", "greatest", "by value"])
def test_an_array_expression_is_a_graph(name: str) -> None:
    steps: dict[str, Callable[[Term], Term]] = {
        "square": lambda v: v * v,
        "difference": lambda v: v - v * 0.5,
        "greatest": lambda v: v.max(v * 0.5),
        "by value": lambda v: al.choose(v.lt(0.5), v, v * 2.0),
    }

    def one(value: Term) -> Term:
        for _ in range(60):
            value = steps[name](value)
        return value

    program = al.program("chain", lambda x: al.map_(one, x), x=al.array(al.f32, 64))
    assert len(show_array(program.body)) < 20_000
    assert effort(program).operations < 400
    assert len(map_array(program, {}, first=True).kernels) == 1
