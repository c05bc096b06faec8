"""Candidates measured: what is kept when it is stopped, and what is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.common.narrowed import answer

from warploom.array import build as al
from warploom.array.code.program import Compiled, compile_candidate
from warploom.array.joint.model import JointModel
from warploom.array.joint.promising import promising
from warploom.array.language.ir import Term
from warploom.array.types import array
from warploom.errors import DeviceError
from warploom.kernel.dtype import DType, bf16, f16, f32, i32
from warploom.machine.record import CUDA
from warploom.pipeline import mapped
from warploom.pipeline.mapped import Choice, FarRig, Rig, choice_of, front, tune_choices
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Reason
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Trial

HERE = ThreadPoolExecutor(1)  # a process of its own takes longer than all of this
N, M = al.sizes("n m")
TILED = al.program(
    "tiled",
    lambda x: al.join(al.map_(lambda r: al.map_(lambda v: v + 1, r), al.split(M, x))),
    x=array(f32, N),
)
OTHER = al.program("other", lambda x: al.map_(lambda v: v + 2, x), x=array(f32, N))


def choices(count: int) -> list[Choice]:
    model = JointModel(TILED, {"n": 12}, CUDA)
    return [choice_of(model, each) for each in answer(promising(model, count, 200))]


class Interrupted(Rig):
    """Ctrl-C while the second candidate is measured."""

    def measure(self, compiled: Compiled, samples: int) -> Sequence[float]:
        if self._wanted is not None:
            raise KeyboardInterrupt
        return super().measure(compiled, samples)


def test_what_was_found_before_an_interruption_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept.sqlite")
    listed = choices(3)
    assert len({each.text for each in listed}) == 3
    stopped = tune_choices("tiled", {}, listed, Interrupted("c"), store=store, pool=HERE)
    assert isinstance(stopped, Found)
    assert not stopped.complete
    assert stopped.stopped is Reason.INTERRUPTED
    assert stopped.answer.best.text == listed[0].text
    went_on = tune_choices("tiled", {}, listed, Rig("c"), store=store, pool=HERE)
    assert isinstance(went_on, Found)
    assert went_on.complete
    first = next(each for each in went_on.answer.trials if each.text == listed[0].text)
    assert first.samples[:3] == stopped.answer.best.samples


def test_sampling_that_is_interrupted_gives_what_there_is() -> None:
    model = JointModel(TILED, {"n": 12}, CUDA)
    model.parts()
    budget = Budget()
    budget._interrupt.on = True
    outcome = model.sample(10**6, budget=budget)
    assert isinstance(outcome, Found)
    assert outcome.stopped is Reason.INTERRUPTED
    assert 0 < len(outcome.answer) < 10**6


def test_another_result_is_dropped() -> None:
    right = choices(1)[0]
    model = JointModel(OTHER, {"n": 12}, CUDA)
    (candidate,) = answer(promising(model, 1, 50))
    wrong = choice_of(model, candidate)
    outcome = tune_choices("tiled", {}, [right, wrong], Rig("c"), pool=HERE)
    assert isinstance(outcome, Found)
    said = {each.text: each.error for each in outcome.answer.trials}
    assert said[right.text] == ""
    assert "not what the expression means" in said[wrong.text]


def misled(right: Choice, wrong: Choice) -> Choice:
    """A choice that has the kernels of another one."""
    made = replace(right.kernels(), kernels=wrong.kernels().kernels)
    return replace(right, text="misled", kernels=lambda: made)


def test_the_first_one_may_be_wrong() -> None:
    right = elementwise("one", lambda v: v + 1)
    first = misled(right, elementwise("one", lambda v: v + 2))
    assert [bool(each) for each in errors(first, right)] == [True, False]
    number, other = (total(by) for by in (1.0, 2.0))
    assert [bool(each) for each in errors(misled(number, other), number)] == [True, False]


def total(by: float) -> Choice:
    """A number of two inputs, one of which is a number as well."""
    program = al.program(
        "total",
        lambda x, s, unused: al.reduce(lambda t, v: t + v * by, 0.0, al.map_(lambda v: v * s, x)),
        x=array(f32, N),
        s=f32,
        unused=array(f32, N),
    )
    model = JointModel(program, {"n": 12}, CUDA)
    return choice_of(model, answer(promising(model, 1, 50))[0])


def test_what_takes_the_evaluator_long_is_compared_with_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapped, "MOST_ELEMENTS", 11)
    one, two = (elementwise("one", lambda v, by=by: v + by) for by in (1, 2))
    assert errors(one, misled(one, two))[0] == ""
    assert "not that of the first" in errors(one, misled(one, two))[1]


def elementwise(name: str, f: Callable[..., Term], dtype: DType = f32) -> Choice:
    model = JointModel(
        al.program(name, lambda x: al.map_(f, x), x=array(dtype, N)), {"n": 12}, CUDA
    )
    return choice_of(model, answer(promising(model, 1, 50))[0])


def errors(*listed: Choice) -> list[str]:
    rig, found = Rig("c"), []
    for each in listed:
        try:
            rig.measure(each.kernels(), 1)
        except DeviceError as error:
            found.append(str(error))
        else:
            found.append("")
    return found


class Standing:
    """A worker with a GPU that outlives those who ask it."""

    def measure(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        told: Future[Any] = Future()
        told.set_result(fn(*args))
        return told


def test_a_worker_takes_no_task_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs have the same names and sizes; results are others."""
    monkeypatch.setattr(FarRig, "where", "c")
    for name in ("one", "minus"):
        each = elementwise(name, lambda v, name=name: v + 1 if name == "one" else -v)
        assert len(FarRig(Standing(), {"program": name}).measure(each.kernels(), 2)) == 2


