"""Conversions between register layouts: the fewest rounds, plans that bring every element."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.layout.cases import LOOPED
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.catalogue.conversion import wrong_results
from warploom.errors import WarploomError
from warploom.layout.conversion.convert import Conversion, convert, in_words, right
from warploom.layout.conversion.fragment import LANES, Fragment
from warploom.layout.conversion.parcels import coloured
from warploom.layout.conversion.schedule import schedule
from warploom.layout.conversion.shuffle import NOBODY, Wants, bound_of, moved, selection
from warploom.layout.conversion.staging import through
from warploom.layout.formats.fragment_bases import from_bases
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE

# Elements of a lane → rounds: own elements in order to every 32nd, and structures back again.
LEAST = {2: 2, 4: 4, 8: 8, 16: 16, 32: 31, 3: 3, 5: 5, 6: 6, 7: 7, 12: 12}


def ways(
    source: str, target: str, bytes_: int = 4, shape: tuple[int, ...] | None = None
) -> Conversion:
    one, two = read_fragment(source, shape), read_fragment(target, shape)
    return convert(one, two, bytes_, shared=False)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("count", LEAST)
def test_least_rounds_of_transpositions(count: int) -> None:
    own, striped = f"(32,{count}):({count},1)", f"(32,{count}):(1,32)"
    for one, two in ((own, striped), (striped, own)):
        plan = ways(one, two).shuffles
        assert plan is not None
        assert plan.rounds == plan.bound.rounds == LEAST[count]
        assert plan.proved


def test_eight_bit_results_to_operands_in_packed_words() -> None:
    plan = ways("mma_c()", "mma_a(4)", 1, (16, 32)).shuffles
    assert plan is not None
    assert plan.parts == 2  # pairs stay together, so a word is two of them
    assert plan.rounds == plan.bound.rounds == 4


def test_parts_of_words_that_are_passed_on_may_take_fewer_rounds() -> None:
    """4×4 halves among four lanes: straight ways take 3 rounds, and the bound says that it is about
    those; two rounds are enough if a word is packed again in between."""
    found = ways("((4,8),4):((4,16),1)", "((4,8),4):((1,16),4)", 2)
    assert found.shuffles is not None
    assert found.shuffles.rounds == found.shuffles.bound.rounds == 3
    assert found.shuffles.bound.why == "lane 0 must receive 3 words, each from who holds it"
    held, wanted = found.source.elements[0].copy(), found.target.elements[0]
    for bit in (2, 1):  # one word each: the two halves that the other lane's side wants
        sent = [[held[lane, r] for r in range(4) if r & bit != lane & bit] for lane in range(LANES)]
        for lane in range(LANES):
            held[lane, [r for r in range(4) if r & bit != lane & bit]] = sent[lane ^ bit]
    assert np.array_equal(held, wanted)
    whole = ways("(32,4):(4,1)", "(32,4):(1,32)").shuffles  # words are never packed
    assert whole is not None
    assert "holds" not in whole.bound.why


def test_half_results_are_operands() -> None:
    found = ways("mma_c()", "mma_a(2)", 2, (16, 16))
    assert found.chosen == "nothing"
    assert found.unit_bytes == 4


# What Triton 3.9 emits where it converts by shuffles.
TRITON: dict[tuple[str, str, int, tuple[int, ...]], int] = {
    ("blocked([1,1],[1,32],[1,1],[1,0])", "blocked([1,2],[2,16],[1,1],[1,0])", 4, (2, 32)): 2,
    ("mma_c()", "mma_a(4)", 1, (16, 32)): 4,
}


@pytest.mark.parametrize("case", TRITON)
def test_never_more_shuffles_than_triton(case: tuple[str, str, int, tuple[int, ...]]) -> None:
    plan = ways(*case).shuffles
    assert plan is not None
    assert plan.rounds <= TRITON[case]


def test_a_lane_that_keeps_half_of_what_it_has() -> None:
    """One register bit exchanged with one lane bit: half of the registers stay."""
    for bit, registers in product(range(5), (2, 4, 8)):
        lane = [[1 << b] for b in range(5)]
        register = [[32 << b] for b in range(registers.bit_length() - 1)]
        turned = [*lane]
        turned[bit], exchanged = register[0], [lane[bit], *register[1:]]
        one = read_fragment(f'{{"register": {register}, "lane": {lane}}}')
        two = read_fragment(f'{{"register": {exchanged}, "lane": {turned}}}')
        plan = convert(one, two, 4, shared=False).shuffles
        assert plan is not None
        assert plan.rounds == registers // 2 == plan.bound.rounds


def test_renames_and_selects() -> None:
    swapped = ways("(32,(2,2)):(4,(1,2))", "(32,(2,2)):(4,(2,1))")
    assert swapped.chosen == "renames"
    assert swapped.renames == (0, 2, 1, 3)
    # The upper half of the lanes has its registers the other way round.
    elements = np.arange(64).reshape(1, 32, 2)
    turned = np.where(np.arange(32)[None, :, None] < 16, elements, elements[:, :, ::-1])
    plan = convert(
        Fragment("a", (64,), elements), Fragment("b", (64,), turned), 4, shared=False
    ).shuffles
    assert plan is not None
    assert plan.rounds == 0
    assert plan.selects == 2


def test_everybody_wants_the_same() -> None:
    """One lane's offer serves all: a broadcast of one register is one round."""
    source = Fragment("own", (64,), np.arange(64).reshape(1, 32, 2))
    target = Fragment("all", (64,), np.full((1, 32, 1), 6))
    plan = convert(source, target, 4, shared=False).shuffles
    assert plan is not None
    assert plan.rounds == 1
    assert plan.proved


