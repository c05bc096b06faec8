"""Tiles that wgmma reads by descriptors: which layouts those are, what is the best, the proof."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from bench.layout.hopper_device import SETTINGS, emulated, made

from warploom.cli.layout_view import answer_lines
from warploom.errors import WarploomError
from warploom.layout.formats.descriptor import SPANS
from warploom.layout.formats.operand import MODES, Blocks, is_read, reading, tiles_in_blocks
from warploom.layout.language.evaluate import extended
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Operand
from warploom.layout.patterns.named import pattern
from warploom.layout.patterns.pattern import parse_pattern
from warploom.layout.solver.certificate import certificate, digest
from warploom.layout.solver.front import front_of
from warploom.layout.solver.front_json import front_record
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.trust.layout import check_layout

FILE = """shape = [64, 128]
element = "bf16"
[[access]]
name = "fill"
kind = "tma"
[[access]]
name = "B"
kind = "wgmma"
major = "mn"
rows = 128
"""


@pytest.mark.parametrize("major", ["k", "mn"])
def test_blocks_that_are_said_to_be_read_are_read(major: str) -> None:
    """Which blocks descriptors read is a formula; here each is tried, element by element."""
    seen = set[tuple[str, bool]]()
    for shape, rows in (("64x128", 64), ("128x64", 64), ("192x64", 192), ("64x48", 8)):
        turned = f":mn={int(major == 'mn')}"
        sides = shape if major == "k" else "x".join(shape.split("x")[::-1])
        problem = pattern(f"wgmma-copied:{sides}:f16:rows={rows}{turned}")
        (operand,) = problem.operands
        numbers = np.arange(problem.size)
        for mode in MODES:
            for height in range(8, problem.rows + 1, 8):
                if problem.rows % height or problem.columns * 2 % SPANS[mode]:
                    continue
                blocks = Blocks(mode, height)
                found = reading(problem, operand, extended(blocks.layout(problem), numbers))
                said = is_read(problem, operand, blocks)
                assert found is not None or not said, (shape, mode, height)
                seen.add((mode, said))
        whole = {mode for mode in MODES if problem.columns * 2 % SPANS[mode] == 0}
        assert {each.mode for each in tiles_in_blocks(problem)} == whole
    assert len(seen) > len(MODES)


def test_the_best_tiles() -> None:
    for name, layout, bits in (
        ("wgmma:128x64:bf16", "S<3,3,3> o (128,64):(64,1)", "0x4000004000010000"),
        ("wgmma:64x128:bf16:mn=1", "S<3,3,3> o (64,(64,2)):(64,(1,4096))", "0x4000004002000000"),
        ("wgmma:64x32:e4m3", "S<1,4,3> o (64,32):(32,1)", "0xc000001000010000"),
        ("wgmma-copied:64x64:tf32", "S<3,2,3> o (64,(32,2)):(32,(1,2048))", "0x4000004000010000"),
    ):
        front = front_of(Task(pattern(name)), "wgmma")
        assert front.best is not None
        assert show(front.task.layout(front.best)) == layout
        assert front.best.cost == front.task.least
        record = front_record(front)
        assert [each["descriptor"] for each in record["operands"]] == [bits]
        assert bits in "\n".join(answer_lines(front))


def test_a_file_says_how_wgmma_reads() -> None:
    problem = parse_pattern(FILE)
    assert problem.operands == (Operand("B", 128, "mn"),)
    assert problem.copies == ("fill",)
    assert [access.name for access in problem.accesses] == ["B"]
    found = solve(Task(problem), "wgmma")
    assert found.best is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('major = "mn"', 'major = "m"', "4:1|major = 'm'"),
        ("rows = 128", "rows = 96", "96 of 128 rows at a time"),
        ("rows = 128", "rows = 512", "rows is a number from 1 to 256"),
        ("rows = 128", "width = 8", "wgmma has no 'width'"),
        ('"bf16"', '"f32"', "2 with m or n together"),
        ('"bf16"', '"f64"', "1, 2 or 4 bytes"),
        ("[64, 128]", "[24, 128]", "24 elements of k"),
        ('element = "bf16"', 'element = "bf16"\nmachine = "gfx942"', "gfx942 has no tensor copies"),
    ],
)
def test_bad_operands_are_one_located_error(old: str, new: str, said: str) -> None:
    with pytest.raises(WarploomError, match=said) as caught:
        parse_pattern(FILE.replace(old, new))
    assert caught.value.span is not None


def test_the_class_is_of_operands_alone() -> None:
    with pytest.raises(WarploomError, match="ask for the class wgmma"):
        solve(Task(pattern("wgmma-copied:64x64:f16")), "mixed")
    with pytest.raises(WarploomError, match="of tiles that wgmma reads"):
        solve(Task(pattern("transpose:32x32:f32")), "wgmma")


def test_the_proof_is_checked() -> None:
    """96 columns have no swizzle of 128 bytes: 64 are the best, as every member shows."""
    task = Task(pattern("wgmma-copied:64x96:f16"))
    solved = solve(task, "wgmma")
    assert solved.proved
    assert solved.least > task.least
    record = json.loads(json.dumps(certificate(task, solved)))
    assert f"class wgmma costs less than {solved.least}" in check_layout(record).shown[-1]
    for change in (
        lambda r: r["proof"]["members"].pop(),
        lambda r: r["problem"]["operands"].clear(),
        lambda r: r["problem"]["operands"][0].__setitem__(1, 8),
        lambda r: r["proof"]["members"][0][0].__setitem__(0, 16),
    ):
        changed = json.loads(json.dumps(record))
        change(changed)
        changed["digest"] = digest(changed)
        with pytest.raises(WarploomError):
            check_layout(changed)


def hopper(name: str, sides: tuple[int, int, int], columns: int = 128) -> dict[str, object]:
    pytest.importorskip("cuda.bindings.nvrtc", reason="no NVRTC: nothing to compile with")
    (setting,) = (each for each in SETTINGS if each.name == name)
    return emulated(made(replace(setting, groups=1, stages=2, columns=columns)), *sides)


def test_a_matmul_with_solved_layouts_is_right_and_has_no_conflicts() -> None:
    found = hopper("k mn", (64, 128, 64))
    assert (found["right"], found["conflicts"]) == (True, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["k k", "mn k", "mn mn", "k k, C as rows"])
def test_other_matmuls_of_solved_layouts(name: str) -> None:
    found = hopper(name, (72, 136, 72))
    assert found["right"]
    assert bool(found["conflicts"]) == ("as rows" in name)
