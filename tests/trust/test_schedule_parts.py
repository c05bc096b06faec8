"""The checker of certificates of schedules: flags, mbarriers that are made invalid, registers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.ptx.test_prove_ends import AGAIN, CLUSTER, INVAL, LENT, ONCE
from tests.ptx.test_prove_ends import proved as of_block
from tests.ptx.test_prove_flags import ADD, ALL, BACK, SET_YET, STORE
from tests.ptx.test_prove_flags import proved as of_flags

from warploom.errors import CheckError, DeadlockError
from warploom.machine.proof import Reach
from warploom.ptx.prove.certificate import certificate
from warploom.trust.checked import digest
from warploom.trust.schedule import check_schedule

Events = list[list[Any]]
AGAIN_ROUND = ONCE + "bar.sync 0;\n" + INVAL + "@!%p1 " + AGAIN
AGAIN_ROUND += ONCE.replace("ASK", "ASK2") + "bar.sync 0;\n" + INVAL
# Two warps arrive at a barrier for 96 threads, a third waits; the fourth leaves at once.
NAMED = """bar.sync 0;
shr.u32 %r8, %r1, 5;
setp.eq.u32 %p5, %r8, 3;
@%p5 bra DONE;
setp.eq.u32 %p6, %r8, 1;
@%p6 bra WAITS;
bar.arrive 1, 96;
bar.sync 2, 96;
bra DONE;
WAITS:
bar.sync 1, 96;
bar.sync 2, 96;
DONE:
"""
LENDS = "bar.sync 0;\n" + LENT.replace("MEET", "bar.sync 1;")


@cache
def written(name: str) -> Any:
    """The certificate of a kernel."""
    if name == "registers":
        proof = of_block(LENDS, ".maxntid 256, 1, 1\n.maxnreg 128", threads=256)
        return certificate("k", (1, 1, 1), (256, 1, 1), proof, 128)
    if name == "named":
        return certificate("k", (1, 1, 1), (128, 1, 1), of_block(NAMED, threads=128), None)
    if name == "cluster":
        proof = of_block(CLUSTER + "bar.sync 0;\n" + CLUSTER, threads=64, cluster=2)
        return certificate("k", (2, 1, 1), (64, 1, 1), proof, None)
    if name == "plain":
        return certificate("k", (1, 1, 1), (64, 1, 1), of_block("bar.sync 0;", threads=64), None)
    if name == "invalid":
        return certificate("k", (1, 1, 1), (64, 1, 1), of_block(AGAIN_ROUND, threads=64), None)
    if name == "stored":
        return certificate("k", (2, 1, 1), (1, 1, 1), of_flags(STORE, SET_YET, 1), None)
    look = f"{ALL}\n{BACK}" if name == "set back" else ALL
    return certificate("k", (4, 1, 1), (1, 1, 1), of_flags(ADD, look, 3), None)


NAMES = ("added", "stored", "set back", "invalid", "registers", "named", "cluster")


@pytest.mark.parametrize("name", NAMES)
def test_a_proof_has_a_certificate_that_holds(name: str) -> None:
    found = check_schedule(written(name))
    assert "the same in every schedule" in found.shown[0]
    assert found.open == ""
    if name in ("added", "stored", "set back"):
        assert any("at the start" in each for each in found.not_covered)


def refused(name: str, change: Callable[[dict[str, Any]], Any], said: str) -> None:
    """The certificate with a change, written as if it had been so, does not hold."""
    record: dict[str, Any] = copy.deepcopy(written(name))
    change(record)
    assert record != written(name)
    with pytest.raises(CheckError, match=said):
        check_schedule(record | {"digest": digest(record)})


def batch(record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = record["batches"][0]
    return found


def agents(record: dict[str, Any], act: str, kind: str = "flag") -> list[Events]:
    """The events of those that have one of this kind."""
    found = [agent["events"] for agent in batch(record)["agents"]]
    return [each for each in found if any(is_a(row, act, kind) for row in each)]


def is_a(row: list[Any], act: str, kind: str = "flag") -> bool:
    return row[0] == act and (not isinstance(row[1], list) or row[1][0] == kind)


def rows(record: dict[str, Any], act: str, kind: str = "flag") -> Events:
    return [row for each in agents(record, act, kind) for row in each if is_a(row, act, kind)]


def put(row: Any, at: Any, value: Any) -> None:
    row[at] = value


def without(events: Events, act: str, kind: str = "flag") -> None:
    events[:] = [row for row in events if not is_a(row, act, kind)]


def moved(events: Events, act: str, to: int) -> None:
    """The first event of a kind, somewhere else."""
    at = next(at for at, row in enumerate(events) if row[0] == act)
    events.insert(to, events.pop(at))


def asks(record: dict[str, Any]) -> list[Any]:
    return rows(record, "go", "registers")[0]


def give(record: dict[str, Any], amount: int | None) -> None:
    """Those that give most registers back keep so many, or all."""
    least = min(rows(record, "come", "registers"), key=lambda row: int(row[3]))
    least[3] = amount
    for events in agents(record, "come", "registers"):
        events[:] = [row for row in events if row[3] is not None]


def alone(record: dict[str, Any]) -> None:
    for events in agents(record, "come", "barrier"):
        without(events, "come", "barrier")
        without(events, "go", "barrier")


FLAGS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "no release": ("added", lambda r: without(agents(r, "come")[0], "orders"), "is missing"),
    "no acquire": ("added", lambda r: without(agents(r, "go")[0], "orders"), "is missing"),
    "a narrow scope": ("added", lambda r: put(rows(r, "orders")[0], 3, 1), "is missing"),
    "the other way": ("stored", lambda r: put(rows(r, "orders")[0], 4, 1), "is missing"),
    "another start": ("added", lambda r: put(batch(r)["flags"][0], 1, 1), "too soon"),
    "set at the start": ("stored", lambda r: put(batch(r)["flags"][0], 1, 1), "before it is"),
    "fewer are waited for": ("added", lambda r: put(rows(r, "go")[0], 3, 2), "too soon"),
    "more are waited for": ("added", lambda r: put(rows(r, "go")[0], 3, 4), "never"),
    "another comparison": ("added", lambda r: put(batch(r)["loops"][0], 0, "eq"), "before it is"),
    "until the opposite": ("added", lambda r: put(batch(r)["loops"][0], 2, 1), "before it is"),
    "no such loop": ("added", lambda r: put(rows(r, "go")[0], 4, 7), "in no loop"),
    "nothing is added": ("added", lambda r: put(rows(r, "come")[0], 3, 0), "never"),
    "stores for sums": ("added", lambda r: put(rows(r, "come")[0], 4, 0), "more than once"),
    "a lost write": ("added", lambda r: without(agents(r, "come")[0], "come"), "never"),
    "back too soon": ("set back", lambda r: moved(agents(r, "go")[0], "come", 0), "too soon"),
    "not granted": ("added", lambda r: put(r, "assumed", r["assumed"][:1]), "at the start"),
    "two batches": ("added", lambda r: r["batches"].append(r["batches"][0]), "together"),
}  # fmt: skip


@pytest.mark.parametrize("what", FLAGS)
def test_other_flags_are_noticed(what: str) -> None:
    refused(*FLAGS[what])


OTHERS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "too soon": ("invalid", lambda r: moved(agents(r, "inval")[0], "inval", 1), "too soon"),
    "by one that did not meet": (
        "invalid", lambda r: without(agents(r, "inval")[0], "go", "barrier"), "."
    ),
    "never given back": ("registers", lambda r: give(r, None), "lack|apart"),
    "more is asked for": ("registers", lambda r: put(asks(r), 3, 248), "lack"),
    "less is given": ("registers", lambda r: give(r, 120), "lack"),
    "fewer at the start": ("registers", lambda r: put(r, "registers", 96), "lack"),
    "nobody meets": ("registers", lambda r: alone(r), "lack"),
    "in other warps": ("registers", lambda r: batch(r)["agents"][0].update(warps=[]), "no threads"),
}  # fmt: skip


def dropped(record: dict[str, Any], act: str, kind: str) -> None:
    """One thread of those that meet."""
    events = agents(record, act, kind)[0]
    events.remove(next(row for row in events if is_a(row, act, kind)))


def again(record: dict[str, Any], act: str, kind: str) -> None:
    events = agents(record, act, kind)[0]
    at = next(at for at, row in enumerate(events) if is_a(row, act, kind))
    events.insert(at, list(events[at]))


def beside(record: dict[str, Any], at: int, more: int) -> None:
    batch(record)["mbarriers"][0][at] += more


OTHERS |= {
    "goes on and did not come": (
        "invalid",
        lambda r: dropped(r, "come", "barrier"),
        "that did not come",
    ),
    "comes twice": ("invalid", lambda r: again(r, "come", "barrier"), "waits there"),
    "an mbarrier between two places": ("invalid", lambda r: beside(r, 3, 4), "at no place"),
    "an mbarrier of another block": ("invalid", lambda r: beside(r, 1, 1), "another block"),
    "two mbarriers at one place": (
        "named",
        lambda r: beside(r, 3, 8),
        "another one",
    ),
    "other registers than it says": (
        "registers",
        lambda r: put(r, "registers", 200),
        "for which registers",
    ),
    "it says no registers": (
        "registers",
        lambda r: r["assumed"].remove(next(each for each in r["assumed"] if "compiled" in each)),
        "does not say",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_events_are_noticed(what: str) -> None:
    refused(*OTHERS[what])


def to(record: dict[str, Any], number: int, act: str = "come") -> Iterator[tuple[Events, int]]:
    """Who comes to a named barrier: the events, and which of them."""
    for agent in batch(record)["agents"]:
        for at, row in enumerate(agent["events"]):
            if row[0] == act and row[1] == ["barrier", 0, number]:
                yield agent["events"], at


def lost(record: dict[str, Any], number: int) -> None:
    """Warps come no more that do not wait there."""
    for events, at in [*to(record, number)]:
        if events[at + 1][0] != "go":
            del events[at]


def unmet(record: dict[str, Any], number: int) -> None:
    events, at = next(to(record, number))
    del events[at]


def counts(record: dict[str, Any], number: int, count: int, *, all_: bool = True) -> None:
    for events, at in [*to(record, number)][: None if all_ else 1]:
        events[at][3] = count


def gone(record: dict[str, Any]) -> None:
    """An agent comes to the cluster's first round no more, but to the next."""
    events = agents(record, "come", "cluster")[0]
    del events[next(n for n, row in enumerate(events) if is_a(row, "go", "cluster"))]
    del events[next(n for n, row in enumerate(events) if is_a(row, "come", "cluster"))]


