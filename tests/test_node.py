"""Nodes are the same object for the same fields, also after a journey through `pickle`."""

from __future__ import annotations

import pickle

import pytest

from warploom.catalogue import find
from warploom.index.parse import parse


def test_an_expression_comes_back_as_itself() -> None:
    expression = parse("(x0 * 3 + x1) % 7 ^ (x1 >> 1)")
    assert pickle.loads(pickle.dumps(expression)) is expression


@pytest.mark.parametrize("name", ["aos-to-soa", "convolution-1d", "transposition"])
def test_a_kernel_comes_back_as_it_was(name: str) -> None:
    kernel = find(name).kernel()
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)
