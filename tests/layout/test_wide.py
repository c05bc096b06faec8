"""Warps of 64 lanes: fragments of MFMA, conversions between them, on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.catalogue.conversion import conversion_text, wrong_results
from warploom.errors import EmitError, WarploomError
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.conversion.schedule import schedule
from warploom.layout.conversion.shuffle import Wants, moved
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.patterns.access import IDLE
from warploom.machine.record import machine_named
from warploom.pipeline.converted import conversion_lines, converted
from warploom.search.budget import Budget

ROWS = "blocked([1, 4], [8, 8], [1, 1], [1, 0])"


def between(source: str, target: str, size: int, machine: str = "gfx942") -> Conversion:
    one, two = (read_fragment(text, (32, 32)) for text in (source, target))
    return convert(one, two, size, machine=machine_named(machine))


@pytest.mark.parametrize(
    ("source", "target", "size"),
    [
        ("mfma_c(32)", ROWS, 4), ("mfma_c(32, True)", ROWS, 2), ("mfma_c(16)", "mfma_a(4, 16)", 2),
        (ROWS, "mfma_b(8, 16)", 1),
    ],
)  # fmt: skip
def test_conversions_of_64_lanes_are_right(source: str, target: str, size: int) -> None:
    found = between(source, target, size)
    assert found.source.lanes == 64
    for way in ("renames", "shuffles", "shared"):
        if not found.refusal(way):
            assert not wrong_results(found, way, "simulator"), way
    assert found.matrices is None


def test_the_result_of_one_product_is_the_operand_of_the_next() -> None:
    assert between("mfma_c(32, True)", "mfma_a(4, 32, True)", 2).chosen == "nothing"


def test_banks_of_the_machine_count() -> None:
    narrow, wide = (between("mfma_c(32)", ROWS, 4, name).shared for name in ("gfx942", "gfx950"))
    assert narrow is not None
    assert wide is not None
    assert narrow.wavefronts == 2 * wide.wavefronts == sum(narrow.task.bound.wavefronts)


def test_random_exchanges_take_the_fewest_rounds() -> None:
    """Any permutation of what 64 lanes hold: as many rounds as one lane must receive or send."""
    draw = np.random.default_rng(5)
    for registers in (1, 2, 3, 4):
        elements = draw.permutation(64 * registers).reshape(64, registers)
        held = np.arange(64 * registers).reshape(64, registers)
        plan = schedule(Wants(held, elements, 1))
        assert plan.proved
        assert np.array_equal(moved(plan, held.T).T, elements)


def test_texts() -> None:
    found = between("mfma_c(32)", ROWS, 4)
    assert "__shfl(" in conversion_text(found, "shuffles", "hip")
    with pytest.raises(EmitError, match="warps of 32 lanes"):
        conversion_text(found, "shuffles", "cuda")
    said = "\n".join(conversion_lines(found))
    assert "of 64 lanes" in said
    assert "not measured here: how gfx942 serves lanes" in said


def test_lanes_come_from_the_machine_where_threads_are_counted() -> None:
    texts = ("(64,4):(1,64)", "(64,4):(4,1)", None, "f32", Budget())
    assert converted(*texts, "gfx950").source.lanes == 64
    assert converted(*texts, None).source.warps == 2


def test_other_warps_are_refused() -> None:
    with pytest.raises(WarploomError, match="64 lanes to warps of 32"):
        convert(read_fragment("mfma_c(32)", (32, 32)), read_fragment("mma_c()", (32, 32)), 4)
    one = read_fragment(ROWS, (32, 32))
    with pytest.raises(WarploomError, match="h200 has 32"):
        convert(one, one, 4, machine=machine_named("h200"))
    half = read_fragment("blocked([1,4],[8,8],[1,1],[1,0],cga_layout=[[0,1]])", (32, 64))
    with pytest.raises(WarploomError, match="share the tensor in another way"):
        convert(one, half, 4)


def test_what_is_idle_stays_idle() -> None:
    one = read_fragment("blocked([1, 1], [8, 8], [1, 1], [1, 0])", (24, 8))
    other = read_fragment("blocked([1, 1], [8, 8], [1, 1], [0, 1])", (24, 8))
    found = convert(one, other, 4, shared=False)
    assert found.shuffles is not None
    assert (found.source.elements != IDLE).all()
    assert not wrong_results(found, "shuffles", "simulator")
