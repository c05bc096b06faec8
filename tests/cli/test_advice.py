"""Errors about a word say which words there are, and where one that is known elsewhere belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.common.cli.commands import PTX, SAXPY, SUMS
from tests.cli.conftest import Cli

NEST = """
from warploom.array import workload
from warploom.loopnest.kernels import axpy
made, nest = workload.dot(), axpy(64)
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("show axpy", "loop nest: 'warploom explore axpy', or 'warploom show axpy --as nest'"),
        ("synth axpy", "loop nest: 'warploom explore axpy', or 'warploom show axpy --as nest'"),
        ("show dot", "an array expression: 'warploom map dot', or 'warploom show dot --as map'"),
        ("show matmul", "--as nest'; it is an array expression"),
        ("explore dot --size n=4", "'warploom map dot'"),
        ("map axpy --size n=4", "'warploom explore axpy'"),
        ("map aos-to-soa", "it is a kernel: 'warploom kernel aos-to-soa'"),
        ("show mine.py::made", "--as map'"),
        ("show mine.py::nest", "--as nest'"),
        ("explore mine.py::made", "'warploom map FILE.py::NAME'"),
    ],
)  # fmt: skip
def test_a_name_that_another_command_knows(
    words: str, said: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(NEST)
    ran = cli(*words.split())
    assert ran.status == 2
    assert said in ran.err


LAUNCH = " ".join(SAXPY)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("explore axpi", "did you mean axpy? Known are axpy, "),
        ("explore axpy --size m=4", "known are n"),
        ("explore axpy --size n=4 --machine h201", "did you mean h200? Known are "),
        ("map dott", "did you mean dot? Known are "),
        ("map conv --layer conv9_9", "conv5_1"),
        ("map dot --size n=4 --machine cudo", "did you mean cuda? Known are "),
        (f"synth {SUMS} --emit c --dtype float31", "did you mean float32? Known are "),
        (f"ptx shuffle {PTX}/stencil.ptx --select al", "did you mean all? Known are pays, all"),
        (f"ptx shuffle {PTX}/stencil.ptx --variant corners", "did you mean corner? Known are "),
        (f"ptx shuffle {PTX}/stencil.ptx --machine h201", "did you mean h200? Known are "),
        ("ptx run " + LAUNCH.replace("=ones", "=one"), "did you mean ones? Known are zeros, "),
        ("ptx run " + LAUNCH.replace("i32=32", "int32=32"), "did you mean i32? Known are "),
        ("layout solve rcd:32x32 --class swizle", "nown are none, pad, swizzle, "),
        ("layout solve rcd:32x32 --emit cutee", "did you mean cute? Known are "),
        ("layout solve rcd:32x32 --vary widths", "nown are width, matrices, "),
        ("layout show (4,4):(4,1) --shape 4x4 --element f33", "did you mean f32? Known are "),
        ("layout convert --from (32,5):(1,32) --to (32,5):(5,1) --way shufles",
         "did you mean shuffles? Known are "),
        ("layout convert --from (32,5):(1,32) --to (32,5):(5,1) --element f33",
         "did you mean f32? Known are "),
    ],
)  # fmt: skip
def test_a_word_that_is_none(words: str, said: str, cli: Cli) -> None:
    ran = cli(*words.split())
    assert ran.status == 2, ran.out
    assert said in ran.err


def test_two_transfers_are_two_targets(cli: Cli) -> None:
    both = ["synth", "transposition", "--no-store", "--first", "--size", "m=4,n=3"]
    ran = cli(*both, "--transfer", "m=8", "--transfer", "n=5")
    said = "each --transfer is a target of its own, so there are 2: m=8; n=5."
    assert said in ran.out + ran.err
    assert "--transfer m=8,n=5" in ran.out + ran.err
    one = cli(*both, "--transfer", "m=8", "--transfer", "m=16")
    assert "of its own" not in one.out + one.err  # clearly two
    assert "given twice, at two" in cli("synth", "--help").out
