"""Calls of `.func`: parameters live in the caller's local memory, where both can see them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warploom.errors import MalformedError
from warploom.ptx.emulate import heap, printf, stack
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.schedule import Runner
from warploom.ptx.ir import Arguments, Function, Instruction, Module, Operand, Register, Symbol
from warploom.ptx.types import DTYPES

DEEPEST_CALL = 64
Lookup = Callable[[str], tuple[Function, Code] | None]
Provided = Callable[
    [Context, Instruction, str, tuple[Operand, ...], tuple[Operand, ...]], Step
]  # fmt: skip
ASSERTION = "__assertfail"
# What compilers declare and a driver brings.
PROVIDED: dict[str, Provided] = {
    "vprintf": printf.vprintf, ASSERTION: printf.assertion,
    "malloc": heap.malloc, "free": heap.free, "__cuda_syscall_aligned_malloc": heap.malloc,
}  # fmt: skip


class CallCompiler:
    """Makes steps of calls; `lookup` compiles a function when it is first called."""

    def __init__(self, lookup: Lookup, names: dict[int, str]) -> None:
        self.lookup = lookup
        self.names = names  # function by address, for calls through registers

    def __call__(self, ctx: Context, ins: Instruction) -> Step:
        lists = [o for o in ins.operands if isinstance(o, Arguments)]
        plain = [o for o in ins.operands if not isinstance(o, Arguments)]
        if not plain:
            raise ctx.fail("a call without a function", ins)
        has_results = isinstance(ins.operands[0], Arguments)
        results = lists[0].elements if has_results else ()
        rest = lists[1:] if has_results else lists
        arguments = rest[0].elements if rest else ()
        target = plain[0]
        if isinstance(target, Symbol):
            return self._direct(ctx, ins, target.name, results, arguments)
        return self._indirect(ctx, ins, ctx.read(target, "u64"), results, arguments)

    def _direct(
        self, ctx: Context, ins: Instruction, name: str, results: tuple[Operand, ...],
        arguments: tuple[Operand, ...],
    ) -> Step:  # fmt: skip
        if name in PROVIDED and not has_body(ctx.module, name):
            return PROVIDED[name](ctx, ins, name, results, arguments)

        def step(f: Frame) -> None:
            found = self.lookup(name)
            if found is None:
                message = f"the function '{name}' has no body in this module"
                raise MalformedError(message, ctx.module.span(ins))
            invoke(ctx, ins, f, found, results, arguments)

        return step

    def _indirect(
        self, ctx: Context, ins: Instruction, target: Fetch, results: tuple[Operand, ...],
        arguments: tuple[Operand, ...],
    ) -> Step:  # fmt: skip
        def step(f: Frame) -> None:
            address = f.widen(target(f))
            for one in np.unique(address[f.index]).tolist():
                chosen = address == one
                if f.compact:
                    chosen = chosen[f.index]
                with f.narrowed(chosen):
                    self._call(ctx, ins, f, int(one), results, arguments)

        return step

    def _call(
        self, ctx: Context, ins: Instruction, f: Frame, address: int, results: tuple[Operand, ...],
        arguments: tuple[Operand, ...],
    ) -> None:  # fmt: skip
        name = self.names.get(address, "")
        if name in PROVIDED and not has_body(ctx.module, name):
            PROVIDED[name](ctx, ins, name, results, arguments)(f)
            return
        found = self.lookup(name)
        if found is None:
            raise ctx.fail(f"a call to {address:#x}, where no function is", ins)
        invoke(ctx, ins, f, found, results, arguments)


def has_body(module: Module, name: str) -> bool:
    """Whether a module has a function of its own that is called like one of ours."""
    function = module.function(name)
    return function is not None and function.body is not None


def invoke(
    ctx: Context, ins: Instruction, f: Frame, found: tuple[Function, Code],
    results: tuple[Operand, ...], arguments: tuple[Operand, ...],
) -> None:  # fmt: skip
    """Runs the callee for the active threads, then goes on with those that are still alive."""
    function, code = found
    if f.depth >= DEEPEST_CALL:
        raise ctx.fail(f"calls nested more than {DEEPEST_CALL} deep", ins)
    if len(results) > len(function.results) or len(arguments) != len(function.parameters):
        raise ctx.fail(f"the call does not fit the parameters of '{function.name}'", ins)
    base = f.local_base + -(-ctx.local_size // 16) * 16
    callee = Frame(f.batch, code.new_registers(), f.depth + 1, base)
    f.batch.local.reserve(base + code.local_size)
    pairs = [*zip(function.results, results, strict=False)]
    pairs += zip(function.parameters, arguments, strict=True)
    for formal, actual in pairs:
        if isinstance(actual, Symbol) and actual.name in ctx.locals:
            callee.parameters[formal.name] = f.local_base + ctx.locals[actual.name]
        elif formal.space == "reg" and formal.name in code.slots:
            if any(formal is parameter for parameter in function.parameters):
                value = ctx.read(actual, formal.type)(f)
                callee.regs[code.slots[formal.name]] = f.widen(value)
        elif formal.space != "reg":
            raise ctx.fail("this call passes something that is no .param variable", ins)
    passed = {code.slots[p.name] for p in function.parameters if p.name in code.slots}
    undefined.begin(callee, code.slots, code.live[code.entry] - passed)
    before = stack.taken(f.batch)
    Runner(code, callee).run(f.mask)
    stack.give_back(f, before)
    for formal, actual in zip(function.results, results, strict=False):
        if formal.space == "reg" and isinstance(actual, Register):
            _copy_result(ctx, f, callee, code, formal.name, actual)
    _bury(f)


def _copy_result(
    ctx: Context, f: Frame, callee: Frame, code: Code, name: str, actual: Register
) -> None:
    value = callee.regs[code.slots[name]]
    if f.compact and value.size != 1:
        value = value[f.index]
    ctx.write(actual, actual.type)(f, value.view(DTYPES[actual.type]))


def _bury(f: Frame) -> None:
    """Threads that exited inside the callee do not come back."""
    alive = f.batch.alive
    gone = ~alive[f.index]
    if gone.any():
        mask = f.full_mask() & alive
        f.activate(mask, f.protected)
