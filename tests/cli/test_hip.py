"""`--emit hip`, wherever CUDA is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli
from tests.emit.test_hip import CLANG, accepted


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        ("kernel", "transposition", "--set", "m=32", "--set", "n=4"),
        ("map", "matvec", "--size", "m=64,n=64", "--first", "--machine", "mi300"),
        (
            "explore",
            "axpy",
            "--size",
            "n=12",
            "--evaluations",
            "4",
            "--model",
            "--machine",
            "mi300",
        ),
        ("layout", "solve", "transpose:64x64:f32", "--machine", "mi300"),
        ("synth", "transposition", "--size", "m=32,n=2"),
    ],
    ids=lambda words: words[0],
)
def test_it_is_written_wherever_cuda_is(cli: Cli, words: tuple[str, ...], tmp_path: Path) -> None:
    machines = Path(__file__).resolve().parents[2] / "examples" / "machines"
    given = [str(machines / "mi300.toml") if word == "mi300" else word for word in words]
    out = tmp_path / "out.hip"
    ran = cli(*given, "--emit", "hip", "-o", str(out))
    assert ran.status == 0, ran.err
    text = out.read_text()
    assert "__global__" in text or "__device__" in text
    if CLANG is not None:
        assert accepted(text, tmp_path) == ""