def test_what_is_no_number_is_a_result() -> None:
    """Roots of numbers of both signs; and what has no other numbers is another result."""
    root = elementwise("root", lambda v: al.compute("sqrt", v))
    assert errors(root, root) == ["", ""]
    whole = elementwise("whole", lambda v: al.compute("sqrt", v * v))
    assert [bool(each) for each in errors(root, whole)] == [False, True]


def test_small_results_and_integers_are_compared() -> None:
    small = [elementwise(f"by{by}", lambda v, by=by: v * (by * 1e-3)) for by in (1, 2)]
    assert [bool(each) for each in errors(*small)] == [False, True]
    whole = [elementwise(f"to{to}", lambda v, to=to: v * 9999 + to, i32) for to in (0, 1)]
    assert [bool(each) for each in errors(*whole)] == [False, True]


def test_codes_are_compared_by_what_they_stand_for() -> None:
    """Inputs are numbers, and a result may be rounded to the code beside another's."""
    read = [elementwise(f"r{by}", lambda v, by=by: al.convert(f32, v) * by, bf16) for by in (2, 3)]
    assert [bool(each) for each in errors(*read)] == [False, True]
    for code in (f16, bf16):
        given = [
            elementwise(f"g{at}", lambda v, by=by, code=code: al.convert(code, v * by))
            for at, by in enumerate((1.0, 1.0004, 1.1))
        ]
        assert [bool(each) for each in errors(*given)] == [False, False, True]


def test_the_front_has_what_nothing_beats() -> None:
    made = choices(1)[0]
    trials = [
        Trial(
            replace(made, text=str(at), bytes_between=size), str(at), [seconds] if seconds else []
        )
        for at, (seconds, size) in enumerate([(3.0, 0), (1.0, 9), (2.0, 9), (2.0, 4), (0.0, 0)])
    ]
    assert [(each.text, size) for each, size in front(trials)] == [("1", 9), ("3", 4), ("0", 0)]


@pytest.mark.parametrize("memory", [8, 1 << 20])
def test_memory_beside_inputs_and_output(memory: int) -> None:
    total = al.program(
        "total",
        lambda x: al.let(
            al.to_global(
                al.join(al.map_(lambda r: al.reduce(lambda s, v: s + v, 0.0, r), al.split(M, x)))
            ),
            lambda y: al.reduce(lambda s, v: s + v, 0.0, y),
        ),
        x=array(f32, N),
    )
    model = JointModel(total, {"n": 12}, CUDA, memory=memory)
    found = answer(model.sample(60, 3))
    for candidate in found[:6]:
        compiled = compile_candidate(model.plan, candidate)
        assert model.bytes_between(candidate) == compiled.temporary_bytes <= memory
    pieces = {12 // each.sizes["m"] for each in found}
    assert pieces == ({1, 2} if memory == 8 else {1, 2, 3, 4, 6, 12})
