"""Each example runs and asserts; each text among them has the outcome its first line promises."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from warploom import Sketch, synthesize
from warploom.native import c_compiler
from warploom.search.outcome import Verdict

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
OTHERS = [path for path in SCRIPTS if path.stem != "demo"]  # of which more is asked
SKETCHES = sorted((EXAMPLES / "sketches").glob("*.swflow"))
FILLS = {"convolution": 1, "impossible": 0, "own_gathers": 1, "sums": 1, "transposition": 2}


def test_there_are_examples() -> None:
    assert len(SCRIPTS) >= 4
    assert [path.stem for path in SKETCHES] == sorted(FILLS)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_the_script_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert said.strip()  # the script itself asserts what it shows


def test_every_way_in_has_a_short_script() -> None:
    for name in ("run_ptx", "swizzle", "loop_nest", "array_map", "warp_stencil", "convolution"):
        assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 40


def test_the_notebook_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its cells one after the other; the outputs are not kept in the file."""
    if c_compiler() is None:
        pytest.skip("no C compiler")
    cells = json.loads((EXAMPLES / "transposition.ipynb").read_text())["cells"]
    seen: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec(compile("".join(cell["source"]), cell["id"], "exec"), seen)
    said = capsys.readouterr().out
    assert "fills, proved" in said
    assert "__shfl_sync(" in said
    assert "<svg" in seen["result"]._repr_html_()  # type: ignore[attr-defined]


def test_the_demo_shows_sketch_fill_proof_kernel_run_and_what_comes_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert (EXAMPLES / "sketches" / "sums.swflow").read_text() in said
    assert "1 of 168 fills is right: proved" in said
    assert "__shfl_sync(" in said
    assert "equal to NumPy's" in said or "left out: " in said
    assert said.count("verdict: proved") == 2
    assert "transposition.swflow: 2 of" in said
    assert ".venv/bin/warploom synth" in said.splitlines()[-1]


@pytest.mark.parametrize("path", SKETCHES, ids=lambda path: path.stem)
def test_the_sketch_has_its_fills(path: Path) -> None:
    program = Sketch.from_file(path)
    result = synthesize(program)
    assert result.complete
    assert result.fills.count == FILLS[path.stem]
    assert result.verdict is (Verdict.PROVED if FILLS[path.stem] else Verdict.IMPOSSIBLE)
    again = synthesize(Sketch.from_text(program.text()))
    assert again.fills.count == result.fills.count
