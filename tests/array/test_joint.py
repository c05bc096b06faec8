"""The joint model: what leaves it compiles, fits, and computes what the expression means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from bench.common.narrowed import answer
from bench.common.trust.mapped import check_on, words_at_once
from tests.array.mapped import run_candidate, same
from tests.sampled import rounds

from warploom.array import build as al
from warploom.array import workload
from warploom.array.code.program import Candidate, compile_candidate
from warploom.array.joint.axes import Axis, axes_of
from warploom.array.joint.least import Least
from warploom.array.joint.model import JointModel, NoGood
from warploom.array.joint.parts import LinkedMaps, Parts, parts_of
from warploom.array.joint.promising import promising
from warploom.array.joint.threads import Groups
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Program, Term
from warploom.array.mapping.constraint import RUNS
from warploom.array.mapping.solve import all_mappings
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import map_tree
from warploom.array.plan.plan import plan
from warploom.array.recipe import convolution as conv
from warploom.array.recipe import matmul as product
from warploom.array.recipe import stencil as tiles
from warploom.array.types import array
from warploom.errors import CheckError
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.index.ir import Var, variables
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Shared
from warploom.kernel.pool import pool_bytes
from warploom.machine.record import CUDA, H200, Machine, machine_named
from warploom.search.outcome import Found, Impossible, Reason, Undecided

SMALL: dict[str, tuple[Callable[[], Program], dict[str, int], list[tuple[int, ...]]]] = {
    "total": (workload.total, {"n": 9}, [(9,)]),
    "dot": (workload.dot, {"n": 10}, [(10,), (10,)]),
    "matvec": (workload.matvec, {"m": 7, "n": 6}, [(7, 6), (6,)]),
    "matmul": (lambda: product.mid_level(workload.matmul(), staged=True),
               {"m": 6, "n": 8, "k": 6}, [(6, 6), (6, 8)]),
    "stencil_1d": (workload.stencil_1d, {"n": 11}, [(11,), (3,)]),
    "stencil_2d": (lambda: tiles.mid_level(workload.stencil_2d()), {"n": 6, "m": 10},
                   [(6, 10), (3, 3)]),
    "convolution": (lambda: conv.mid_level(workload.convolution()),
                    workload.Convolution(4, 4, 4, 4).sizes(), [(4, 4, 4), (4, 3, 3, 4)]),
}  # fmt: skip


def sampled(model: JointModel, count: int, seed: int = 1) -> list[Candidate]:
    outcome = model.sample(count, seed)
    assert isinstance(outcome, Found)
    assert outcome.complete
    return outcome.answer


def words(model: JointModel, candidate: Candidate, stage: int = 0) -> int:
    """Registers of a thread, as the model counts them."""
    sizes = {name: np.array([size]) for name, size in candidate.sizes.items()}
    spread = candidate.spreads[stage]
    runs = {at: np.array([RUNS.index(run)], np.int8) for at, run in spread.runs.items()}
    return int(model.stages[stage].registers(sizes, (runs, np.array([spread.group])))[0])


def check_workload(name: str, count: int, machine: Machine, seed: int = 1) -> None:
    make, sizes, shapes = SMALL[name]
    program = make()
    random = np.random.default_rng(4)
    values = [random.random(shape).astype(np.float32) for shape in shapes]
    model = JointModel(program, sizes, machine)
    for candidate in sampled(model, count, seed):
        wanted = evaluate(program, *values, **candidate.sizes)
        assert not isinstance(wanted, tuple)
        compiled, found = run_candidate(model.plan, candidate, *values)
        for at, kernel in enumerate(compiled.kernels):
            check_on(kernel, machine)
            assert words_at_once(kernel.body) <= words(model, candidate, at)
        assert same(found.reshape(wanted.shape), wanted, exact=False), candidate


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["dot", "matvec", "stencil_1d", "stencil_2d"])
def test_workloads(name: str) -> None:
    check_workload(name, 3, CUDA)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("name", SMALL)
def test_many_candidates_of_workloads(name: str, seed: int) -> None:
    check_workload(name, 60, H200, seed)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [machine_named("mali"), H200], ids=lambda each: each.name)
def test_candidates_at_full_size(machine: Machine) -> None:
    """`bench/array/language/check.py joint` does so with thousands."""
    program = conv.mid_level(workload.convolution())
    model = JointModel(program, workload.VGG_16["conv4_2"].sizes(), machine)
    for candidate in sampled(model, 40):
        for kernel in compile_candidate(model.plan, candidate).kernels:
            check_on(kernel, machine)


def test_axes_are_chains_of_divisors() -> None:
    program = product.mid_level(workload.matmul())
    axes = axes_of(program, {"m": 12, "n": 8, "k": 6})
    found = {axis.names: {tuple(row) for row in axis.rows} for axis in axes}
    chains = {(a, b) for a in range(1, 13) for b in range(1, 13) if 12 % a == 0 and a % b == 0}
    assert found["bm", "rm"] == chains
    assert {len(rows) for rows in found.values()} == {len(chains), 10, 4}


def test_given_sizes_that_do_not_divide_are_refused() -> None:
    program = product.mid_level(workload.matmul())
    with pytest.raises(CheckError, match="do not go together"):
        axes_of(program, {"m": 12, "n": 8, "k": 6, "tk": 4})


def test_what_does_not_go_together_is_at_the_users_line() -> None:
    """A map has no size of its own: it is the operation inside that asks."""
    size = al.sizes("fours")[0]  # of no other test: a node remembers who built it first
    twice = lambda x: al.as_scalar(al.map_(lambda v: v * 2, al.as_vector(4, x)))  # noqa: E731
    program = al.program("quarters", twice, x=array(f32, size))
    with pytest.raises(CheckError, match=r"fours % 4 == 0 should hold") as refused:
        JointModel(program, {"fours": 7}, CUDA)
    assert refused.value.span is not None
    assert "al.as_vector(4, x)" in str(refused.value)


def test_a_size_that_is_not_there_is_refused() -> None:
    with pytest.raises(CheckError, match="no size 'p'"):
        JointModel(workload.dot(), {"p": 4}, CUDA)


@pytest.mark.parametrize(
    "program",
    [product.mid_level(workload.matmul(), staged=True), tiles.mid_level(workload.stencil_2d())],
    ids=["matmul", "stencil"],
)
def test_parts_together_are_all_mappings(program: Program) -> None:
    constraints = sound(map_tree(plan(program), 0), "coded")
    parts, every = answer(parts_of(constraints)), answer(all_mappings(constraints).outcome)
    assert parts.count == len(every)
    drawn, _ = parts.draw(np.random.default_rng(0), 200, Groups(CUDA))
    rows = np.stack([drawn[each] for each in constraints.choices], 1)
    assert {row.tobytes() for row in rows} <= {row.tobytes() for row in every}


def test_parts_with_threads_of_their_own_are_drawn_alike() -> None:
    """Two parts, each with threads or without: together they have fewer groups than one by one."""
    few = CUDA.but(name="few", block_threads=4)
    groups = Groups(few)
    seq, l0, l1 = (RUNS.index(run) for run in ("seq", "l0", "l1"))
    listed = tuple(
        LinkedMaps((number,), np.array([[seq], [run]], np.int8))
        for number, run in enumerate((l0, l1))
    )
    runs, used = Parts({}, listed).draw(np.random.default_rng(1), 40_000, groups)
    seen = Counter(zip(*(column.tolist() for column in runs.values()), strict=True))
    assert len(used) == seen.total()
    wanted = {(seq, seq): 0, (l0, seq): 1, (seq, l1): 2, (l0, l1): 3}
    each = seen.total() / groups.counts[list(wanted.values())].sum()
    for pair, dimensions in wanted.items():
        expected = each * groups.counts[dimensions]
        assert abs(seen[pair] - expected) < 6 * expected**0.5


def test_groups_are_all_that_can_be_launched() -> None:
    groups = Groups(machine_named("mali"))
    assert groups.counts[0] == 1
    for table in groups.tables:
        assert (table.prod(1) <= machine_named("mali").block_threads).all()
        assert len(np.unique(table, axis=0)) == len(table)
    assert groups.tables[4].max() == 64  # what a kernel may have at most along z
    assert groups.tables[1].max() == 384


def test_sampling_is_uniform() -> None:
    """All candidates of a small space come up, about equally often."""
    program = al.program(
        "twice", lambda x: al.map_(lambda r: al.map_(lambda v: v * 2, r), x), x=array(f32, 2, 3)
    )
    model = JointModel(program, {}, CUDA)
    count = 6_000
    seen = Counter(str(each.spreads) for each in sampled(model, count))
    # A chi-square of k - 1 degrees is about k - 1, with a deviation of sqrt(2 (k - 1)).
    expected = count / len(seen)
    chi = sum((each - expected) ** 2 / expected for each in seen.values())
    assert len(seen) > 20
    assert chi < len(seen) + 6 * (2 * len(seen)) ** 0.5


@pytest.mark.slow
def test_cuts_leave_out_what_they_say() -> None:
    model = JointModel(product.mid_level(workload.matmul()), {"m": 8, "n": 8, "k": 4}, CUDA)
    assert any(each.sizes["tk"] == 2 for each in sampled(model, 50))
    model.cut(NoGood({"tk": 2}))
    assert not any(each.sizes["tk"] == 2 for each in sampled(model, 50))


def test_when_cuts_leave_nothing_it_ends() -> None:
    """Nobody looked at all candidates, so this is no proof that there is none."""
    model = JointModel(workload.dot(), {"n": 6}, CUDA)
    model.cut(NoGood())
    assert model.sample(1) == Undecided(Reason.DEAD_ENDS)


def test_what_sizes_are_at_least() -> None:
    """Against trying all rows of all axes; a quotient is least where what divides is largest."""
    rows = np.array([[a, b] for a in (1, 2, 4) for b in (1, 2, 4) if a % b == 0])
    axes = [Axis(("a", "b"), rows), Axis(("c",), np.array([[1], [3], [5]]))]
    a, b, c, n = (Var(name) for name in "abcn")
    for k, axis in enumerate(axes):
        least = Least(axis, [axes[1 - k]], {"n": 8})
        for expr in (a, n // a, a // b, c, a * c, n // a + 5 - c, b * c * n, n):
            one = lambda ab, c: dict(zip("abcn", map(int, (*ab, c, 8)), strict=True))  # noqa: E731
            every = np.array(
                [[evaluate_index(expr, one(ab, *c)) for c in axes[1].rows] for ab in rows]
            )
            wanted = every.min(1 - k)
            found = np.broadcast_to(least.of(expr), wanted.shape)
            assert (found <= wanted).all()
            assert (found == wanted).all() or not variables(expr) & set(axis.names)


def test_what_no_machine_has_room_for_is_impossible() -> None:
    tiny = CUDA.but(name="tiny", thread_registers=20)
    model = JointModel(product.mid_level(workload.matmul()), {"m": 8, "n": 8, "k": 4}, tiny)
    assert isinstance(model.sample(1), Impossible)


@pytest.mark.slow
def test_the_best_are_among_all_and_in_order() -> None:
    model = JointModel(product.mid_level(workload.matmul()), {"m": 16, "n": 16, "k": 8}, H200)
    outcome = promising(model, 5, among=500)
    assert isinstance(outcome, Found)
    assert len(outcome.answer) == 5
    for candidate in outcome.answer[:1]:
        for kernel in compile_candidate(model.plan, candidate).kernels:
            check_on(kernel, H200)


def test_the_first_comes_without_listing_all() -> None:
    model = JointModel(
        product.mid_level(workload.matmul()), {"m": 16, "n": 16, "k": 8}, machine_named("mali")
    )
    outcome = model.first()
    assert isinstance(outcome, Found)
    for kernel in compile_candidate(model.plan, outcome.answer).kernels:
        check_on(kernel, machine_named("mali"))


def three_arrays(to: Callable[[Term], Term]) -> Program:
    """Each row goes through three arrays, of which two are needed at a time."""

    def row(x: Term) -> Term:
        first = to(al.map_(lambda v: v * 2, x))
        second = to(al.map_(lambda v: v + 1, al.reverse(first)))
        third = to(al.map_(lambda v: v * v, al.reverse(second)))
        return al.map_(lambda v: v + 3, al.reverse(third))

    return al.program("three", lambda x: al.map_(row, x), x=array(f32, *al.sizes("n m")))


@pytest.mark.slow
def test_arrays_share_bytes_by_what_is_needed_together() -> None:
    """Rows of 256 floats: two fit, three do not, so all that leaves the model shares."""
    program = three_arrays(al.to_local)
    sizes = {"n": 3, "m": 256}
    roomy = JointModel(program, sizes, H200)
    narrow = JointModel(program, sizes, replace(H200, shared_bytes=2048))
    none = JointModel(program, sizes, replace(H200, shared_bytes=2047)).sample(1)
    assert isinstance(none, Undecided)
    for model in (roomy, narrow):
        for candidate in sampled(model, rounds(9)):
            (kernel,) = compile_candidate(model.plan, candidate).kernels
            check_on(kernel, model.machine)
    x = np.random.default_rng(2).standard_normal((3, 256)).astype(np.float32)
    wanted = evaluate(program, x, **sizes)
    _, found = run_candidate(narrow.plan, sampled(narrow, 1)[0], x)
    assert same(found, wanted, exact=False)


@pytest.mark.slow
def test_the_least_and_the_most_bytes_enclose_what_lowering_takes() -> None:
    program = three_arrays(al.to_local)
    model = JointModel(program, {"n": 3, "m": 40}, H200)
    for candidate in sampled(model, 12):
        (kernel,) = compile_candidate(model.plan, candidate).kernels
        taken = pool_bytes([each for each in kernel.body if isinstance(each, Shared)])
        sizes = {name: np.array([size]) for name, size in candidate.sizes.items()}
        (spread,) = candidate.spreads
        runs = {at: np.array([RUNS.index(run)], np.int8) for at, run in spread.runs.items()}
        least, most = model.stages[0].shared(sizes, runs, np.array([spread.group]))
        assert least[0] <= -(-taken // 16) * 16 <= most[0]


def test_registers_are_counted_by_what_is_needed_together() -> None:
    """Rows of 64 floats: two are in registers at once, three are not."""
    program = three_arrays(al.to_private)
    model = JointModel(program, {"n": 3, "m": 64}, H200)
    for candidate in sampled(model, 4):
        (kernel,) = compile_candidate(model.plan, candidate).kernels
        check_on(kernel, H200)
        assert 128 <= words_at_once(kernel.body) <= words(model, candidate) < 192
    x = np.random.default_rng(2).standard_normal((3, 64)).astype(np.float32)
    _, found = run_candidate(model.plan, sampled(model, 1)[0], x)
    assert same(found, evaluate(program, x, n=3, m=64), exact=False)
    few = replace(H200, thread_registers=128 + 24)
    assert isinstance(JointModel(program, {"n": 3, "m": 64}, few).sample(1), Impossible)


def test_what_threads_share_takes_registers_for_each_ones_iterations_only() -> None:
    """Sums of 512 columns have no room in one thread, but in several threads of a group."""
    columns = lambda x: al.reduce(  # noqa: E731
        lambda sums, row: al.map_(lambda p: p.get(0) + p.get(1), al.zip_(sums, row)),
        al.to_private(al.map_(lambda v: v * 1.0, al.element(0, x))),
        x,
    )
    program = al.program(
        "columns",
        lambda x: al.map_(lambda c: al.map_(lambda v: v + 1, al.element(0, columns(c))), x),
        x=array(f32, 2, 5, 512),
    )
    model = JointModel(program, {}, H200)
    for candidate in sampled(model, 3):
        compiled, found = run_candidate(
            model.plan, candidate, x := np.random.default_rng(3).random((2, 5, 512), np.float32)
        )
        assert words_at_once(compiled.kernels[0].body) <= words(model, candidate) < 232
        assert same(found, evaluate(program, x), exact=False)


def test_registers_of_all_threads_of_a_group_have_room() -> None:
    """Two rows of 64 floats and more leave room for 408 threads of 65,536 registers."""
    model = JointModel(three_arrays(al.to_private), {"n": 600, "m": 64}, H200)
    every = [np.prod(each.spreads[0].group) for each in sampled(model, 200)]
    assert 256 < max(every) <= 65536 // (128 + 24)
