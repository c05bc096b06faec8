"""Every law: both sides mean the same, for random types, sizes, expressions and functions."""

from __future__ import annotations

import typing
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from bench.common.narrowed import of
from tests.array.generate import NUMBER, Generator, random_type, random_value

from warploom.array import build as al
from warploom.array.language.evaluate import Value, evaluate
from warploom.array.language.ir import (
    Apply,
    Lambda,
    Literal,
    Param,
    Program,
    Term,
    close,
    fresh,
    walk,
)
from warploom.array.language.op import POSITION, Call, sizes_of
from warploom.array.plan.plan import copied
from warploom.array.rewrite.law import (
    NEUTRAL,
    Applied,
    Concrete,
    Condition,
    Law,
    Monoid,
    Rearranged,
    Undone,
    rewritten,
)
from warploom.array.rewrite.laws import (
    HOIST_MAP,
    INTERCHANGE,
    INTERCHANGE_NESTED,
    LAWS,
    PARTIAL,
    REGROUP_PRODUCTS,
    prefetching,
)
from warploom.array.rewrite.match import Binding, instance, type_instance
from warploom.array.types import Any, Array, Tuple, Type, shape
from warploom.errors import CheckError
from warploom.index.ir import Const, variables


def open_types(type_: Type) -> set[str]:
    match type_:
        case Any(name):
            return {name}
        case Array(element, _):
            return open_types(element)
        case Tuple(parts):
            return set().union(*map(open_types, parts))
    return set()


def open_sizes(type_: Type) -> set[str]:
    match type_:
        case Array(element, size):
            return set(variables(size)) | open_sizes(element)
        case Tuple(parts):
            return set().union(*map(open_sizes, parts))
    return set()


MOVES = (
    al.reverse,
    lambda x: al.strided(2, x),
    lambda x: al.join(al.transpose(al.split(2, x))),
)


def is_call(term: Term, name: str) -> bool:
    return isinstance(term, Apply) and isinstance(term.op, Call) and term.op.name == name


def lambda_of(type_: Type, body: Callable[[Param], Term]) -> Lambda:
    param = fresh(type_)
    return close((param,), body(param))


class Instances:
    """Random instances of a law."""

    def __init__(self, law: Law, seed: int) -> None:
        self.law = law
        self.random = Random(seed)
        self.generator = Generator(self.random)
        self.parts = [*walk(law.left), *walk(law.right)]

    def names(self) -> tuple[set[str], set[str]]:
        types: set[str] = set()
        sizes: set[str] = set()
        for part in self.parts:
            types |= open_types(part.type)
            sizes |= open_sizes(part.type)
            if isinstance(part, Apply):
                sizes |= {n for size in sizes_of(part.op) for n in variables(size)}
        return types, sizes - {POSITION.name}

    def binding(self) -> Binding:
        """Types and sizes first, then expressions and functions over them."""
        made = Binding()
        types, sizes = self.names()
        numbers = any(isinstance(each, Monoid) for each in self.law.conditions)
        for name in sorted(types):
            plain = (numbers and name == "a") or self.random.random() < 0.5
            made.types[name] = NUMBER if plain else random_type(self.random, 1)
        for name in sorted(sizes):
            made.sizes[name] = Const(self.random.choice((1, 2, 3, 4, 6)))
        for part in self.parts:
            if isinstance(part, Param) and part.name not in made.terms:
                wanted = type_instance(part.type, made)
                made.terms[part.name] = self.generator.term(wanted, 1)
        for condition in self.law.conditions:
            self.meet(condition, made)
        for part in self.parts:
            if isinstance(part, Apply) and isinstance(part.op, Call):
                self.function(part, made)
        return made

    def meet(self, condition: Condition, made: Binding) -> None:
        match condition:
            case Rearranged(names):
                move = self.random.choice(MOVES)
                for name in names:
                    called = of(Apply, next(p for p in self.parts if is_call(p, name)))
                    given = called.arguments[0].type
                    made.functions[name] = lambda_of(type_instance(given, made), move)
            case Undone(there, back):
                move = self.random.choice((al.transpose, lambda x: x))
                first = made.functions[there] = lambda_of(made.terms["x"].type, move)
                made.functions[back] = lambda_of(first.body.type, move)
                made.sizes |= {f"m{at}": s for at, s in enumerate(shape(first.body.type), 1)}
            case Concrete(name):
                made.terms[name] = copied(made.terms[name])
            case Monoid():
                self.operator(condition, made)

    def operator(self, condition: Monoid, made: Binding) -> None:
        able = [
            op
            for op, neutral in NEUTRAL.items()
            if isinstance(condition.neutral, str) or neutral == condition.neutral
        ]
        op = self.random.choice(able)
        s, v = fresh(NUMBER), fresh(NUMBER)
        made.functions[condition.function] = close((s, v), al.compute(op, s, v))
        if isinstance(condition.neutral, str):
            made.terms[condition.neutral] = Literal(NEUTRAL[op], NUMBER)

    def function(self, call: Apply, made: Binding) -> None:
        assert isinstance(call.op, Call)
        if call.op.name in made.functions:
            return
        params = [fresh(type_instance(each.type, made)) for each in call.arguments]
        result = type_instance(call.op.result, made)  # type: ignore[arg-type]
        body = self.generator.term(result, self.random.randrange(3), tuple(params))
        made.functions[call.op.name] = close(params, body)

    def sides(self) -> tuple[Binding, Term, Term] | None:
        try:
            made = self.binding()
            return made, instance(self.law.left, made), instance(self.law.right, made)
        except CheckError:  # sizes that do not divide, arrays where the law has numbers
            return None


