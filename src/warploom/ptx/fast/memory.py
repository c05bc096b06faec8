"""Memory and lanes in C: loads, stores, updates whose order does not matter, shuffles and votes."""

from __future__ import annotations

from collections.abc import Callable

from warploom.machine.memory import WINDOWS
from warploom.ptx.emulate.compile import byte_size
from warploom.ptx.emulate.shape import type_of
from warploom.ptx.fast.operand import NotTaken, Writer
from warploom.ptx.ir import Address, Instruction, Operand, Pair, Symbol, Vector
from warploom.ptx.known import STRONG, space_of
from warploom.ptx.types import DTYPES

Spell = Callable[[Writer, Instruction], None]
_SPACES = {
    "global": "GLOBAL_SPACE | PARAM_SPACE", "const": "CONST_SPACE",
    "generic": "GLOBAL_SPACE | CONST_SPACE | PARAM_SPACE",
}  # fmt: skip


def _space(w: Writer, ins: Instruction, operand: Operand) -> str:
    if STRONG & set(ins.modifiers) or "shared::cluster" in ins.modifiers:
        raise NotTaken(f"{ins.name}: the order of memory")
    space = space_of(ins)
    base = operand.base if isinstance(operand, Address) else operand
    if space == "param" and isinstance(base, Symbol) and base.name in w.locals:
        return "local"
    return space


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _bits(kind: str) -> int:
    bits = 8 * DTYPES[kind].itemsize
    if bits > 64:
        raise NotTaken(f"an access of .{kind}")
    return bits


def _places(w: Writer, space: str, operand: Operand, count: int, bits: int) -> list[str]:
    """The addresses of each element, as arrays; a vector access is aligned as a whole."""
    window = f" + 0x{WINDOWS['const']:x}ull" if space == "const" else ""
    first = w.value("u64", w.address(operand) + window)
    found = [w.filled(64, f"{first} + {n * bits // 8}ull") for n in range(count)]
    if count > 1:
        w.must(f"aligned({found[0]}, @, {count * bits // 8})")
    return found


def _call(verb: str, space: str, bits: int, at: str, values: str) -> str:
    match space:
        case "shared":
            return f"{verb}_shared_{bits}(L, {at}, @, {values})"
        case "local":
            return f"{verb}_local_{bits}(L, S, {at}, @, {values})"
        case _:
            return f"{verb}_{bits}(L, S, {at}, @, {_SPACES[space]}, {values})"


def ld(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    elements, bits = _elements(ins.operands[0]), _bits(kind)
    space = _space(w, ins, ins.operands[1])
    if space == "param":
        _parameter(w, ins, kind, elements)
        return
    places = _places(w, space, ins.operands[1], len(elements), bits)
    values = [w.array(bits) for _ in elements]
    for at, value in zip(places, values, strict=True):
        w.must(_call("load", space, bits, at, value))
    for element, value in zip(elements, values, strict=True):
        text = f"{kind}({value}[l])" if kind in ("f32", "f64") else f"{value}[l]"
        w.write(element, kind, text)


def _parameter(w: Writer, ins: Instruction, kind: str, elements: tuple[Operand, ...]) -> None:
    """A parameter of the kernel lies at a known place, the same for all."""
    operand, bits = ins.operands[1], _bits(kind)
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol) or operand.more:
        raise NotTaken("a parameter by a computed address")
    name = operand.base.name
    declared = next((p for p in w.function.parameters if p.name == name), None)
    width = len(elements) * bits // 8
    if declared is None or not 0 <= operand.offset <= byte_size(declared) - width:
        raise NotTaken(f"a place outside of the parameter '{name}'")
    first = w.parameters[name] + operand.offset
    if first % width:
        raise NotTaken("a misaligned parameter")
    for number, element in enumerate(elements):
        text = f"*(const uint{bits}_t *)(L->params + {first + number * bits // 8})"
        w.write(element, kind, f"{kind}({text})" if kind in ("f32", "f64") else text)