def test_elements_that_many_hold_come_from_any() -> None:
    held = np.arange(LANES)[:, None] % 4 * np.ones((1, 1), dtype=np.int64)
    wanted = (held + 1) % 4
    plan = schedule(Wants(held, wanted, 1))
    assert plan.rounds == 1
    assert right(plan, held, wanted)


def random_wants(draw: np.random.Generator, parts: int, replicated: bool) -> Wants:
    registers = int(draw.integers(1, 4)) * parts
    size = registers * LANES
    numbers = draw.permutation(size)
    if replicated:
        numbers = numbers % int(draw.integers(1, size + 1))
    held: Numbers = numbers.reshape(LANES, registers)
    wanted = draw.choice(held.ravel(), (LANES, parts), replicated)
    return Wants(held, np.where(draw.random(wanted.shape) < 0.1, IDLE, wanted), parts)


@examples(12)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4]), st.booleans())
def test_schedules_bring_what_is_wanted(seed: int, parts: int, replicated: bool) -> None:
    wants = random_wants(np.random.default_rng(seed), parts, replicated)
    plan = schedule(wants)
    after = moved(plan, wants.held.T).T
    assert ((after == wants.wanted) | (wants.wanted == IDLE)).all()
    assert plan.rounds >= bound_of(wants).rounds


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 31)), max_size=200))
def test_colours_are_as_many_as_the_largest_degree(edges: list[tuple[int, int]]) -> None:
    colours = coloured(edges)
    for side in (0, 1):
        ends = [(edge[side], colour) for edge, colour in zip(edges, colours, strict=True)]
        assert len(set(ends)) == len(ends)
    degrees = [sum(e[side] == n for e in edges) for side in (0, 1) for n in range(LANES)]
    assert max(colours, default=-1) + 1 == max(degrees)


def test_turning_registers_is_found() -> None:
    lanes, slots = np.arange(LANES), np.arange(8)[:, None]
    assert selection(slots ^ lanes % 8).by == "^"
    assert selection((slots + lanes) % 8).by == "+"
    assert selection((slots + lanes) % 8).selects == 24
    odd = np.where((slots + lanes) % 3 == 0, NOBODY, slots)
    assert selection(odd).by is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("source", "target", "bytes_", "shape"),
    [
        ("mma_c([2,1])", "blocked([1,4],[2,16],[2,1],[1,0])", 4, (32, 32)),
        ("blocked([1,8],[4,8],[4,1],[1,0])", "mma_a(2,[4,1])", 2, (64, 32)),
        ("blocked([1,3],[4,8],[1,1],[1,0])", "blocked([1,1],[8,4],[1,1],[0,1])", 4, (8, 24)),
        ("blocked([1,1],[1,32],[2,1],[1,0])", "blocked([1,2],[16,2],[1,2],[0,1])", 8, (16, 4)),
    ],
)
def test_through_shared_memory(
    source: str, target: str, bytes_: int, shape: tuple[int, ...]
) -> None:
    """Plans bring every element, in the wavefronts that the bound for every layout has."""
    found = convert(read_fragment(source, shape), read_fragment(target, shape), bytes_)
    assert found.shared is not None
    for way in (found.shared, found.matrices):
        if way is not None:
            after = through(way, found.target)
            wanted = found.target.elements
            assert ((after == wanted) | (wanted == IDLE)).all()
            assert way.answer.score.wavefronts == way.task.bound.wavefronts


