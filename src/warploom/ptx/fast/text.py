"""A kernel as C text: each basic block a label, groups of lanes that part and meet again.

Blocks run in the order of `flow.loop_order`, as in the NumPy evaluator: of the groups that wait,
the one whose block comes first goes on, so lanes meet as early as they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warploom.errors import Span
from warploom.machine.c_source import whole_text
from warploom.machine.value.text import HEADERS
from warploom.ptx import flow
from warploom.ptx.emulate.call import ASSERTION, has_body
from warploom.ptx.emulate.compile import WAITS, uses
from warploom.ptx.fast import elementwise, floats, lanes, matrix, memory, move, warpgroup, wmma
from warploom.ptx.fast import poison as undefined
from warploom.ptx.fast.notes import NO_NOTES, Noted, Notes
from warploom.ptx.fast.operand import NotTaken, Spell, Writer, plain
from warploom.ptx.ir import Function, Immediate, Instruction, Module, Negated, Symbol
from warploom.ptx.known import control_of, form_of
from warploom.ptx.opcode import Control
from warploom.ptx.types import is_float, type_of

TABLE = {
    **elementwise.TABLE, **move.TABLE, **memory.TABLE, **lanes.TABLE, **matrix.TABLE,
    **warpgroup.TABLE, **wmma.TABLE,
}  # fmt: skip
MOST_INSTRUCTIONS = 4000  # beyond that a C compiler takes longer than most launches


@dataclass(frozen=True, slots=True)
class CText:
    """What is compiled, and what a launch must bring: addresses of variables, in this order."""

    name: str
    source: str
    symbols: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]  # opcodes of each block, in running order
    noted: Noted
    places: tuple[Span | None, ...]  # where each block begins


def spell(
    module: Module, function: Function, shared: dict[str, int], parameters: dict[str, int],
    locals_: dict[str, int], watch: bool = False, notes: Notes = NO_NOTES,
) -> CText:  # fmt: skip
    """The C text of a kernel; `NotTaken` says what keeps it from being written.

    `watch`: it goes on with uninitialised values, as long as nothing depends on them. `notes`:
    what it notes of its accesses.
    """
    graph = flow.build(module, function, after=frozenset({Control.BARRIER}), before=WAITS)
    if len(graph.code) > MOST_INSTRUCTIONS:
        raise NotTaken(f"{len(graph.code)} instructions")
    warpgroup.check_waits(graph)
    live = flow.live_in(graph, uses)
    watched = undefined.may_hold_none(graph.code, live[0]) if watch or live[0] else frozenset[str]()
    rank = flow.loop_order([block.successors for block in graph.blocks])
    lasting = frozenset(key for keys in live for key in keys)
    used = frozenset(key for step in graph.code for key in uses(step)[0])
    lasting |= {f"{key}?" for key in lasting & watched}
    writer = Writer(
        module, function, shared, parameters, locals_, lasting, used, watched, Noted(notes)
    )  # fmt: skip
    texts: dict[int, tuple[list[str], tuple[str, ...]]] = {}
    for number, block in enumerate(graph.blocks):
        lines = _block(writer, graph, block, rank, rank[number])
        opcodes = tuple(step.opcode for step in graph.instructions(block))
        texts[rank[number]] = (lines, opcodes)
    ordered = [texts[place] for place in range(len(texts))]
    return CText(
        function.name,
        _whole(writer, [lines for lines, _ in ordered], rank[0], live[0]),
        tuple(writer.symbols),
        tuple(opcodes for _, opcodes in ordered),
        writer.noted,
        _places(module, graph, rank),
    )


def _places(module: Module, graph: flow.Graph, rank: list[int]) -> tuple[Span | None, ...]:
    found: list[Span | None] = [None] * len(rank)
    for number, block in enumerate(graph.blocks):
        steps = graph.instructions(block)
        found[rank[number]] = module.span(steps[0]) if steps else None
    return tuple(found)


def _block(
    w: Writer, graph: flow.Graph, block: flow.Block, rank: list[int], place: int
) -> list[str]:
    w.start()
    steps = graph.instructions(block)
    if any(_ends_launch(w.module, step) for step in steps):  # what it says is the evaluator's
        return [f"B{place}: {{", f"  ENTER({place}, {len(steps)});", "  return FAULT;", "}"]
    targets = [rank[after] for after in block.successors]
    last = steps[-1] if steps else None
    ends = last is not None and control_of(last) in flow.JUMPS
    for step in steps[: len(steps) - ends]:
        _step(w, step, targets, place)
    w.guard = ""
    if last is not None and ends:
        _jump(w, last, targets)
    elif last is None or not _is_block_barrier(last):
        w.put(f"NEXT({targets[0]}, m);" if targets else "LEAVE(m);")
    opening = [f"B{place}: {{", f"  ENTER({place}, {len(steps)});"]
    return [*opening, *(f"  {line}" for line in w.arrays.values()), *w.lines, "}"]


def _ends_launch(module: Module, ins: Instruction) -> bool:
    """Whether the launch ends with an error where a thread comes here."""
    if ins.predicate is not None:
        return False
    named = [each.name for each in ins.operands if isinstance(each, Symbol)]
    fails = ins.opcode == "call" and ASSERTION in named[:1]
    return ins.opcode == "trap" or (fails and not has_body(module, ASSERTION))


def _is_block_barrier(ins: Instruction) -> bool:
    return ins.opcode in ("bar", "barrier") and "warp" not in ins.modifiers


def _step(w: Writer, ins: Instruction, targets: list[int], place: int) -> None:
    if form_of(ins) is None:
        raise NotTaken(ins.name)
    w.guard = ""
    if ins.predicate is not None:
        operand = Negated(ins.predicate) if ins.negated else ins.predicate
        w.guard = w.filled(1, w.read(operand, "pred"))
    if ins.opcode in ("bar", "barrier"):
        _barrier(w, ins, targets, place)
    elif ins.opcode in TABLE or ins.opcode in floats.TABLE:
        none = undefined.before(w, ins) if w.watched else None
        _spelling(ins)(w, ins)
        if w.watched:
            undefined.after(w, ins, none)
    else:
        raise NotTaken(ins.name)


def _spelling(ins: Instruction) -> Spell:
    kind = type_of(ins)
    floating = kind and is_float(kind) and ins.opcode in floats.TABLE
    found = (floats.TABLE if floating else TABLE).get(ins.opcode)
    if found is None:
        raise NotTaken(ins.name)
    return found


def _barrier(w: Writer, ins: Instruction, targets: list[int], place: int) -> None:
    if w.guard:
        raise NotTaken("a barrier under a predicate")
    if not _is_block_barrier(ins):
        group = lanes.members(w, ins, ins.operands[0])
        if w.noted.notes.races:
            w.must(f"warp_met(S, {group}, @)")
        return
    reduces = "red" in ins.modifiers
    plain = ins.operands[1:-1] if reduces else ins.operands
    whole = len(plain) == 1 and isinstance(plain[0], Immediate)
    if not (reduces or "sync" in ins.modifiers) or not whole:
        raise NotTaken(ins.name)
    if reduces:
        lanes.join(w, ins)
    w.put(f"BARRIER({place}, {targets[0]});")


def _jump(w: Writer, ins: Instruction, targets: list[int]) -> None:
    control = control_of(ins)
    if control is Control.SWITCH:
        raise NotTaken(ins.name)
    if ins.predicate is None:
        w.put("LEAVE(m);" if control is Control.LEAVE else f"NEXT({targets[0]}, m);")
        return
    flags = w.flags(ins.predicate)
    if flags:
        w.put(f"if (packed({w.filled(1, flags)}) & m) return FAULT;")
    operand = Negated(ins.predicate) if ins.negated else ins.predicate
    w.put(f"const uint32_t taken = m & packed({w.filled(1, w.read(operand, 'pred'))});")
    if ins.opcode == "trap":
        w.put("if (taken) return FAULT;")
        w.put(f"NEXT({targets[0]}, m);")
        return
    if w.noted.notes.counts:
        w.put(f"BRANCHED({w.noted.branch(w.module.span(ins))}, taken);")
    if control is Control.LEAVE:
        w.put(f"LEAVE_SOME(taken, {targets[0]});")
    else:
        w.put(f"BRANCH(taken, {targets[0]}, {targets[1]});")


def _whole(w: Writer, blocks: list[list[str]], entry: int, unwritten: frozenset[str]) -> str:
    lasting = sorted({w.names[key] for key in w.lasting if key in w.names})
    fields = " ".join(f"{plain(w.sizes[name])} {name}[LANES];" for name in lasting)
    cases = [f"    case {place}: goto B{place};" for place in range(len(blocks))]
    run = [
        "static int run(Launch *L, Warp *S) {", "  uint32_t m;", "dispatch:",
        "  if (!S->pending) return DONE;", "  S->pending--;", "  m = S->mask[S->pending];",
        "  switch (S->rank[S->pending]) {", *cases, "    default: return FAULT;", "  }",
        *(line for block in blocks for line in block), "}",
    ]  # fmt: skip
    tables = [f"static const uint16_t {name}[] = {{{x}}};" for x, name in w.tables.items()]
    none = sorted(w.names[f"{key}?"] for key in unwritten if f"{key}?" in w.names)
    wrote = "".join(f" EACH (S)->{name}[l] = 1;" for name in none)
    start = "\n".join([f"#define ENTRY {entry}", f"#define NOBODY_WROTE(S){wrote}", *tables])
    before, after = _around()
    parts = (
        f"#define WATCHED {int(bool(w.watched))}", w.noted.head(),
        f"#define WARP_REGISTERS {fields}", before, start, "\n".join(run), after,
    )  # fmt: skip
    return "\n".join(parts)


@cache
def _around() -> tuple[str, str]:
    """The C text before what depends on the kernel, and after it."""
    file = Path(__file__).with_name("c") / "launch.c"
    before, alone, after = whole_text(file, [HEADERS]).partition("#ifndef ENTRY")
    return before, alone + after
