"""References that are written with PyTorch: read beside a stand-in, or called by its protocol."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warploom.errors import CheckError, WarploomError
from warploom.verdict.argument import said
from warploom.verdict.case import Case, case_of
from warploom.verdict.judged import judge
from warploom.verdict.reference import Reference
from warploom.verdict.stand_in import torch_of_references
from warploom.verdict.torch_reference import speaks_torch

TEXT = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry silu(.param .u64 p, .param .u64 q) {
  .reg .b32 %r1; .reg .f32 %f<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  mul.f32 %f2, %f1, 0fBFB8AA3B;
  ex2.approx.f32 %f3, %f2;
  add.f32 %f4, %f3, 0f3F800000;
  div.rn.f32 %f5, %f1, %f4;
  st.global.f32 [%rd5], %f5;
  ret;
}
"""
ARGS = {"x": "f32[32]", "y": "f32[32]=out"}


class Type:
    """A type as PyTorch has it, where that is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


Type.__name__, Type.__module__ = "dtype", "torch"


class Constant:
    """A tensor of PyTorch, as far as it is looked at."""

    def __init__(self, held: Any, dtype: Any) -> None:
        self.held, self.dtype = np.asarray(held), dtype

    def detach(self) -> Constant:
        return self

    cpu = detach

    def double(self) -> Constant:
        return Constant(self.held.astype(np.float64), self.dtype)

    def numpy(self) -> Any:
        return self.held

    def __mul__(self, other: Any) -> Any:
        return handed_on("mul")(self, other)


Constant.__name__, Constant.__module__ = "Tensor", "torch"


def handed_on(name: str) -> Callable[..., Any]:
    """A function as PyTorch has them: the first argument that implements the protocol is asked."""

    def function(*given: Any, **how: Any) -> Any:
        first = next(each for each in given if hasattr(type(each), "__torch_function__"))
        return type(first).__torch_function__(function, (type(first),), given, how)

    function.__name__ = name
    function.__module__ = "torch.nn.functional"
    return function


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("torch")
    for name in ("float16", "bfloat16", "float32", "float64", "int32", "int64"):
        setattr(module, name, Type(name))
    for name in ("sigmoid", "erf", "relu"):
        setattr(module, name, handed_on(name))
    module.half = Constant([0.5], module.float32)
    monkeypatch.setitem(__import__("sys").modules, "torch", module)
    return module


def test_a_function_of_torch_itself_is_followed(fake: Any) -> None:
    def silu(x: Any) -> Any:
        assert x.dtype is fake.float32
        return fake.sigmoid(x) * x.to(fake.float32)

    def halved(x: Any) -> Any:
        return fake.half * silu(x)

    def doubled(x: Any) -> Any:
        return silu(x) + 2 * halved(x)

    assert judge(TEXT, silu, ARGS).verdict == "equal"
    assert judge(TEXT, halved, ARGS).verdict == "different"
    assert judge(TEXT, lambda x: doubled(x) / 2, ARGS).verdict == "equal"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda torch, x: torch.erf(x), "'torch.erf' is not among"),
        (lambda torch, x: torch.relu(x, inplace=True), "in place"),
        (lambda torch, x: x * (x > 0), "'>' not supported"),
        (lambda torch, x: x.to(torch.int32), "floats as whole numbers"),
        (lambda torch, x: np.exp(x), "does not support ufuncs"),
    ],
)
def test_what_is_not_followed_is_named(fake: Any, function: Callable[..., Any], said: str) -> None:
    def reference(x: Any) -> Any:
        return function(fake, x)

    with pytest.raises(CheckError, match=said):
        judge(TEXT, reference, ARGS)


def case(**args: str) -> Case:
    listed = [said(name, text) for name, text in {**args, "y": "f32[4]=out"}.items()]
    return case_of(listed, {}, "1", "1", None, "0", 1)


def test_types_are_those_of_torch() -> None:
    seen: dict[str, str] = {}

    def reference(h: torch.Tensor, b: torch.Tensor, k: torch.Tensor, one: torch.Tensor) -> Any:  # noqa: F821
        made = {
            "half": h + 1.5, "both": h * b, "scalar": h * one, "mixed": k * 0.5, "whole": k + 1,
            "sum": k.sum(axis=0), "quotient": k / 2, "exp": k.exp(), "max": h.max(0).values,
            "said": h.softmax(0, dtype=torch.float32), "mean": h.float().mean(),
        }  # fmt: skip
        seen.update({name: str(each.dtype) for name, each in made.items()})
        assert made["exp"].array[1] == np.exp(1.0)  # NumPy's of int8 are halves
        return h

    given = case(h="f16[4]=ones", b="bf16[4]=ones", k="i8[4]=range", one="f32")
    given.fill(np.random.default_rng(1), "normal")
    with torch_of_references():
        import torch  # type: ignore[import-not-found,unused-ignore]

        reference.__globals__["torch"] = torch
    try:
        Reference(reference).of(given.given(), given)
    finally:
        del reference.__globals__["torch"]
    assert seen == {
        "half": "float16", "both": "float32", "scalar": "float16", "mixed": "float32",
        "whole": "int8", "sum": "int64", "quotient": "float32", "exp": "float32",
        "max": "float16", "said": "float32", "mean": "float32",
    }  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [lambda k: k + 300, lambda k: k.mean(), lambda k: k.softmax(0), lambda k: -k * k[1].var()],
)
def test_what_torch_has_not_of_whole_numbers_is_refused(function: Callable[..., Any]) -> None:
    given = case(k="i8[4]=range", x="f32[4]")
    given.fill(np.random.default_rng(1), "normal")
    with pytest.raises(WarploomError, match=r"not followed|none of PyTorch's"):
        Reference(function, on_tensors=True).of(given.given(), given)


def test_types_that_tensors_have_not_are_refused() -> None:
    unsigned = case(k="u32[4]=range")
    unsigned.fill(np.random.default_rng(1), "normal")
    with pytest.raises(CheckError, match="of which no tensors are"):
        Reference(lambda k: k, on_tensors=True).of(unsigned.given(), unsigned)


def test_who_speaks_torch(fake: Any) -> None:
    def through(x: Any) -> Any:
        return [fake.sigmoid(each) for each in x]

    def by_numpy(x: Any) -> Any:
        return np.exp(x)

    assert speaks_torch(through)
    assert speaks_torch(lambda x: through(x))
    assert speaks_torch(SimpleNamespace) is False
    assert not speaks_torch(by_numpy)
    assert not speaks_torch(lambda x: x.sum(-1))  # this file has NumPy
    alone = {"torch": fake}
    exec("def f(x): return x.sum(-1)", alone)
    assert speaks_torch(alone["f"])