def st(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    elements, bits = _elements(ins.operands[1]), _bits(kind)
    space = _space(w, ins, ins.operands[0])
    if space in ("param", "const"):
        raise NotTaken(ins.name)
    values = [w.filled(bits, w.read(element, f"u{bits}")) for element in elements]
    places = _places(w, space, ins.operands[0], len(elements), bits)
    for at, value in zip(places, values, strict=True):
        w.must(_call("store", space, bits, at, value))


def red(w: Writer, ins: Instruction) -> None:
    """An update of integers whose old value nobody reads: any order gives the same."""
    name = next((m for m in ins.modifiers if m in ("add", "min", "max", "and", "or", "xor")), None)
    kind, operands = type_of(ins), ins.operands
    if ins.opcode == "atom":
        if not w.is_unread(operands[0]):
            raise NotTaken("the old value of an update, which depends on the order")
        operands = operands[1:]
    kind = f"u{kind[1:]}" if kind[0] == "b" else kind
    if name is None or kind not in ("u32", "s32", "u64", "s64") or len(operands) != 2:
        raise NotTaken(ins.name)
    space = space_of(ins)
    if space not in ("global", "shared") or isinstance(operands[1], Vector):
        raise NotTaken(ins.name)
    bits = int(kind[1:])
    value = w.filled(bits, w.read(operands[1], f"u{bits}"))
    where = w.filled(64, w.address(operands[0]))
    own = f"({'u' * (kind[0] == 'u')}int{bits}_t *){value}"
    if space == "shared":
        w.must(f"red_{name}_{kind}_shared(L, {where}, @, {own})")
    else:
        w.must(f"red_{name}_{kind}(L, S, {where}, @, {own})")


def cvta(w: Writer, ins: Instruction) -> None:
    kind, space = type_of(ins), space_of(ins)
    if kind != "u64" or space == "param":
        raise NotTaken(ins.name)
    sign = "-" if "to" in ins.modifiers else "+"
    text = f"{w.read(ins.operands[1], kind)} {sign} 0x{WINDOWS[space]:x}ull"
    w.write(ins.operands[0], kind, text)


# -- lanes ----------------------------------------------------------------------------------------

_MODES = ("up", "down", "bfly", "idx")


def members(w: Writer, ins: Instruction, operand: Operand) -> None:
    """The lanes that are named have come, and nobody else."""
    if w.guard:
        raise NotTaken(f"{ins.name} under a predicate")
    w.must(f"named(S, {w.filled(32, w.read(operand, 'b32'))}, @)")


def shfl(w: Writer, ins: Instruction) -> None:
    if "sync" not in ins.modifiers:
        raise NotTaken(ins.name)
    members(w, ins, ins.operands[4])
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    mode = next(n for n, word in enumerate(_MODES) if word in ins.modifiers)
    given = ", ".join(w.filled(32, w.read(each, "b32")) for each in ins.operands[1:4])
    out, inside = w.array(32), w.array(32)
    w.must(f"shuffle({mode}, {given}, @, {out}, {inside})")
    w.write(pair[0], "b32", f"{out}[l]")
    if pair[1] is not None:
        w.write(pair[1], "pred", f"{inside}[l]")


def vote(w: Writer, ins: Instruction) -> None:
    if "sync" not in ins.modifiers:
        raise NotTaken(ins.name)
    members(w, ins, ins.operands[2])
    asked = w.filled(32, w.read(ins.operands[1], "pred"))
    yes = f"y{w.count}"
    w.put(f"const uint32_t {yes} = packed({asked}) & m;")
    if "ballot" in ins.modifiers:
        w.write(ins.operands[0], "b32", yes)
        return
    texts = {"any": f"{yes} != 0", "all": f"{yes} == m", "uni": f"({yes} == m) | ({yes} == 0)"}
    text = next(texts[word] for word in ins.modifiers if word in texts)
    w.write(ins.operands[0], "pred", text)


def activemask(w: Writer, ins: Instruction) -> None:
    if w.guard:
        raise NotTaken("activemask under a predicate")
    w.write(ins.operands[0], "b32", "m")


def nothing(_: Writer, __: Instruction) -> None:
    return


TABLE: dict[str, Spell] = {
    "ld": ld, "ldu": ld, "st": st, "red": red, "atom": red, "cvta": cvta, "shfl": shfl,
    "vote": vote, "activemask": activemask, "prefetch": nothing, "prefetchu": nothing,
    "membar": nothing, "fence": nothing,
}  # fmt: skip
