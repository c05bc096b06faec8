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
from warploom.ptx.known import form_of, record_of, spelled, split_operands
from warploom.ptx.opcode import Control, MemoryEffect, OpcodeForm
from warploom.ptx.table import OPCODES
from warploom.ptx.types import is_float, size_of

TABLE: dict[str, Compile] = {
    **integer.TABLE, **bits.TABLE, **compare.TABLE, **convert.TABLE, **memory.TABLE,
    **atomics.TABLE, **warp.TABLE,
}  # fmt: skip
WAITS = frozenset({Control.BARRIER, Control.LANES})
CallCompiler = Callable[[Context, Instruction], Step]


def compile_function(
    module: Module, function: Function, shared: dict[str, int], call: CallCompiler
) -> Code:
    ctx = Context(module, function, shared)
    ctx.slot_of(CARRY, "pred")
    _lay_out_locals(ctx, function)
    # Who waits for others waits at the start of a block; a block barrier is one by itself.
    graph = flow.build(module, function, after=frozenset({Control.BARRIER}), before=WAITS)
    rank = flow.loop_order([block.successors for block in graph.blocks])
    blocks = [CodeBlock() for _ in graph.blocks]
    for number, block in enumerate(graph.blocks):
        code = blocks[rank[number]]
        code.successors = [rank[s] for s in block.successors]
        _fill(ctx, graph.instructions(block), code, call)
    live = _live_slots(ctx, graph, rank)
    return Code(
        function.name, module, function.kind == "entry", blocks, rank[0], live, ctx.sizes,
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


def meets_in_part(instruction: Instruction) -> bool:
    """Whether a barrier may be for other threads than a whole block or a whole warp."""
    record = record_of(instruction)
    if record is None or record.memory is not MemoryEffect.MEETS:
        return False
    if "warp" in instruction.modifiers:
        match instruction.operands:
            case (Immediate(value=value),):
                return value & 0xFFFFFFFF != 0xFFFFFFFF
            case _:
                return True
    counted = len(instruction.operands) > (3 if "red" in instruction.modifiers else 1)
    return counted or "arrive" in instruction.modifiers


def _fill(
    ctx: Context, instructions: tuple[Instruction, ...], code: CodeBlock, call: CallCompiler
) -> None:
    for instruction in instructions:
        ctx.current = instruction
        code.names.append(instruction.opcode)
        try:
            _add(ctx, instruction, _known_form(ctx, instruction), code, call)
        except WarploomError as error:
            code.steps.append(_raising(error))
        except MALFORMED as error:
            code.steps.append(_raising(malformed(ctx.module, instruction, error)))
        code.sources += [instruction] * (len(code.steps) - len(code.sources))
    if not code.successors and not code.leaves:
        code.leaves = True


def _known_form(ctx: Context, ins: Instruction) -> OpcodeForm:
    """The form of an instruction; what no form lists is refused, never ignored."""
    form = form_of(ins)
    if form is not None:
        return form
    if ins.opcode not in OPCODES:
        raise ctx.unknown(f"the instruction {ins.name}")
    forms = spelled(ins.opcode, ins.modifiers)
    if not forms:
        raise ctx.unknown(f"{ins.opcode} with these modifiers: {ins.name}")
    rows = " or ".join(" ".join(form.operands) or "none" for form in forms)
    raise ctx.fail(f"{ins.name} takes the operands {rows}", ins)


def _raising(error: WarploomError) -> Step:
    def step(_: Frame) -> None:
        raise error

    return step


def _add(
    ctx: Context, ins: Instruction, form: OpcodeForm, code: CodeBlock, call: CallCompiler
) -> None:
    if form.control in flow.JUMPS and ins.opcode != "trap":
        code.condition = _guard(ctx, ins)
        code.leaves = form.control is Control.LEAVE
        code.ends_thread = ins.opcode == "exit"
        if form.control is Control.SWITCH:
            code.switch, code.branch = ctx.read(ins.operands[0], "u32"), ins
    elif OPCODES[ins.opcode].memory is MemoryEffect.MEETS:
        code.barrier = _barrier(ctx, ins)
        if "red" in ins.modifiers:
            code.steps.append(_barrier_reduction(ctx, ins))
    else:
        if form.control is Control.LANES:
            code.missing = warp.members(ctx, ins)
        code.steps.append(_guarded(ctx, ins, _compile(ctx, ins, call)))


def _compile(ctx: Context, ins: Instruction, call: CallCompiler) -> Step:
    if ins.opcode == "call":
        return call(ctx, ins)
    if ins.opcode in ("trap", "brkpt"):
        return _trap(ctx, ins)
    kind = type_of(ins)
    floating = kind and is_float(kind) and ins.opcode in floats.TABLE
    return (floats.TABLE if floating else TABLE)[ins.opcode](ctx, ins)


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


def _live_slots(ctx: Context, graph: flow.Graph, rank: list[int]) -> list[frozenset[int]]:
    live = [frozenset[int]()] * len(graph.blocks)
    for number, keys in enumerate(flow.live_in(graph, uses)):
        live[rank[number]] = frozenset({ctx.slots[key] for key in keys if key in ctx.slots})
    return live


def uses(ins: Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """(registers read, registers surely written) of an instruction."""
    written, sources = split_operands(ins)
    record = record_of(ins)
    read = set(_keys(sources))
    defined = set(_keys(written)) if record is not None else set()
    if "cc" in ins.modifiers:
        defined.add(CARRY)
    if record is not None and record.reads_carry:
        read.add(CARRY)
    if ins.predicate is not None:
        read.add(ins.predicate.key)
        read |= defined  # the old value stays where the predicate does not hold
    return frozenset(read), frozenset(defined)


def _keys(operands: tuple[Operand, ...]) -> list[str]:
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
