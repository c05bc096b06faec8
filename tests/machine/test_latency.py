"""The table of latencies and what it predicts."""

from __future__ import annotations

import pytest

from warploom.errors import UnsupportedError
from warploom.machine.latency import machine_for
from warploom.machine.record import KNOWN, machine_named

TIMED = [name for name in KNOWN if "latency" in vars(machine_named(name))]
LATENCIES = {name: machine_named(name).latency for name in TIMED}


def test_a_move_always_pays() -> None:
    for entry in LATENCIES.values():
        assert entry.gain(0, 1, 0) > 0


def test_published_trends() -> None:
    """Shuffles pay where L1 is slow beside them (Maxwell, Pascal), and not on Volta."""
    assert all(LATENCIES[name].gain(1, 1, 1) > 0 for name in ("maxwell", "pascal"))
    assert LATENCIES["volta"].gain(1, 1, 0) < 0
    assert LATENCIES["kepler"].gain(1, 1, 0) < LATENCIES["maxwell"].gain(1, 1, 0)


@pytest.mark.parametrize("name", LATENCIES)
def test_farther_and_wider_costs_more(name: str) -> None:
    entry = LATENCIES[name]
    assert entry.gain(1, 1, 0) > entry.gain(9, 1, 0)
    assert entry.gain(1, 1, 0) > entry.gain(1, 2, 0)
    assert entry.gain(1, 1, 0) > entry.gain(1, 1, 1)
    assert entry.gain(-3, 1, 0) == entry.gain(3, 1, 0)


def test_machines_by_architecture() -> None:
    known = {"sm_35": "kepler", "sm_52": "maxwell", "sm_60": "pascal", "sm_70": "volta"}
    assert {target: machine_for(target) for target in known} == known
    assert machine_for("sm_90a") == machine_for("") == "h200"


def test_an_unknown_machine_is_an_error_that_names_the_known() -> None:
    with pytest.raises(UnsupportedError) as error:
        machine_named("cray")
    assert "volta" in error.value.advice
