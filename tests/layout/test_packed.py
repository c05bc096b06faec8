"""Elements of 4 bits: two share a byte, and all is as it is for half as many bytes."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from warploom.emit.index_function import exported
from warploom.errors import CheckError, WarploomError
from warploom.layout.formats.cute import read_cute, write_cute
from warploom.layout.formats.given import given_layout
from warploom.layout.language.build import row_major
from warploom.layout.language.evaluate import values
from warploom.layout.language.ir import Compose, Swizzle
from warploom.layout.patterns.access import Access, Problem, check_problem
from warploom.layout.patterns.named import pattern
from warploom.layout.patterns.pattern import parse_pattern
from warploom.layout.patterns.ways import ways_of
from warploom.layout.solver.certificate import certificate
from warploom.layout.solver.solve import members, solve
from warploom.layout.solver.task import Task
from warploom.trust.checked import digest
from warploom.trust.layout_text import check_layout_and_text

TWINS = {
    "ldmatrix:64x128:u4": "ldmatrix:64x64:u8",
    "ldmatrix:32x96:i4": "ldmatrix:32x48:u8",
    "transpose:32x64:e2m1:store=16:load=4": "transpose:32x32:u8:store=16:load=4",
    "mma-a:16x128:u4": "mma-a:16x64:u8",
    "mfma:64x128:u4@gfx950": "mfma:64x64:u8@gfx950",
}


@pytest.mark.parametrize("name", TWINS)
def test_all_is_as_for_bytes(name: str) -> None:
    """Bounds, the cost of every padding and swizzle, and what the solver finds."""
    halves, whole = Task(pattern(name)), Task(pattern(TWINS[name]))
    assert halves.bound == whole.bound
    assert [a.width for a in halves.problem.accesses] == [
        2 * a.width for a in whole.problem.accesses
    ]
    assert _costs(halves, "pad") == _costs(whole, "pad")
    # A swizzle of the lowest bit would tear bytes; the others are those of bytes, one bit up.
    assert _costs(halves, "swizzle") == _costs(whole, "swizzle")
    for klass in ("pad", "mixed"):
        one, other = solve(halves, klass), solve(whole, klass)
        assert (type(one.outcome), one.least) == (type(other.outcome), other.least)


def _costs(task: Task, klass: str) -> list[object]:
    """Of all layouts of the class that keep bytes whole."""
    answers = [task.answer(layout) for layout in members(task, klass)]
    size = task.problem.bytes_of(1 << 20)
    return [(a.cost, a.unused * size) for a in answers if a is not None]


@pytest.mark.parametrize("klass", ["pad", "swizzle", "xor"])
def test_certificates(klass: str) -> None:
    task = Task(pattern("transpose:32x32:u4:store=4:load=1"))
    record = json.loads(json.dumps(certificate(task, solve(task, klass))))
    assert record["problem"]["packed"] == 2
    assert not check_layout_and_text(record).open
    for packed in (1, 4, True, "2"):
        changed = copy.deepcopy(record)
        changed["problem"]["packed"] = packed
        changed["digest"] = digest(changed)
        with pytest.raises(CheckError):
            check_layout_and_text(changed)


def test_a_pattern_file_and_its_ways() -> None:
    problem = parse_pattern(
        'shape = [16, 128]\nelement = "u4"\n[[access]]\nuse = "rows"\nkind = "st"\n'
        '[[access]]\nbytes = 4\nsteps = 8\nindex = "(step * 32 + lane) * 8"\n'
    )
    assert [each.width for each in problem.accesses] == [32, 8]
    assert (problem.bits, problem.bytes_of(32), problem.elements_in(16)) == (4, 16, 32)
    names = [way.name for way in ways_of(problem, ("width",))]
    assert any("by 1 bytes" in name for name in names)
    assert not any("by 0 bytes" in name for name in names)


def test_texts_say_elements_of_4_bits() -> None:
    layout = Compose(Swizzle(2, 5, 3), row_major(64, 128))
    text = write_cute(layout, "c++", 1, 2)
    assert "smem_ptr[4b]" in text
    assert np.array_equal(values(read_cute(text)), values(layout))
    assert "smem_ptr[4b]" in exported(layout, "cute", "tile", 1, 2)
    with pytest.raises(WarploomError, match="two elements are in one"):
        write_cute(layout, "tilelang", 1, 2)
    with pytest.raises(WarploomError, match="parts of bytes"):
        write_cute(Compose(Swizzle(2, 0, 3), row_major(64, 128)), "c++", 1, 2)
    with pytest.raises(WarploomError, match="counts bytes"):
        given_layout("NVMMASharedLayout(128, 8)", (64, 128), 1, 2)


def _problem(width: int, **more: object) -> Problem:
    elements = np.arange(32 * width).reshape(1, 32, width)
    return Problem("p", (32 * width,), 1, (Access("a", elements),), **more)  # type: ignore[arg-type]


def test_what_is_no_whole_byte_is_refused() -> None:
    assert check_problem(_problem(2, packed=2)).packed == 2
    with pytest.raises(WarploomError, match="whole bytes"):
        check_problem(_problem(1, packed=2))
    with pytest.raises(WarploomError, match="two in one byte"):
        check_problem(_problem(4, packed=4))
    with pytest.raises(WarploomError, match="tensor copies"):
        check_problem(_problem(2, packed=2, copies=("fill",)))
    with pytest.raises(WarploomError, match="element type"):
        pattern("ldmatrix:64x128:u3")
