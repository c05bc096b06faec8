"""The time model over mappings: a batch is counted as its kernels are, and the best is usable."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import warploom
from warploom.array.code.program import compile_candidate
from warploom.array.joint.measure import Batch
from warploom.array.joint.model import JointModel
from warploom.array.joint.promising import promising
from warploom.array.joint.work import counted, predicted_times
from warploom.array.mapping.constraint import BY_THREAD
from warploom.kernel.work import prediction, work_of
from warploom.machine.record import H200, machine_named
from warploom.machine.work import Work
from warploom.pipeline.named_program import named_program
from warploom.search.outcome import Found

EXACT = ("blocks", "threads", "special", "shared_bytes")
SIZES = {"matmul": {"m": 64, "n": 64, "k": 32}, "matvec": {"m": 96, "n": 64}}


def some(name: str, count: int) -> tuple[JointModel, Batch]:
    model = JointModel(named_program(name, False), SIZES[name], H200)
    outcome = model.parts()
    assert isinstance(outcome, Found)
    batch = next(model.batches(outcome.answer, 3))
    return model, batch.only(np.random.default_rng(0).permutation(batch.count)[:count])


@pytest.mark.parametrize("name", SIZES)
def test_a_batch_is_counted_as_its_kernels_are(name: str) -> None:
    model, batch = some(name, 12)
    (found,) = counted(batch, model.stages, H200)
    columns = {
        each.name: np.broadcast_to(getattr(found, each.name), (batch.count,))
        for each in fields(Work)
    }
    near = 0
    for at in range(batch.count):
        (kernel,) = compile_candidate(model.plan, model.candidate(batch, at)).kernels
        work = work_of(kernel)
        for each in EXACT:
            assert columns[each][at] == getattr(work, each), each
        # A kernel is known to compute only what is stored.
        assert columns["arithmetic"][at] >= work.arithmetic > 0
        near += all(
            0.5 <= columns[each][at] / getattr(work, each) <= 2
            for each in ("requests", "lines", "longest", "touched")
        )
    assert near >= 8


def test_times_of_a_batch_are_in_the_order_of_those_of_kernels() -> None:
    model, batch = some("matvec", 12)
    fast = predicted_times(batch, model.stages, H200)
    made = [compile_candidate(model.plan, model.candidate(batch, at)) for at in range(12)]
    slow = np.array([sum(prediction(k, H200).nanoseconds for k in each.kernels) for each in made])
    i, j = np.triu_indices(12, 1)
    apart = abs(np.log(slow[i] / slow[j])) > 0.05
    agree = np.sign(fast[i] - fast[j]) == np.sign(slow[i] - slow[j])
    assert agree[apart].mean() > 0.8


def test_a_product_is_coalesced_and_no_thread_repeats_another() -> None:
    """1024³: whole sectors in every request, all threads used, as many blocks as processors."""
    model = JointModel(named_program("matmul", False), {"m": 1024, "n": 1024, "k": 1024}, H200)
    found = promising(model, 1, among=500)
    assert isinstance(found, Found)
    (candidate,) = found.answer
    (kernel,) = compile_candidate(model.plan, candidate).kernels
    work = work_of(kernel)
    assert work.blocks >= 64
    assert kernel.threads >= 64
    # A product and its sum are one instruction; sums of tiles are added up.
    assert 1 <= work.blocks * work.arithmetic * H200.lanes / 1024**3 < 1.2
    assert work.lines <= 8 * work.requests
    (spread,) = candidate.spreads
    used = {int(run[-1]) for run in spread.runs.values() if run not in BY_THREAD}
    assert all(side == 1 or at in used for at, side in enumerate(spread.group))


def test_what_is_said_of_a_mapping_is_the_time_of_its_kernels() -> None:
    found = warploom.map_array("matvec", {"m": 64, "n": 32}, machine="h200", among=50)
    (told,) = found.record()["kernels"]
    wanted = prediction(found.kernel, H200)
    assert told["predicted"] == wanted.record()
    assert f"{wanted}" in str(found)
    assert found.record()["kernels"][0]["predicted"]["times"] == "h200"


def test_a_machine_without_times_is_ranked_by_those_of_the_h200() -> None:
    mali = machine_named("mali")
    model = JointModel(named_program("matvec", False), SIZES["matvec"], mali)
    found = promising(model, 1, among=50)
    assert isinstance(found, Found)
    (kernel,) = compile_candidate(model.plan, found.answer[0]).kernels
    assert kernel.threads <= mali.block_threads
    assert prediction(kernel, mali).times == "h200"
