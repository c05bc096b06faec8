"""Programs of rows as operators of a pretended PyTorch: results, gradients, shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.catalogue.torch_fake import Tensor, Torch, backward
from tests.runtime import fakes
from tests.runtime.fakes import aligned

from warploom.catalogue import formula, operators
from warploom.pipeline.rows import torch_operators

M, N = 3, 40


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Torch]:
    made = Torch()
    with fakes.pretended(monkeypatch, made):
        for module in (operators, formula, torch_operators):
            monkeypatch.setattr(module, "import_module", {"torch": made}.__getitem__)
        monkeypatch.setattr(Tensor, "to", lambda self, *_: self, raising=False)
        operators._registered.cache_clear()
        torch_operators._function.cache_clear()
        operators.operators()
        yield made
    operators._registered.cache_clear()
    torch_operators._function.cache_clear()


def tensor(*shape: int, seed: int = 0, wants: bool = False) -> Tensor:
    made = aligned(shape, np.float32)
    made[...] = np.random.default_rng(seed).normal(size=shape)
    return Tensor(made, 0, wants)


def labels() -> Tensor:
    made = aligned((M,), np.int32)
    made[...] = [5, 0, N - 1]
    return Tensor(made, 0)


def softmax(x: Any) -> Any:
    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


def test_softmax_has_a_gradient(torch: Torch) -> None:
    x, g = tensor(M, N, wants=True), tensor(M, N, seed=1)
    made = torch.ops.warploom.softmax(x)
    wanted = softmax(x.array.astype(np.float64))
    np.testing.assert_allclose(made.array, wanted, rtol=1e-5, atol=1e-7)
    (dx,) = backward(made, g)
    less = (wanted * g.array).sum(-1, keepdims=True)
    np.testing.assert_allclose(dx.array, wanted * (g.array - less), rtol=1e-4, atol=1e-6)
    fake = torch.fakes["warploom::softmax"](x)
    assert fake.shape == made.shape


def test_cross_entropy_has_a_gradient(torch: Torch) -> None:
    x, label, g = tensor(M, N, wants=True), labels(), tensor(M, seed=1)
    loss = torch.ops.warploom.cross_entropy(x, label)
    share = softmax(x.array.astype(np.float64))
    at = (np.arange(M), label.array)
    np.testing.assert_allclose(loss.array, -np.log(share[at]), rtol=1e-5)
    dx, nothing = backward(loss, g)
    share[at] -= 1
    np.testing.assert_allclose(dx.array, share * g.array[:, None], rtol=1e-4, atol=1e-6)
    assert nothing is None


@pytest.mark.slow
def test_layer_norm_has_gradients_of_all_that_it_is_given(torch: Torch) -> None:
    x, g = tensor(M, N, wants=True), tensor(M, N, seed=1)
    scale, shift = tensor(N, seed=2, wants=True), tensor(N, seed=3, wants=True)
    made = torch.ops.warploom.layer_norm(x, scale, shift)
    away = x.array - x.array.mean(-1, keepdims=True)
    by = 1 / np.sqrt((away * away).mean(-1, keepdims=True) + 1e-5)
    normed = away * by
    np.testing.assert_allclose(made.array, normed * scale.array + shift.array, rtol=1e-4, atol=1e-5)
    dx, dscale, dshift = backward(made, g)
    own = g.array * scale.array
    less = own.mean(-1, keepdims=True) + normed * (own * normed).mean(-1, keepdims=True)
    np.testing.assert_allclose(dx.array, (own - less) * by, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(dscale.array, (g.array * normed).sum(0), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(dshift.array, g.array.sum(0), rtol=1e-5, atol=1e-5)


def test_every_program_with_a_gradient_is_an_operator_with_one() -> None:
    by_name = {each.kernel: each for each in torch_operators.OPERATORS}
    for name in ("softmax", "log-softmax", "layer-norm", "rms-norm", "cross-entropy"):
        assert len(by_name[name].gradients) == by_name[name].tensors
        assert f"{name}-gradient" in by_name
