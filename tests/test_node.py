"""Nodes are the same object for the same fields, also after a journey through `pickle`."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from warploom.catalogue import find
from warploom.index.ir import Var
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


def test_threads_that_build_one_node_get_the_same() -> None:
    """Few of many pairs would meet by chance: both threads wait for each other before each."""
    gate = threading.Barrier(2)

    def built() -> list[Var]:
        kept = []
        for number in range(300):
            gate.wait()
            kept.append(Var(f"only_here_{number}"))
        return kept

    with ThreadPoolExecutor(2) as pool:
        one, other = (each.result() for each in [pool.submit(built) for _ in range(2)])
    assert all(a is b for a, b in zip(one, other, strict=True))
