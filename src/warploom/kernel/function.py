"""A part of a kernel as a function that other kernels call: what it is given, and what it does.

A function is written inside of a kernel that calls it (`with k.function("name"):`), so that it is
checked, evaluated and mutated as all kernels are. Taken out, it is given the registers, arrays and
numbers that were declared before it; of threads and blocks it knows its lane alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warploom.errors import CheckError
from warploom.index.ir import variables
from warploom.kernel import ir
from warploom.kernel.check_hopper import refuse_hopper
from warploom.kernel.dtype import DType
from warploom.kernel.traverse import exprs_of, target_of, values_of

LANE = "lane"
WHOLE = "whole"  # a number that a function asks the machine for: are all lanes of the warp here?


@dataclass(frozen=True, slots=True)
class Call(ir.Comment):
    """Stands in a text where a function is called that is written elsewhere, with these registers;
    it does nothing by itself, and only printers know it."""

    registers: tuple[ir.Registers, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge(ir.Comment):
    """Where the statements of a function begin or end; in texts it is a comment."""

    function: str = ""
    begins: bool = True


def begins(name: str) -> Edge:
    return Edge(f"{name} begins.", name)


def ends(name: str) -> Edge:
    return Edge(f"{name} ends.", name, begins=False)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFunction:
    """`before`, `body` and `after` are the statements of the kernel that calls it.

    `registers`, `arrays`, `shared` and `numbers` are what it is given, in the order of their
    declaration; `written` those of the registers that it sets. `kernel` is the caller, whose doc
    says what the function does.
    """

    name: str
    kernel: ir.Kernel
    before: tuple[ir.Stmt, ...]
    body: tuple[ir.Stmt, ...]
    after: tuple[ir.Stmt, ...]
    registers: tuple[ir.Registers, ...]
    arrays: tuple[ir.ArrayParam, ...]
    shared: tuple[ir.Shared, ...]
    numbers: tuple[str, ...]
    written: frozenset[str]

    @property
    def read(self) -> frozenset[str]:
        """Those of the registers that it reads."""
        parts = (p for s in ir.walk(self.body) for v in values_of(s) for p in ir.walk_value(v))
        return frozenset(part.name for part in parts if isinstance(part, ir.Cell))

    @property
    def moves(self) -> bool:
        """Whether values are moved and never computed, so that they may be of any type."""
        return not any(
            isinstance(part, ir.Operation | ir.FromIndex | ir.Number | ir.Cast)
            for stmt in ir.walk(self.body)
            for value in values_of(stmt)
            for part in ir.walk_value(value)
        )

    @property
    def is_template(self) -> bool:
        """Whether it can be a template over the type of what it moves: words stand for any."""
        return self.moves and bool(self.registers) and self.dtype is DType.U32

    @property
    def dtype(self) -> DType:
        """The type of what it is given; all elements have one."""
        return next(iter(_types(self)))


def function_of(kernel: ir.Kernel) -> DeviceFunction:
    """The function that is written in a kernel."""
    refuse_hopper(kernel, "from which no function is taken out")
    name, before, body, after = _parts(kernel)
    body = needed(body)
    outside = tuple(ir.walk(before))
    declared = {stmt.name for stmt in ir.walk(body) if isinstance(stmt, ir.Let | ir.Named)}
    declared |= {stmt.var for stmt in ir.walk(body) if isinstance(stmt, ir.For)}
    used = frozenset().union(
        *(variables(expr) for stmt in ir.walk(body) for expr in exprs_of(stmt))
    )
    names = {cell.name for stmt in ir.walk(body) for cell in _cells(stmt)}
    touched = {stmt.array for stmt in ir.walk(body) if isinstance(stmt, ir.Load | ir.Store)}
    alien = sorted((used & ir.BUILT_IN) - {LANE})
    if alien or any(isinstance(s, ir.Barrier) and s.scope == "block" for s in ir.walk(body)):
        what = f"'{alien[0]}'" if alien else "a barrier of the block"
        raise CheckError(f"the function '{name}' uses {what}", advice="it knows its lane alone")
    lets = [stmt.name for stmt in outside if isinstance(stmt, ir.Let)]
    free = used - declared - ir.BUILT_IN
    held = tuple(
        s for s in outside if isinstance(s, ir.Registers)
    )  # given also if nothing is to do
    made = DeviceFunction(
        name,
        kernel,
        before,
        body,
        after,
        tuple(s for s in outside if isinstance(s, ir.Registers) and s.name in names) or held,
        tuple(array for array in kernel.arrays if array.name in touched | names),
        tuple(s for s in outside if isinstance(s, ir.Shared) and s.name in touched),
        tuple(each for each in (*(p.name for p in kernel.scalars), *lets) if each in free),
        frozenset(t.name for s in ir.walk(body) if (t := target_of(s)) is not None),
    )
    if len(_types(made)) != 1:
        raise CheckError(f"the function '{name}' is given elements of several types")
    return made


def needed(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Without names for what nothing mentions, which compilers warn of."""
    while True:
        used = {v for stmt in ir.walk(body) for expr in exprs_of(stmt) for v in variables(expr)}
        if all(stmt.name in used for stmt in ir.walk(body) if isinstance(stmt, ir.Let)):
            return body
        body = _mentioned(body, used)


def _mentioned(body: tuple[ir.Stmt, ...], used: set[str]) -> tuple[ir.Stmt, ...]:
    kept: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Let(name) if name not in used:
                pass
            case ir.For():
                kept.append(replace(stmt, body=_mentioned(stmt.body, used)))
            case ir.If(condition, then, otherwise):
                kept.append(ir.If(condition, _mentioned(then, used), _mentioned(otherwise, used)))
            case _:
                kept.append(stmt)
    return tuple(kept)


def with_function_name(kernel: ir.Kernel, name: str) -> ir.Kernel:
    """The kernel whose function has another name."""
    _, before, body, after = _parts(kernel)
    return replace(kernel, body=(*before, begins(name), *body, ends(name), *after))


def _types(made: DeviceFunction) -> set[DType]:
    found = {each.dtype for each in made.registers}
    return found | {each.dtype for each in made.arrays} | {each.dtype for each in made.shared}


def _parts(
    kernel: ir.Kernel,
) -> tuple[str, tuple[ir.Stmt, ...], tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]:
    for first, stmt in enumerate(kernel.body):
        if isinstance(stmt, Edge) and stmt.begins and ends(stmt.function) in kernel.body:
            body, last = kernel.body, kernel.body.index(ends(stmt.function))
            return stmt.function, body[:first], body[first + 1 : last], body[last + 1 :]
    raise CheckError(f"no function is written in the kernel '{kernel.name}'")


def _cells(stmt: ir.Stmt) -> Iterator[ir.Cell]:
    target = target_of(stmt)
    if target is not None:
        yield target
    values: Iterator[ir.Value] = values_of(stmt)
    yield from (
        part for value in values for part in ir.walk_value(value) if isinstance(part, ir.Cell)
    )
