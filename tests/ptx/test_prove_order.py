"""Conditions checked on one run, against all schedules of small programs."""

from __future__ import annotations

from random import Random

import pytest
from bench.common.ptx.phases import Case, Op, draw, explore, schedule

from warploom.ptx.emulate.skeleton import Recorded
from warploom.ptx.prove.conditions import check

PROGRAMS = 200


def broken(recorded: Recorded) -> set[str]:
    """The conditions that fail; these programs wait for no copy before they end."""
    return {each.condition for each in check(recorded)} - {"exit"}


def test_what_is_accepted_has_the_same_phases_in_every_schedule() -> None:
    r, ended, accepted, third = Random(20), 0, 0, 0
    for _ in range(PROGRAMS):
        case = draw(r)
        run = schedule(case, r)
        if run is None:
            continue
        log, recorded = run
        ended += 1
        third += any(phase >= 2 for phase in log.values())
        if not broken(recorded):
            accepted += 1
            assert explore(case, log) in ("same", "too many"), case
    assert accepted > ended / 2
    assert third > ended / 5


# By condition, a small program that ends in one run, that no other condition refuses, and that
# another schedule makes something else of.
NEEDED = {
    "C1": Case(((Op("expect", 0),), (Op("counted", 0),)), (1,)),
    "C2": Case(
        (
            (Op("wait", 1, 1), Op("arrive", 1), Op("wait", 0, 1)),
            (Op("arrive", 0), Op("wait", 0, 0), Op("arrive", 0)),
        ),
        (1, 1),
    ),
    "C3": Case(((Op("wait", 0, 1),), (Op("counted", 0),)), (1, 1)),
    "C4": Case(((Op("later", 0),), (Op("arrive", 0),)), (1, 1)),
    "C5": Case(((), (Op("counted", 0), Op("copy", 0))), (1,)),
    "barrier": Case(
        (
            (Op("come", 0), Op("sync", 1), Op("come", 0), Op("sync", 1)),
            (Op("sync", 0), Op("come", 1), Op("come", 1)),
        ),
        (1,), (2, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("condition", NEEDED)
def test_every_condition_is_needed(condition: str) -> None:
    case, r, found = NEEDED[condition], Random(0), set()
    for _ in range(100):
        run = schedule(case, r)
        if run is not None and broken(run[1]) == {condition}:
            found.add(explore(case, run[0]))
    assert found
    assert "same" not in found
