"""What docs/sketch.md and the headers of kernels show and count is what one gets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Cli
from tests.sketch.simt.tiled import proved, specified

from warploom import spec, synthesize
from warploom.errors import DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Binding, check_indices
from warploom.search.outcome import Verdict
from warploom.sketch.holes import build
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.solve import solve
from warploom.sketch.simt.trace import Tracer

PAGE = (Path(__file__).parents[2] / "docs" / "sketch.md").read_text()
BLOCKS = [text.split("\n", 1) for text in PAGE.split("```")[1::2]]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
SHOWN = [text for kind, text in BLOCKS if not kind]


def test_the_convolution_of_the_page_is_found_and_proved() -> None:
    names: dict[str, Any] = {}
    exec(PYTHON[0], names)  # our own page
    result = names["result"]
    assert (result.fills.count > 0, result.verdict) == (True, Verdict.PROVED)


def test_the_butterfly_of_the_page_is_found_and_proved() -> None:
    from warploom import Sketch

    lanes = np.arange(32)
    partners = {str(1 << n): lanes ^ (1 << n) for n in range(5)}
    names: dict[str, Any] = {"Sketch": Sketch, "spec": spec, "partners": partners}
    exec(PYTHON[1], names)  # our own page
    result = synthesize(names["s"].program(), mode="first")
    assert result.verdict is Verdict.PROVED
    assert result.verdicts[0].laws[0].startswith("reassociated: +")


# What the shorter pieces of the page on kernels take for granted.
KERNELS_GIVEN = """
from pathlib import Path

import numpy as np
import warploom
from bench.common.own.sketches import strided_taps
from warploom import synthesize
from warploom.emit import emit
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import f32
from warploom.sketch import front
from warploom.sketch.code.program import lower_program

sketch, x = strided_taps(), np.arange(103, dtype=np.float32)
text = Path("examples/sketches/sums.swflow").read_text()
"""


def test_all_python_of_the_kernels_page_runs_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    names: dict[str, Any] = {}
    exec(KERNELS_GIVEN, names)
    page = (root / "docs" / "kernels.md").read_text()
    blocks = [text.split("```")[0] for text in page.split("```python\n")[1:]]
    for block in blocks:
        exec(block, names)  # our own page
        if "y = taps(x)" in block:
            x, y = names["x"], names["y"]
            assert np.array_equal(y, sum(x[k : len(x) - 4 + k : 2] for k in range(5)))
        if "@warp_sketch" in block:
            x = np.arange(102, dtype=np.float32)
            assert np.array_equal(names["taps"](x), x[:-2] + x[1:-1] + x[2:])
    assert len(blocks) >= 5
    assert capsys.readouterr().out.count("__global__") >= 3


def test_the_example_without_a_fill_says_what_the_page_shows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = next(text for text in SHOWN if text.startswith("x: [12]"))
    shown = next(text for text in SHOWN if "impossible, no fill exists" in text)
    lines = [line for line in example.splitlines() if not line.startswith("s:")]
    text = "\n".join(lines).replace("?col_xforms(s)", "?col_xforms(regs)")
    monkeypatch.chdir(tmp_path)
    Path("sums.swflow").write_text(text)
    ran = cli("synth", "sums.swflow")

    def timeless(said: str) -> list[str]:
        return re.sub(r"\d+\.\d+ s\)", "s)", said).splitlines()

    assert ran.status == 1
    assert timeless(ran.out) == timeless(shown)


def test_the_wrong_operator_is_refused_as_the_page_shows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = next(text for text in SHOWN if text.startswith("x: [12]"))
    shown = next(text for text in SHOWN if "multiplies (*)" in text)
    monkeypatch.chdir(tmp_path)
    Path("sums.swflow").write_text(example.replace("= + identity", "= * identity"))
    ran = cli("synth", "sums.swflow")
    assert ran.status == 2
    assert shown.strip() in ran.err


def test_there_are_as_many_bit_operations_as_the_page_says() -> None:
    alone = build("bits", {"main": 0}, ((32,),), (32,))
    turned = build("row_bits", {}, ((5, 32),), (5, 32))
    said = re.search(r"With 32\s+elements there are ([\d,]+) choices, ([\d,]+) with five k", PAGE)
    assert said is not None
    counts = [int(each.replace(",", "")) for each in said.groups()]
    assert counts == [len(alone), len(turned)]


def test_the_longest_array_of_a_header_is_the_longest() -> None:
    """One element more, and the kernel's own index arithmetic, in exact numbers, passes 32 bits."""

    def body(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", 3 * lanes), k.output("y", lanes)
        y[lane] = x[3 * lane]

    kernel = to_kernel(proved(solve(specified(body, lambda x, lanes: x[::3]).at())))
    said = re.search(r"'y' of at most (\d+) elements", kernel.doc)
    assert said is not None
    most = int(said[1])
    assert 2**31 / 3 - 100 < most <= 2**31 / 3

    def launch(length: int) -> None:
        scalars = {"x_size": 3 * length, "y_size": length}
        x, y, z = (int(evaluate(side, scalars)) for side in kernel.grid)
        check_indices(kernel, Binding(dict(scalars), (x, y, z)))

    launch(most)
    with pytest.raises(DeviceError, match="overflows 32 bits"):
        launch(most + 1)
