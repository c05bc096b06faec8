"""Likely mistakes get one error at the user's line, not an AttributeError from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warploom
from warploom import Budget, Sketch, WarploomError, solve, synthesize
from warploom.search.outcome import Impossible, Reason, Undecided, Verdict
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.solve import reinstantiate
from warploom.sketch.synth.transfer import transfer


def sketched(goal: Any) -> Sketch:
    s = Sketch("small")
    s.hole("rots", s.input("x", 4), main=0, second=0, out=0)
    s.goal(goal)
    return s


def value(shape: Any = 4) -> Any:
    return Sketch("small").input("x", shape)


def on(method: str, *args: Any, **options: Any) -> Any:
    """A method of a sketch that has an input 'x', given as "x"."""
    s = Sketch("small")
    x = s.input("x", 4)
    return getattr(s, method)(*(x if each is X else each for each in args), **options)


def solved(move: Callable[[Any, Any, Any, Any], Any]) -> Any:
    """A warp sketch of four lanes, which does this to input and output."""

    def small(k: Any) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 4), k.output("y", 4)
        y[lane] = x[lane]
        move(k, lane, x, y)

    made = warploom.warp_sketch(small)
    made.specification(lambda x: x)
    return solve(made)


def added(k: Any, item: Any, when: Any) -> None:
    k.accumulator("+").add(item, when=when)


def nothing_to_sketch_with() -> None:
    pass


X = object()
RIGHT = [1, 2, 3, 0]
COMPUTES = "does not compute"

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a difference": (lambda: sketched(lambda x: x - x[::-1]), "folds elements with"),
    "a mean": (lambda: sketched(lambda x: [x.mean()] * 4), "folds elements with"),
    "the larger": (lambda: sketched(lambda x: [max(x)] * 4), "cannot depend on the value"),
    "no such method": (lambda: sketched(lambda x: x.largest()), "has no attribute 'largest'"),
    "no such element": (lambda: sketched(lambda x: [x[9]] * 4), "out of bounds"),
    "a text to fill": (lambda: synthesize("x: [4]"), "not a string"),  # type: ignore[arg-type]
    "a number for a budget": (lambda: synthesize(sketched(RIGHT), budget=3), "Budget"),  # type: ignore[arg-type]
    "seconds as text": (lambda: Budget(seconds="3"), "not '3'"),  # type: ignore[arg-type]
    "megabytes as truth": (lambda: Budget(megabytes=True), "not True"),
    "seconds that are none": (lambda: Budget(seconds=float("nan")), "not nan"),
    "a plain function": (lambda: solve(lambda k: None), "not a function"),  # type: ignore[arg-type]
    "the other kind": (lambda: solve(sketched(RIGHT)), "a Sketch is for"),  # type: ignore[arg-type]
    "no fill": (lambda: to_kernel(Impossible("y[0] is wrong")), r"no kernel: y\[0\] is wrong"),
    "no answer": (lambda: to_kernel(Undecided(Reason.SECONDS)), "time budget spent"),
    "nothing": (lambda: to_kernel(None), "not of a NoneType"),  # type: ignore[arg-type]
    # what numbers and arrays can do, and a value of a sketch cannot
    "remainder": (lambda: value() % 2, COMPUTES),
    "power": (lambda: value() ** 2, COMPUTES),
    "sum of values": (lambda: value() + value(), COMPUTES),
    "product from the right": (lambda: 2 * value(), COMPUTES),
    "matrix product": (lambda: value() @ value(), COMPUTES),
    "negative": (lambda: -value(), COMPUTES),
    "comparison": (lambda: value() < 3, COMPUTES),
    "equality": (lambda: value() == 3, COMPUTES),
    "subscript": (lambda: value()[0], COMPUTES),
    "items": (lambda: list(value()), COMPUTES),
    "length": (lambda: len(value()), COMPUTES),
    "NumPy": (lambda: np.sum(value()), COMPUTES),
    "a call": (lambda: value()(3), COMPUTES),
    "truth": (lambda: 1 if value() else 0, "cannot depend on the value"),
    "a method": (lambda: value().sum(axis=0), "has no 'sum'"),
    "transposed": (lambda: value().T, "has no 'T'"),
    "a lane's value, remainder": (lambda: solved(lambda k, i, x, y: x[i] % 2), COMPUTES),
    "a lane's value, quotient": (lambda: solved(lambda k, i, x, y: x[i] / 2), COMPUTES),
    "a lane's value, or": (lambda: solved(lambda k, i, x, y: x[i] | x[0]), COMPUTES),
    "the larger of two": (lambda: solved(lambda k, i, x, y: max(x[i], x[0])), COMPUTES),
    "a lane's value, truth": (
        lambda: solved(lambda k, i, x, y: x[i] or x[0]),
        "cannot depend on the value",
    ),
    # calls of the builder
    "no name of a sketch": (lambda: Sketch(12), "named by a text"),  # type: ignore[arg-type]
    "a shape that is none": (lambda: value(4.0), "whole numbers, not 4.0"),
    "a shape as text": (lambda: value("4"), "whole numbers, not '4'"),
    "name and shape swapped": (lambda: on("input", 12, "x"), "whole numbers, not 'x'"),
    "shape of a step": (lambda: on("apply", "reshape", X, shape="ab"), "whole numbers, not 'ab'"),
    "a function for a name": (lambda: on("hole", len, X), "given by its name"),
    "no operator": (lambda: on("fold", "identity", X, operator="-"), "'-' is no operator"),
    "choices in a list": (lambda: on("choices", [[0, 1]], X), "tables by name"),
    "choices that differ": (lambda: on("choices", {"a": [0], "b": [0, 1]}, X), "holds 1 integers"),
    "a number for a choice": (lambda: on("choices", {1: [0]}, X), "cannot name a choice"),
    "fractions in a table": (lambda: on("gather", [0.5], X), "holds 1 integers"),
    "a table that reads outside": (lambda: on("gather", [9], X), "reads cells 0 to 3"),
    "a table of nothing": (lambda: on("gather", [0]), "one argument"),
    "a text for a value": (lambda: on("gather", [0], "x"), "takes values of the sketch"),
    "no place": (lambda: on("place", X, "shared"), "'shared' is no place"),
    "a place of nothing": (lambda: on("place", "x", "memory"), "takes values of the sketch"),
    "a goal that is a number": (lambda: on("goal", 3), "a goal is an array, not 3"),
    "no goal": (lambda: on("program"), "has no goal"),
    # calls of the tracer
    "a fraction of lanes": (
        lambda: solved(lambda k, i, x, y: k.swizzle(i, 4.0)),
        "needs a constant size",
    ),
    "constants of a condition": (
        lambda: solved(lambda k, i, x, y: k.condition(i, constants="ab")),
        "constants are whole numbers",
    ),
    "a comparison by ==": (
        lambda: solved(lambda k, i, x, y: added(k, x[i], i == 2)),
        "the condition is False",
    ),
    "an index by ==": (lambda: solved(lambda k, i, x, y: x[i == 2]), "indexed by a Boolean"),
    "a sketch as decorator": (
        lambda: warploom.warp_sketch(nothing_to_sketch_with),
        "takes nothing",
    ),
    "a class as a sketch": (lambda: warploom.warp_sketch(Sketch), "is a function, not a type"),  # type: ignore[arg-type]
    "a sketch called": (
        lambda: warploom.warp_sketch(lambda k: None)(4),
        "no function of arrays",
    ),
    "nothing at another size": (
        lambda: reinstantiate(None, None),  # type: ignore[arg-type]
        "a filled sketch is wanted",
    ),
    # what comes after
    "no such mode": (lambda: synthesize(sketched(RIGHT), mode="every"), "unknown mode"),
    "no such laws": (lambda: synthesize(sketched(RIGHT), laws="commute"), "unknown laws"),
    "no such goal": (lambda: synthesize(sketched(RIGHT), 5), "has 1 goals"),
    "no such fill": (
        lambda: synthesize(sketched(RIGHT)).fill_text(3),
        "no fill number 3: 1 are listed",
    ),
    "no goal to verify": (
        lambda: warploom.verify(sketched(RIGHT), 3),
        "has 1 goals, and none is 3",
    ),
    "nothing to verify": (lambda: warploom.verify(), "does not fit: missing .* 'sketch'"),  # type: ignore[call-arg]
    "a result to verify": (
        lambda: warploom.verify(synthesize(sketched(RIGHT))),  # type: ignore[arg-type]
        "takes a sketch, not a Result",
    ),
    "a budget to compile in": (lambda: warploom.compile(sketched(RIGHT), budget=3), "Budget"),  # type: ignore[call-overload]
    "no such option": (
        lambda: warploom.compile(sketched(RIGHT), foo=1),  # type: ignore[call-overload]
        "does not fit: .*'foo'",
    ),
    "a step of a part": (
        lambda: warploom.compile(sketched(RIGHT), steps={"x": 1.5}),  # type: ignore[dict-item]
        "(?s)step of 1.5 .*a whole number, 0 or more",
    ),
    "a load that is not said": (
        lambda: solved(lambda k, i, x, y: k.load(x)),
        r"(?s)'rounds'.*k.load takes \(source, rounds",
    ),
    "tune by a word": (lambda: warploom.load("aos-sum", tune="yes"), "number of seconds"),
    "tune for less than no time": (lambda: warploom.load("aos-sum", tune=-3), "not -3"),
    "tune for no time at all": (lambda: warploom.load("aos-sum", tune=float("nan")), "not nan"),
    "structures of nothing": (lambda: warploom.load("aos-sum", fields=0), "0 fields"),
    "fields as a truth": (lambda: warploom.load("aos-sum", fields=True), "not True"),
    "another shape": (
        lambda: warploom.load("aos-sum", fields=3)(np.ones((4, 5), np.float32)),
        r"takes \(…, 3\)",
    ),
    "an output by name": (
        lambda: warploom.load("aos-sum", fields=3)(np.ones((4, 3)), out=np.ones(4)),  # type: ignore[arg-type]
        "'out' is given by name, but arrays are given in order",
    ),
    "an output by name, of a sketch": (
        lambda: warploom.compile(sketched(RIGHT))(np.ones(4), out=np.ones(4)),
        "'out' is given by name",
    ),
    "pairs for numbers": (
        lambda: warploom.compile(sketched(RIGHT))(np.ones(4, np.complex64)),
        r"holds complex numbers, which are pairs: their shape is \(4, 2\)",
    ),
    "bytes for a text": (lambda: Sketch.from_text(b"x"), "a text, not bytes"),  # type: ignore[arg-type]
    "no file": (lambda: Sketch.from_file(None), "not by a NoneType"),  # type: ignore[arg-type]
    "no such file": (lambda: Sketch.from_file("/no/such.swflow"), "No such file"),
    "no such kernel": (lambda: warploom.load("aos_to_soa"), "has no kernel"),
    "no such parameter": (lambda: warploom.load("aos-to-soa", field=5), "no parameter 'field'"),
    "a sketch for a kernel": (
        lambda: warploom.load(sketched(RIGHT)),  # type: ignore[call-overload]
        "named by a text",
    ),
    "nothing to emulate": (lambda: warploom.emulate(None), "NoneType is no kernel"),
    "no device function": (lambda: warploom.device_function("aos-to-soa"), "no device function"),
    "a file to compile": (lambda: warploom.compile("x.swflow"), "a str cannot be compiled"),  # type: ignore[call-overload]
    "no element type": (
        lambda: warploom.compile(sketched(RIGHT), dtype="float"),
        "no element type",
    ),
    "complex numbers": (
        lambda: warploom.compile(sketched(RIGHT), dtype=np.complex64),  # type: ignore[call-overload]
        "no element type 'complex64'",
    ),
    "steps in a list": (
        lambda: warploom.compile(sketched(RIGHT), steps=[3]),  # type: ignore[call-overload]
        "numbers by input",
    ),
    "a step of nothing": (
        lambda: warploom.compile(sketched(RIGHT), steps={"q": 3}),
        "a step of 3 for 'q'",
    ),
    "no language": (
        lambda: warploom.compile(sketched(RIGHT)).text("metal"),
        "no language 'metal'",
    ),
    "no array": (lambda: warploom.compile(sketched(RIGHT))([1, 2]), "an array, not a list"),
    "no result": (lambda: transfer(None, sketched(RIGHT)), "not a NoneType"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_error_at_the_users_line(name: str) -> None:
    action, message = MISTAKES[name]
    with pytest.raises(WarploomError, match=message) as caught:
        action()
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__
    assert caught.value.advice


def test_what_looks_like_a_mistake_but_is_none() -> None:
    assert synthesize(sketched(RIGHT)).fills.count == 1
    s = Sketch("largest")
    s.fold("reshape", s.input("x", 4), shape=(1, 4), operator="max")
    s.goal(lambda x: [x.max()])
    assert synthesize(s).fills.count == 1
    assert np.array_equal(s.program().goals[0].shape, (1,))


def test_what_is_right_on_symbols_alone_is_impossible_as_it_is_for_solve() -> None:
    """A goal that computes something else on numbers: no fill is right, and the outcome says why
    (of warp sketches: tests/sketch/simt/test_accumulator.py)."""

    def two_faced(x: Any) -> list[Any]:
        on_symbols = type(x[0]).__name__ == "Sym"
        return [x[0] + x[1] if on_symbols else x[0] - x[1]]

    s = Sketch("sums")
    s.sum("reshape", s.hole("rots", s.input("x", 2), main=0, second=0, out=0), shape=(1, 2))
    s.goal(two_faced)
    found = synthesize(s)
    assert isinstance(found.outcome, Impossible)
    assert "right on symbols are wrong on numbers" in found.outcome.why
    assert (len(found.fills), found.fills.count) == (0, 0)
    assert found.verdict is Verdict.IMPOSSIBLE
    assert found.verdicts[0].on_numbers


def test_what_comes_back_prints_as_people_read_it() -> None:
    result = synthesize(sketched(RIGHT))
    assert str(result) == (
        "small: found, 1 fill, all there are; proved\n  s1  rot[shift=1]  x.flat[(x0 + 1) % 4]"
    )
    none = synthesize(sketched([0, 2, 1, 3]))
    assert str(none) == "small: impossible: no fill is equal to the goal under the laws used"
    assert str(none.outcome) == "impossible"
    assert str(Impossible("y[0] is wrong")) == "impossible: y[0] is wrong"
    assert str(Undecided(Reason.SECONDS)) == "undecided: time budget spent"


ADVISED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a device function": (
        lambda: warploom.load("inclusive-scan"),
        "'inclusive-scan' is a device function",
        "device_function('inclusive-scan')",
    ),
    "a word for registers": (
        lambda: warploom.convert_layout("foo", "mma_c()"),
        "no register layout is called 'foo'",
        "blocked([1, 4], [8, 4], [1, 1], [1, 0]), mma_a(2), mma_b(2), mma_c()",
    ),
    "a word for a pattern": (
        lambda: warploom.solve_layout("foo"),
        "no pattern is called 'foo'",
        "known are transpose, ",
    ),
    "rows that do not divide a warp": (
        lambda: warploom.solve_layout("transpose:24x40:f64"),
        "24 does not divide 32",
        "1, 2, 4, 8, 16 rows or a multiple of 32 would do",
    ),
    "columns that no step has": (
        lambda: warploom.solve_layout("transpose:16x33:f32"),
        "does not divide",
        "would do; accesses of any size are written in a FILE.toml",
    ),
}


@pytest.mark.parametrize("mistake", ADVISED)
def test_advice_says_what_would_work(mistake: str) -> None:
    call, message, advice = ADVISED[mistake]
    with pytest.raises(WarploomError) as caught:
        call()
    assert message in caught.value.message
    assert advice in caught.value.advice