def test_instructions_are_as_few_as_tritons() -> None:
    """Triton 3.9: 8 st.v4 and 8 ldmatrix.x4; 4 st.v4 and 4 ldmatrix.x4 of each warp."""
    rows, columns = "blocked([1,4],[4,8],[1,1],[1,0])", "blocked([4,1],[8,4],[1,1],[0,1])"
    found = convert(read_fragment(rows, (32, 32)), read_fragment(columns, (32, 32)), 4)
    assert found.matrices is not None
    assert found.matrices.instructions == 16
    assert found.matrices.wavefronts == 64


def test_words() -> None:
    one, two = read_fragment("mma_c()", (16, 32)), read_fragment("mma_a(4)", (16, 32))
    source, target, size = in_words(one, two, 1)
    assert (source.registers, target.registers, size) == (8, 8, 2)
    assert sorted(source.elements.ravel().tolist()) == list(range(256))
    assert in_words(one, one, 1)[2] == 4


def test_tiles_that_hang_over_and_wrap() -> None:
    over = read_fragment("blocked([1,4],[1,32],[1,1],[1,0])", (2, 24))
    assert int((over.elements != IDLE).sum()) == 48
    around = read_fragment("blocked([1,1],[2,16],[1,1],[1,0])", (2, 8))
    assert np.unique(around.elements, return_counts=True)[1].tolist() == [2] * 16


def test_triton_objects_are_the_names() -> None:
    parent = "NVMMADistributedLayout(version=[2, 0], warps_per_cta=[4, 1], instr_shape=[16, 8])"
    whole = "ctas_per_cga=None, cta_split_num=None, cta_order=None"  # as it prints
    for text, name in (
        (parent, "mma_c([4, 1])"),
        (f"{parent[:-1]}, {whole})", "mma_c([4, 1])"),
        (
            f"BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[4, 8], warps_per_cta=[4, 1], "
            f"order=[1, 0], {whole})",
            "blocked([1, 4], [4, 8], [4, 1], [1, 0])",
        ),
        (
            "BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[])",
            "blocked([1, 4], [4, 8], [4, 1], [1, 0])",
        ),
        (f"DotOperandLayout(operand_index=0, parent={parent}, k_width=2)", "mma_a(2, [4, 1])"),
        (f"DotOperandLayout(operand_index=1, parent={parent}, k_width=2)", "mma_b(2, [4, 1])"),
    ):
        one, two = read_fragment(text, (64, 64)), read_fragment(name, (64, 64))
        assert np.array_equal(one.elements, two.elements)
    # The bases that Triton prints for these fragments of 16×16.
    lanes = "[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]"
    bases = f'{{"register": [[0, 1], [8, 0], [0, 8]], "lane": {lanes}, "warp": []}}'
    for name in ("mma_c()", "mma_a(2)"):
        assert np.array_equal(read_fragment(bases).elements, read_fragment(name, (16, 16)).elements)


@pytest.mark.parametrize(
    ("text", "shape", "part"),
    [
        ("nonsense(3)", (4, 4), "no register layout is called 'nonsense'"),
        ("blocked([1,4],[8,4])", (32, 32), "warps_per_cta is missing"),
        ("blocked([1,4],[8,4],[1,1],[1,1])", (32, 32), "2 numbers of each kind"),
        ("blocked([1,4],[8,16],[1,1],[1,0])", (32, 32), "64 lanes"),
        ("blocked([1,4],[4,8],[4,1],[1,0],cga_layout=[[0,3]])", (32, 32), "at \\[24\\]"),
        (
            "blocked([1,4],[4,8],[4,1],[1,0],cga_layout=None,iteration=None)",
            (32, 32),
            "'iteration' in",
        ),
        ("mma_c()", None, "does not say the shape"),
        ("mma_c(__import__('os'))", (16, 8), "is not made of numbers"),
        ("mma_a(3)", (16, 16), "with 3 neighbours"),
        ("(33,4):(4,1)", None, "a multiple of 32"),
        ("(32,4):(4,1)", (4, 4), "names element 127 of 16"),
        ('{"lane": [[1], [2]]}', None, "2 bases of lanes"),
        ('{"lane": [[1], [2], [4], [8], [16]], "thread": []}', None, "bases of 'thread'"),
        ("x" * 50_000, None, "50000 letters"),
        ("BlockedLayout(" * 200, (4, 4), "is no register layout"),
    ],
)
def test_refused_texts(text: str, shape: tuple[int, ...] | None, part: str) -> None:
    with pytest.raises(WarploomError, match=part):
        read_fragment(text, shape)


TIMES = json.loads((Path(__file__).parents[2] / "bench/results/layout_convert.json").read_text())


