"""What the time model says of a shuffle beside a load."""

from __future__ import annotations

import pytest

from warploom.errors import UnsupportedError
from warploom.machine.record import machine_named, nearest, timed
from warploom.ptx.shuffle.gain import cycles_won

MACHINES = {
    name: timed(machine_named(name)) for name in ("kepler", "maxwell", "pascal", "volta", "h200")
}


def test_a_move_always_pays() -> None:
    for machine in MACHINES.values():
        assert cycles_won(machine, 0, 1, 0) > 0


def test_published_trends() -> None:
    """Shuffles pay where L1 is slow beside them (Maxwell, Pascal), and not on Volta."""
    assert all(cycles_won(MACHINES[name], 1, 1, 1) > 20 for name in ("maxwell", "pascal"))
    assert cycles_won(MACHINES["volta"], 1, 1, 0) < 0
    assert cycles_won(MACHINES["kepler"], 1, 1, 0) < cycles_won(MACHINES["maxwell"], 1, 1, 0)


def test_what_was_measured_on_an_h200() -> None:
    """No kernel of sixteen gained there, neither from global memory nor from shared."""
    for space in ("global", "shared"):
        assert cycles_won(MACHINES["h200"], 1, 1, 0, space) < 0


@pytest.mark.parametrize("name", MACHINES)
def test_farther_and_wider_costs_more(name: str) -> None:
    machine = MACHINES[name]
    assert cycles_won(machine, 1, 1, 0) > cycles_won(machine, 9, 1, 0)
    assert cycles_won(machine, 1, 1, 0) > cycles_won(machine, 1, 2, 0)
    assert cycles_won(machine, 1, 1, 0) > cycles_won(machine, 1, 1, 1)
    assert cycles_won(machine, -3, 1, 0) == cycles_won(machine, 3, 1, 0)


def test_machines_by_architecture() -> None:
    known = {"sm_35": "kepler", "sm_52": "maxwell", "sm_60": "pascal", "sm_70": "volta"}
    assert {target: nearest(target) for target in known} == known
    assert nearest("sm_90a") == nearest("") == "h200"


def test_times_say_of_which_machines_they_are() -> None:
    times = machine_named("volta").times
    assert (times.name, times.cached_wait) == ("volta and h200", 28)
    assert times.memory == machine_named("h200").times.memory


def test_an_unknown_machine_is_an_error_that_names_the_known() -> None:
    with pytest.raises(UnsupportedError) as error:
        machine_named("cray")
    assert "volta" in error.value.advice
