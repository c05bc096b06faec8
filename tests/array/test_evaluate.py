"""The evaluator against element-by-element evaluation on lists."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.narrowed import answer, of
from tests.array.generate import Generator, random_type, random_value
from tests.array.mapped import run_candidate
from tests.array.naive import OPS, as_lists, naive

from warploom.array import build as al
from warploom.array.joint.model import JointModel
from warploom.array.joint.promising import promising
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Apply, Program, Term, walk
from warploom.array.types import array
from warploom.errors import CheckError
from warploom.kernel.dtype import bf16, e4m3, f16, f32, i32
from warploom.machine.record import CUDA


def check(seed: int) -> set[str]:
    generator = Generator(seed)
    body = generator.term(random_type(generator.random), 3)
    program = Program("random", tuple(generator.inputs), body)
    random = np.random.default_rng(seed)
    values = [random_value(random, each.type) for each in program.inputs]
    found = as_lists(evaluate(program, *values), body.type)
    env = {
        each: as_lists(value if isinstance(value, tuple) else np.asarray(value), each.type)
        for each, value in zip(program.inputs, values, strict=True)
    }
    with np.errstate(over="ignore"):
        wanted = naive(body, env)
    assert found == wanted, seed
    return {type(part.op).__name__ for part in walk(body) if isinstance(part, Apply)}


def test_random_expressions() -> None:
    met: set[str] = set()
    for seed in range(150):
        met |= check(seed)
    assert met == set(OPS) - {"Convert"}


@pytest.mark.slow
def test_many_random_expressions() -> None:
    for seed in range(1000, 4000):
        check(seed)


def test_convolution_is_what_it_is_called() -> None:
    h, w = al.sizes("h w")

    def window(rows: Term) -> Term:
        return al.fold(lambda s, x: s + x, 0.0, al.join(rows))

    blur = al.program(
        "blur",
        lambda x: al.map_nested(
            2, window, al.slide_2d((3, 1), (3, 1), al.pad_2d((1, 1), (1, 1), x))
        ),
        x=array(f32, h, w),
    )
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    around = np.pad(x, 1)
    wanted = sum(around[r : r + 5, c : c + 6] for r in range(3) for c in range(3))
    assert np.array_equal(evaluate(blur, x), wanted)


def test_sizes_that_are_not_an_axis_are_given() -> None:
    n, c = al.sizes("n c")
    rows = al.program("rows", lambda x: al.split(c, x), x=array(i32, n))
    assert of(np.ndarray, evaluate(rows, np.arange(6, dtype=np.int32), c=2)).tolist() == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    with pytest.raises(CheckError, match="c does not divide n: 6 by 4") as caught:
        evaluate(rows, np.arange(6, dtype=np.int32), c=4)
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__
    with pytest.raises(CheckError, match="'c' has no value"):
        evaluate(rows, np.arange(6, dtype=np.int32))


def test_conversions() -> None:
    x = np.array([1.5, -2.5, 1e20], np.float32)
    whole = al.program("whole", lambda x: al.map_(lambda v: al.convert(i32, v), x), x=array(f32, 3))
    assert of(np.ndarray, evaluate(whole, x)).tolist() == [1, -2, 2**31 - 1]
    model = JointModel(whole, {}, CUDA)  # a conversion alone is something that a map computes
    (candidate,) = answer(promising(model, 1, 20))
    assert run_candidate(model.plan, candidate, x)[1].tolist() == [1, -2, 2**31 - 1]


def test_codes_are_converted_by_what_they_stand_for() -> None:
    """As kernels do it: half floats as NumPy has them, others by their bits."""

    def halved(v: Term) -> Term:
        return al.convert(f32, v) * 0.5

    x = np.array([1.0, -2.0, 3.0], np.float32)
    for dtype, given, wanted in (
        (f16, x.astype(np.float16), np.array([0.5, -1.0, 1.5], np.float16)),
        (bf16, np.array([0x3F80, 0xC000, 0x4040], np.uint16), [0x3F00, 0xBF80, 0x3FC0]),
        (e4m3, np.array([0x38, 0xC0, 0x44], np.uint8), [0x30, 0xB8, 0x3C]),
    ):
        floats = al.program("floats", lambda x: al.map_(halved, x), x=array(dtype, 3))
        assert of(np.ndarray, evaluate(floats, given)).tolist() == [0.5, -1.0, 1.5]
        back = al.program(
            "back",
            lambda x, d=dtype: al.map_(lambda v: al.convert(d, halved(v)), x),
            x=array(dtype, 3),
        )
        assert of(np.ndarray, evaluate(back, given)).tolist() == list(wanted)
        model = JointModel(back, {}, CUDA)
        (candidate,) = answer(promising(model, 1, 20))
        assert run_candidate(model.plan, candidate, given)[1].tolist() == list(wanted)
