"""Pages to look at, made once: a fill, a stencil, an impossible sketch, …"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from warploom.array import workload
from warploom.array.code.program import Compiled, compile_candidate
from warploom.array.joint.model import JointModel
from warploom.array.joint.promising import promising
from warploom.bench.published import named
from warploom.loopnest.kernels import KERNELS, Cut
from warploom.loopnest.target import Target
from warploom.machine.record import CUDA, machine_named
from warploom.pipeline.nest import Explored, Nest
from warploom.pipeline.pictures import picture
from warploom.ptx import load
from warploom.report.picture import Picture
from warploom.report.ptx import Observed, observed
from warploom.search.outcome import Found
from warploom.sketch.front import load_text
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Every lane has what it loaded, and nothing crosses lanes: a transposition is out of reach.
IMPOSSIBLE = """x: [12] = range(0, 12)
regs: [4,3] = load_rep(x)
s: [4,3] = ?row_xforms(regs)
goal: [4,3] trove
"""
SKETCHES = {
    "transposition": ("transposition", {"m": 32, "n": 5}),
    "large": ("transposition", {"m": 32, "n": 16}),
    "stencil": ("swinv_like/l3/2d-stencil-5", {}),
    "small": ("transposition", {"m": 8, "n": 3}),
    "sums": ("sums", {"rows": 8, "columns": 3}),
    "convolution": ("convolution", {}),
    "product": ("product", {}),
    "gaussian": ("gaussian", {}),
}


@cache
def found(name: str) -> Result:
    """The best fill of one of the sketches."""
    sketch, sizes = SKETCHES[name]
    build = named(sketch)
    assert build is not None
    return synthesize(build(sizes), mode="best")


@cache
def impossible() -> Result:
    return synthesize(load_text(IMPOSSIBLE, "impossible.swflow"))


@cache
def launched() -> Observed:
    """A kernel without the barrier that it needs."""
    text = (EXAMPLES / "ptx" / "race.ptx").read_text()
    kernel = load(text, "race.ptx").kernel()
    given = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]
    return observed(kernel, kernel.launch(1, 64, given, races="all", counters=True))


@cache
def mapped() -> Compiled:
    model = JointModel(workload.matmul(), {"m": 16, "n": 16, "k": 8}, CUDA)
    outcome = promising(model, 1, 50)
    assert isinstance(outcome, Found)
    return compile_candidate(model.plan, outcome.answer[0])


@cache
def explored() -> Explored:
    """A few implementations, by a search that is the same every time."""
    program = KERNELS["axpy"](n=4096, cut=Cut(tail=True))
    nest = Nest(
        program, machine_named("h200").rates, Target(CUDA, cooperative_copies=True, stages=(1, 2))
    )
    return nest.search("tree", 4)


@cache
def page_of(name: str) -> Picture:
    others = {"impossible": impossible, "ptx": launched, "mapping": mapped, "nest": explored}
    if name == "search":
        history = explored().history
        assert history is not None
        return picture(history, title="axpy")
    if name in others:
        return picture(others[name]())
    small = name in ("transposition", "small", "sums")
    return picture(found(name), code=None if small else False)


def data_of(html: str) -> dict[str, Any]:
    """What the script of a page reads."""
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert inside is not None
    data: dict[str, Any] = json.loads(inside[1])
    return data


def sources(data: dict[str, Any], panel: int, cell: int) -> list[tuple[int, int]]:
    """The cells that a cell is made of, by the page's own data."""
    own = data["panels"][panel]
    reads = own["reads"][cell] if own["reads"] else []
    found = []
    for read in reads if isinstance(reads, list) else [reads]:
        for source in own["sources"]:
            cells = data["panels"][source]["cells"]
            if 0 <= read < cells:
                found.append((source, read))
            read -= cells if read >= 0 else 0
            if read < 0:
                break
    return found


def memory_of(data: dict[str, Any], panel: int, cell: int) -> set[tuple[str, int]]:
    """The elements of memory that a cell comes from, followed all the way."""
    if data["panels"][panel]["kind"] == "memory":
        return {(data["panels"][panel]["name"], cell)}
    return {end for at in sources(data, panel, cell) for end in memory_of(data, *at)}
