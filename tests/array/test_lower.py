"""Whatever a mapping is, its kernels compute what the expression means, and race with nobody."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from tests.array.generate import Generator, random_type, random_value
from tests.array.listings import listing_1
from tests.array.mapped import lifted, random_candidate, run_candidate, same
from tests.sampled import rounds

from warploom import emit
from warploom.array import build as al
from warploom.array import workload
from warploom.array.code.program import Candidate, compile_candidate
from warploom.array.code.spread import Spread
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Program, Term
from warploom.array.plan.plan import as_stored, plan
from warploom.array.recipe import convolution as conv
from warploom.array.recipe import matmul as product
from warploom.array.recipe import stencil as tiles
from warploom.array.types import array
from warploom.errors import CheckError, UnsupportedError
from warploom.kernel.dtype import f32, i32
from warploom.kernel.ir import Barrier, Load, Registers, Shared, Stmt, Store, walk
from warploom.runtime.host import HostFunction


def check_random(seed: int, count: int) -> int:
    """How many mappings of a random expression were tried."""
    generator = Generator(seed)
    body = generator.term(random_type(generator.random), 3)
    program = Program("random", tuple(generator.inputs), body)
    values = [random_value(np.random.default_rng(seed), each.type) for each in program.inputs]
    wanted = evaluate(program, *values)
    try:
        made = plan(program)
    except UnsupportedError:  # what plans refuse is tested in test_plan.py
        return 0
    if as_stored(body.type) is not body.type:
        wanted = lifted(wanted)
    random = Random(seed)
    for _ in range(count):
        candidate = random_candidate(made, random)
        _, found = run_candidate(made, candidate, *values)
        assert same(found, wanted), (seed, candidate)
    return count


def test_random_expressions_and_mappings() -> None:
    count = rounds(40)
    assert sum(check_random(seed, 1) for seed in range(count)) > 0.85 * count


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1600, 50))
def test_many_random_expressions_and_mappings(first: int) -> None:
    assert sum(check_random(seed, 3) for seed in range(first, first + 50)) > 130


def integers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.int32)


def rows_in_local_memory(x: Term) -> Term:
    """Each row is doubled into local memory and read backwards."""
    doubled = al.to_local(al.map_local(0, lambda v: v * 2, x))
    return al.map_local(0, lambda v: v + 1, al.reverse(doubled))


def test_local_memory_has_barriers_both_ways() -> None:
    """Rows one after another: the buffer is written again only when nobody reads it any more."""
    program = al.program(
        "rows",
        lambda x: al.map_group(0, lambda b: al.map_sequential(rows_in_local_memory, b), x),
        x=array(i32, 2, 3, 10),
    )
    made, x = plan(program), integers((2, 3, 10))
    spread = Spread({0: "w0", 1: "seq", 2: "l0", 3: "l0"}, (4, 1, 1))
    compiled, found = run_candidate(made, Candidate({}, (spread,)), x)
    assert (found == x[:, :, ::-1] * 2 + 1).all()
    body = list(walk(compiled.kernels[0].body))
    assert sum(isinstance(each, Barrier) for each in body) == 2
    assert [each.size for each in _shared(body)] == [10]


def _shared(body: list[Stmt]) -> list[Shared]:
    return [each for each in body if isinstance(each, Shared)]


def test_a_mapping_that_breaks_a_rule_is_refused() -> None:
    made = plan(listing_1(al.to_local))
    runs = dict(enumerate(("g1", "g0", "seq", "g0", "seq")))
    with pytest.raises(CheckError, match="shared memory"):
        compile_candidate(made, Candidate({"i": 3, "j": 5, "k": 8}, (Spread(runs),)))


def test_registers_are_spread_over_threads() -> None:
    """M6 with a private buffer: each thread has the elements of its own iterations in registers."""
    made = plan(listing_1(al.to_private))
    x = integers((2, 5, 4))
    runs = dict(enumerate(("w0", "l0", "seq", "seq", "l0")))
    candidate = Candidate({"i": 2, "j": 5, "k": 4}, (Spread(runs, (3, 1, 1)),))
    compiled, found = run_candidate(made, candidate, x)
    assert (found == x * 2 + 1).all()
    body = list(walk(compiled.kernels[0].body))
    rows = [each.size for each in body if isinstance(each, Registers) and each.size]
    assert rows == [2 * 4]  # two of the five rows at most
    assert not any(isinstance(each, Barrier | Shared) for each in body)


def test_vectors_are_wide_where_all_begin_at_multiples() -> None:
    def widths(size: int) -> set[int]:
        program = al.program(
            "twice",
            lambda x: al.map_group(0, lambda r: al.map_local(
                0, lambda q: al.map_vector(lambda v: v * 2, q), al.split(size, r)), x),
            x=array(f32, 3, 24),
        )  # fmt: skip
        made = plan(program)
        runs = {0: "w0", 1: "l0", 2: "vector"}
        x = np.random.default_rng(1).random((3, 24)).astype(np.float32)
        candidate = Candidate({}, (Spread(runs, (2, 1, 1)),))
        compiled, found = run_candidate(made, candidate, x)
        assert same(found.reshape(3, 24), x * 2)
        return {s.width for s in walk(compiled.kernels[0].body) if isinstance(s, Load | Store)}

    assert widths(8) == {4}
    assert widths(6) == {2}
    assert widths(3) == {1}


def test_warps_and_lanes() -> None:
    def rows(x: Term) -> Term:
        return al.map_warp(lambda row: al.map_lane(lambda v: v + 1, row), x)

    program = al.program("warps", lambda x: al.map_group(0, rows, x), x=array(i32, 3, 5, 40))
    made = plan(program)
    x = integers((3, 5, 40))
    spread = Spread({0: "w0", 1: "warp", 2: "lane"}, (64, 1, 1))
    _, found = run_candidate(made, Candidate({}, (spread,)), x)
    assert (found == x + 1).all()


def test_a_value_for_each_thread_in_local_memory() -> None:
    """What a group shares but each thread makes anew is there once for each of them."""

    def row(x: Term) -> Term:
        return al.fold(lambda s, v: s + v, 0, al.to_local(al.map_(lambda v: v * 3, x)))

    program = al.program(
        "copies",
        lambda x: al.map_group(0, lambda b: al.map_local(0, row, b), x),
        x=array(i32, 2, 5, 4),
    )
    made = plan(program)
    x = integers((2, 5, 4))
    spread = Spread({0: "w0", 1: "l0", 2: "seq"}, (3, 1, 1))
    compiled, found = run_candidate(made, Candidate({}, (spread,)), x)
    assert (found == x.sum(2) * 3).all()
    assert [each.size for each in _shared(list(walk(compiled.kernels[0].body)))] == [3 * 4]


# -- whole programs, with tile sizes ---------------------------------------------------------------

MATMUL = {"m": 6, "n": 8, "k": 8, "bm": 6, "bn": 4, "rm": 2, "rn": 2, "tk": 4}
STENCIL = {"n": 6, "m": 8, "th": 3, "tw": 4}
CONVOLUTION = {
    **workload.Convolution(4, 4, 4, 4).sizes(), "kgs": 4, "sk": 2, "kcs": 1, "th": 4, "sy": 2,
    "icy": 1, "tw": 2, "sx": 2, "icx": 2, "td": 4, "icd": 2, "wth": 1, "wtw": 3,
}  # fmt: skip


RECIPES: dict[str, tuple[Callable[[], Program], dict[str, int], list[tuple[int, ...]]]] = {
    "matmul": (lambda: product.mid_level(workload.matmul(i32), staged=True), MATMUL,
               [(6, 8), (8, 8)]),
    "stencil": (lambda: tiles.mid_level(workload.stencil_2d(3, "mirror", i32)), STENCIL,
                [(6, 8), (3, 3)]),
    "convolution": (lambda: conv.mid_level(workload.convolution(dtype=i32)), CONVOLUTION,
                    [(4, 4, 4), (4, 3, 3, 4)]),
}  # fmt: skip


def check_recipe(name: str, count: int, seed: int = 7, on_host: bool = False) -> None:
    make, sizes, shapes = RECIPES[name]
    program = make()
    made, random = plan(program), Random(seed)
    values = [integers(shape, 5) for shape in shapes]
    wanted = evaluate(program, *values, **sizes)
    for _ in range(count):
        candidate = random_candidate(made, random, **sizes)
        compiled, found = run_candidate(made, candidate, *values)
        assert same(found, wanted), candidate
        if on_host:
            again = compiled(lambda kernel, given: HostFunction(kernel)(given), *values)
            assert same(again, wanted), candidate


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["matmul", "stencil"])
def test_recipes(name: str) -> None:
    check_recipe(name, 1, on_host=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["matmul", "stencil", "convolution"])
def test_many_mappings_of_recipes(name: str, seed: int) -> None:
    check_recipe(name, 10, seed)


@pytest.mark.parametrize("size", [1 << 20, (1 << 31) - 1])
def test_indices_of_large_arrays_have_64_bits(size: int) -> None:
    """Threads beyond the end of the larger one would count past what 32 bits hold, and come out
    before its beginning, where no condition stops them."""
    (n,) = al.sizes("n")
    program = al.program("doubled", lambda x: al.map_(lambda v: v * 2.0, x), x=array(f32, n))
    spread = Spread({0: "g0"}, (48, 1, 1), 32)
    (kernel,) = compile_candidate(plan(program), Candidate({"n": size}, (spread,))).kernels
    assert ("long long" in emit.emit(kernel, "cuda")) == (size > 1 << 30)


def test_a_matrix_of_more_elements_than_32_bits_count() -> None:
    spread = Spread({0: "seq", 1: "seq"}, (1, 1, 1), 32)
    sizes = {"m": 100_000, "n": 100_000}
    with pytest.raises(CheckError, match="'a' has 10000000000 elements"):
        compile_candidate(plan(workload.matvec()), Candidate(sizes, (spread,)))
