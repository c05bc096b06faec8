"""The checker of certificates that one run stands for all schedules."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from bench.common.ptx.phases import LOOPS, WARP, explore, schedule
from bench.common.ptx.phases_drawn import draw
from tests.ptx.pipeline import RING
from tests.ptx.test_prove import proof_of, run_ring

from warploom.errors import CheckError
from warploom.machine.proof import Proof, Reach
from warploom.ptx.prove.certificate import certificate
from warploom.ptx.prove.conditions import check
from warploom.ptx.prove.flags import check_flags, counted_on
from warploom.ptx.prove.verdict import OUTLIVES, RESIDENT, begins
from warploom.trust.checked import digest
from warploom.trust.schedule import check_schedule


@cache
def written() -> Any:
    return certificate("ring", (2, 1, 1), (96, 1, 1), proof_of(run_ring(RING, 4)), None)


def changed(change: Any) -> dict[str, Any]:
    """The certificate with a change, written as if it had been so."""
    record: dict[str, Any] = copy.deepcopy(written())
    change(record)
    return record | {"digest": digest(record)}


def holds(record: dict[str, Any]) -> bool:
    try:
        check_schedule(record)
    except CheckError:
        return False
    return True


def test_a_proof_has_a_certificate_that_holds() -> None:
    found = check_schedule(written())
    assert "the same in every schedule" in found.shown[0]
    assert "192 threads" in found.shown[0]
    assert "data races" in found.not_covered
    assert found.open == ""


def test_a_certificate_that_was_changed_is_refused() -> None:
    record = written() | {"name": "another"}
    with pytest.raises(CheckError, match="changed after"):
        check_schedule(record)


def without(act: str, where: Any = None) -> Any:
    """Leaves out every event of a kind."""

    def change(record: dict[str, Any]) -> None:
        for agent in record["batches"][0]["agents"]:
            agent["events"] = [
                each for each in agent["events"]
                if each[0] != act or (where is not None and each[1] != where)
            ]  # fmt: skip

    return change


def shifted(act: str) -> Any:
    """Puts the later events of a kind into the next phase."""

    def change(record: dict[str, Any]) -> None:
        for agent in record["batches"][0]["agents"]:
            for each in agent["events"]:
                each[2] += each[0] == act and each[2] > 0

    return change


@pytest.mark.parametrize("act", ["wait", "arrive", "copy", "fence", "init", "come", "go", "exit"])
def test_what_is_left_out_is_missed(act: str) -> None:
    assert not holds(changed(without(act)))


@pytest.mark.parametrize("act", ["wait", "arrive", "copy"])
def test_events_of_another_phase_are_noticed(act: str) -> None:
    assert not holds(changed(shifted(act)))


def test_other_numbers_are_noticed() -> None:
    def fewer(record: dict[str, Any]) -> None:
        record["batches"][0]["agents"][0]["threads"] -= 1

    def count(record: dict[str, Any]) -> None:
        record["batches"][0]["mbarriers"][0][2] += 1

    def grid(record: dict[str, Any]) -> None:
        record["grid"] = [3, 1, 1]

    def word(record: dict[str, Any]) -> None:
        record["batches"][0]["agents"][0]["events"][0][0] = "nothing"

    def nothing(record: dict[str, Any]) -> None:
        for agent in record["batches"][0]["agents"]:
            for row in agent["events"]:
                row[4] = 0  # no bytes are expected, and none come

    for change in (fewer, count, grid, word, nothing):
        assert not holds(changed(change))


def test_what_both_accept_is_the_same_and_true() -> None:
    """On small programs: the checker accepts what the conditions accept, and nothing wrong."""
    r, accepted, flagged = Random(5), 0, 0
    for _ in range(300):
        case = draw(r)
        run = schedule(case, r)
        if run is None or case.manual:  # a certificate does not carry what is relaxed
            continue
        log, recorded = run
        recorded = replace(recorded, loops=tuple(LOOPS.values()))
        if counted_on(recorded, LOOPS)[1]:
            continue  # of which there is no certificate
        assumed = (RESIDENT, OUTLIVES, *begins([recorded]))
        proof = Proof(Reach.ALL_DATA, assumed=assumed, skeletons=(recorded,))
        record = certificate("k", (1, 1, 1), (WARP * len(case.program), 1, 1), proof, None)
        if holds(record):
            accepted += 1
            assert explore(case, log) in ("same", "too many"), case
        flagged += holds(record) and bool(case.flags)
        failed = [*check(recorded), *check_flags(recorded, LOOPS)]
        assert holds(record) == (not failed), case
    assert accepted > 20
    assert flagged > 5
