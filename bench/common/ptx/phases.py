"""Small programs of mbarriers, named barriers and flags, and an explorer of all their schedules.

A program is, for each thread, a list of `Op`. `explore` says whether every schedule has the phases
of one run; `schedule` makes that run, as a skeleton. Copies and asynchronous arrivals end at any
time after they begin; a `try_wait` may say no whatever the phase is; what is written to a flag is
seen later, and what no fence or release holds back is seen sooner than what stands before it. By
the manual alone, relaxed arrivals and waits are done sooner than what stands before them, too. What
the explorer has of the rules is its own: nothing of it is taken from the emulator or the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from warploom.errors import Source, Span
from warploom.machine.semantics import Scope
from warploom.ptx.emulate.skeleton import (
    ACQUIRES,
    OWN,
    RELAXED,
    RELEASES,
    Act,
    Agent,
    Broken,
    Ended,
    Event,
    FlagLoop,
    Recorded,
)

MOST_STATES = 20_000
ASKED_IN_VAIN = 0.05  # how often a run has a wait say no and be asked again
BYTES = 16
WORDS = {
    "arrive": Act.ARRIVE, "full": Act.ARRIVE, "expect": Act.EXPECT, "copy": Act.COPY,
    "later": Act.LATER, "counted": Act.LATER, "wait": Act.WAIT, "peek": Act.WAIT,
    "token": Act.TOKEN, "loose": Act.ARRIVE, "glimpse": Act.WAIT,
}  # fmt: skip
ENDS_LATER = ("copy", "later", "counted")
STORES, ADDS = ("set", "bare"), ("add", "more")
WRITES = STORES + ADDS  # to a flag
RELEASING = ("set", "add")
LOOKS = ("look", "equal", "glance")  # at a flag, again and again
FLYING = (*ENDS_LATER, *WRITES, "glance")  # what began may end when its thread is further on
OF_FLAGS = frozenset(("fence", *WRITES, *LOOKS))
RELAXES = ("loose", "glimpse")
ALONE = ("arrive", "loose")  # arrivals that expect no bytes
ACQUIRING = ("wait", "peek", "token", "fence", "sync", "come")  # nothing is done before them
HURRIES = (*RELAXES, "expect", "wait")  # no release: what stands before may be done after it
HELD_BACK = (*ACQUIRING, "glimpse", "look", "equal")  # what comes later


class Op(NamedTuple):
    """`full` is an arrival that expects bytes; `later` an arrival that counts itself in first, and
    `counted` one that does not; `token` waits for the phase of an earlier arrival, which `number`
    names; `peek` asks once, and waits after a no; `sync` and `come` are bar.sync and bar.arrive of
    a named barrier. `set` stores `number` to a flag and `add` adds it, with release; `bare` and
    `more` do it without. `look` waits for that number at least, `equal` for that very one, with
    acquire; `glance` is a `look` without. `fence` is one for all threads of the GPU. `loose` is a
    relaxed arrival, and `glimpse` a relaxed wait."""

    word: str
    where: int
    number: int = 0  # the parity of a wait, the arrival of a token, a number of a flag


Program = tuple[tuple[Op, ...], ...]


@dataclass(frozen=True)
class Case:
    program: Program
    counts: tuple[int, ...]  # arrivals of each mbarrier
    needed: tuple[int, ...] = ()  # threads of each named barrier
    flags: tuple[int, ...] = ()  # what each flag begins with
    manual: bool = False  # nothing else orders than the manual says; without flags


# -- what a schedule does -------------------------------------------------------------------------

Bar = tuple[int, int, int]  # phase, pending, bytes
Named = tuple[int, int]  # generation, how many came
Flag = tuple[int, int]  # number, how many writes
Who = tuple[int, int]  # a thread, and which of its ops


class State(NamedTuple):
    at: tuple[int, ...]  # the next op of each thread
    held: tuple[int, ...]  # generation at which a thread waits at a named barrier, or -1; of an
    # mbarrier that was asked once, 0
    tokens: tuple[tuple[int, ...], ...]  # of each thread, by op: phase at its arrival
    flying: frozenset[Who]  # what began and has not ended
    early: frozenset[Who]  # writes that were seen before their thread came to them
    bars: tuple[Bar, ...]
    named: tuple[Named, ...]
    flags: tuple[Flag, ...]


class Step(NamedTuple):
    who: tuple[int, int, str]  # thread, op, begins (b), ends (e), goes on (g) or was told no (n)
    phase: int
    state: State


Overrun = str


def start(case: Case) -> State:
    threads = len(case.program)
    bars = tuple((0, count, 0) for count in case.counts)
    tokens = tuple((-1,) * len(ops) for ops in case.program)
    return State((0,) * threads, (-1,) * threads, tokens, frozenset(), frozenset(), bars,
                 ((0, 0),) * len(case.needed), tuple((each, 0) for each in case.flags))  # fmt: skip


def _put(row: tuple, at: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*row[:at], value, *row[at + 1 :])


def _settled(bar: Bar, count: int) -> Bar:
    phase, pending, missing = bar
    return (phase + 1, count, 0) if pending == 0 and missing == 0 else bar


def steps(case: Case, state: State) -> Iterator[Step | Overrun]:
    """What may happen next, or what is wrong with it."""
    for t, ops in enumerate(case.program):
        i = state.at[t]
        if i >= len(ops):
            continue
        op = ops[i]
        if case.manual and (t, i) in state.early:
            yield Step((t, i, "s"), 0, _on(state._replace(early=state.early - {(t, i)}), t))
            continue
        yield from _next(case, state, t, i, op)
        if case.flags:
            yield from _sooner(case, state, t)
        elif case.manual:
            yield from _hurried(case, state, t)
    for t, i in state.flying:
        op = case.program[t][i]
        if op.word in ENDS_LATER:
            yield _ends(case, state, t, i)
        elif op.word == "glance":
            yield from _sees(state, (t, i, "e"), op)
        elif not _kept_back(case, state, t, i):
            yield _seen(state, (t, i), op, state.flying - {(t, i)}, state.early)


def _next(case: Case, state: State, t: int, i: int, op: Op) -> Iterator[Step | Overrun]:
    if op.word in ("sync", "come"):
        yield from _meets(case, state, t, i, op)
    elif op.word in ("wait", "peek", "token", "glimpse"):
        yield from _waits(state, t, i, op)
    elif op.word in OF_FLAGS:
        yield from _flags(case, state, t, i, op)
    else:
        yield from _counts(case, state, t, i, op)


def _hurried(case: Case, state: State, t: int) -> Iterator[Step | Overrun]:
    """What is done before its thread comes to it, as nothing that stands before holds it back."""
    ops, i = case.program[t], state.at[t]
    passed: set[int] = set()
    for j in range(i, len(ops)):
        op = ops[j]
        if (t, j) in state.early:
            continue
        if j > i and op.word in HURRIES and op.where not in passed:
            there = state._replace(at=_put(state.at, t, j))
            for step in _next(case, there, t, j, op):
                if isinstance(step, str):
                    yield step
                elif step.who[2] != "n":
                    early = state.early | {(t, j)}
                    yield step._replace(state=step.state._replace(at=state.at, early=early))
        if op.word in ACQUIRING:
            return
        passed.add(op.where)


def _on(state: State, t: int) -> State:
    at = _put(state.at, t, state.at[t] + 1)
    held = state.held if state.held[t] < 0 else _put(state.held, t, -1)
    return State(at, held, *state[2:])


def _waits(state: State, t: int, i: int, op: Op) -> Iterator[Step | Overrun]:
    phase = state.bars[op.where][0]
    if op.word != "token":
        if phase & 1 != op.number:
            yield Step((t, i, "b"), phase - 1, _on(state, t))
        again = op.word != "peek" or state.held[t] == 0
        asked = state if again else state._replace(held=_put(state.held, t, 0))
        yield Step((t, i, "n"), 0, asked)  # it may say no, whatever the phase is
        return
    token = state.tokens[t][op.number]
    if phase > token + 1:
        yield "late"  # a token may be asked for in its phase and in the next alone
    elif phase > token:
        yield Step((t, i, "b"), token, _on(state, t))


def _counts(case: Case, state: State, t: int, i: int, op: Op) -> Iterator[Step | Overrun]:
    phase, pending, missing = state.bars[op.where]
    after = _on(state, t)
    if op.word in ENDS_LATER:
        pending += op.word == "later"
        after = after._replace(flying=state.flying | {(t, i)})
    else:
        pending -= op.word != "expect"
        missing += BYTES * (op.word not in ALONE)
    if pending < 0:
        yield "too many arrivals"
        return
    bar = _settled((phase, pending, missing), case.counts[op.where])
    tokens = _put(state.tokens, t, _put(state.tokens[t], i, phase))
    yield Step((t, i, "b"), phase, after._replace(bars=_put(state.bars, op.where, bar),
                                                  tokens=tokens))  # fmt: skip


def _ends(case: Case, state: State, t: int, i: int) -> Step | Overrun:
    op = case.program[t][i]
    phase, pending, missing = state.bars[op.where]
    if op.word == "copy":
        missing -= BYTES
    else:
        pending -= 1
    if pending < 0:
        return "too many arrivals"
    bar = _settled((phase, pending, missing), case.counts[op.where])
    after = state._replace(
        flying=state.flying - {(t, i)}, bars=_put(state.bars, op.where, bar)
    )  # fmt: skip
    return Step((t, i, "e"), phase, after)


def _meets(case: Case, state: State, t: int, i: int, op: Op) -> Iterator[Step]:
    generation, came = state.named[op.where]
    if state.held[t] >= 0:
        if generation > state.held[t]:
            yield Step((t, i, "g"), state.held[t], _on(state, t))
        return
    full = came + 1 == case.needed[op.where]
    now = (generation + 1, 0) if full else (generation, came + 1)
    after = state._replace(named=_put(state.named, op.where, now))
    if op.word == "come":
        yield Step((t, i, "b"), generation, _on(after, t))
    else:
        yield Step((t, i, "b"), generation, after._replace(held=_put(state.held, t, generation)))


# -- flags ----------------------------------------------------------------------------------------


def _flags(case: Case, state: State, t: int, i: int, op: Op) -> Iterator[Step]:
    ops = case.program[t]
    glances = any(u == t and ops[j].word == "glance" for u, j in state.flying)
    if op.word in ("fence", *RELEASING) and glances:
        return  # what was read before is read by now
    if op.word in ("look", "equal"):
        yield from _sees(state, (t, i, "b"), op)
    elif (t, i) in state.early:
        yield Step((t, i, "b"), 0, _on(state._replace(early=state.early - {(t, i)}), t))
    elif op.word == "fence":
        yield Step((t, i, "b"), 0, _on(state, t))
    else:
        yield Step((t, i, "b"), 0, _on(state._replace(flying=state.flying | {(t, i)}), t))


def _sees(state: State, who: tuple[int, int, str], op: Op) -> Iterator[Step]:
    """A loop that looks at a flag is left; its phase is how many writes it has seen."""
    value, writes = state.flags[op.where]
    if value == op.number if op.word == "equal" else value >= op.number:
        after = state._replace(flying=state.flying - {who[:2]})
        yield Step(who, writes, after if who[2] == "e" else _on(state, who[0]))


def _seen(
    state: State, who: Who, op: Op, flying: frozenset[Who], early: frozenset[Who]
) -> Step:  # fmt: skip
    """A write to a flag is seen."""
    value, writes = state.flags[op.where]
    value = value + op.number if op.word in ADDS else op.number
    flags = _put(state.flags, op.where, (value, writes + 1))
    return Step((*who, "e"), 0, state._replace(flags=flags, flying=flying, early=early))


def _kept_back(case: Case, state: State, t: int, i: int) -> bool:
    """Whether a write is seen only after an earlier one of its thread."""
    ops = case.program[t]
    return any(
        u == t and j < i and ops[j].word in WRITES
        and (ops[j].where == ops[i].where or ops[i].word in RELEASING
             or any(each.word == "fence" for each in ops[j:i]))
        for u, j in state.flying
    )  # fmt: skip


def _sooner(case: Case, state: State, t: int) -> Iterator[Step]:
    """Writes that nothing holds back may be seen before what stands before them is done."""
    ops, i = case.program[t], state.at[t]
    passed = {ops[j].where for u, j in state.flying if u == t and ops[j].word in WRITES}
    for j in range(i, len(ops)):
        op = ops[j]
        if op.word in HELD_BACK:
            return
        bare = op.word in ("bare", "more") and j > i and op.where not in passed
        if bare and (t, j) not in state.early:
            yield _seen(state, (t, j), op, state.flying, state.early | {(t, j)})
        if op.word in (*WRITES, *LOOKS):
            passed.add(op.where)


def ended(case: Case, state: State) -> bool:
    done = all(at >= len(ops) for at, ops in zip(state.at, case.program, strict=True))
    return done and all(case.program[t][i].word in ENDS_LATER for t, i in state.flying)


Log = dict[tuple[int, int, str], int]


def explore(case: Case, log: Log) -> str:
    """`same` where all schedules have these phases and come to their ends; else what happens."""
    first = start(case)
    seen, work = {first}, [first]
    while work:
        state = work.pop()
        some = False
        for step in steps(case, state):
            if isinstance(step, str):
                return step
            if step.state is state:
                continue  # a no, and the same is asked again
            some = True
            if _compared(case, step.who) and log[step.who] != step.phase:
                return "another phase"
            if step.state not in seen:
                seen.add(step.state)
                work.append(step.state)
                if len(seen) > MOST_STATES:
                    return "too many"
        if not some and not ended(case, state):
            return "deadlock"
    return "same"


def _compared(case: Case, who: tuple[int, int, str]) -> bool:
    t, i, what = who
    return what in "eg" or (what == "b" and case.program[t][i].word not in ENDS_LATER)


# -- one run as a skeleton --------------------------------------------------------------------------

WARP = 32
_SOURCE = Source("program", "")
LOOPS = {
    at: FlagLoop(Span(_SOURCE, 1, at + 1), compare, "u32", None, -1, holds=True, taken=True)
    for at, compare in enumerate(("ge", "eq"))
}
SITES = tuple(loop.load for loop in LOOPS.values())


def schedule(case: Case, r: Random) -> tuple[Log, Recorded] | None:
    """A run by chance, of each thread in its order; None where it does not come to its end."""
    state, log = start(case), Log()
    while True:
        found = [
            each for each in steps(case, state)
            if not case.manual or isinstance(each, str) or _in_turn(state, each.who)
        ]  # fmt: skip
        if any(isinstance(each, str) for each in found):
            return None
        going = [each for each in found if isinstance(each, Step) and each.state is not state]
        if not going:
            break
        step = r.choice(found if r.random() < ASKED_IN_VAIN else going)
        assert isinstance(step, Step)
        log[step.who], state = step.phase, step.state
    return (log, _skeleton(case, log, state)) if ended(case, state) else None


def _in_turn(state: State, who: tuple[int, int, str]) -> bool:
    return who[2] == "e" or state.at[who[0]] == who[1]


def _skeleton(case: Case, log: Log, state: State) -> Recorded:
    counts = enumerate(case.counts)
    init = [Event(Act.INIT, where, amount=count) for where, count in counts]
    meet = [Event(Act.COME, ("barrier", 0, 15)), Event(Act.GO, ("barrier", 0, 15))]
    warps = len(case.program)  # whose other lanes leave at once
    others = tuple(each for each in range(WARP * warps) if each % WARP)
    agents, broken = [Agent(0, others, (*meet, Event(Act.EXIT)))], []
    for t, ops in enumerate(case.program):
        events = [*(init if t == 0 else []), Event(Act.FENCE), *meet]
        for i, op in enumerate(ops):
            events += _events(case, op, log, t, i)
            if op.word in ENDS_LATER and log[t, i, "b"] != log[t, i, "e"]:
                broken.append(Broken("C1", "a copy of two phases", -1))
        agents.append(Agent(0, (WARP * t,), (*events, Event(Act.EXIT))))
    bars = tuple(
        Ended(str(where), 0, count, *bar, BYTES, 8 * where)
        for where, (count, bar) in enumerate(zip(case.counts, state.bars, strict=True))
    )
    initial: dict[Any, int] = {("flag", 0, where): each for where, each in enumerate(case.flags)}
    return Recorded(
        tuple(agents), bars, SITES, tuple(broken), 1, 0, True, initial=initial,
        regions={0: "flags"}, block_threads=WARP * warps, strict=case.manual,
    )  # fmt: skip


def _events(case: Case, op: Op, log: Log, t: int, i: int) -> list[Event]:
    phase = log[t, i, "b"]
    if op.word in ("sync", "come"):
        group = ("barrier", 0, op.where)
        go = [Event(Act.GO, group, phase)] if op.word == "sync" else []
        return [Event(Act.COME, group, phase, WARP * case.needed[op.where]), *go]
    if op.word in OF_FLAGS:
        return _flag_events(op)
    act = WORDS[op.word]
    amount = {"arrive": 1, "full": 1, "counted": 1, "loose": 1}.get(op.word, 0)
    bytes_ = BYTES if op.word in ("full", "expect", "copy") else 0
    blocks = (0,) if act is Act.COPY else ()
    how = RELAXED * (op.word in RELAXES)
    return [Event(act, op.where, phase, amount, bytes_, blocks=blocks, how=how)]


def _flag_events(op: Op) -> list[Event]:
    flag = ("flag", 0, op.where)
    orders = Event(Act.ORDERS, None, amount=Scope.GRID, bytes=ACQUIRES | RELEASES)
    if op.word == "fence":
        return [orders]
    orders = orders._replace(how=OWN)
    if op.word in WRITES:
        write = Event(Act.COME, flag, 0, op.number, int(op.word in ADDS))
        return [orders, write] if op.word in RELEASING else [write]
    go = Event(Act.GO, flag, 0, op.number, site=int(op.word == "equal"))
    return [go] if op.word == "glance" else [go, orders]
