"""Declarations: what they mean, how they print, and what is refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pytest
from tests.search import brute
from tests.search.nest import Dim, Inst
from tests.search.show_space import show_space

from warploom.errors import CheckError
from warploom.search.branching.candidate import decision
from warploom.search.branching.problem import SpaceProblem
from warploom.search.branching.tree import count_all
from warploom.search.outcome import Found
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space, amount
from warploom.search.space.evaluate import is_solution, violations
from warploom.search.space.ir import Sentence, Variable, every, iff, implies, some


def count(space: Space) -> int:
    """By search, which has to agree with brute force."""
    outcome = count_all(SpaceProblem(Propagator(space))).outcome
    found = outcome.answer if isinstance(outcome, Found) else 0
    assert found == len(brute.solutions(space))
    return found


# -- meaning --------------------------------------------------------------------------------------


def test_variables_stand_for_different_objects() -> None:
    space = Space("different")
    things = space.objects("things", "ab")
    kind = space.boolean("kind", things)
    x, y, z = things.each("x", "y", "z")
    space.require(kind(x).ne(kind(y)))  # of no object and itself
    space.require(kind(x).is_("TRUE") | kind(y).is_("TRUE") | kind(z).is_("TRUE"))  # no three
    assert count(space) == 2


def test_quantifiers() -> None:
    space = Space("quantifiers")
    things = space.objects("things", "abc")
    kind = space.boolean("kind", things)
    x, y = things.each("x", "y")
    space.require(iff(kind(x).is_("TRUE"), some(y, kind(y).is_("FALSE"))))
    assert count(space) == 3  # one is FALSE: it sees no other that is; two see it
    space = Space("quantifiers")
    things = space.objects("things", "abc")
    kind = space.boolean("kind", things)
    x, y = things.each("x", "y")
    space.require(implies(kind(x).is_("TRUE"), every(y, kind(y).is_("FALSE"))))
    assert count(space) == 4


def test_quantifiers_side_by_side_do_not_know_each_other() -> None:
    """Also where both run through rows of a relation whose other end is the same."""
    space = Space("side by side")
    nodes = space.objects("nodes", "abcd")
    edges = space.relation("edges", [("a", "b"), ("a", "c"), ("d", "b")])
    kind = space.boolean("kind", nodes)
    a, b = edges.row("a", "b")
    every_end = every(b, kind(b).is_("TRUE"))
    space.require(every_end | some(b, kind(b).is_("FALSE")))  # always
    assert count(space) == 16
    space.require(every_end | every(b, kind(b).is_("FALSE")))  # all ends of one start alike
    assert count(space) == 8
    space.require(kind(a).is_("TRUE"))
    assert count(space) == 2


def test_what_every_and_some_say_of_nothing() -> None:
    space = Space("alone")
    things = space.objects("things", "a")
    kind = space.boolean("kind", things)
    x, y = things.each("x", "y")
    space.require(every(y, kind(y).is_("FALSE")) & kind(x).is_("TRUE"))
    assert count(space) == 1
    space.require(kind(x).is_("FALSE") | some(y, kind(y).is_("TRUE")))
    assert count(space) == 0


def test_rows_of_a_relation_bind_variables_together() -> None:
    space = Space("edges")
    nodes = space.objects("nodes", "abcd")
    edges = space.relation("edges", [("a", "b"), ("b", "c")])
    kind = space.boolean("kind", nodes)
    a, b = edges.row("a", "b")
    space.require(kind(a).ne(kind(b)))
    assert count(space) == 4
    degree = space.total("degree", amount(1, kind(b).is_("TRUE")), per=a)
    space.require(degree(a) >= 1)
    assert count(space) == 0


def test_antisymmetric_choices_have_one_instance_for_two_directions() -> None:
    space = Space("order")
    things = space.objects("things", "abc")
    order = space.choice(
        "order", things, things, values="BEFORE AFTER", antisymmetric={"BEFORE": "AFTER"}
    )
    a, b, c = things.each("a", "b", "c")
    space.require(
        order(a, c).is_("AFTER") | order(a, b).is_not("AFTER") | order(b, c).is_not("AFTER")
    )
    assert len(order.instances) == 3
    assert count(space) == 6


def test_a_quotient_counts_classes() -> None:
    """Equivalences on four things: the representatives are as many as the classes."""
    space = Space("classes")
    things = space.objects("things", "abcd")
    same = space.choice("same", things, things, values="YES NO", symmetric=True)
    space.compose(same, {"YES": ("YES", "NO"), "NO": ("NO", "*")})
    kind = space.boolean("kind", things)
    d, e = things.each("d", "e")
    first = space.quotient("first", d, when=kind(d).is_("TRUE"), same=same(e, d).is_("YES"))
    classes = space.total("classes", amount(1, first(d).is_("TRUE")))
    space.require(classes() <= 1)
    total = 0
    for labels in itertools.product(range(4), repeat=4):
        if all(label <= max(labels[:at], default=-1) + 1 for at, label in enumerate(labels)):
            count_of = max(labels) + 1
            total += 1 + count_of  # no class fulfils the condition, or one does
    outcome = count_all(SpaceProblem(Propagator(space))).outcome
    assert outcome == Found(total, complete=True)


def test_a_quotient_may_have_an_order_of_its_own() -> None:
    space = Space("last")
    things = space.objects("things", "abc")
    same = space.choice("same", things, things, values="YES NO", symmetric=True)
    space.compose(same, {"YES": ("YES", "NO"), "NO": ("NO", "*")})
    d, e = things.each("d", "e")
    later = space.relation("later", [("b", "a"), ("c", "a"), ("c", "b")])
    first = space.quotient("first", d, when=things(d), same=same(e, d).is_("YES"), earlier=later)
    space.require(same(d, e).is_("YES"))
    propagator = Propagator(space)
    root = propagator.root()
    found = [propagator.domain(root, 0, first, item).values for item in "abc"]
    assert found == [("FALSE",), ("FALSE",), ("TRUE",)]


def test_counters_of_counters() -> None:
    space = Space("memory")
    regions = space.objects("regions", "rs")
    dims = space.objects("dims", "de")
    size = space.integer("size", dims, values=[2, 4])
    where = space.choice("mem_space", regions, values="GLOBAL SHARED")
    kept = space.relation("kept", [("r", "d"), ("s", "d"), ("s", "e")])
    base = space.number("base", {"r": 4, "s": 1})
    r, d = regions.one("r"), dims.one("d")
    bytes_of = space.product("mem_size", amount(size(d), kept(r, d)), per=r, base=base(r))
    used = space.total("shared_mem_used", amount(bytes_of(r), where(r).is_("SHARED")))
    space.require(used() <= 16)
    expected = 0
    for d_size, e_size in itertools.product((2, 4), repeat=2):
        for in_r, in_s in itertools.product((0, 1), repeat=2):
            expected += in_r * 4 * d_size + in_s * d_size * e_size <= 16
    assert count(space) == expected
    propagator = Propagator(space)
    both = [decision(where, (item,), "SHARED") for item in "rs"]
    root = propagator.root(both)
    assert propagator.domain(root, 0, size, "d").values == (2,)
    assert propagator.range(root, 0, bytes_of, "r") == (8, 8)
    assert propagator.range(root, 0, used) == (12, 16)


def test_a_choice_is_compared_with_a_counter() -> None:
    space = Space("compare")
    things = space.objects("things", "ab")
    size = space.integer("size", things, values={"a": [1, 2, 3], "b": [2, 5]})
    kind = space.boolean("kind", things)
    x, y = things.each("x", "y")
    total = space.total("total", amount(2, kind(y).is_("TRUE")))
    space.require(size(x) > total())
    space.require(total().ne(size(x)))
    expected = 0
    for a, b, k, m in itertools.product((1, 2, 3), (2, 5), (0, 2), (0, 2)):
        expected += a > k + m and b > k + m
    assert count(space) == expected


def test_inactive_objects_have_no_values_and_nothing_is_required_of_them() -> None:
    space = Space("optional")
    maybe = space.objects("maybe", "pq")
    active = space.flag("active", maybe)
    things = space.objects("things", "apq")
    kind = space.boolean("kind", things)
    order = space.choice("order", things, things, values="LT GT", antisymmetric={"LT": "GT"})
    x, y, m = things.one("x"), things.one("y"), maybe.one("m")
    space.require(kind(x).ne(kind(y)))  # two kinds: three active objects are too many
    weight = space.total("weight", amount(1, kind(x).is_("TRUE", "FALSE")))
    expected = {0: 2, 1: 2 * 2}  # number of others that are active: kinds × orders
    assert count(space) == expected[0] + 2 * expected[1]
    space.require(weight() >= 2)
    assert count(space) == 2 * expected[1]
    space.require(implies(active(m).is_("TRUE"), kind(m).is_("TRUE")))
    assert count(space) == 2 * 2
    space.require(active(m).is_("FALSE") | order(x, m).is_("LT"))
    assert count(space) == 2


def test_one_flag_governs_all_that_comes_and_goes_together() -> None:
    space = Space("lowering")
    owners = space.objects("temporaries", ["t", "u"])
    governed = space.relation("made for", [("t", "store"), ("t", "load"), ("u", "copy")])
    there = space.flag("there", owners, governed)
    made = space.objects("made", ["store", "load", "copy"])
    order = space.choice("order", made, made, values="LT GT", antisymmetric={"LT": "GT"})
    ways = {0: 1, 1: 1, 2: 2, 3: 8}  # orders of so many
    assert count(space) == ways[0] + ways[1] + ways[2] + ways[3]
    t, x = governed.row("t", "x")
    space.require(implies(there(t).is_("TRUE"), order(x, made.one("y")).is_("LT", "GT")))
    assert count(space) == sum(ways.values())
    propagator = Propagator(space)
    root = propagator.root([decision(order, ("store", "copy"), "LT")])
    assert propagator.domain(root, 0, there, "t").values == ("TRUE",)
    assert propagator.domain(root, 0, there, "u").values == ("TRUE",)
    assert not propagator.domain(root, 0, order, "load", "copy").may_be_absent


def test_a_flag_follows_from_a_choice() -> None:
    """What lowering adds is there exactly where it is needed."""
    space = Space("lowering")
    stores = space.objects("stores", ["store"])
    active = space.flag("active", stores)
    values = space.objects("values", ["v"])
    where = space.choice("where", values, values="REGISTER MEMORY")
    cache = space.choice("cache", stores, values="L1 L2 NONE")
    s, v = stores.one("s"), values.one("v")
    space.require(iff(where(v).is_("MEMORY"), active(s).is_("TRUE")))
    assert count(space) == 1 + 3
    propagator = Propagator(space)
    root = propagator.root([decision(where, ("v",), "REGISTER")])
    left = propagator.domain(root, 0, cache, "store")
    assert (left.values, left.may_be_absent, left.is_decided) == ((), True, True)
    root = propagator.root([decision(cache, ("store",), "L2")])
    assert propagator.domain(root, 0, where, "v").values == ("MEMORY",)


def test_large_products_do_not_overflow() -> None:
    space = Space("large")
    dims = space.objects("dims", [f"d{n}" for n in range(40)])
    size = space.integer("size", dims, values=[1, 1024])
    d = dims.one("d")
    whole = space.product("whole", amount(size(d)))
    space.require(whole() <= 1 << 20)
    propagator = Propagator(space)
    assert propagator.range(propagator.root(), 0, whole) == (1, 1 << 20)
    root = propagator.root([decision(size, (f"d{n}",), 1024) for n in (3, 7)])
    assert propagator.domain(root, 0, size, "d0").values == (1,)
    assert not len(propagator.root([decision(size, (f"d{n}",), 1024) for n in range(9)]))


def test_violations_are_named() -> None:
    space = Space("named")
    things = space.objects("things", "ab")
    kind = space.boolean("kind", things)
    x, y = things.each("x", "y")
    space.require(kind(x).eq(kind(y)), "all alike")
    wrong: dict[tuple[str, tuple[Hashable, ...]], str] = {
        ("kind", ("a",)): "TRUE",
        ("kind", ("b",)): "FALSE",
    }
    assert list(violations(space, wrong)) == ["all alike"]
    assert is_solution(space, dict.fromkeys(wrong, "TRUE"))
    assert list(violations(space, {**wrong, ("kind", ("a",)): None})) != []


# -- text -----------------------------------------------------------------------------------------


def test_a_space_prints_like_the_listings() -> None:
    space = Space("example")
    dims = space.objects("dims", "ab")
    static = space.objects("static", "a")
    order = space.choice(
        "order", dims, dims, values="BEFORE AFTER MERGED", antisymmetric={"BEFORE": "AFTER"}
    )
    size = space.integer("size", dims, values=[2, 4])
    d, e = dims.each("d", "e")
    threads = space.product("threads", amount(size(d), order(d, e).is_("MERGED") & static(d)))
    space.require(implies(static(d), order(d, e).is_not("MERGED")), "apart")
    space.require(threads() <= 4)
    space.require(some(e, size(e).eq(2)))
    assert show_space(space).splitlines() == [
        "space example",
        "set dims: 2 of 1",
        "set static: 1 of 1",
        "choice order(dims, dims): BEFORE | AFTER | MERGED  # antisymmetric: BEFORE -> AFTER",
        "choice size(dims): 2 | 4",
        "counter threads(): product of 1; forall d in dims, e in dims: "
        "size(d) when (order(d, e) is MERGED && static(d))",
        "require forall d in dims, e in dims: "
        "(not static(d) || order(d, e) is BEFORE | AFTER)  # apart",
        "require threads() <= 4  # constraint 2",
        "require some e in dims: size(e) == 2  # constraint 3",
    ]


def test_the_declaration_in_the_docs_is_one() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "spaces.md").read_text()
    code = re.split(r"```(?:python|text)\n", text)[1].split("```")[0]
    dims = [Dim("d", (512,)), Dim("e", (2, 4)), Dim("f")]
    names: dict[str, Any] = {
        "dims": dims,
        "instructions": [Inst("i", ())],
        "Space": Space,
        "amount": amount,
    }
    exec(code, names)
    propagator = Propagator(names["space"])
    threads = [decision(names["kind"], (dim,), "THREAD") for dim in dims[:2]]
    root = propagator.root([*threads, decision(names["order"], (dims[0], dims[1]), "OUTER")])
    assert propagator.domain(root, 0, names["size"], dims[1]).values == (2,)


# -- refusals -------------------------------------------------------------------------------------


class Small:
    """A space with one of everything, to be misused."""

    def __init__(self) -> None:
        self.space = Space("small")
        self.things = self.space.objects("things", "abc")
        self.others = self.space.objects("others", "pq")
        self.linked = self.space.relation("linked", [("a", "b"), ("b", "c")])
        self.kind = self.space.choice("kind", self.things, values="X Y")
        self.size = self.space.integer("size", self.things, values=[1, 2])
        self.zero = self.space.integer("zero", self.things, values=[0, 2])
        self.pair = self.space.choice("pair", self.things, self.things, values="X Y")
        self.total = self.space.total("total", amount(1, self.kind(self.x()).is_("X")))

    def x(self) -> Variable:
        return self.things.one("x")


MISUSES: dict[str, Callable[[Small], object]] = {
    "is taken": lambda s: s.space.objects("kind", "ab"),
    "called": lambda s: s.space.objects("more", [1, "1"]),
    "twice": lambda s: s.space.objects("more", "aa"),
    "differ in length": lambda s: s.space.relation("more", [("a",), ("a", "b")]),
    "keys of": lambda s: s.space.number("more", {"a": 1, ("a", "b"): 2}),
    "not a value": lambda s: s.kind(s.x()).is_("Z"),
    "takes 1 variables": lambda s: s.kind(s.x(), s.x()),
    "tuples of 2": lambda s: s.linked.one("a"),
    "is not a sentence": lambda s: s.space.require(s.kind(s.x()) == "X"),  # type: ignore[arg-type,comparison-overlap]
    "are not numbers": lambda s: s.kind(s.x()) <= 3,
    "cannot compare": lambda s: s.size(s.x()) <= "3",  # type: ignore[operator]
    "63 values": lambda s: s.space.integer("more", s.things, values=range(63)),
    "lists no values": lambda s: s.space.integer("more", s.things, values={"a": [1]}),
    "between two objects": lambda s: s.space.choice(
        "more", s.things, s.others, values="A B", symmetric=True
    ),
    "not pairs": lambda s: s.space.choice(
        "more", s.things, s.things, values="A B C", antisymmetric={"A": "B", "B": "C"}
    ),
    "cannot be composed": lambda s: s.space.compose(s.pair, {"X": "**", "Y": "**"}),
    "counts 0": lambda s: s.space.product("more", amount(s.zero(s.x()))),
    "counts -1": lambda s: s.space.total("more", amount(-1)),
    "no numbers to count": lambda s: s.space.total("more", amount(s.kind(s.x()))),
    "conjunction": lambda s: s.space.total(
        "more", amount(1, s.kind(s.x()).is_("X") | s.size(s.x()).eq(1))
    ),
    "on no counter": lambda s: s.space.total("more", amount(1, s.total() <= 3)),
    "depends on what is counted": lambda s: s.space.total("more", base=s.size(s.x())),
    "used outside": lambda s: s.space.require(_bound_twice(s)),
    "ask one choice": lambda s: s.space.require(
        _some(s, lambda x: s.kind(x).is_("X") & s.size(x).eq(1))
    ),
    "may not hold another": lambda s: s.space.require(
        _some(s, lambda x: _some(s, lambda y: s.kind(y).is_("X")))
    ),
    "rows? of": lambda s: s.space.table([s.kind(s.x())], [("X", "Y")]),
    "integers of at least": lambda s: s.space.equal_product(s.zero(s.x()), s.size(s.x())),
    "one other variable": lambda s: _lonely_quotient(s),
    "became optional": lambda s: s.space.flag("more", s.things),
    "two of its flags": lambda s: s.space.flag(
        "more", s.things, s.space.relation("owned", [("x", "new"), ("y", "new")])
    ),
}


def _lonely_quotient(small: Small) -> object:
    x = small.x()
    alike = small.kind(x).is_("X")
    return small.space.quotient("more", x, when=alike, same=alike)


def _some(small: Small, body: Callable[[Variable], Sentence]) -> Sentence:
    x = small.x()
    return some(x, body(x))


def _bound_twice(small: Small) -> Sentence:
    x = small.x()
    return some(x, small.kind(x).is_("X")) | small.size(x).eq(1)


@pytest.mark.parametrize("message", MISUSES)
def test_misuse_is_refused(message: str) -> None:
    with pytest.raises(CheckError, match=message):
        MISUSES[message](Small())


COMPILED: dict[str, Callable[[Small], object]] = {
    "not made for": lambda s: s.space.require(s.kind(s.others.one("o")).is_("X")),
    "not known for": lambda s: s.space.require(
        s.size(s.x()) <= s.space.number("limit", {"a": 1})(s.x())
    ),
    "beyond 2\\*\\*52": lambda s: s.space.require(s.total() <= 1 << 53),
    "may both exceed": lambda s: _large_counters(s),
    "in both directions": lambda s: _turned_table(s),
    "combinations": lambda s: _many_factors(s),
    "which may be inactive": lambda s: _inactive_unasked(s),
}


def _large_counters(small: Small) -> None:
    large, other = (
        small.space.product(name, *[amount(small.size(small.x()))] * 30) for name in ("n", "m")
    )
    small.space.require(large() <= other())


def _turned_table(small: Small) -> None:
    choice = small.space.choice("turned", small.things, small.things, values="A B", symmetric=True)
    x, y = small.things.each("x", "y")
    small.space.table([choice(x, y)], [("A",)])


def _many_factors(small: Small) -> None:
    parts = small.space.objects("parts", [f"n{n}" for n in range(20)])
    size = small.space.integer("factor", parts, values=[1, 2])
    whole = small.space.integer("whole", small.others, values=[1 << 20])
    small.space.equal_product(whole(small.others.one("w")), size(parts.one("p")))


def _inactive_unasked(small: Small) -> None:
    maybe = small.space.objects("maybe", ["m"])
    small.space.flag("there", maybe)
    x, y = small.x(), maybe.one("y")
    small.space.require(some((x, y), small.kind(x).is_("X")))


@pytest.mark.parametrize("message", COMPILED)
def test_what_only_the_compiler_sees_is_refused(message: str) -> None:
    small = Small()
    COMPILED[message](small)
    with pytest.raises(CheckError, match=message):
        Propagator(small.space)


def test_a_sentence_has_no_truth_value() -> None:
    small = Small()
    with pytest.raises(TypeError, match="no truth value"):
        assert small.kind(small.x()).is_("X")


# -- edges ----------------------------------------------------------------------------------------


def test_spaces_of_nothing() -> None:
    space = Space("nothing")
    assert count(space) == 1
    nobody = space.objects("nobody", [])
    kind = space.boolean("kind", nobody)
    x, y = nobody.each("x", "y")
    space.require(kind(x).eq(kind(y)))
    total = space.total("total", amount(1, kind(x).is_("TRUE")))
    space.require(total() <= 0)
    assert count(space) == 1
    space.require(some(x, kind(x).is_("TRUE")))
    assert count(space) == 0


def test_a_choice_of_nothing_is_impossible() -> None:
    space = Space("no size")
    things = space.objects("things", "ab")
    space.integer("size", things, values={"a": [1], "b": []})
    assert count(space) == 0


def test_one_object_has_no_pairs() -> None:
    space = Space("alone")
    things = space.objects("things", "a")
    order = space.choice("order", things, things, values="LT GT", antisymmetric={"LT": "GT"})
    space.compose(order, {"LT": ("LT", "*"), "GT": ("*", "GT")})
    x, y = things.each("x", "y")
    space.require(order(x, y).is_("LT"))
    assert count(space) == 1


def test_contradictions_without_choices() -> None:
    space = Space("facts")
    things = space.objects("things", "ab")
    limit = space.number("limit", {"a": 1, "b": 2})
    x = things.one("x")
    space.require(limit(x) <= 2)
    assert count(space) == 1
    space.require(limit(x) <= 1)
    assert count(space) == 0


def test_sixty_two_values_and_large_numbers() -> None:
    space = Space("wide")
    things = space.objects("things", "ab")
    size = space.integer("size", things, values=[(1 << 31) + n for n in range(62)])
    x, y = things.each("x", "y")
    space.require(implies(things(x), size(x).eq(size(y))))
    total = space.total("total", amount(size(x)))
    space.require(total() >= (1 << 32) + 118)
    propagator = Propagator(space)
    root = propagator.root()
    # Equal sizes would be 59 or more; the range of the sum alone says 57.
    assert min(propagator.domain(root, 0, size, "a").values) == (1 << 31) + 57
    assert count_all(SpaceProblem(propagator)).outcome == Found(3, complete=True)
