"""`warploom.device_function` and `--as function`: headers of names and of a user's own sketches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.common.own.listing import HERE, OWN, Own
from tests.cli.conftest import Cli, cli
from tests.tools import require

from warploom import Sketch, device_function
from warploom.errors import EmitError, WarploomError
from warploom.kernel.dtype import i32, u32

__all__ = ["cli"]

ROOT = Path(__file__).parents[2]
SUMS = str(ROOT / "examples" / "sketches" / "sums.swflow")
QUICK = ("interleave", "scan", "complex to planes")
CASES = [
    pytest.param(own, id=own.name, marks=[] if own.name in QUICK else pytest.mark.slow)
    for own in OWN
]


@pytest.mark.parametrize("own", CASES)
def test_own_sketches_become_functions(own: Own) -> None:
    header = device_function(own.subject())
    sizes = header.called.entry.sizes()[2::8]
    for device in ("c", "ptx"):
        require(device)
        assert [each for each in header.verify(device, sizes) if each.wrong] == []


def test_a_moving_sketch_is_a_template_and_an_adding_one_has_a_type() -> None:
    moving = device_function(Sketch.from_file(HERE / "reversal.swflow"))
    assert "template <typename T>" in moving.text()
    assert "void reversal(const T (&x_registers)[1], T (&y_registers)[1])" in moving.text()
    assert moving.template.kernel.arrays[0].dtype is u32
    adding = device_function(Sketch.from_file(SUMS), dtype=i32)
    assert "void sums(const int (&regs)[3], int (&sum_registers)[1])" in adding.text()
    assert "Register x1 of 'regs' in lane x0 holds x[x0 + x1 * 4]." in adding.text()


def test_errors_are_located(tmp_path: Path) -> None:
    nothing = tmp_path / "copy.swflow"
    nothing.write_text("x: [4] = range(0, 4)\ny: [4] = id(x)\ngoal: [4] = [0, 1, 2, 3]\n")
    with pytest.raises(WarploomError, match="nothing is exchanged or computed"):
        device_function(Sketch.from_file(nothing))
    with pytest.raises(WarploomError, match="no parameter 'fields'"):
        device_function(Sketch.from_file(SUMS), fields=3)
    with pytest.raises(WarploomError, match="registers of float16"):
        device_function(Sketch.from_file(SUMS), dtype="float16")


def test_the_command_line_writes_checks_and_mutates(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "sums.cuh"
    ran = cli("synth", SUMS, "--emit", "cuda", "--as", "function", "-o", str(out))
    assert ran.status == 0, ran.err
    command = f"Command: warploom synth {SUMS} --emit cuda --as function"
    assert out.read_text() == device_function(Sketch.from_file(SUMS)).text(note=command)
    ran = cli("kernel", "load-structures", "--set", "fields=1", "--check", "--mutate", "--most=4")
    assert ran.status == 0, ran.err
    assert "0 bytes spilled" in ran.out
    assert "go with --emit" in cli("synth", SUMS, "--as", "function").err
    assert "not measured" in cli("kernel", "load-structures", "--time").err
    assert "no device function" in cli("kernel", "aos-sum", "--as", "function").err


PAGE = (ROOT / "docs" / "kernels.md").read_text()
SECTION = PAGE.split("## Device functions")[1].split("\n## ")[0]
COMMANDS = re.findall(r"^warploom ([^#\n]*)", SECTION, re.MULTILINE)


@pytest.mark.parametrize("command", [each for each in COMMANDS if "examples/" not in each])
def test_commands_of_the_page_run(
    command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli(*command.split())
    assert ran.status == 0, ran.err


def test_the_python_of_the_page_runs() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    exec(text, {})  # our own page


def test_a_header_is_saved_by_how_its_name_ends(tmp_path: Path) -> None:
    header = device_function("load-structures", fields=2)
    header.save(tmp_path / "it.cuh")
    assert (tmp_path / "it.cuh").read_text() == header.text("cuda")
    header.save(tmp_path / "it.cl")
    assert (tmp_path / "it.cl").read_text() == header.text("opencl")
    with pytest.raises(EmitError, match=r"how the name ends") as caught:
        header.save(tmp_path / "it.h")
    assert caught.value.advice == "it may end in .cu, .cuh, .hip, .cl, .c"
    with pytest.raises(EmitError, match="cannot write"):
        header.save(tmp_path / "nowhere" / "it.cuh")