def applied(law: Law, made: Binding) -> Applied:
    """The law with what nobody but its user chooses; a hint that takes any place."""
    chosen = {**made.sizes, **made.functions, **made.terms}
    given = {name: chosen[name] for name in law.given}
    hints = {} if law.name != "split a map" else {"f": lambda term: isinstance(term, Apply)}
    return Applied(law).with_(**given).hinting(**hints)


def meaning(term: Term, inputs: list[Param], seed: int) -> Value:
    program = Program("side", tuple(inputs), term)
    random = np.random.default_rng(seed)
    return evaluate(program, *(random_value(random, each.type) for each in inputs))


def same(left: typing.Any, right: typing.Any) -> bool:
    if isinstance(left, tuple):
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool((np.asarray(left) == np.asarray(right)).all())


def check(law: Law, seed: int) -> int:
    """0: no instance; 1: both sides agree; 2: and the law was found and applied, rightly."""
    instances = Instances(law, seed)
    found = instances.sides()
    if found is None:
        return 0
    made, left, right = found
    inputs = instances.generator.inputs
    wanted = meaning(left, inputs, seed)
    assert left.type is right.type
    assert same(meaning(right, inputs, seed), wanted), (law.name, seed)
    again = rewritten(applied(law, made), left)
    if again is None:
        return 1
    assert same(meaning(again, inputs, seed), wanted), (law.name, seed)
    return 2


@pytest.mark.sampled(10)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_both_sides_mean_the_same(law: Law) -> None:
    found = [check(law, seed) for seed in range(20)]
    assert sum(each > 0 for each in found) >= 3
    assert sum(each == 2 for each in found) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_both_sides_mean_the_same_often(law: Law) -> None:
    assert sum(check(law, seed) > 0 for seed in range(1000, 1400)) >= 30


def test_what_is_not_put_back_is_refused() -> None:
    rows = Param("rows", al.array(NUMBER, 3, 4))
    term = al.map_(lambda row: al.map_(lambda v: v + 1, row), rows)
    turned, other = lambda_of(rows.type, al.transpose), al.array(NUMBER, 4, 3)
    law = prefetching("local", 2).with_(x=rows, there=turned)
    assert rewritten(law.with_(back=lambda_of(other, al.transpose)), term) is not None
    reshaped = lambda_of(other, lambda x: al.split(4, al.join(x)))
    assert rewritten(law.with_(back=reshaped), term) is None


def test_there_are_laws_of_every_kind() -> None:
    assert len(LAWS) >= 35
    assert len({law.name for law in LAWS}) == len(LAWS)


# -- what laws do not do ---------------------------------------------------------------------------

X = Param("x", al.array(NUMBER, 4))


def test_a_wrong_law_is_noticed() -> None:
    """The test is able to fail: reversing is no identity."""
    y = Param("y", al.array(Any("a"), *al.sizes("n")))
    wrong = Law("wrong", y, al.reverse(y))
    with pytest.raises(AssertionError, match="wrong"):
        [check(wrong, seed) for seed in range(40)]


def test_what_depends_on_the_element_stays_inside() -> None:
    rows = Param("rows", al.array(NUMBER, 3, 4))
    free = al.map_(lambda row: al.map_(lambda v: v + al.element(0, row), X), rows)
    assert rewritten(INTERCHANGE, free) is not None
    tied = al.map_(lambda row: al.map_(lambda v: v + 1, row), rows)
    assert rewritten(INTERCHANGE, tied) is None
    assert rewritten(INTERCHANGE_NESTED, tied) is not None
    other = al.map_(lambda r: al.map_(lambda v: v + 1, al.reverse(r)), rows)
    assert rewritten(HOIST_MAP, other) is not None
    own = al.map_(lambda r: al.map_(lambda v: v + al.element(0, r), al.reverse(r)), rows)
    assert rewritten(HOIST_MAP, own) is None


def test_only_operators_with_their_neutral_number_are_reordered() -> None:
    def total(f: Callable[..., Term], start: Term | float) -> Term:
        return al.reduce(f, start, X)

    right = PARTIAL.with_(size=2)
    assert rewritten(right, total(lambda s, v: s + v, 0)) is not None
    assert rewritten(right, total(lambda s, v: s * v, 1)) is not None
    assert rewritten(right, total(lambda s, v: s + v, 1)) is None
    assert rewritten(right, total(lambda s, v: s - v, 0)) is None
    assert rewritten(right, total(lambda s, v: v + s, 0)) is None
    assert rewritten(right, total(lambda s, v: s + v * v, 0)) is None
    assert rewritten(right, total(lambda s, v: s + v, al.element(0, X))) is None


def test_sizes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(CheckError, match="3 does not divide 4"):
        rewritten(PARTIAL.with_(size=3), al.reduce(lambda s, v: s + v, 0, X))


def test_moves_must_be_the_same() -> None:
    term = al.reduce(lambda s, v: s + v, 0, al.map_(lambda p: p.get(0) * p.get(1), al.zip_(X, X)))
    turned, cut = (lambda_of(X.type, move) for move in (al.reverse, MOVES[2]))
    copy_of = lambda_of(X.type, lambda v: al.gather(lambda i, n: i // 2, v))
    assert rewritten(REGROUP_PRODUCTS.with_(move_x=turned, move_y=turned), term) is not None
    assert rewritten(REGROUP_PRODUCTS.with_(move_x=turned, move_y=cut), term) is None
    assert rewritten(REGROUP_PRODUCTS.with_(move_x=copy_of, move_y=copy_of), term) is None
