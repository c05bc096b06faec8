"""Programs of rows as functions on arrays: beside double precision, on hard inputs."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import warploom
from warploom.errors import WarploomError
from warploom.kernel.dtype import DType, bf16, coded, decoded, f16, f32
from warploom.pipeline.rows.function import RowFunction
from warploom.pipeline.rows.loading import OfRows
from warploom.pipeline.rows.stated import STATED

Numbers = Any
N = 133  # not a multiple of any access


def stored(x: Numbers, dtype: DType) -> Numbers:
    return coded(x.astype(np.float32), dtype).view(dtype.numpy) if dtype.is_code else x


def read(x: Numbers, dtype: DType) -> Numbers:
    return decoded(x, dtype).astype(np.float64) if dtype.is_code else x.astype(np.float64)


def softmax(x: Numbers) -> Numbers:
    with np.errstate(all="ignore"):
        made = np.exp(x - x.max(-1, keepdims=True))
        return made / made.sum(-1, keepdims=True)


def hard(kind: str, dtype: DType) -> Numbers:
    random = np.random.default_rng(1)
    x = random.normal(size=(2, 3, N))
    match kind:
        case "large logits":
            x *= 1e4 if dtype is f16 else 1e30
        case "one-hot rows":
            x[...] = 0
            x[..., 7] = 100
        case "lowest":
            x[..., 5:] = -np.inf
            x[0, 0, :5] = -np.inf  # a row that is masked throughout
        case "subnormals":
            x *= 1e-7 if dtype is f16 else 1e-40
    return stored(x.astype(np.float32), dtype)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [f32, f16, bf16], ids=repr)
@pytest.mark.parametrize("kind", ["plain", "large logits", "one-hot rows", "lowest", "subnormals"])
def test_softmax_on_hard_inputs(kind: str, dtype: DType) -> None:
    x = hard(kind, dtype)
    made = read(warploom.load("softmax", dtype=repr(dtype))(x), dtype)
    wanted = softmax(read(x, dtype))
    assert made.shape == wanted.shape
    far = {f32: 1e-6, f16: 1e-3, bf16: 8e-3}[dtype]
    np.testing.assert_allclose(made, wanted, rtol=far, atol=1e-7)


def test_a_row_of_the_lowest_numbers_has_no_softmax() -> None:
    made = warploom.load("softmax")(hard("lowest", f32))
    assert np.isnan(made[0, 0]).all()
    assert not np.isnan(made[0, 1:]).any()


def test_cross_entropy_and_labels_that_name_no_class() -> None:
    x = hard("plain", f32)
    label = np.array([[0, 5, N - 1], [-100, N, 7]], np.int64)
    loss = warploom.load("cross-entropy")(x, label)
    wanted = -np.log(softmax(x.astype(np.float64)))
    named = np.take_along_axis(wanted, label.clip(0, N - 1)[..., None], -1)[..., 0]
    named[1, :2] = 0
    np.testing.assert_allclose(loss, named, rtol=1e-6, atol=1e-6)
    g = np.ones((2, 3), np.float32)
    dx = warploom.load("cross-entropy-gradient")(g, x, label)
    assert not dx[1, :2].any()
    np.testing.assert_allclose(dx.sum(-1), 0, atol=1e-6)


def test_norms_with_what_is_beside_them() -> None:
    random = np.random.default_rng(0)
    x, residual = random.normal(size=(2, 5, N)).astype(np.float32)
    scale, shift = random.normal(size=(2, N)).astype(np.float32)
    mask = random.random((5, N)) < 0.7
    norm = warploom.load("layer-norm", residual=True, mask=True)
    y, total = norm(x, mask, residual, scale, shift, factor=1 / 0.7)
    wanted = np.where(mask, x / 0.7, 0) + residual
    np.testing.assert_allclose(total, wanted, rtol=1e-6, atol=1e-6)
    away = wanted - wanted.mean(-1, keepdims=True)
    made = away / np.sqrt(wanted.var(-1, keepdims=True) + 1e-5) * scale + shift
    np.testing.assert_allclose(y, made, rtol=1e-5, atol=1e-5)
    root = np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
    found = warploom.load("rms-norm", epsilon=1e-6)(x, scale)
    np.testing.assert_allclose(found, x / root * scale, rtol=1e-5, atol=1e-6)


def test_rows_along_another_axis() -> None:
    x = np.random.default_rng(0).normal(size=(4, 9, 3)).astype(np.float32)
    made = warploom.load("softmax", axis=1)(x)
    np.testing.assert_allclose(made.sum(1), 1, rtol=1e-6)
    assert made.shape == x.shape


def test_one_kernel_serves_any_number_of_rows() -> None:
    call: Any = warploom.load("softmax")
    for m in (3, 5, 1, 0):
        assert call(np.zeros((m, 200), np.float32)).shape == (m, 200)
    assert len(call.found) == 1
    assert 'extern "C"' in call.text()


def test_outputs_may_be_given_and_gaps_are_copied() -> None:
    x = np.random.default_rng(0).normal(size=(6, 400)).astype(np.float32)
    call, y = warploom.load("softmax"), np.empty((6, 200), np.float32)
    call(np.ascontiguousarray(x[:, ::2]), y)
    np.testing.assert_array_equal(call(x[:, ::2]), y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: warploom.load("softmax", epsilon=1.0), "no option 'epsilon'"),
        (lambda: warploom.load("layer-norm", residual=1), "True or False"),
        (lambda: warploom.load("rms-norm", epsilon=-1.0), "a number from 0 to 1"),
        (lambda: warploom.load("softmax", dtype="f64"), "no rows of f64"),
        (lambda: warploom.load("softmax", axis=0.5), "a whole number"),
        (lambda: warploom.load("softmax", axis=3)(np.zeros((2, 3), np.float32)), "no axis 3"),
        (lambda: warploom.load("softmax")(np.zeros(3)), "float64"),
        (lambda: warploom.load("softmax")(np.zeros((3, 0), np.float32)), "without elements"),
        (lambda: warploom.load("softmax")(np.float32(1)), "takes arrays"),
        (lambda: warploom.load("rms-norm")(np.zeros((2, 3), np.float32), np.zeros(2, np.float32)),
         "not (3,)"),
        (lambda: warploom.load("softmax").text(), "call it once"),
        (lambda: warploom.load("softmax")(1, 2, 3), "takes (x) or (x, y)"),
    ],
)  # fmt: skip
def test_what_is_not_meant_is_refused(call: Any, words: str) -> None:
    with pytest.raises(WarploomError) as error:
        call()
    assert words in str(error.value)


# -- gradients -------------------------------------------------------------------------------------


def arrays(name: str, options: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Numbers]:
    random = np.random.default_rng(3)
    function = RowFunction(STATED[name], options)
    shapes = function.shapes(shape)
    made = {each: random.normal(size=shapes[each]).astype(np.float32) for each in function.inputs}
    if "label" in made:
        made["label"] = random.integers(0, shape[-1], shapes["label"]).astype(np.int32)
    return made


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "of"),
    [("softmax", "x"), ("log-softmax", "x"), ("cross-entropy", "x"), ("layer-norm", "x"),
     ("rms-norm", "x")],
)  # fmt: skip
def test_gradients_of_rows_by_finite_differences(name: str, of: str) -> None:
    given = arrays(name, {}, (2, 21))
    forward = warploom.load(name)
    random = np.random.default_rng(5)
    weights = random.normal(size=np.shape(forward(*given.values()))).astype(np.float32)
    back = RowFunction(STATED[f"{name}-gradient"], {})
    known = {**given, "g": weights}
    made = back(*(known[each] for each in back.inputs))

    def loss(x: Numbers) -> float:
        made = forward(*({**given, of: x}).values())
        return float((made.astype(np.float64) * weights).sum())

    step = np.float32(1e-2)
    for at in [(0, 0), (0, 7), (1, 20), (1, 13)]:
        more, less = given[of].copy(), given[of].copy()
        more[at] += step
        less[at] -= step
        wanted = (loss(more) - loss(less)) / (2 * step)
        assert abs(made[at] - wanted) < 2e-3 * max(1.0, np.abs(made).max())


@pytest.mark.slow
def test_gradients_of_what_rows_share() -> None:
    given = arrays("layer-norm", {}, (11, 24))
    x, g = given["x"], np.random.default_rng(8).normal(size=(11, 24)).astype(np.float32)
    mean, by = warploom.load("norm-statistics")(x)
    away = x - x.mean(-1, keepdims=True, dtype=np.float64)
    normed = away / np.sqrt((away * away).mean(-1, keepdims=True) + 1e-5)
    dscale = warploom.load("scale-gradient")(g, x, mean, by)
    np.testing.assert_allclose(dscale, (g * normed).sum(0), rtol=1e-4, atol=1e-5)
    dshift = warploom.load("shift-gradient")(g)
    np.testing.assert_allclose(dshift, g.sum(0, dtype=np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_gradients_through_a_mask_and_a_residual() -> None:
    random = np.random.default_rng(0)
    x, residual, g, dsum = random.normal(size=(4, 3, N)).astype(np.float32)
    scale = random.normal(size=N).astype(np.float32)
    mask = random.random((3, N)) < 0.7
    options: Any = {"residual": True, "mask": True}
    _, total = warploom.load("rms-norm", **options)(x, mask, residual, scale, factor=2.0)
    dx, dresidual = warploom.load("rms-norm-gradient", **options)(
        g, total, scale, dsum, mask, factor=2.0
    )
    plain = warploom.load("rms-norm-gradient")(g, total, scale)
    np.testing.assert_allclose(dresidual, plain + dsum, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dx, np.where(mask, 2 * dresidual, 0), rtol=1e-6)


def test_the_type_of_names_has_every_program() -> None:
    assert set(get_args(OfRows)) == set(STATED)


@pytest.mark.parametrize("name", ["softmax", "shift-gradient"])
@pytest.mark.parametrize("rows", [[1, 3], [0, 2], [2, 5, 1]])
def test_a_first_call_of_few_rows_is_of_no_other_number(name: str, rows: list[int]) -> None:
    """A grid of one block is no grid of rows, and blocks are not rows where these are summed."""
    f, x = warploom.load(name), np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    for m in rows:
        if m or name == "softmax":
            wanted = softmax(x[:m].astype(float)) if name == "softmax" else x[:m].sum(0)
            np.testing.assert_allclose(f(x[:m]), wanted, rtol=1e-5, atol=1e-6)


def test_an_output_with_gaps_is_filled() -> None:
    x, y = np.ones((3, 4), np.float32), np.zeros((3, 8), np.float32)
    given = y[:, ::2]
    assert warploom.load("softmax")(x, given) is given
    assert (given == 0.25).all()
    assert not y[:, 1::2].any()
    y.flags.writeable = False
    with pytest.raises(WarploomError, match="'y' is written"):
        warploom.load("softmax")(x, y[:, ::2])
    with pytest.raises(WarploomError, match="no array"):
        warploom.load("softmax", axis=0)([[1.0, 2.0]])