@pytest.mark.parametrize(
    "case",
    [
        case if case[4][0] * case[4][1] <= 256 else pytest.param(case, marks=pytest.mark.slow)
        for case in LOOPED
    ],
)
def test_the_rule_takes_what_was_measured_to_be_fast(case: Any) -> None:
    """Within 3 % of the fastest way, by the times of an H200 that are kept."""
    name, source, target, size, shape, _ = case
    found = convert(read_fragment(source, shape), read_fragment(target, shape), size)
    (row,) = (row for row in TIMES["rows"] if row["name"] == name)
    times = {w: ns for w, ns in row["ns_with_8_warps"].items() if not w.startswith("triton")}
    assert times[found.chosen] <= 1.03 * min(times.values())


def test_refused_conversions() -> None:
    one, half = read_fragment("(32,2):(2,1)"), read_fragment("(32,1):(2,1)", (64,))
    with pytest.raises(WarploomError, match="no thread holds the element"):
        convert(half, one, 4)
    with pytest.raises(WarploomError, match="both are of one shape"):
        convert(one, read_fragment("(32,4):(4,1)"), 4)
    with pytest.raises(WarploomError, match="element of 3 bytes"):
        convert(one, one, 3)
    with pytest.raises(WarploomError, match="1 warps to 2"):
        convert(one, read_fragment("(64,1):(1,1)"), 4)


def test_the_rule_takes_what_a_block_has_room_for() -> None:
    """Shared memory was chosen though a block has not so much of it, where shuffles do."""
    one, other = "((32,16),16):((16,512),1)", "((32,16),16):((1,512),32)"
    found = convert(read_fragment(one), read_fragment(other), 8)
    assert found.costs["shared"] < found.costs["shuffles"]
    assert "it takes 65536 bytes" in found.refusal("shared")
    assert found.chosen == "shuffles"


# Triton's SwizzleTest, where warps have 32 lanes: its own swizzling has no conflicts there.
SWIZZLED: dict[str, tuple[int, tuple[int, int], tuple[Any, ...], tuple[Any, ...] | None]] = {
    "f8 128x128, rows to columns": (
        1, (128, 128),
        ([[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0]],
         [[0, 16], [0, 32], [0, 64], [4, 0], [8, 0]], [[16, 0], [32, 0], [64, 0]]),
        None,
    ),
    "bf16 16x16, rows to mma": (
        2, (16, 16),
        ([[0, 1], [0, 2], [0, 4]], [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], []),
        ([[0, 1], [8, 0], [0, 8]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], []),
    ),
    "f32 32x16, rows to columns": (
        4, (32, 16),
        ([[4, 0], [8, 0], [16, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], [[2, 0]]),
        ([[0, 2], [0, 4], [0, 8]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [[0, 1]]),
    ),
    "f16 128x128, columns to rows": (
        2, (128, 128),
        ([[1, 0], [2, 0], [4, 0], [0, 32], [0, 64]], [[8, 0], [16, 0], [32, 0], [64, 0], [0, 1]],
         [[0, 2], [0, 4], [0, 8], [0, 16]]),
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * ("128x128" in name)) for name in SWIZZLED],
)
def test_swizzles_of_tritons_own_tests_take_the_fewest_wavefronts(name: str) -> None:
    size, shape, source, given = SWIZZLED[name]
    names = ("register", "lane", "warp")
    turned = given or tuple([base[::-1] for base in each] for each in source)
    one, other = (
        from_bases(dict(zip(names, bases, strict=True)), shape) for bases in (source, turned)
    )
    found = convert(one, other, size)
    ways = [way for way in (found.shared, found.matrices) if way is not None]
    assert ways
    for way in ways:
        assert way.wavefronts == sum(way.task.bound.wavefronts)


def test_what_a_thread_holds_twice_is_loaded_once() -> None:
    """Operand B of mma on a tile of half its depth: each thread holds all of its elements twice."""
    source = read_fragment("blocked([1, 4], [4, 8], [4, 1], [1, 0])", (16, 64))
    target = read_fragment("mma_b(4, [1, 4])", (16, 64))
    found = convert(source, target, 1)
    for way, staging in (("shared", found.shared), ("matrices", found.matrices)):
        assert staging is not None
        moved = sum(len(step) for step in staging.load.registers) + len(staging.load.copies)
        assert moved == target.registers
        if way == "shared":
            assert staging.load.copies
            assert not wrong_results(found, way, "simulator")
    assert found.shared is not None
    assert found.shared.wavefronts == 32  # as Triton's own PTX takes


def test_a_register_that_nobody_stores_has_no_step() -> None:
    source = read_fragment('{"register": [[0], [1]], "lane": [[2], [4], [8], [16], [32]]}')
    target = read_fragment('{"register": [[32]], "lane": [[1], [2], [4], [8], [16]]}')
    found = convert(source, target, 4).shared
    assert found is not None
    assert sum(len(step) for step in found.store.registers) == 2
