"""Exchanges between threads, taken out of conditions that differ between the threads of a block.

    if (c) { r = e; s = shuffle(r); }   →   r = c ? e : r;  t = shuffle(r);  s = c ? t : s;
    for (i = a; i < b; ++i) { … }       →   for (i = min a; i < max b; ++i) if (a <= i < b) { … }

Texts in which an exchange is a meeting of the whole block (C, OpenCL without sub-groups) need
this; on a GPU a warp may branch by itself. What a condition kept from being computed is computed
by all then, so divisions in it are made safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce

from warploom.errors import EmitError, InternalError, spelled
from warploom.index.evaluate import totalise
from warploom.index.ir import Const, Expr, Var, maximum, minimum, substitute, variables
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.bounds import INDEX_BITS, thread_variables
from warploom.kernel.check_hopper import of_hopper
from warploom.kernel.names import Fresh, distinct, names_of


def predicate_exchanges(kernel: ir.Kernel, everywhere: bool = False) -> ir.Kernel:
    """The kernel with all exchanges where the whole block meets; the meaning is the same.

    With `everywhere`, none is left under a condition, even where the whole block agrees on it.
    """
    if any(isinstance(each, ir.TensorProduct) for each in ir.walk(kernel.body)):
        raise EmitError(
            f"'{kernel.name}' multiplies on tensor cores, which threads without warps do not have",
            advice="emit CUDA, or explore without " + spelled("'--space tensor'", "space='tensor'"),
        )
    if of_hopper(kernel):
        raise EmitError(
            f"'{kernel.name}' has statements of Hopper, which this language has not",
            advice="emit CUDA",
        )
    if not any(isinstance(each, ir.Barrier | ir.Shuffle) for each in ir.walk(kernel.body)):
        return kernel
    kernel = distinct(kernel)  # the branches of a condition come to stand in one scope
    return replace(kernel, body=_Flattened(kernel, everywhere).body(kernel.body, {}))


def exchanges(stmt: ir.Stmt) -> bool:
    """Whether threads meet inside a statement."""
    return any(isinstance(each, ir.Barrier | ir.Shuffle) for each in ir.walk((stmt,)))


class _Flattened:
    def __init__(self, kernel: ir.Kernel, everywhere: bool) -> None:
        self.kernel = kernel
        self.everywhere = everywhere
        self.fresh = Fresh(names_of(kernel))

    def body(self, body: tuple[ir.Stmt, ...], lets: Mapping[str, Expr]) -> tuple[ir.Stmt, ...]:
        """The statements, with conditions and loops flattened that differ between warps."""
        known, result = dict(lets), list[ir.Stmt]()
        for stmt in body:
            match stmt:
                case ir.Let(name, expr):
                    known[name] = substitute(expr, known)
                    result.append(stmt)
                case ir.For() if exchanges(stmt):
                    result.append(self._loop(stmt, known))
                case ir.If(condition) if exchanges(stmt):
                    result += self._branches(stmt, substitute(condition, known), known)
                case _:
                    result.append(stmt)
        return tuple(result)

    def _branches(
        self, stmt: ir.If, condition: Expr, lets: Mapping[str, Expr]
    ) -> Iterator[ir.Stmt]:
        then, otherwise = (self.body(each, lets) for each in (stmt.then, stmt.otherwise))
        if variables(condition).isdisjoint(ir.THREAD_NAMES) and not self.everywhere:
            yield ir.If(stmt.condition, then, otherwise)
        else:
            yield from self.predicated(then, stmt.condition)
            yield from self.predicated(otherwise, stmt.condition.not_())

    def _loop(self, stmt: ir.For, lets: Mapping[str, Expr]) -> ir.For:
        start, stop = substitute(stmt.start, lets), substitute(stmt.stop, lets)
        inner = self.body(stmt.body, lets)
        if (variables(start) | variables(stop)).isdisjoint(ir.THREAD_NAMES):
            return replace(stmt, body=inner)
        guard, step = Var(stmt.var).lt(stmt.stop), stmt.step
        if not variables(start).isdisjoint(ir.THREAD_NAMES):
            guard = Var(stmt.var).ge(stmt.start).and_(guard)
            if step > 1:  # warps may count on different numbers
                guard = guard.and_(((Var(stmt.var) - stmt.start) % step).eq(0))
                step = 1
        return replace(
            stmt,
            start=self._of_warps(start, minimum),
            stop=self._of_warps(stop, maximum),
            body=tuple(self.predicated(inner, guard)),
            step=step,
            unroll=False,
        )

    def _of_warps(self, bound: Expr, extreme: Callable[[Expr, Expr], Expr]) -> Expr:
        """The least or greatest that a bound is in any warp of the block."""
        threads = thread_variables(self.kernel)
        first = range(0, self.kernel.threads, self.kernel.warp_size)
        values = [
            simplify(substitute(bound, {name: int(each[at]) for name, each in threads.items()}))
            for at in first
        ]
        return simplify(reduce(extreme, dict.fromkeys(values)))

    def predicated(self, body: tuple[ir.Stmt, ...], guard: Expr) -> Iterator[ir.Stmt]:
        """The statements run by all threads, taking effect only where the guard holds."""
        for stmt in body:
            match stmt:
                case ir.Assign(target, value):
                    yield _kept_unless(guard, target, value)
                case ir.Load():
                    yield from _predicated_load(stmt, guard)
                case ir.Store():
                    yield replace(stmt, predicate=_both(guard, stmt.predicate))
                case ir.Shuffle(target, value, lane, mode):
                    kept = ir.Cell(self.fresh.name("kept"), None, target.dtype)
                    yield ir.Registers(kept.name, kept.dtype)
                    yield ir.Shuffle(kept, ir.Choose(guard, value, _zero(value)), _safe(lane), mode)
                    yield _kept_unless(guard, target, kept)
                case ir.For() | ir.If() if not exchanges(stmt):
                    yield ir.If(guard, (stmt,))
                case ir.For(start=start, stop=stop):
                    inner = tuple(self.predicated(stmt.body, guard))
                    yield replace(stmt, start=_safe(start), stop=_safe(stop), body=inner)
                case ir.If(condition, then, otherwise):
                    yield ir.If(
                        _safe(condition),
                        tuple(self.predicated(then, guard)),
                        tuple(self.predicated(otherwise, guard)),
                    )
                case ir.Let(name, expr):
                    yield ir.Let(name, _safe(expr))
                case (
                    ir.Named()
                    | ir.Registers()
                    | ir.Shared()
                    | ir.Barrier()
                    | ir.Comment()
                    | ir.TensorProduct()
                ):
                    yield stmt
                case _:
                    raise InternalError(f"{type(stmt).__name__} is refused before")


def _safe(expr: Expr) -> Expr:
    """An expression that is defined everywhere, and the same where it was."""
    return expr if isinstance(expr, Const) else totalise(expr, INDEX_BITS - 1)[0]


def _zero(value: ir.Value) -> ir.Number:
    dtype = ir.dtype_of(value)
    return ir.Number(0.0 if dtype.is_float else 0, dtype)


def _kept_unless(guard: Expr, target: ir.Cell, value: ir.Value) -> ir.Stmt:
    """A select; but a register whose index the guard may keep in range is touched under it only."""
    if _is_one(target):
        return ir.Assign(target, ir.Choose(guard, value, target))
    return ir.If(guard, (ir.Assign(target, value),))


def _is_one(target: ir.Cell) -> bool:
    return target.index is None or isinstance(target.index, Const)


def _predicated_load(stmt: ir.Load, guard: Expr) -> Iterator[ir.Stmt]:
    # Several registers set at once, or one by an index, cannot be kept by a select.
    if stmt.width > 1 or not _is_one(stmt.target):
        yield ir.If(guard, (stmt,))
        return
    left_out = _zero(stmt.target) if stmt.otherwise is None else stmt.otherwise
    other = ir.Choose(guard, left_out, stmt.target)
    yield replace(stmt, predicate=_both(guard, stmt.predicate), otherwise=other)


def _both(guard: Expr, predicate: Expr | None) -> Expr:
    return guard if predicate is None else guard.and_(predicate)
