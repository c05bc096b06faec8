"""Certificates of schedules of which one part was changed: none of them holds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.trust.test_schedule import written as ring
from tests.trust.test_schedule_parts import NAMES, written

from warploom.errors import CheckError
from warploom.machine.judges import Practice
from warploom.trust.checked import digest
from warploom.trust.schedule import check_schedule

ALL = (*NAMES, "plain", "ring")
TRIED = 250
PHASE, AMOUNT, BYTES = 2, 3, 4  # of an event
Place = tuple[Any, ...]
_OF_GROUP = 8  # keys on the way to a number of one


def of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = ring() if name == "ring" else written(name)
    return copy.deepcopy(found)


def holds(record: dict[str, Any]) -> bool:
    try:
        check_schedule(record | {"digest": digest(record)})
    except CheckError:
        return False
    return True


def numbers(record: dict[str, Any]) -> Iterator[Place]:
    """Where numbers stand that no right launch of these events has otherwise.

    Left out is what makes the events of another right launch: the amounts of arrivals in a phase
    that is not complete, fences and orders of more, a store of 1 in place of the sum 0 + 1,
    registers of which there are enough.
    """
    yield from ((side, at) for side in ("grid", "block") for at in range(3))
    for b, batch in enumerate(record["batches"]):
        yield "batches", b, "first"
        yield from (("batches", b, "mbarriers", n, at) for n in range(len(batch["mbarriers"]))
                    for at in (1, 2))  # fmt: skip
        yield from (("batches", b, "flags", n, 1) for n in range(len(batch["flags"])))
        for a, agent in enumerate(batch["agents"]):
            of_agent = ("batches", b, "agents", a)
            yield from ((*of_agent, part) for part in ("block", "threads"))
            for e, (act, where, *_) in enumerate(agent["events"]):
                row = (*of_agent, "events", e)
                ways = act == "orders" or (act == "come" and where[0] == "flag")
                yield from ((*row, at) for at in (PHASE, *(() if ways else (BYTES,))))
                if act == "init" or (act == "come" and where[0] in ("barrier", "warp", "cluster")):
                    yield *row, AMOUNT
                if isinstance(where, list):
                    yield from ((*row, 1, at) for at in range(1, len(where)))


def at(record: Any, place: Place) -> Any:
    for key in place:
        record = record[key]
    return record


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ALL)
def test_no_other_number_holds(name: str) -> None:
    r, right = Random(30), of(name)
    places = [*numbers(right)]
    assert holds(right)
    for _ in range(TRIED):
        record, place = of(name), r.choice(places)
        at(record, place[:-1])[place[-1]] += r.choice((-2, -1, 1, 2, 8, 32, 1 << 40))
        assert not holds(record), (place, at(right, place), at(record, place))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ALL)
def test_no_group_of_another_kind_holds(name: str) -> None:
    r, right = Random(31), of(name)
    groups = [
        place[:-1] for place in numbers(right)
        if "events" in place and isinstance(at(right, place[:-1])[0], str)
        and len(place) == _OF_GROUP
    ]  # fmt: skip
    for _ in range(TRIED if groups else 0):
        record, place = of(name), r.choice(groups)
        kinds = ["warp", "barrier", "cluster", "wgmma", "flag", "registers", "nothing"]
        kinds.remove(at(record, place)[0])
        at(record, place)[0] = r.choice(kinds)
        assert not holds(record), (place, at(right, place), at(record, place))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ALL)
def test_no_list_that_is_longer_or_shorter_holds(name: str) -> None:
    """Of events, those that have to do with others who come, or with the ends of threads."""
    r, right = Random(32), of(name)
    parts: list[Place] = [("grid",), ("block",), ("batches",), ("batches", 0, "agents")]
    parts += [("batches", 0, part) for part in ("mbarriers", "flags") if right["batches"][0][part]]
    for _ in range(TRIED // 5):
        record = of(name)
        part = at(record, r.choice(parts))
        number = r.randrange(len(part))
        if r.random() < 0.5:
            part.insert(number, copy.deepcopy(part[number]))
        else:
            del part[number]
        assert not holds(record), part
    for a, agent in enumerate(right["batches"][0]["agents"]):
        for e, (act, where, *_) in enumerate(agent["events"]):
            if act in ("init", "exit") or (act == "come" and where[0] in ("barrier", "warp")):
                record = of(name)
                del record["batches"][0]["agents"][a]["events"][e]
                assert not holds(record), (a, act, where)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ALL)
def test_what_is_assumed_is_said(name: str) -> None:
    """All but that lanes converge, where the events do not show that they ever part, and rules of
    practice about races, which no events show."""
    right = of(name)
    of_races = {each.value for each in Practice}
    for told in right["assumed"] if name != "cluster" else ():
        if told in of_races:
            continue
        record = of(name)
        record["assumed"].remove(told)
        assert not holds(record), told
        record["assumed"].append(told + "!")
        assert not holds(record), told


def test_a_block_does_not_stand_for_another() -> None:
    record = of("plain")
    record["grid"] = [2, 1, 1]
    record["batches"] *= 2
    with pytest.raises(CheckError, match="left out, or there twice"):
        check_schedule(record | {"digest": digest(record)})
    record["batches"][1] = {**record["batches"][0], "first": 1}
    check_schedule(record | {"digest": digest(record)})


def test_a_grid_has_no_sides_that_are_less_than_one() -> None:
    record = of("plain")
    record["grid"] = [-1, -1, 1]
    with pytest.raises(CheckError, match="other blocks than its launch"):
        check_schedule(record | {"digest": digest(record)})


def test_flags_hold_at_the_start_what_is_said() -> None:
    record = of("added")
    (begin,) = [each for each in record["assumed"] if "at the start" in each]
    record["assumed"][record["assumed"].index(begin)] = begin.replace(": 0 in", ": 1 in")
    with pytest.raises(CheckError, match="hold at the start"):
        check_schedule(record | {"digest": digest(record)})


def test_a_wait_for_a_flag_is_in_a_loop_that_is_there() -> None:
    """A number below 0 names none from the end."""
    record = of("added")
    for agent in record["batches"][0]["agents"]:
        for row in agent["events"]:
            if row[0] == "go":
                row[BYTES] = -1
    with pytest.raises(CheckError, match="in no loop"):
        check_schedule(record | {"digest": digest(record)})
