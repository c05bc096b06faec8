"""A function of a module to `Code`: every instruction becomes a step, once.

An instruction that is not known, or not well formed, becomes a step that raises its error when a
thread reaches it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warploom.errors import (
    Culprit,
    DeviceError,
    KernelError,
    MalformedError,
    WarploomError,
)
from warploom.machine.record import CUDA
from warploom.ptx import flow, ir
from warploom.ptx.emulate import (
    async_stores,
    atomics,
    bulk,
    cluster,
    elementwise,
    floats,
    matrix,
    mbarrier,
    memory,
    product,
    sample,
    stack,
    tensor_map_edit,
    warp,
    warpgroup,
    wmma,
)
from warploom.ptx.emulate import registers as registers_
from warploom.ptx.emulate.barrier import Barrier
from warploom.ptx.emulate.code import Code, CodeBlock, LiveSlots
from warploom.ptx.emulate.context import (
    CARRY,
    MALFORMED,
    Context,
    Fetch,
    Step,
    Steps,
    constant,
    malformed,
)
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.hold import is_event
from warploom.ptx.emulate.lanes import Members
from warploom.ptx.emulate.ordering import looks_at_flags, may_look_far
from warploom.ptx.emulate.poison import PoisonTransfer, poison_transfer_of
from warploom.ptx.emulate.product_fence import watch_products
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.known import form_of, keys_of, record_of, registers, spelled, split_operands
from warploom.ptx.opcode import Control, MemoryEffect, OpcodeForm
from warploom.ptx.parse import collector_paused
from warploom.ptx.patience import timed
from warploom.ptx.table import OPCODES
from warploom.ptx.targets import refuse_absent
from warploom.ptx.types import is_float, size_of, type_of

TABLE: dict[str, Compile] = {
    **elementwise.TABLE, **memory.TABLE,
    **atomics.TABLE, **warp.TABLE, **product.TABLE, **matrix.TABLE, **bulk.TABLE,
    **async_stores.TABLE,
    **mbarrier.TABLE, **tensor_map_edit.TABLE, **warpgroup.TABLE, **cluster.TABLE,
    **wmma.TABLE, **stack.TABLE, **sample.TABLE,
}  # fmt: skip
WAITS = frozenset({Control.BARRIER, Control.LANES})
CallCompiler = Callable[[Context, ir.Instruction], Step]
LONGEST_NAME = 160  # of an instruction, in an error


def compile_function(
    module: ir.Module, function: ir.Function, shared: dict[str, int], call: CallCompiler,
    unfused: frozenset[int] = frozenset(), cut: bool = False, steps: Steps | None = None,
) -> Code:  # fmt: skip
    """`unfused`: where those fma stand that are to round their product before they add. `cut`: a
    block begins at each event, so that a schedule may hold threads back before it."""
    with collector_paused():
        return _compiled(Context(module, function, shared, unfused=unfused, steps=steps), call, cut)


def _compiled(ctx: Context, call: CallCompiler, cut: bool) -> Code:
    module, function = ctx.module, ctx.function
    refuse_absent(module, function)
    ctx.slot_of(CARRY, "pred")
    if function.kind == "entry" and stack.has_stack(module):
        ctx.local_size = stack.STACK
    _lay_out_locals(ctx, function)
    # Who waits for others waits at the start of a block; a block barrier is one by itself.
    after = frozenset({Control.BARRIER})
    graph = flow.build(module, function, after, WAITS, is_event if cut else None)
    rank = flow.loop_order([block.successors for block in graph.blocks])
    blocks = [CodeBlock() for _ in graph.blocks]
    for number, block in enumerate(timed(graph.blocks)):
        code = blocks[rank[number]]
        code.successors = [rank[s] for s in block.successors]
        code.event = any(is_event(ins) for ins in graph.instructions(block)[:1])
        _fill(ctx, graph.instructions(block), code, call)
    live = _live_slots(ctx, graph, rank)
    made = Code(
        function.name, module, function.kind == "entry", blocks, rank[0], live, ctx.sizes,
        ctx.local_size, ctx.locals, ctx.slots, [0] * len(blocks),
    )  # fmt: skip
    watch_products(made)
    return made


def _lay_out_locals(ctx: Context, function: ir.Function) -> None:
    """Room for each name; scopes that use a name again (parameters of calls) share its room."""
    needs: dict[str, tuple[int, int]] = {}
    for statement in timed(function.flat()):
        if isinstance(statement, ir.Variable) and statement.space in ("local", "param"):
            size, align = needs.get(statement.name, (0, 1))
            size = max(size, byte_size(statement))
            needs[statement.name] = (size, max(align, alignment(statement)))
    for name, (size, align) in needs.items():
        ctx.add_local(name, size, align)


def byte_size(variable: ir.Variable) -> int:
    count = variable.vector
    for size in variable.sizes:
        count *= size
    return count * max(1, size_of(variable.type))


def alignment(variable: ir.Variable) -> int:
    return variable.align or max(1, size_of(variable.type)) * variable.vector


def meets_in_part(instruction: ir.Instruction) -> bool:
    """Whether a barrier may be for other threads than a whole block or a whole warp."""
    record = record_of(instruction)
    if record is None or record.memory is not MemoryEffect.MEETS:
        return False
    if "cluster" in instruction.modifiers:
        return True
    if "warp" in instruction.modifiers:
        match instruction.operands:
            case (ir.Immediate(value=value),):
                return value & 0xFFFFFFFF != 0xFFFFFFFF
            case _:
                return True
    counted = len(instruction.operands) > (3 if "red" in instruction.modifiers else 1)
    return counted or "arrive" in instruction.modifiers


def _fill(
    ctx: Context, instructions: tuple[ir.Instruction, ...], code: CodeBlock, call: CallCompiler
) -> None:
    for instruction in timed(instructions):
        ctx.current = instruction
        code.names.append(instruction.opcode)
        code.looks |= looks_at_flags(instruction)
        code.looks_far |= may_look_far(instruction)
        try:
            _add(ctx, instruction, _known_form(ctx, instruction), code, call)
        except WarploomError as error:
            _refuse(code, error)
        except MALFORMED as error:
            _refuse(code, malformed(ctx.module, instruction, error))
        missing = len(code.steps) - len(code.passages)
        code.passages += [_passage(ctx, instruction)] * missing
    if not code.successors and not code.leaves:
        code.leaves = True


def _passage(ctx: Context, ins: ir.Instruction) -> PoisonTransfer:
    if form_of(ins) is None:
        return PoisonTransfer(ins)
    try:
        return poison_transfer_of(ctx, ins, _guard(ctx, ins))
    except WarploomError:  # the step raises it when a thread comes there
        return PoisonTransfer(ins)


def _known_form(ctx: Context, ins: ir.Instruction) -> OpcodeForm:
    """The form of an instruction; what no form lists is refused, never ignored."""
    form = form_of(ins)
    if form is not None:
        return form
    if ins.opcode not in OPCODES:
        raise ctx.unknown(f"the instruction {_shortened(ins.name)}")
    forms = spelled(ins.opcode, ins.modifiers)
    if not forms:
        raise ctx.unknown(f"{ins.opcode} with these modifiers: {_shortened(ins.name)}")
    if any(isinstance(operand, ir.Part) for operand in ins.operands):
        raise ctx.unknown(f"{_shortened(ins.name)} with these parts of registers")
    rows = " or ".join(" ".join(form.operands) or "none" for form in forms)
    raise ctx.fail(f"{ins.name} takes the operands {rows}", ins)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _refuse(code: CodeBlock, error: WarploomError) -> None:
    code.steps.append(_raising(error))
    code.refusal = code.refusal or error.message


def _raising(error: WarploomError) -> Step:
    if type(error) is DeviceError:
        error = MalformedError(error.message, error.span, error.advice)

    def step(_: Frame) -> None:
        raise error

    return step


def _add(
    ctx: Context, ins: ir.Instruction, form: OpcodeForm, code: CodeBlock, call: CallCompiler
) -> None:
    if form.control in flow.JUMPS and ins.opcode != "trap":
        code.condition, code.leaving = _guard(ctx, ins), _passage(ctx, ins)
        code.leaves = form.control is Control.LEAVE
        code.ends_thread = ins.opcode == "exit"
        if form.control is Control.SWITCH:
            code.switch, code.branch = ctx.read(ins.operands[0], "u32"), ins
            if ctx.steps is not None:
                code.steps.append(ctx.steps(ctx, ins, lambda: _nothing))
    elif ins.opcode == "barrier" and ins.modifiers[:2] == ("cluster", "arrive"):
        code.steps.append(_guarded(ctx, ins, cluster.arrive(ctx, ins)))
    elif ins.opcode == "setmaxnreg":
        registers_.check_count(ctx, ins)
        span = ctx.module.span(ins)
        code.barrier = Barrier(ins, guard=_guard(ctx, ins), registers=True, span=span)
        code.coming = _passage(ctx, ins)
    elif OPCODES[ins.opcode].memory is MemoryEffect.MEETS:
        code.barrier, code.coming = _barrier(ctx, ins), _passage(ctx, ins)
        if "red" in ins.modifiers:
            code.steps.append(_barrier_reduction(ctx, ins))
    else:
        if form.control is Control.LANES:
            named = _named_lanes(ctx, ins, form)
            code.members = Members(ins, named, _guard(ctx, ins))
        code.steps.append(_guarded(ctx, ins, _step(ctx, ins, call)))


def _named_lanes(ctx: Context, ins: ir.Instruction, form: OpcodeForm) -> Fetch:
    """The mask of members; instructions on matrices have none, and mean all lanes of the warp."""
    if form.operands[-1:] == ("m",):
        return ctx.read(ins.operands[-1], "b32")
    return constant(np.array([0xFFFFFFFF], np.uint32))


def _step(ctx: Context, ins: ir.Instruction, call: CallCompiler) -> Step:
    if ctx.steps is None:
        return _compile(ctx, ins, call)
    return ctx.steps(ctx, ins, lambda: _compile(ctx, ins, call))


def _compile(ctx: Context, ins: ir.Instruction, call: CallCompiler) -> Step:
    if ins.opcode == "call":
        return call(ctx, ins)
    if ins.opcode in ("trap", "brkpt"):
        return _trap(ctx, ins)
    kind = type_of(ins)
    floating = kind and is_float(kind) and ins.opcode in floats.TABLE
    return (floats.TABLE if floating else TABLE)[ins.opcode](ctx, ins)


def _nothing(_: Frame) -> None:
    return


def _trap(ctx: Context, ins: ir.Instruction) -> Step:
    span = ctx.module.span(ins)

    def step(f: Frame) -> None:
        where = f.batch.where(int(f.index[0]))
        told = KernelError(f"{ins.name} was reached; {where}", span)
        told.culprit = Culprit(where)
        raise told

    return step


def _guard(ctx: Context, ins: ir.Instruction) -> Fetch | None:
    if ins.predicate is None:
        return None
    operand: ir.Operand = ir.Negated(ins.predicate) if ins.negated else ins.predicate
    return ctx.read(operand, "pred")


def _guarded(ctx: Context, ins: ir.Instruction, step: Step) -> Step:
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


def _barrier(ctx: Context, ins: ir.Instruction) -> Barrier:
    guard, span = _guard(ctx, ins), ctx.module.span(ins)
    if "warp" in ins.modifiers:
        return Barrier(ins, members=ctx.read(ins.operands[0], "b32"), guard=guard, span=span)
    if "cluster" in ins.modifiers:
        aligned = "aligned" in ins.modifiers
        return Barrier(ins, guard=guard, cluster=True, aligned=aligned, span=span)
    reduces = "red" in ins.modifiers
    plain = ins.operands[1:-1] if reduces else ins.operands
    if guard is not None and reduces:
        raise ctx.unknown("a barrier with a predicate and a reduction")
    for operand, check in zip(plain, (_check_number, _check_count), strict=False):
        if isinstance(operand, ir.Immediate):
            check(ctx, ins, operand.value)
    return Barrier(
        ins,
        waits="arrive" not in ins.modifiers,
        number=ctx.read(plain[0], "u32"),
        threads=ctx.read(plain[1], "u32") if len(plain) > 1 else None,
        guard=guard,
        joined=ctx.read(ins.operands[-1], "pred") if reduces else None,
        aligned=ins.opcode == "bar" or "aligned" in ins.modifiers,
        span=span,
    )


def _check_number(ctx: Context, ins: ir.Instruction, number: int) -> None:
    if not 0 <= number < CUDA.block_barriers:
        raise ctx.fail(f"{ins.name}: there is no barrier {number}", ins)


def _check_count(ctx: Context, ins: ir.Instruction, threads: int) -> None:
    if threads % CUDA.lanes:
        message = f"a barrier for {threads} threads, which is no multiple of {CUDA.lanes}"
        raise ctx.fail(f"{ins.name}: {message}", ins)
    if threads == 0 and "arrive" in ins.modifiers:
        raise ctx.fail(f"{ins.name}: an arrival for 0 threads", ins)


def _barrier_reduction(ctx: Context, ins: ir.Instruction) -> Step:
    """bar.red: popc, and, or over all threads that made the barrier complete."""
    counts = "popc" in ins.modifiers
    store = ctx.write(ins.operands[0], "u32" if counts else "pred")

    def step(f: Frame) -> None:
        block = f.batch.block_of[f.index]
        yes, all_ = f.batch.joined[:, block]
        if counts:
            store(f, f.spread(yes.astype(np.uint32)))
        else:
            store(f, f.spread(yes == all_ if "and" in ins.modifiers else yes > 0))

    return step


# -- live registers -------------------------------------------------------------------------------


def _live_slots(ctx: Context, graph: flow.Graph, rank: list[int]) -> LiveSlots:
    number = [0] * len(graph.blocks)
    for block, place in enumerate(rank):
        number[place] = block
    return LiveSlots(flow.live_sets(graph, uses), number, ctx.slots)


def uses(ins: ir.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """(registers read, registers surely written) of an instruction."""
    written, sources = split_operands(ins)
    record = record_of(ins)
    read = _keys(sources)
    defined = _keys(written) if record is not None else set()
    if ins.opcode == "wgmma":
        read |= defined  # the sums are added to
    if "cc" in ins.modifiers:
        defined.add(CARRY)
    if record is not None and record.reads_carry:
        read.add(CARRY)
    if ins.predicate is not None:
        read.add(ins.predicate.key)
        read |= defined  # the old value stays where the predicate does not hold
    return frozenset(read), frozenset(defined)


def _keys(operands: tuple[ir.Operand, ...]) -> set[str]:
    return {key for register in registers(operands) for key in keys_of(register)}
