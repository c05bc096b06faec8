"""Certificates of fills of several kinds of sketches, as they come back from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from bench.harness import ROOT

from warploom import Sketch, spec
from warploom.bench import inventor_sketches as paper
from warploom.pipeline.certificate import certificate
from warploom.sketch import front
from warploom.sketch.simt.solve import solve
from warploom.sketch.synth.solve import synthesize

EXAMPLES = ROOT / "examples" / "sketches"


def of_example(name: str) -> dict[str, Any]:
    path = EXAMPLES / f"{name}.swflow"
    return certificate(synthesize(front.load_text(path.read_text(), path.name)))


def of_function() -> dict[str, Any]:
    """Sums of sums, equal to their goal up to a law."""
    s = Sketch("all-reduce")
    v = s.input("x", 8)
    for _ in range(3):
        v = s.sum("stack", v, s.hole("bits", v, main=0), shape=(8, 2))
    s.goal(lambda x: [spec.total(x)] * 8)
    return certificate(synthesize(s, mode="first"))


def of_warp(made: Any, **sizes: int) -> dict[str, Any]:
    return certificate(solve(made.at(**sizes)))


MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "sums": lambda: of_example("sums"),
    "transposition": lambda: of_example("transposition"),
    "convolution": lambda: of_example("convolution"),
    "own gathers": lambda: of_example("own_gathers"),
    "function": of_function,
    "warp stencil": lambda: of_warp(paper.stencil_1d, warp=8, taps=3),
    "warp structures": lambda: of_warp(paper.aos_sum, warp=8, s=3),
}


@cache
def written(name: str) -> str:
    """As it comes back from a file."""
    return json.dumps(MADE[name]())
