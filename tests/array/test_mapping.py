"""Constraints on mappings: the published figures, the published examples, and what is unsound."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from bench.common.narrowed import answer
from tests.array.fixture import convolution_maps
from tests.array.listings import listing_1, listing_3

from warploom.array import build as al
from warploom.array.language.ir import Program, Term
from warploom.array.language.op import SpaceName
from warploom.array.mapping.constraint import GLOBAL, PARALLEL, RUNS, Constraints, broken
from warploom.array.mapping.fusion import Fusion
from warploom.array.mapping.released import released
from warploom.array.mapping.solve import all_mappings, as_assignment, count_mappings
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import MapNode, MapTree, Shared, map_trees
from warploom.array.plan.plan import plan
from warploom.array.types import array
from warploom.index.ir import Const
from warploom.kernel.dtype import i32
from warploom.search.outcome import Found, Impossible


def tree_of(program: Program) -> MapTree:
    (tree,) = map_trees(plan(program))
    return tree


def mappings(constraints: Constraints) -> set[tuple[str, ...]]:
    outcome = all_mappings(constraints).outcome
    if isinstance(outcome, Impossible):
        return set()
    assert isinstance(outcome, Found)
    assert outcome.complete
    rows = [tuple(as_assignment(constraints, row).values()) for row in outcome.answer]
    assert len(set(rows)) == len(rows)
    return set(rows)


# -- the published figures -------------------------------------------------------------------------


def test_table_4() -> None:
    constraints = released(convolution_maps(), "none")
    assert constraints.by_kind == {
        "private memory": 32,
        "shared memory": 13,
        "duplicate scheduling": 34,
        "dimensionality": 1,
        "hierarchy": 34,
        "exhaustive": 9,
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("fusion", "count"), [("coded", 41_094), ("intended", 45_162), ("private", 66_816)]
)
def test_published_counts(fusion: Fusion, count: int) -> None:
    result = count_mappings(released(convolution_maps(), fusion))
    assert result.outcome == Found(count, complete=True)


def test_eleven_maps_may_be_parallel() -> None:
    tree = convolution_maps()
    assert len(tree.maps) == 43
    assert len(tree.chains) == 9
    free = [each.number for each in tree.maps if not each.uses("private")]
    assert free == [*range(8), 36, 37, 38]
    assert tree.nests[:3] == ((1, 2), (4, 5), (6, 7))


@pytest.mark.slow
def test_cp_sat_finds_the_published_mappings() -> None:
    pytest.importorskip("ortools")
    from bench.common.array.cpsat import solve_by_cpsat

    counts: dict[Fusion, int] = {"coded": 41_094, "intended": 45_162, "private": 66_816}
    for fusion, count in counts.items():
        constraints = released(convolution_maps(), fusion)
        outcome = solve_by_cpsat(constraints)
        assert isinstance(outcome, Found)
        assert outcome.complete
        assert len(outcome.answer) == count
        by_search = answer(all_mappings(constraints).outcome)
        assert set(map(bytes, outcome.answer)) == set(map(bytes, by_search))


# -- the published examples ------------------------------------------------------------------------

SPACES: tuple[SpaceName, ...] = ("global", "global", "local", "private")
TABLE_1 = {  # loops A B C D E
    "M1": ("g0", "seq", "seq", "seq", "seq"),
    "M2": ("g1", "g0", "seq", "g0", "seq"),
    "M3": ("seq", "w0", "l0", "w0", "l0"),
    "M4": ("w0", "l0", "seq", "l0", "seq"),
    "M5": ("w0", "l0", "seq", "l0", "vector"),
    "M6": ("w0", "l0", "vector", "seq", "l0"),
}


def accepted(program: Program) -> set[str]:
    """Which of the six the sound rules allow; and the enumeration says the same."""
    constraints = sound(tree_of(program))
    found = {
        name for name, runs in TABLE_1.items() if not broken(constraints, dict(enumerate(runs)))
    }
    every = mappings(constraints)
    assert {name for name, runs in TABLE_1.items() if runs in every} == found
    return found


def test_table_1() -> None:
    assert accepted(listing_1(al.to_local)) == {"M4", "M6"}
    # M6 reads what it wrote, transposed: each thread has its own column in registers.
    assert accepted(listing_1(al.to_private)) == {"M1", "M6"}
    # Through global memory groups would have to wait for each other in M2 and M3.
    assert accepted(listing_1(al.to_global)) == {"M1", "M4", "M6"}


def test_why_a_mapping_is_refused() -> None:
    constraints = sound(tree_of(listing_1()))
    kinds = lambda name: {c.kind for c in broken(constraints, dict(enumerate(TABLE_1[name])))}  # noqa: E731
    assert kinds("M3") >= {"shared memory"}
    assert kinds("M1") == {"shared memory"}
    assert kinds("M5") == {"choice"}
    across = sound(tree_of(listing_1(al.to_global)))
    found = broken(across, dict(enumerate(TABLE_1["M2"])))
    assert {each.kind for each in found} == {"global memory"}


def test_the_illegal_mapping_of_section_4_3() -> None:
    """Maps A B C D of listing 3; a plan counts A C D B."""
    tree = tree_of(listing_3())
    illegal = {0: "g1", 1: "g0", 2: "seq", 3: "g0"}
    legal = {0: "w0", 1: "l0", 2: "seq", 3: "l0"}
    for rules in (sound, released):
        assert broken(rules(tree, "none"), illegal)
        assert not broken(rules(tree, "none"), legal)


def test_groups_do_not_exchange_through_global_memory() -> None:
    tree = tree_of(listing_3(al.to_global))
    crossing = {0: "g1", 1: "g0", 2: "seq", 3: "g0"}
    assert not broken(released(tree, "none"), crossing)  # nobody notices
    assert {each.kind for each in broken(sound(tree), crossing)} == {"global memory"}
    groups = {0: "seq", 1: "w0", 2: "l0", 3: "w0"}
    assert broken(sound(tree), groups)


# -- what the published rules miss -----------------------------------------------------------------


def test_a_lone_map_at_the_top() -> None:
    x = array(i32, 8)
    alone = sound(tree_of(al.program("p", lambda x: al.map_(lambda v: v + 1, x), x=x)))
    assert mappings(alone) == {("seq",), ("vector",), ("g0",), ("g1",), ("g2",)}


def test_a_write_outside_of_all_maps_allows_no_parallel_one() -> None:
    """Every thread would write what all see."""

    def body(x: Term) -> Term:
        first = al.to_local(al.copy(al.element(0, x)))
        return al.let(first, lambda f: al.map_(lambda v: v + f, x))

    tree = tree_of(al.program("p", body, x=array(i32, 8)))
    assert () in tree.stores
    assert mappings(sound(tree)) == {("seq",), ("vector",)}
    assert len(mappings(released(tree))) > 2  # leaf maps alone do not tell


def test_a_reduction_alone_has_one_mapping() -> None:
    total = al.program("p", lambda x: al.reduce(lambda s, v: s + v, 0, x), x=array(i32, 8))
    assert tree_of(total).stores == ((),)
    assert mappings(sound(tree_of(total))) == {()}


def test_captured_values_count() -> None:
    """A private value used inside a map that neither takes nor returns it."""

    def body(row: Term) -> Term:
        own = al.copy(al.element(0, row)) * 3
        return al.let(own, lambda p: al.map_(lambda v: v * p, row))

    tree = tree_of(al.program("p", lambda x: al.map_(body, x), x=array(i32, 4, 8)))
    parallel = {0: "w0", 1: "l0"}
    assert tree.node(1).reads == {"global"}
    assert not broken(released(tree, "none"), parallel)
    assert {each.kind for each in broken(sound(tree), parallel)} == {"private memory"}


def test_levels_that_the_user_chose() -> None:
    rows = array(i32, 4, 8)
    chosen = al.program(
        "p",
        lambda x: al.map_group(0, lambda r: al.map_local(0, lambda v: v + 1, r), x),
        x=rows,
    )
    assert mappings(sound(tree_of(chosen))) == {("w0", "l0")}
    wrong = al.program(
        "p", lambda x: al.map_local(0, lambda r: al.map_local(0, lambda v: v + 1, r), x), x=rows
    )
    assert mappings(sound(tree_of(wrong))) == set()


# -- against trying everything ---------------------------------------------------------------------


def released_by_hand(tree: MapTree, runs: dict[int, str]) -> bool:
    """The rules of the released code, read off their description one after another."""
    used = set(runs.values())
    for each in tree.maps:
        run, outer = runs[each.number], [runs[o] for o in tree.outer[each.number]]
        if run == "fused" and not each.perfect:
            return False
        if run == "vector":
            return False
        if "private" in each.writes | each.reads and run in PARALLEL:
            return False
        if "local" in each.writes | each.reads:
            groups = [o for o in outer if o[0] == "w"]
            if run[0] in "wg" or not groups or {u for u in used if u[0] == "w"} - set(groups):
                return False
        for o in outer:
            same = o in PARALLEL and o == run
            if same or (o[0] == "l" and run[0] == "w" and o[1:] == run[1:]):
                return False
    if {u[1] for u in used if u[0] == "l"} != {u[1] for u in used if u[0] == "w"}:
        return False
    if used & set(GLOBAL) and used & set(PARALLEL) - set(GLOBAL):
        return False
    chains = [chain for chain in tree.chains if len(chain) > 1]
    return all(used & set(PARALLEL) <= {runs[m] for m in chain} for chain in chains)


def random_space(random: Random) -> frozenset[SpaceName]:
    return frozenset([random.choice(SPACES)])


def random_tree(random: Random, size: int) -> MapTree:
    nodes: list[MapNode] = []
    for number in range(size):
        parent = None if not number else random.choice([None, *range(number)] + [number - 1] * 3)
        only = parent is not None and all(each.parent != parent for each in nodes)
        nodes.append(
            MapNode(
                number,
                parent,
                Const(4),
                random_space(random),
                random_space(random),
                only and random.random() < 0.5,
            )
        )
    return MapTree(tuple(nodes), tuple(random_buffers(random, nodes)), ())


def random_buffers(random: Random, nodes: list[MapNode]) -> list[Shared]:
    tree = MapTree(tuple(nodes))
    chains = [(*tree.outer[each.number], each.number) for each in nodes]
    found = []
    for at in range(random.randrange(3)):
        write, read = random.choice(chains), random.choice(chains)
        scope = tuple(a for a, b in zip(write, read, strict=False) if a == b)
        scope = scope[: random.randrange(len(scope) + 1)]
        space: SpaceName = random.choice(["local", "private", "global"])
        found.append(Shared(f"b{at}", space, scope, (write,), (read,)))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_released_rules_against_trying_everything(seed: int) -> None:
    tree = random_tree(Random(seed), 4)
    constraints = released(tree, "none")
    few = ("seq", "fused", "l0", "l1", "w0", "w1", "g0")
    wanted = set()
    for runs in product(few, repeat=4):
        by_number = dict(enumerate(runs))
        right = released_by_hand(tree, by_number)
        assert right == (not broken(constraints, by_number)), runs
        if right:
            wanted.add(runs)
    assert {runs for runs in mappings(constraints) if set(runs) <= set(few)} == wanted


def sound_by_hand(tree: MapTree, runs: dict[int, str]) -> bool:
    """Who touches what, thought of as threads: rules by buffers and by writes."""
    used = set(runs.values()) & set(PARALLEL)
    for each in tree.maps:
        run, outer = runs[each.number], [runs[o] for o in tree.outer[each.number]]
        if (run == "fused" and not each.perfect) or (run == "vector" and not each.consecutive):
            return False
        if run in PARALLEL and run in outer:
            return False
        if run[0] == "w" and "l" + run[1:] in outer:
            return False
    threads, groups = ({u[1] for u in used if u[0] == letter} for letter in "lw")
    if not threads <= groups or (groups and not threads):
        return False
    if used & set(GLOBAL) and used - set(GLOBAL):
        return False
    for buffer in tree.buffers:
        between = {m for chain in buffer.accesses for m in chain[len(buffer.scope) :]}
        letters = {runs[m][0] for m in between if runs[m] in PARALLEL}
        if letters & ({"l", "w", "g"} if buffer.space == "private" else {"w", "g"}):
            return False
        if buffer.space == "local":
            around = {runs[m] for m in buffer.scope}
            if used & set(GLOBAL) or {u for u in used if u[0] == "w"} - around:
                return False
    return all(used <= {runs[m] for m in chain} for chain in tree.stores)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_sound_rules_against_trying_everything(seed: int) -> None:
    random = Random(100 + seed)
    made = random_tree(random, 4)
    chains = [(*made.outer[each.number], each.number) for each in made.maps]
    stores = tuple(dict.fromkeys(random.choice(chains) for _ in range(2)))
    tree = MapTree(made.maps, made.buffers, stores)
    constraints = sound(tree)
    few = ("seq", "fused", "vector", "l0", "l1", "w0", "w1", "g0")
    wanted = {runs for runs in product(few, repeat=4) if sound_by_hand(tree, dict(enumerate(runs)))}
    assert {runs for runs in mappings(constraints) if set(runs) <= set(few)} == wanted


@pytest.mark.parametrize("program", [listing_1(), listing_1(al.to_private), listing_3()])
def test_cp_sat_finds_the_same_mappings(program: Program) -> None:
    pytest.importorskip("ortools")
    from bench.common.array.cpsat import solve_by_cpsat

    tree = tree_of(program)
    for constraints in (sound(tree), sound(tree, "intended"), released(tree)):
        outcome = solve_by_cpsat(constraints)
        assert isinstance(outcome, Found)
        rows = {tuple(RUNS[at] for at in row) for row in outcome.answer}
        assert rows == mappings(constraints)