MEETINGS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "an arrival less": ("named", lambda r: lost(r, 1), "for 96 threads, and 32 come"),
    "who waits does not come": ("named", lambda r: unmet(r, 2), "did not come"),
    "for more threads": ("named", lambda r: counts(r, 1, 128), "for 128 threads, and 96 come"),
    "for fewer threads": ("named", lambda r: counts(r, 1, 64), "for 64 threads, and 96 come"),
    "for two numbers": ("named", lambda r: counts(r, 1, 64, all_=False), "other numbers"),
    "a block misses a round": ("cluster", gone, "."),
    "of another block": ("cluster", lambda r: put(block(r)[0], "block", 1), "other"),
}  # fmt: skip


@pytest.mark.parametrize("what", MEETINGS)
def test_other_numbers_at_barriers_are_noticed(what: str) -> None:
    refused(*MEETINGS[what])


def test_who_leaves_is_one_that_comes_to_a_barrier_of_the_whole_block() -> None:
    """What it waits for may not come behind that barrier."""
    record = copy.deepcopy(written("named"))
    counts(record, 2, 0)
    check_schedule(record | {"digest": digest(record)})
    leaves = next(
        each["events"] for each in block(record)
        if not any(row[1] == ["barrier", 0, 2] for row in each["events"])
    )  # fmt: skip
    leaves[-1:-1] = [
        ["come", ["barrier", 0, 3], 0, 64, 0, []],
        ["go", ["barrier", 0, 3], 0, 0, 0, []],
    ]
    waits, at = next(to(record, 2, "go"))
    waits.insert(at + 1, ["come", ["barrier", 0, 3], 0, 64, 0, []])
    with pytest.raises(CheckError, match="before itself"):
        check_schedule(record | {"digest": digest(record)})


