"""Small programs of mbarriers and named barriers, and an explorer of all their schedules.

A program is, for each thread, a list of `Op`. `explore` says whether every schedule has the phases
of one run; `schedule` makes that run, as a skeleton; `text` is the program as PTX. Copies and
asynchronous arrivals end at any time after they begin. What the explorer has of the rules is its
own: nothing of it is taken from the emulator or from the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from warploom.ptx.emulate.skeleton import Act, Agent, Broken, Ended, Event, Recorded

MOST_STATES = 20_000
BYTES = 16
WORDS = {
    "arrive": Act.ARRIVE, "full": Act.ARRIVE, "expect": Act.EXPECT, "copy": Act.COPY,
    "later": Act.LATER, "counted": Act.LATER, "wait": Act.WAIT, "token": Act.TOKEN,
}  # fmt: skip
ENDS_LATER = ("copy", "later", "counted")


class Op(NamedTuple):
    """`full` is an arrival that expects bytes; `later` an arrival that counts itself in first, and
    `counted` one that does not; `token` waits for the phase of an earlier arrival, which `number`
    names; `sync` and `come` are bar.sync and bar.arrive of a named barrier."""

    word: str
    where: int
    number: int = 0  # the parity of a wait, the arrival of a token


Program = tuple[tuple[Op, ...], ...]


@dataclass(frozen=True)
class Case:
    program: Program
    counts: tuple[int, ...]  # arrivals of each mbarrier
    needed: tuple[int, ...] = ()  # threads of each named barrier


# -- drawing --------------------------------------------------------------------------------------


def draw(r: Random) -> Case:
    """One of several shapes, with none to two mistakes in it."""
    case = r.choice((_ring, _ring, _turns, _meetings, _anything))(r)
    for _ in range(r.choice((0, 0, 1, 1, 2))):
        case = _mistaken(case, r)
    return case


def _ring(r: Random) -> Case:
    """A producer that copies, and consumers that give places back."""
    stages, rounds, consumers = r.choice((1, 1, 2)), r.choice((2, 3, 3, 4)), r.choice((1, 1, 2))
    way = r.choice(("copy", "apart", "counted", "plain"))
    made: list[Op] = []
    taken: list[Op] = []
    for i in range(rounds):
        s, parity = i % stages, i // stages & 1
        full, empty = s, stages + s
        made += [Op("wait", empty, parity ^ 1)]
        made += {
            "copy": [Op("full", full), Op("copy", full)],
            "apart": [Op("expect", full), Op("copy", full), Op("arrive", full)],
            "counted": [Op("counted", full)], "plain": [Op("arrive", full)],
        }[way]  # fmt: skip
        taken += [Op("wait", full, parity), Op("arrive", empty)]
    if r.random() < 0.3:  # places are given back one round later, as a product is waited for
        taken = _late(taken)
    if stages == 1 and rounds * consumers > 6:
        consumers = 1
    counts = (1,) * stages + (consumers,) * stages
    return Case((tuple(made), *(tuple(taken),) * consumers), counts)


def _late(ops: list[Op]) -> list[Op]:
    arrivals = [op for op in ops if op.word == "arrive"]
    waits = [op for op in ops if op.word == "wait"]
    out = [waits[0]]
    for wait, arrival in zip(waits[1:], arrivals, strict=False):
        out += [wait, arrival] if wait.where != waits[0].where else [arrival, wait]
    return [*out, arrivals[-1]]


def _turns(r: Random) -> Case:
    """Threads that arrive at one mbarrier and wait for it, round after round."""
    threads, rounds = r.choice((2, 2, 3)), r.choice((2, 3, 4))
    way = r.choice(("parity", "token", "later"))
    program = []
    for _ in range(threads):
        ops: list[Op] = []
        for i in range(rounds):
            at = len(ops)
            if way == "later":
                ops += [Op("later", 0), Op("arrive", 0), Op("wait", 0, i & 1)]
            elif way == "token":
                ops += [Op("arrive", 0), Op("token", 0, at)]
            else:
                ops += [Op("arrive", 0), Op("wait", 0, i & 1)]
        program.append(tuple(ops))
    return Case(tuple(program), (threads,))


def _meetings(r: Random) -> Case:
    """Two that pass a place to and fro by named barriers, as ping-pong kernels do."""
    rounds = r.choice((2, 3, 4))
    first = tuple(op for _ in range(rounds) for op in (Op("come", 0), Op("sync", 1)))
    second = tuple(op for _ in range(rounds) for op in (Op("sync", 0), Op("come", 1)))
    if r.random() < 0.4:
        first = second = tuple(Op("sync", i % 2) for i in range(rounds))
    more = ((Op("arrive", 0), Op("wait", 0, 0)),) if r.random() < 0.3 else ()
    return Case((first, second, *more), (1,), (2, 2))


def _anything(r: Random) -> Case:
    barriers, threads = r.choice((1, 1, 2)), r.choice((2, 2, 3, 4))
    words = ("arrive",) * 5 + ("wait",) * 6 + ("full", "expect", "copy", "later", "counted")
    program = tuple(
        tuple(
            Op(r.choice(words), r.randrange(barriers), r.randrange(2))
            for _ in range(r.randint(1, 5 if threads < 4 else 3))
        )
        for _ in range(threads)
    )
    return Case(program, tuple(r.choice((1, 1, 2)) for _ in range(barriers)))


def _mistaken(case: Case, r: Random) -> Case:
    """Something left out, done twice, in another order, of another parity or another place."""
    t = r.randrange(len(case.program))
    ops = list(case.program[t])
    if not ops:
        return case
    i, kind = r.randrange(len(ops)), r.randrange(5)
    if any(op.word == "token" for op in ops) and kind < 3:
        return replace(case, counts=(*case.counts[:-1], max(1, case.counts[-1] - 1)))
    if kind == 0:
        del ops[i]
    elif kind == 1:
        ops.insert(i, ops[i])
    elif kind == 2:
        j = r.randrange(len(ops))
        ops[i], ops[j] = ops[j], ops[i]
    elif ops[i].word == "wait":
        ops[i] = ops[i]._replace(number=1 - ops[i].number)
    elif ops[i].word not in ("sync", "come", "token"):
        ops[i] = ops[i]._replace(where=r.randrange(len(case.counts)))
    return replace(case, program=(*case.program[:t], tuple(ops), *case.program[t + 1 :]))


# -- what a schedule does -------------------------------------------------------------------------

Bar = tuple[int, int, int]  # phase, pending, bytes
Named = tuple[int, int]  # generation, how many came


class State(NamedTuple):
    at: tuple[int, ...]  # the next op of each thread
    held: tuple[int, ...]  # generation at which a thread waits at a named barrier, or -1
    tokens: tuple[tuple[int, ...], ...]  # of each thread, by op: phase at its arrival
    flying: frozenset[tuple[int, int]]  # what began and has not ended
    bars: tuple[Bar, ...]
    named: tuple[Named, ...]


class Step(NamedTuple):
    who: tuple[int, int, str]  # thread, op, begins (b), ends (e) or goes on (g)
    phase: int
    state: State


Overrun = str


def start(case: Case) -> State:
    threads = len(case.program)
    bars = tuple((0, count, 0) for count in case.counts)
    tokens = tuple((-1,) * len(ops) for ops in case.program)
    return State((0,) * threads, (-1,) * threads, tokens, frozenset(), bars,
                 ((0, 0),) * len(case.needed))  # fmt: skip


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
        if op.word in ("sync", "come"):
            yield from _meets(case, state, t, i, op)
        elif op.word in ("wait", "token"):
            yield from _waits(state, t, i, op)
        else:
            yield from _counts(case, state, t, i, op)
    for t, i in state.flying:
        yield _ends(case, state, t, i)


def _on(state: State, t: int) -> State:
    return state._replace(at=_put(state.at, t, state.at[t] + 1))


def _waits(state: State, t: int, i: int, op: Op) -> Iterator[Step | Overrun]:
    phase = state.bars[op.where][0]
    if op.word == "wait":
        if phase & 1 != op.number:
            yield Step((t, i, "b"), phase - 1, _on(state, t))
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
        missing += BYTES * (op.word != "arrive")
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
            after = _on(state, t)._replace(held=_put(state.held, t, -1))
            yield Step((t, i, "g"), state.held[t], after)
        return
    full = came + 1 == case.needed[op.where]
    now = (generation + 1, 0) if full else (generation, came + 1)
    after = state._replace(named=_put(state.named, op.where, now))
    if op.word == "come":
        yield Step((t, i, "b"), generation, _on(after, t))
    else:
        yield Step((t, i, "b"), generation, after._replace(held=_put(state.held, t, generation)))


def ended(case: Case, state: State) -> bool:
    return all(at >= len(ops) for at, ops in zip(state.at, case.program, strict=True))


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
            some = True
            begins = step.who[2] == "b" and case.program[step.who[0]][step.who[1]].word
            if begins not in ENDS_LATER and log[step.who] != step.phase:
                return "another phase"
            if step.state not in seen:
                seen.add(step.state)
                work.append(step.state)
                if len(seen) > MOST_STATES:
                    return "too many"
        if not some and not ended(case, state):
            return "deadlock"
    return "same"


# -- one run as a skeleton --------------------------------------------------------------------------


def schedule(case: Case, r: Random) -> tuple[Log, Recorded] | None:
    """A run by chance; None where it does not come to its end."""
    state, log = start(case), Log()
    while True:
        found = list(steps(case, state))
        if any(isinstance(each, str) for each in found):
            return None
        if not found:
            break
        step = r.choice(found)
        assert isinstance(step, Step)
        log[step.who], state = step.phase, step.state
    return (log, _skeleton(case, log, state)) if ended(case, state) else None


def _skeleton(case: Case, log: Log, state: State) -> Recorded:
    counts = enumerate(case.counts)
    init = [Event(Act.INIT, where, amount=count) for where, count in counts]
    meet = [Event(Act.COME, ("barrier", 0, 99)), Event(Act.GO, ("barrier", 0, 99))]
    agents, broken = [], []
    for t, ops in enumerate(case.program):
        events = [*(init if t == 0 else []), Event(Act.FENCE), *meet]
        for i, op in enumerate(ops):
            events += _events(op, log, t, i)
            if op.word in ENDS_LATER and log[t, i, "b"] != log[t, i, "e"]:
                broken.append(Broken("C1", "a copy of two phases", -1))
        agents.append(Agent(0, (t,), (*events, Event(Act.EXIT))))
    bars = tuple(
        Ended(str(where), 0, count, *bar, BYTES)
        for where, (count, bar) in enumerate(zip(case.counts, state.bars, strict=True))
    )
    return Recorded(tuple(agents), bars, (), tuple(broken), 1, 0, True)


def _events(op: Op, log: Log, t: int, i: int) -> list[Event]:
    phase = log[t, i, "b"]
    if op.word in ("sync", "come"):
        group = ("barrier", 0, op.where)
        go = [Event(Act.GO, group, phase)] if op.word == "sync" else []
        return [Event(Act.COME, group, phase), *go]
    act = WORDS[op.word]
    amount = {"arrive": 1, "full": 1, "counted": 1}.get(op.word, 0)
    bytes_ = BYTES if op.word in ("full", "expect", "copy") else 0
    return [Event(act, op.where, phase, amount, bytes_)]


# -- as PTX -----------------------------------------------------------------------------------------


def text(case: Case) -> str:
    """A kernel with a warp for each thread, of which all lanes but the first leave."""
    bars = len(case.counts)
    lines = [
        ".version 8.3", ".target sm_90a", ".address_size 64",
        ".visible .entry k(.param .u64 in)", "{", ".reg .pred %p<4>;", ".reg .b32 %r<9>;",
        f".reg .b64 %rd<{4 + max(map(len, case.program), default=0)}>;",
        f".shared .align 8 .b64 bars[{bars}];", ".shared .align 16 .b8 data[16];",
        "ld.param.u64 %rd1, [in];", "cvta.to.global.u64 %rd1, %rd1;", "mov.u32 %r1, %tid.x;",
        "mov.u32 %r2, bars;", "mov.u32 %r3, data;", "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra INITED;",
        *(f"mbarrier.init.shared::cta.b64 [%r2+{8 * at}], {n};" for at, n in enumerate(case.counts)),
        "fence.mbarrier_init.release.cluster;", "INITED:", "bar.sync 0;",
        "and.b32 %r4, %r1, 31;", "setp.ne.u32 %p1, %r4, 0;", "@%p1 exit;", "shr.u32 %r5, %r1, 5;",
    ]  # fmt: skip
    for t in range(1, len(case.program)):
        lines += [f"setp.eq.u32 %p1, %r5, {t};", f"@%p1 bra T{t};"]
    for t, ops in enumerate(case.program):
        lines.append(f"T{t}:")
        for i, op in enumerate(ops):
            lines += _lines(case, op, t, i)
        lines.append("exit;")
    return "\n".join([*lines, "}"])


def _lines(case: Case, op: Op, t: int, i: int) -> list[str]:
    at, token = f"[%r2+{8 * op.where}]", f"%rd{4 + i}"
    if op.word in ("wait", "token"):
        by, given = (
            (".parity", str(op.number)) if op.word == "wait" else ("", f"%rd{4 + op.number}")
        )
        return [f"W{t}_{i}:", f"mbarrier.try_wait{by}.shared::cta.b64 %p2, {at}, {given};",
                f"@!%p2 bra W{t}_{i};"]  # fmt: skip
    if op.word in ("sync", "come"):
        word = "sync" if op.word == "sync" else "arrive"
        return [f"bar.{word} {op.where + 1}, {32 * case.needed[op.where]};"]
    return [{
        "arrive": f"mbarrier.arrive.shared::cta.b64 {token}, {at};",
        "full": f"mbarrier.arrive.expect_tx.shared::cta.b64 {token}, {at}, {BYTES};",
        "expect": f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 {at}, {BYTES};",
        "copy": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                f"[%r3], [%rd1], {BYTES}, {at};",
        "later": f"cp.async.mbarrier.arrive.shared::cta.b64 {at};",
        "counted": f"cp.async.mbarrier.arrive.noinc.shared::cta.b64 {at};",
    }[op.word]]  # fmt: skip
