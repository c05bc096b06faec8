"""The stand-in for torch says what it does not follow, and arithmetic of host code is C's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom.problems.arithmetic import NotReadError, Number
from warploom.verdict.stand_in import torch_stands_in
from warploom.verdict.tensors import FUNCTIONS, Tensor

X = np.arange(6, dtype=np.float64).reshape(2, 3) + 1


def in_place(x: Tensor) -> Tensor:
    x += 1  # type: ignore[operator,assignment]
    return x


REFUSED: dict[str, Callable[[Any], Any]] = {
    "comparison": lambda x: x * (x == 2),
    "other comparison": lambda x: x * (x != 2),
    "condition": lambda x: x or -x,
    "in place": in_place,
    "relu in place": lambda x: FUNCTIONS["relu"](x, inplace=True),
    "as whole": lambda x: x.to(np.int32),
    "sum as whole": lambda x: FUNCTIONS["sum"](x, dim=0, dtype=np.int64),
    "no dimension": lambda x: FUNCTIONS["sum"](x, dim=()),
    "a switch as dimension": lambda x: FUNCTIONS["var"](x, False),
    "a switch by place": lambda x: FUNCTIONS["var"](x, 1, False),
    "softmax of no dimension": lambda x: FUNCTIONS["softmax"](x),
    "an unknown method": lambda x: x.sort(),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_would_be_another_function_is_refused(name: str) -> None:
    with pytest.raises((NotImplementedError, TypeError, AttributeError)):
        REFUSED[name](Tensor(X))


def test_types_are_converted_but_for_rounding() -> None:
    small = Tensor(np.array([100, 120], np.int8))
    assert FUNCTIONS["mul"](small.float(), small.float()).array.tolist() == [10000, 14400]
    third = Tensor(np.array([1 / 3]))
    half = third.to(np.float16)
    assert half.array[0] == 1 / 3
    assert not np.shares_memory(half.array, third.array)
    assert third.to("cuda") is third
    with torch_stands_in(None):
        import torch  # type: ignore[import-not-found,unused-ignore]

        made = torch.randn(2, 3, dtype=torch.bfloat16)
        assert str(made.dtype) == str(made.t().dtype) == "bfloat16"
        assert made.to(torch.bfloat16) is made
        assert str(torch.empty_like(made).dtype) == "bfloat16"
        assert torch.empty(2, 3, dtype=torch.float16).stride() == (3, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31), ("0x1FF + 1u", 512), ("1e-5f", 1e-5), ("1.f", 1.0), (".5f * 4", 2.0),
        ("7 / 2", 3), ("-7 / 2", -3), ("(float)7 / 2", 3.5), ("static_cast<float>(7) / 2", 3.5),
        ("(int)(7 * 0.5f)", 3), ("(int)-3.5", -3), ("(float)(n / 2) * 2", 6.0),
        ("float(n) / 2", 3.5),
        ("(n + 31) / 32", 1), ("1 << 4", 16), ("std::min(n, 3)", 3), ("sizeof(float) * n", 28),
        ("(size_t)n * 3 % 4", 1), ("1.0f / sqrtf(4.0f)", 0.5), ("(unsigned int)n", 7),
    ],
)  # fmt: skip
def test_numbers_of_host_code(text: str, value: float) -> None:
    found = Number({"n": 7}).of(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["~n", "n ? 1 : 2", "m", "f(n)", "n == 7", "010", "1 / 0"])
def test_numbers_that_are_not_read(text: str) -> None:
    with pytest.raises(NotReadError):
        Number({"n": 7}).of(text)