@pytest.mark.parametrize("more", [136, 160, 192, 200])
@pytest.mark.parametrize("meet", ["bar.sync 1;", ""])
def test_of_registers_the_conditions_and_the_checker_say_the_same(more: int, meet: str) -> None:
    body = "bar.sync 0;\n" + LENT.replace("u32 192", f"u32 {more}").replace("MEET", meet)
    try:
        proof = of_block(body, ".maxntid 256, 1, 1\n.maxnreg 128", threads=256, schedule=0)
    except DeadlockError:
        return
    claimed = replace(proof, reach=Reach.ALL_DATA)
    record = certificate("k", (1, 1, 1), (256, 1, 1), claimed, 128)
    try:
        check_schedule(record)
    except CheckError:
        assert proof.failed
    else:
        assert not proof.failed


def block(record: dict[str, Any]) -> list[Any]:
    found: list[Any] = batch(record)["agents"]
    return found


def at_first(row: list[Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda record: block(record)[0]["events"].insert(0, row)


def both(record: dict[str, Any]) -> None:
    """One arrival more, and one less."""
    events = next(each["events"] for each in block(record)
                  if any(is_a(row, "arrive") for row in each["events"]))  # fmt: skip
    at = next(n for n, row in enumerate(events) if is_a(row, "arrive"))
    for amount in (-1, 1):
        events.insert(at, ["arrive", events[at][1], events[at][2], amount, 0, []])


def meets(record: dict[str, Any]) -> None:
    """A lane of a warp meets itself."""
    alone = next(each for each in block(record) if each["threads"] == 1)
    for act in ("go", "come"):
        alone["events"].insert(0, [act, ["warp", alone["warps"][0], 1], 0, 0, 0, []])


def widest(record: dict[str, Any]) -> Any:
    return max(block(record), key=lambda agent: int(agent["threads"]))


def test_what_no_launch_does_is_refused() -> None:
    changes: tuple[tuple[Callable[[dict[str, Any]], Any], str], ...] = (
        (at_first(["go", ["barrier", 0, 0], 5, 0, 0, []]), "did not come"),
        (at_first(["go", ["barrier", 0, 3], 0, 0, 0, []]), "did not come"),
        (at_first(["come", ["barrier", 0, 4], 7, 64, 0, []]), "rounds are missing"),
        (at_first(["exit", None, 0, 0, 0, []]), "does not end once"),
        (lambda record: block(record)[0]["events"].pop(), "does not end once"),
        (both, "less than nothing arrives"),
    )  # fmt: skip
    for change, said in changes:
        refused("invalid", change, said)
    refused("plain", lambda record: block(record)[0].update(block=99), "of no block")
    refused("plain", lambda r: widest(r)["warps"].append(99), "other warps")
    refused("invalid", meets, "it does not say: lanes of a warp")


def test_lanes_that_are_not_there_do_not_meet() -> None:
    def more(record: dict[str, Any]) -> None:
        many = next(each for each in block(record) if each["threads"] > 1)
        for act in ("go", "come"):
            many["events"].insert(0, [act, ["warp", many["warps"][0], 1], 0, 0, 0, []])

    refused("invalid", more, "more lanes come")


def test_what_is_decided_by_data_is_said_as_not_covered() -> None:
    record = written("invalid")
    assert "that nothing is decided by data" in check_schedule(record).not_covered
    other = record | {"reach": "all schedules with this data"}
    assert "other data" in check_schedule(other | {"digest": digest(other)}).not_covered
