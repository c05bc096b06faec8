"""Elementwise instructions on forms: their meanings, interpreted over a ring of polynomials.

Sums, products and widenings are exact. Other operations become functions of forms, keyed by the
operation and its type; what is computed in floating point is not known.
"""

from __future__ import annotations

from warploom.machine.value.ir import Value, is_float, is_signed, nodes, width_of
from warploom.ptx.ir import Component, Instruction, Operand, Register
from warploom.ptx.meaning.shape import CARRY, Unsupported
from warploom.ptx.meaning.table import Elementwise, meaning_of
from warploom.ptx.symbolic.form import Form, Pool, constant
from warploom.ptx.symbolic.operand import Reader
from warploom.ptx.symbolic.operand import width_of as register_width

# Operations; a longer expression is one function of its operands, under the instruction's name.
LONGEST = 8


def interpreted(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """One form per destination; None where the meaning is not one of integers, or is long."""
    try:
        meaning = meaning_of(step)
    except (Unsupported, ValueError):
        return None
    values = [result.value for result in meaning.results]
    inner = [node for node in nodes(values) if node.op not in ("arg", "const")]
    if len(inner) > LONGEST or any(map(_is_opaque, inner)):
        return None
    operands = _operands(reader, meaning)
    if operands is None:
        return None
    forms: dict[Value, Form] = {}
    for node in nodes(values):
        forms[node] = _form(reader.pool, node, [forms[a] for a in node.args], operands)
    return [
        _fitted(reader.pool, result.target, forms[result.value], result.kind)
        for result in meaning.results
    ]


def _is_opaque(node: Value) -> bool:
    """Floating-point numbers are computed with, not only moved."""
    if node.op in ("select", "bits"):
        return False
    return any(is_float(each) for each in (node.type, *(a.type for a in node.args)))


def _operands(reader: Reader, meaning: Elementwise) -> list[Form] | None:
    named = [*meaning.sources, *((result.target, "") for result in meaning.results)]
    if any(operand == CARRY for operand, _ in named):
        return None
    read = [
        reader.value(operand, register_width(kind))
        for operand, kind in meaning.sources
        if not isinstance(operand, str)
    ]
    known = [form for form in read if form is not None]
    return known if len(known) == len(read) else None


def _fitted(pool: Pool, target: Operand | str, form: Form, kind: str) -> Form | None:
    """A wider register is filled by the sign of the type that is written."""
    match target:
        case Register() as register:
            return pool.extend(form, max(register_width(register.type), form.width), kind[0] == "s")
        case Component():
            return form
        case _:
            return None


def _form(pool: Pool, node: Value, args: list[Form], operands: list[Form]) -> Form:
    width = width_of(node.type)
    match node.op:
        case "arg":
            return operands[int(node.number)]
        case "const":
            return constant(width, int(node.number))
        case "add" | "sub":
            return args[0].plus(args[1], 1 if node.op == "add" else -1)
        case "mul":
            return pool.multiply(*args)
        case "neg":
            return args[0].scaled(-1)
        case "not":
            return constant(width, -1) - args[0]
        case "shl" if args[1].is_constant:
            return args[0].scaled(1 << args[1].constant)
        case _:
            return _not_ring(pool, node, args)


def _not_ring(pool: Pool, node: Value, args: list[Form]) -> Form:
    """What is no sum or product of the operands."""
    width = width_of(node.type)
    match node.op:
        case "to":
            return pool.extend(args[0], width, is_signed(node.args[0].type))
        case "bits":
            return args[0]
        case "select":
            return choose(pool, *args)
        case "and" | "or" | "xor":
            return _logic(pool, node, args)
        case "eq":
            return equal(pool, *args)
        case "lt":
            return less(pool, is_signed(node.args[0].type), *args)
        case "le":
            return constant(1, 1) + less(pool, is_signed(node.args[0].type), *reversed(args))
        case _:
            return _function(pool, node, args)


def _function(pool: Pool, node: Value, args: list[Form]) -> Form:
    name = (
        f"{node.op}.{node.type}"
        if node.type == node.args[0].type
        else (f"{node.op}.{node.type}.{node.args[0].type}")
    )
    return pool.function(name, width_of(node.type), tuple(args), _bounds(node, args))


def _bounds(node: Value, args: list[Form]) -> tuple[int, int] | None:
    """The range of an operation, where it is not the whole type."""
    last = args[-1].constant if args[-1].is_constant else None
    width = width_of(node.args[0].type)
    match node.op:
        case "popc" | "clz":
            return 0, width
        case "and" if last is not None:
            return 0, last
        case "shr" if last is not None and not is_signed(node.type):
            return 0, (1 << width - last) - 1
        case "rem" if last and not is_signed(node.type):
            return 0, last - 1
        case "div" if last and not is_signed(node.type):
            return 0, ((1 << width) - 1) // last
        case _:
            return None


def _logic(pool: Pool, node: Value, args: list[Form]) -> Form:
    """and, or, xor: exact for predicates, and where an `or` can carry nothing."""
    a, b = sorted(args, key=lambda form: form.is_constant)
    if node.type == "pred":
        both = pool.multiply(a, b)
        match node.op:
            case "and":
                return both
            case "or":
                return a + b + both
            case _:
                return a + b
    if node.op != "and" and b.is_constant and _low_zeros(a) >= b.constant.bit_length():
        return a + b
    name = f"{node.op}.b{width_of(node.type)}"
    return pool.function(name, width_of(node.type), (a, b), _bounds(node, [a, b]))


def _low_zeros(form: Form) -> int:
    """How many low bits are zero whatever the atoms are."""
    every = 0
    for coefficient in form.terms.values():
        every |= coefficient
    return (every & -every).bit_length() - 1 if every else form.width


def choose(pool: Pool, condition: Form, a: Form, b: Form) -> Form:
    if condition.is_constant:
        return a if condition.constant else b
    if a == b:
        return a
    return pool.function("ite", a.width, (condition, a, b))


def equal(pool: Pool, a: Form, b: Form) -> Form:
    difference = a - b
    if difference.is_constant:
        return constant(1, int(difference.constant == 0))
    other = difference.scaled(-1)
    return pool.function("eq", 1, (min(difference, other, key=Form.key),))


def less(pool: Pool, signed: bool, a: Form, b: Form) -> Form:
    if a == b:
        return constant(1, 0)
    full = pool.extend(a, 2 * a.width, signed), pool.extend(b, 2 * b.width, signed)
    gap = pool.bounds(full[0] - full[1])
    # With both sides as integers of twice the width, their difference does not wrap.
    if gap is not None and gap[1] < 0:
        return constant(1, 1)
    if gap is not None and gap[0] >= 0:
        return constant(1, 0)
    return pool.function("lt.s" if signed else "lt.u", 1, (a, b))
