"""Small programs of mbarriers, named barriers and flags, drawn by chance, most of them right.

Each is of a shape that kernels have: a ring, threads in turn, ping-pong, a relay by flags, work
that is handed over by a flag. Some have a mistake or two.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bench.common.ptx.phases import ADDS, LOOKS, WRITES, Case, Op, Program


def draw(r: Random) -> Case:
    """One of several shapes, with none to two mistakes in it."""
    case = r.choice((_ring, _ring, _turns, _meetings, _relay, _handed, _anything))(r)
    if r.random() < 0.3:
        case = _peeking(case, r)
    for _ in range(r.choice((0, 0, 1, 1, 2))):
        case = _mistaken(case, r)
    return _relaxed(case, r) if not case.flags and r.random() < 0.3 else case


def _relaxed(case: Case, r: Random) -> Case:
    """The same by the manual, with relaxed arrivals and waits, of which some have a fence."""
    few = r.choice((0.0, 0.1, 0.3, 0.6))
    program = []
    for ops in case.program:
        made: list[Op] = []
        for op in ops:
            relaxes, fence = r.random() < few, [Op("fence", 0)] * (r.random() < 0.5)
            if relaxes and op.word == "arrive" and all(each.word != "token" for each in ops):
                made += [*fence, op._replace(word="loose")]
            elif relaxes and op.word == "wait":
                made += [op._replace(word="glimpse"), *fence]
            else:
                made.append(op)
        program.append(tuple(made))
    return replace(case, program=tuple(program), manual=True)


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


def _peeking(case: Case, r: Random) -> Case:
    """Some waits ask once before they begin to wait."""
    program: Program = tuple(
        tuple(
            op._replace(word="peek") if op.word == "wait" and r.random() < 0.5 else op
            for op in ops
        )
        for ops in case.program
    )  # fmt: skip
    return replace(case, program=program)


def _written(r: Random, where: int, number: int, word: str) -> list[Op]:
    """A write to a flag with all that it needs, and now and then without."""
    if r.random() < 0.5:
        return [Op(word, where, number)]
    bare = Op({"set": "bare", "add": "more"}[word], where, number)
    return [bare] if r.random() < 0.1 else [Op("fence", 0), bare]


def _looked(r: Random, where: int, number: int) -> list[Op]:
    word = r.choice(("look", "look", "equal", "glance"))
    if word != "glance":
        return [Op(word, where, number)]
    return [Op(word, where, number)] + ([] if r.random() < 0.1 else [Op("fence", 0)])


def _relay(r: Random) -> Case:
    """One thread after another has a phase of an mbarrier for itself; a flag tells the next."""
    threads, rounds = r.choice((2, 2, 3)), r.choice((2, 3, 4))
    way = r.choice(("plain", "copy", "counted"))
    program: list[list[Op]] = [[] for _ in range(threads)]
    for i in range(rounds):
        ops = program[i % threads]
        if i:
            ops += _looked(r, i - 1, 1)
        ops += {"plain": [Op("arrive", 0)], "copy": [Op("full", 0), Op("copy", 0)],
                "counted": [Op("counted", 0)]}[way]  # fmt: skip
        ops += [Op("wait", 0, i & 1)]
        if i + 1 < rounds:
            ops += _written(r, i, 1, r.choice(("set", "add")))
    return Case(tuple(map(tuple, program)), (1,), (), (0,) * (rounds - 1))


def _handed(r: Random) -> Case:
    """Some make their parts round after round; the last waits for all of them, by a flag."""
    makers, rounds = r.choice((1, 2, 2)), r.choice((1, 2, 3))
    parts = []
    for maker in range(makers):
        ops: list[Op] = []
        for i in range(rounds):
            if maker == 0:
                ops += r.choice(([Op("full", 0), Op("copy", 0)], [Op("arrive", 0)]))
            ops += [Op("wait", 0, i & 1)]
        parts.append((*ops, *_written(r, 0, 1, "add" if makers > 1 else r.choice(("add", "set")))))
    if makers > 1:  # who arrives waits until the others have seen the phase
        parts = [parts[0], *parts[1:]] if rounds == 1 else [_answered(each) for each in parts]
    goes_on = r.choice(([], [Op("arrive", 0), Op("wait", 0, rounds & 1)]))
    last = (*_looked(r, 0, makers), *goes_on)
    counts = (1, makers) if makers > 1 and rounds > 1 else (1,)
    return Case((*parts, last), counts, (), (0,))


def _answered(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """After each phase all meet at the second mbarrier."""
    out: list[Op] = []
    for op in ops:
        out.append(op)
        if op.word == "wait":
            out += [Op("arrive", 1), Op("wait", 1, op.number)]
    return tuple(out)


def _anything(r: Random) -> Case:
    barriers, threads = r.choice((1, 1, 2)), r.choice((2, 2, 3, 4))
    flags = r.choice((0, 0, 1, 2))
    words: tuple[str, ...] = ("arrive",) * 5 + ("wait",) * 6
    words += ("full", "expect", "copy", "later", "counted", "peek")
    words += ("set", "add", "bare", "more", "look", "equal", "glance", "fence") if flags else ()

    def drawn() -> Op:
        word = r.choice(words)
        if word in (*WRITES, *LOOKS):
            return Op(word, r.randrange(flags), 1 if word in ADDS else r.choice((1, 1, 2)))
        return Op(word, 0 if word == "fence" else r.randrange(barriers), r.randrange(2))

    program = tuple(
        tuple(drawn() for _ in range(r.randint(1, 5 if threads < 4 else 3)))
        for _ in range(threads)
    )  # fmt: skip
    counts = tuple(r.choice((1, 1, 2)) for _ in range(barriers))
    return Case(program, counts, (), tuple(r.choice((0, 0, 0, 1)) for _ in range(flags)))


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
    elif ops[i].word in ("wait", "peek"):
        ops[i] = ops[i]._replace(number=1 - ops[i].number)
    elif ops[i].word in (*WRITES, *LOOKS):
        ops[i] = _other(ops[i], case, r)
    elif ops[i].word not in ("sync", "come", "token", "fence"):
        ops[i] = ops[i]._replace(where=r.randrange(len(case.counts)))
    return replace(case, program=(*case.program[:t], tuple(ops), *case.program[t + 1 :]))


def _other(op: Op, case: Case, r: Random) -> Op:
    """Another flag, another number, or no order."""
    bare = {"set": "bare", "add": "more", "look": "glance", "equal": "glance"}
    match r.randrange(3):
        case 0:
            return op._replace(where=r.randrange(len(case.flags)))
        case 1:
            return op._replace(number=3 - op.number if op.number < 3 else 1)
        case _:
            return op._replace(word=bare.get(op.word, op.word))
