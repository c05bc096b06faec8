"""A function of a module to `Code`: every instruction becomes a step, once.

An instruction that is not known, or not well formed, becomes a step that raises its error when a
thread reaches it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warploom.errors import DeviceError, WarploomError
from warploom.ptx import flow
from warploom.ptx.emulate import atomics, bits, compare, convert, floats, integer, memory, warp
from warploom.ptx.emulate.barrier import Barrier
from warploom.ptx.emulate.context import CARRY, Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.schedule import MALFORMED, Code, CodeBlock, malformed
from warploom.ptx.emulate.shape import Compile, type_of
from warploom.ptx.ir import (
    Address,
    Arguments,
    Component,
    Function,
    Immediate,
    Instruction,
    Module,
    Negated,
    Offset,
    Operand,
    Pair,
    Register,
    Variable,
    Vector,
)
from warploom.ptx.types import is_float, size_of

TABLE: dict[str, Compile] = {
    **integer.TABLE, **bits.TABLE, **compare.TABLE, **convert.TABLE, **memory.TABLE,
    **atomics.TABLE, **warp.TABLE,
}  # fmt: skip
# Opcodes without a result in their first operand.
_SILENT = """st red membar fence prefetch prefetchu cp discard call nanosleep brkpt pmevent
    applypriority griddepcontrol setmaxnreg""".split()  # noqa: SIM905 - a list of words
NO_RESULT = frozenset((*flow.BRANCHES, *flow.BARRIERS, *_SILENT))
CallCompiler = Callable[[Context, Instruction], Step]


def compile_function(
    module: Module, function: Function, shared: dict[str, int], call: CallCompiler
) -> Code:
    ctx = Context(module, function, shared)
    ctx.slot_of(CARRY, "pred")
    _lay_out_locals(ctx, function)
    graph = flow.build(module, function)
    split_at_warp_barriers(graph)
    blocks = [CodeBlock() for _ in graph.blocks]
    for number, block in enumerate(graph.blocks):
        code = blocks[graph.rank[number]]
        code.successors = [graph.rank[s] for s in block.successors]
        _fill(ctx, block, code, call)
    live = _live_slots(ctx, graph)
    return Code(
        function.name, module, function.kind == "entry", blocks, graph.rank[0], live, ctx.sizes,
        ctx.local_size, ctx.slots, [0] * len(blocks),
    )  # fmt: skip


def _lay_out_locals(ctx: Context, function: Function) -> None:
    """Room for each name; scopes that use a name again (parameters of calls) share its room."""
    needs: dict[str, tuple[int, int]] = {}
    for statement in function.flat():
        if isinstance(statement, Variable) and statement.space in ("local", "param"):
            size, align = needs.get(statement.name, (0, 1))
            size = max(size, byte_size(statement))
            needs[statement.name] = (size, max(align, alignment(statement)))
    for name, (size, align) in needs.items():
        ctx.add_local(name, size, align)


def byte_size(variable: Variable) -> int:
    count = variable.vector
    for size in variable.sizes:
        count *= size
    return count * max(1, size_of(variable.type))


def alignment(variable: Variable) -> int:
    return variable.align or max(1, size_of(variable.type)) * variable.vector


def split_at_warp_barriers(graph: flow.Graph) -> None:
    """A warp-level instruction starts a block, so that lanes can wait for each other there."""
    blocks: list[flow.Block] = []
    first: list[int] = []
    pieces: list[list[flow.Block]] = []
    for block in graph.blocks:
        cut: list[list[Instruction]] = [[]]
        for instruction in block.instructions:
            if waits_for_lanes(instruction) and cut[-1]:
                cut.append([])
            cut[-1].append(instruction)
        pieces.append([flow.Block(list(part)) for part in cut])
    total = 0
    for group in pieces:
        first.append(total)
        total += len(group)
    for block, group in zip(graph.blocks, pieces, strict=True):
        for offset, piece in enumerate(group[:-1]):
            piece.successors = [len(blocks) + offset + 1]
        group[-1].successors = [first[s] for s in block.successors]
        blocks += group
    graph.blocks = blocks
    graph.rank = flow.loop_order([b.successors for b in blocks])


def waits_for_lanes(instruction: Instruction) -> bool:
    if instruction.opcode in ("shfl", "vote", "match", "redux"):
        return "sync" in instruction.modifiers
    return instruction.opcode in flow.BARRIERS and "warp" in instruction.modifiers


def meets_in_part(instruction: Instruction) -> bool:
    """Whether a barrier may be for other threads than a whole block or a whole warp."""
    if instruction.opcode not in flow.BARRIERS:
        return False
    if "warp" in instruction.modifiers:
        match instruction.operands:
            case (Immediate(value=value),):
                return value & 0xFFFFFFFF != 0xFFFFFFFF
            case _:
                return True
    counted = len(instruction.operands) > (3 if "red" in instruction.modifiers else 1)
    return counted or "arrive" in instruction.modifiers


def _fill(ctx: Context, block: flow.Block, code: CodeBlock, call: CallCompiler) -> None:
    for instruction in block.instructions:
        ctx.current = instruction
        code.names.append(instruction.opcode)
        try:
            _add(ctx, instruction, code, call)
        except WarploomError as error:
            code.steps.append(_raising(error))
        except MALFORMED as error:
            code.steps.append(_raising(malformed(ctx.module, instruction, error)))
        code.sources += [instruction] * (len(code.steps) - len(code.sources))
    if not block.successors and not code.leaves:
        code.leaves = True


def _raising(error: WarploomError) -> Step:
    def step(_: Frame) -> None:
        raise error

    return step


def _add(ctx: Context, ins: Instruction, code: CodeBlock, call: CallCompiler) -> None:
    if ins.opcode in ("bra", "ret", "exit"):
        code.condition = _guard(ctx, ins)
        code.leaves = ins.opcode != "bra"
        code.ends_thread = ins.opcode == "exit"
    elif ins.opcode == "brx":
        code.switch, code.branch = ctx.read(ins.operands[0], "u32"), ins
    elif ins.opcode in flow.BARRIERS:
        code.barrier = _barrier(ctx, ins)
        if "red" in ins.modifiers:
            code.steps.append(_barrier_reduction(ctx, ins))
    else:
        if waits_for_lanes(ins):
            code.missing = warp.members(ctx, ins)
        code.steps.append(_guarded(ctx, ins, _compile(ctx, ins, call)))


def _compile(ctx: Context, ins: Instruction, call: CallCompiler) -> Step:
    if ins.opcode == "call":
        return call(ctx, ins)
    if ins.opcode in ("trap", "brkpt"):
        return _trap(ctx, ins)
    kind = type_of(ins)
    table = floats.TABLE if kind and is_float(kind) and ins.opcode in floats.TABLE else TABLE
    maker = table.get(ins.opcode)
    if maker is None or (table is TABLE and not kind and ins.opcode in integer.TABLE):
        raise ctx.unknown(f"the instruction {ins.name}")
    return maker(ctx, ins)


def _trap(ctx: Context, ins: Instruction) -> Step:
    span = ctx.module.span(ins)

    def step(f: Frame) -> None:
        raise DeviceError(f"{ins.name} was reached; {f.batch.where(int(f.index[0]))}", span)

    return step


def _guard(ctx: Context, ins: Instruction) -> Fetch | None:
    if ins.predicate is None:
        return None
    operand: Operand = Negated(ins.predicate) if ins.negated else ins.predicate
    return ctx.read(operand, "pred")


def _guarded(ctx: Context, ins: Instruction, step: Step) -> Step:
    """The step for the threads whose predicate holds."""
    guard = _guard(ctx, ins)
    if guard is None:
        return step

    def guarded(f: Frame) -> None:
        holds = guard(f)
        if holds.size == 1 or bool(holds.all()):
            if holds[0]:
                step(f)
            return
        with f.narrowed(holds) as any_active:
            if any_active:
                step(f)

    return guarded


def _barrier(ctx: Context, ins: Instruction) -> Barrier:
    if "warp" in ins.modifiers:
        return Barrier(ins, members=ctx.read(ins.operands[0], "b32"), guard=_guard(ctx, ins))
    plain = list(ins.operands)
    if "red" in ins.modifiers:
        plain = plain[1:-1]
    number = ctx.read(plain[0], "u32") if plain else None
    threads = ctx.read(plain[1], "u32") if len(plain) > 1 else None
    guard = _guard(ctx, ins)
    if guard is not None and "red" in ins.modifiers:
        raise ctx.unknown("a barrier with a predicate and a reduction")
    return Barrier(ins, "arrive" not in ins.modifiers, number, threads, None, guard)


def _barrier_reduction(ctx: Context, ins: Instruction) -> Step:
    """bar.red: popc, and, or over all threads of the block that passed together."""
    counts = "popc" in ins.modifiers
    store = ctx.write(ins.operands[0], "u32" if counts else "pred")
    p = ctx.read(ins.operands[-1], "pred")

    def step(f: Frame) -> None:
        block = f.batch.block_of[f.index]
        yes = np.broadcast_to(f.active_part(p(f)), (f.count,))
        total = np.bincount(block, weights=yes, minlength=f.batch.blocks)
        present = np.bincount(block, minlength=f.batch.blocks)
        if counts:
            store(f, f.spread(total.astype(np.uint32)[block]))
            return
        result = total == present if "and" in ins.modifiers else total > 0
        store(f, f.spread(result[block]))

    return step


# -- live registers -------------------------------------------------------------------------------


def _live_slots(ctx: Context, graph: flow.Graph) -> list[frozenset[int]]:
    by_number = flow.live_in(graph.blocks, uses)
    live = [frozenset[int]()] * len(graph.blocks)
    for number, keys in enumerate(by_number):
        slots = {ctx.slots[key] for key in keys if key in ctx.slots}
        live[graph.rank[number]] = frozenset(slots)
    return live


def uses(ins: Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """(registers read, registers surely written) of an instruction."""
    operands = list(ins.operands)
    written: list[Operand] = []
    if ins.opcode == "call" and operands and isinstance(operands[0], Arguments):
        if len([o for o in operands if isinstance(o, Arguments)]) > 1:
            written = [operands.pop(0)]
    elif operands and (ins.opcode not in NO_RESULT or _reduces_at_barrier(ins)):
        written = [operands.pop(0)]
    read = set(_keys(operands))
    defined = set(_keys(written))
    if "cc" in ins.modifiers:
        defined.add(CARRY)
    if ins.opcode in ("addc", "subc", "madc"):
        read.add(CARRY)
    if ins.predicate is not None:
        read.add(ins.predicate.key)
        read |= defined  # the old value stays where the predicate does not hold
    return frozenset(read), frozenset(defined)


def _reduces_at_barrier(ins: Instruction) -> bool:
    return ins.opcode in flow.BARRIERS and "red" in ins.modifiers


def _keys(operands: list[Operand]) -> list[str]:
    out: list[str] = []
    work = list(operands)
    while work:
        match work.pop():
            case Register(_, _, key, vector):
                out += [key] if vector == 1 else [f"{key}.{i}" for i in range(vector)]
            case Component(register, index):
                out.append(f"{register.key}.{index}")
            case Negated(inner):
                work.append(inner)
            case Address(base, _, more):
                work += [base, *more]
            case Offset(base):
                work.append(base)
            case Vector(elements) | Arguments(elements):
                work += elements
            case Pair(first, second):
                work += [first, second]
            case _:
                pass
    return out
