"""Content: what differs anywhere has another digest, what is built alike the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from warploom.array import workload
from warploom.loopnest.kernels import axpy, matmul
from warploom.loopnest.target import DEFAULT, cuda_vectors
from warploom.machine.record import H200
from warploom.search.storage.content import content_digest
from warploom.sketch.build import Sketch
from warploom.sketch.term.ir import Fold, Symbol


def test_content_is_what_something_is_made_of() -> None:
    assert content_digest(axpy(6)) == content_digest(axpy(6))
    assert content_digest(axpy(6)) != content_digest(axpy(7))
    assert content_digest(workload.dot()) not in (None, content_digest(workload.total()))
    one, two = Symbol(1), Fold("+", (Symbol(2), Symbol(3)))
    assert content_digest(Fold("*", (one, two))) == content_digest(Fold("*", (two, one)))
    different = [
        0, 0.0, -0.0, False, "0", None, b"0", (0,), [0], {0}, {0: 0}, np.zeros(1), np.int64(0),
        0.1, 0.1 + 2**-56, float("inf"), (0, (0,)), ((0, 0),), Fold("*", (one, one)), H200.rates,
        replace(H200.rates, clock=1.0), DEFAULT, replace(DEFAULT, unroll=8), cuda_vectors,
        matmul(8, 8, 8), matmul(8, 8, 8, stride=2),
    ]  # fmt: skip
    assert len({content_digest(each) for each in different}) == len(different)
    assert None not in map(content_digest, different)


def test_code_is_not_known_by_looking_at_it() -> None:
    sketch = Sketch("own")
    x = sketch.input("x", 4)
    sketch.hole("row_xforms", sketch.apply("load_rep", x, shape=(2, 2)), name="a")
    sketch.goal(lambda x: x.reshape(2, 2))
    itself: list[object] = []
    itself.append(itself)
    for value in (lambda: 0, sketch.program(), itself, Path("x"), np.array([print])):
        assert content_digest(value) is None
