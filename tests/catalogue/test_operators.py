"""Operators of PyTorch on a pretended one: results, gradients, what a call goes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.catalogue.torch_fake import Tensor, Torch, backward
from tests.runtime import fakes
from tests.runtime.fakes import aligned

from warploom.catalogue import entries, formula, operators
from warploom.catalogue.operators import OPERATORS, Operator
from warploom.errors import DeviceError, WarploomError

BY_NAME = {each.name: each for each in OPERATORS}


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Torch]:
    made = Torch()
    with fakes.pretended(monkeypatch, made):
        for module in (operators, formula):
            monkeypatch.setattr(module, "import_module", {"torch": made}.__getitem__)
        operators._registered.cache_clear()
        operators.operators()
        yield made
    operators._registered.cache_clear()


def tensor(*shape: int, device: int = 0, words: bool = False, seed: int = 0) -> Tensor:
    random = np.random.default_rng(seed)
    made = aligned(shape, np.int32 if words else np.float32)
    made[...] = random.integers(-(2**31), 2**31, shape) if words else random.random(shape)
    return Tensor(made, device)


def arguments(name: str) -> list[Any]:
    match name:
        case "aos_to_soa" | "aos_sum":
            return [tensor(3, 7, 5)]
        case "soa_to_aos":
            return [tensor(3, 37)]
        case "transposition":
            return [tensor(2, 3, 4, 6)]
        case "permute":
            return [tensor(3, 7, 5), [2, 0, 1]]
        case "stencil_1d":
            return [tensor(50), 5]
        case "convolution_1d":
            return [tensor(50), tensor(3, device=-1, seed=1)]
        case "convolution_2d":
            return [tensor(5, 20), tensor(3, 3, device=-1, seed=1)]
        case _:
            return [tensor(2, 32, words=True), tensor(2, 32, words=True, seed=1)]


def on_host(given: list[Any]) -> list[Any]:
    return [Tensor(each.array, -1) if isinstance(each, Tensor) else each for each in given]


def same(one: Tensor, other: Tensor) -> None:
    assert one.shape == other.shape
    assert one.dtype is other.dtype
    if one.array.dtype.kind == "f":
        np.testing.assert_allclose(one.array, other.array, rtol=1e-5)
    else:
        np.testing.assert_array_equal(one.array, other.array)


def test_every_kernel_of_the_catalogue_is_an_operator() -> None:
    assert {each.kernel for each in OPERATORS} == set(entries())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: str(each.name))
def test_our_kernel_computes_the_plain_expression(torch: Torch, operator: Operator) -> None:
    given = arguments(operator.name)
    call = getattr(torch.ops.warploom, operator.name)
    got, wanted = call(*given), call(*on_host(given))
    same(got, wanted)
    assert got.get_device() == 0
    assert wanted.get_device() == -1
    fake = torch.fakes[f"warploom::{operator.name}"](*given)
    assert (fake.shape, fake.dtype) == (got.shape, got.dtype)


MORE = {
    "convolution_2d": (
        [tensor(2, 3, 5, 20), tensor(3, 3, device=-1, seed=1)],  # several images
        [tensor(1, 2), tensor(3, 3, device=-1, seed=1)],  # more weights than image
    ),
    "aos_sum": ([Tensor(aligned((4, 3), np.int32) + 7)],),  # PyTorch's own sum is an int64
    "aos_to_soa": ([tensor(0, 3)],),  # nothing
}
MORE_CASES = [(name, number) for name, several in MORE.items() for number in range(len(several))]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "number"), MORE_CASES)
def test_tensors_of_other_shapes_and_types(torch: Torch, name: str, number: int) -> None:
    given = MORE[name][number]
    call = getattr(torch.ops.warploom, name)
    same(call(*given), call(*on_host(given)))
    fake = torch.fakes[f"warploom::{name}"](*given)
    assert (fake.shape, fake.dtype) == (call(*given).shape, call(*given).dtype)
    if name == "convolution_2d":
        check_adjoint(torch, name, given, 0)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [each.name for each in OPERATORS if each.gradients])
@pytest.mark.parametrize("device", [0, -1])
def test_gradients_are_adjoint(torch: Torch, name: str, device: int) -> None:
    given = arguments(name) if device == 0 else on_host(arguments(name))
    check_adjoint(torch, name, given, device)


def check_adjoint(torch: Torch, name: str, given: list[Any], device: int) -> None:
    """⟨A·x, g⟩ = ⟨x, Aᵀ·g⟩ for each tensor, the others fixed."""
    for each in given:
        if isinstance(each, Tensor):
            each.requires_grad = True
    output = getattr(torch.ops.warploom, name)(*given)
    gradient = tensor(*output.shape, device=device, seed=5)
    for x, found in zip(given, backward(output, gradient), strict=True):
        if not isinstance(x, Tensor):
            assert found is None
            continue
        assert found.shape == x.shape
        assert found.get_device() == x.get_device()
        one, other = (output.array * gradient.array).sum(), (x.array * found.array).sum()
        np.testing.assert_allclose(one, other, rtol=1e-4)


def test_only_what_is_wanted_is_computed(torch: Torch) -> None:
    x, w = arguments("convolution_1d")
    x.requires_grad = True
    output = torch.ops.warploom.convolution_1d(x, w)
    assert backward(output, tensor(*output.shape))[1] is None
    torch.recording = False
    assert torch.ops.warploom.convolution_1d(x, w).node is None


def test_a_plain_call_comes_to_our_kernel_at_once(torch: Torch) -> None:
    call, x = torch.ops.warploom.aos_to_soa, tensor(30, 3)
    call(x)
    assert call.calls == ["AutogradCUDA"]
    for torch.modes, torch.transformed in ((1, False), (0, True)):
        call.calls.clear()
        call(x)
        assert call.calls == ["AutogradCUDA", "CUDA"]
    torch.transformed = False
    call.calls.clear()
    strange = type("FakeTensor", (Tensor,), {"__module__": "torch"})(x.array)
    call(strange)
    assert call.calls == ["AutogradCUDA", "CUDA"]
    call.calls.clear()
    same(call(torch.nn.Parameter(x.array)), call(x))
    assert call.calls == ["AutogradCUDA"] * 2


def test_tensors_that_lie_otherwise_are_copied(torch: Torch) -> None:
    x = tensor(5, 30)
    turned = x.transpose(0, 1)
    for _ in range(2):
        same(torch.ops.warploom.aos_to_soa(turned), x)
    opposite = x.like(-x.array)
    opposite.negative = True
    for _ in range(2):
        got = torch.ops.warploom.soa_to_aos(opposite)
        np.testing.assert_array_equal(got.array, x.array.T)


def test_every_kind_of_arguments_has_its_kernel(torch: Torch) -> None:
    call = torch.ops.warploom.stencil_1d
    x = tensor(50)
    for taps in (3, 5, 3):
        same(call(x, taps), call(Tensor(x.array, -1), taps))
    same(call(x), call(x, 3))
    wide = Tensor(x.array.astype(np.float64))
    same(call(wide, 5), call(Tensor(wide.array, -1), 5))


def test_what_does_not_fit_is_refused(torch: Torch) -> None:
    ops = torch.ops.warploom
    for call, message in (
        (lambda: ops.stencil_1d(tensor(50), 5, 6), r"takes \(Tensor x, int taps=3\)"),
        (lambda: ops.stencil_1d(tensor(2), 3), "fewer than the 3"),
        (
            lambda: ops.convolution_2d(tensor(5, 20), tensor(3, 2, device=-1)),
            "6 weights are no square",
        ),
        (lambda: ops.aos_to_soa(tensor(4, 100)), "100 fields"),
        (lambda: ops.aos_to_soa(tensor()), r"at least 2 axes, not of the shape \(\)"),
        (lambda: ops.aos_sum(tensor(4)), r"at least 2 axes, not of the shape \(4,\)"),
        (lambda: ops.aos_sum(tensor(4, device=-1)), r"at least 2 axes, not of the shape \(4,\)"),
        (lambda: torch.fakes["warploom::aos_sum"](tensor(4)), "at least 2 axes"),
    ):
        with pytest.raises(WarploomError, match=message):
            call()
    assert issubclass(DeviceError, WarploomError)
