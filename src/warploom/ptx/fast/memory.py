"""Memory in C: loads, stores, copies, and updates whose order does not matter."""

from __future__ import annotations

from warploom.machine.memory import WINDOWS
from warploom.machine.semantics import Kind
from warploom.ptx.emulate.compile import byte_size
from warploom.ptx.fast.operand import NotTaken, Spell, Writer
from warploom.ptx.ir import Address, Immediate, Instruction, Operand, Symbol, Vector
from warploom.ptx.known import STRONG, is_predicate, registers_moved, space_of
from warploom.ptx.types import DTYPES, type_of

SPACES = {
    "global": "GLOBAL_SPACE | PARAM_SPACE", "const": "CONST_SPACE",
    "generic": "GLOBAL_SPACE | CONST_SPACE | PARAM_SPACE",
}  # fmt: skip


def _space(w: Writer, ins: Instruction, operand: Operand) -> str:
    if STRONG & set(ins.modifiers) or {"shared::cluster", "async"} & set(ins.modifiers):
        raise NotTaken(f"{ins.name}: the order of memory")
    space = space_of(ins)
    base = operand.base if isinstance(operand, Address) else operand
    if space == "param" and isinstance(base, Symbol) and base.name in w.locals:
        return "local"
    return space


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
            return f"{verb}_{bits}(L, S, {at}, @, {SPACES[space]}, {values})"


def ld(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    elements, bits = registers_moved(ins.operands[0]), _bits(kind)
    space = _space(w, ins, ins.operands[1])
    if space == "param":
        _parameter(w, ins, kind, elements)
        return
    values = [w.array(bits) for _ in elements]
    if space == "shared":
        _load_shared(w, ins, bits, values, elements)
    else:
        places = _places(w, space, ins.operands[1], len(elements), bits)
        for at, value in zip(places, values, strict=True):
            w.must(_call("load", space, bits, at, value))
        w.note(ins, space, places[0], len(values) * bits // 8, Kind.READ)
    for element, value in zip(elements, values, strict=True):
        text = f"{kind}({value}[l])" if kind in ("f32", "f64") else f"{value}[l]"
        w.write(element, kind, text)


def _load_shared(
    w: Writer, ins: Instruction, bits: int, values: list[str], elements: tuple[Operand, ...]
) -> None:
    size, width = bits // 8, len(values) * bits // 8
    at, how, far = w.shape(ins.operands[1], bits, width)
    if len(values) > 1:
        w.must(f"aligned({at}, @, {width})")
    for number, (value, element) in enumerate(zip(values, elements, strict=True)):
        away = f"(uint64_t){far + number * size}ll"
        w.must(f"load_shared_{bits}(L, {at}, {how}, {away}, @, {value})")
        if w.watched_in((element,)):
            none = w.array(1)
            w.must(f"unmarked(L, {at}, {away}, {size}, @, {none})")
            w.set_flags(element, f"{none}[l]")
    w.note(ins, "shared", at, width, Kind.READ, far)


def _parameter(w: Writer, ins: Instruction, kind: str, elements: tuple[Operand, ...]) -> None:
    """A parameter of the kernel lies at a known place, the same for all."""
    operand, bits = ins.operands[1], _bits(kind)
    if not isinstance(operand, Address) or operand.more:
        raise NotTaken("a parameter by a computed address")
    if not isinstance(operand.base, Symbol):
        _computed_parameter(w, operand, kind, elements)
        return
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


def _computed_parameter(
    w: Writer, operand: Operand, kind: str, elements: tuple[Operand, ...]
) -> None:
    """By an address: the parameters are one region of memory, which lies in a window of its own."""
    bits = _bits(kind)
    first = w.value("u64", w.address(operand) + f" + 0x{WINDOWS['param']:x}ull")
    places = [w.filled(64, f"{first} + {n * bits // 8}ull") for n in range(len(elements))]
    if len(places) > 1:
        w.must(f"aligned({places[0]}, @, {len(places) * bits // 8})")
    values = [w.array(bits) for _ in elements]
    for at, value in zip(places, values, strict=True):
        w.must(f"load_{bits}(L, S, {at}, @, PARAM_SPACE, {value})")
    for element, value in zip(elements, values, strict=True):
        w.write(element, kind, f"{kind}({value}[l])" if kind in ("f32", "f64") else f"{value}[l]")


def st(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    elements, bits = registers_moved(ins.operands[1]), _bits(kind)
    space = _space(w, ins, ins.operands[0])
    if space in ("param", "const"):
        raise NotTaken(ins.name)
    values = [w.filled(bits, w.bits(element, kind)) for element in elements]
    places = _places(w, space, ins.operands[0], len(elements), bits)
    for at, value in zip(places, values, strict=True):
        w.must(_call("store", space, bits, at, value))
    w.note(ins, space, places[0], len(values) * bits // 8, Kind.WRITE)
    for at, element in zip(places, elements, strict=True):
        flags = w.flags(element) if space == "shared" else ""
        if flags:
            w.must(f"unmark(L, {at}, {bits // 8}, @, {w.filled(1, flags)})")


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
    if w.noted.notes.races:
        _never_apart(w, ins, space, bits)
    w.note(ins, space, where, bits // 8, Kind.ATOMIC)
    if w.noted.notes.counts:
        w.must("(L->updates += __builtin_popcount(@), 1)")


def _never_apart(w: Writer, ins: Instruction, space: str, bits: int) -> None:
    """Updates of one size, among all threads that may come to it, do not race with each other."""
    sizes = {site.width for site in w.noted.sites if site.kind is Kind.ATOMIC}
    if sizes - {bits // 8} or (space == "global" and {"cta", "cluster"} & set(ins.modifiers)):
        raise NotTaken(f"{ins.name}: updates of several scopes or sizes, which may race")


def cp(w: Writer, ins: Instruction) -> None:
    """cp.async, done at once as in the evaluator; what waits for it has nothing to wait for."""
    if {"bulk", "mbarrier"} & set(ins.modifiers):
        raise NotTaken(ins.name)
    if {"commit_group", "wait_group", "wait_all"} & set(ins.modifiers):
        _groups(w, ins)
        return
    plain = ins.operands[:-1] if "L2::cache_hint" in ins.modifiers else ins.operands
    width = plain[2]
    if not isinstance(width, Immediate):
        raise NotTaken(ins.name)
    target, source = (w.filled(64, w.address(each)) for each in plain[:2])
    kept = w.filled(32, _kept(w, plain[3], width.value) if len(plain) > 3 else f"{width.value}u")
    w.must(f"copied(L, S, {target}, {source}, {kept}, @, {width.value})")
    if w.noted.notes:
        sites = f"{w.site(ins, width.value, Kind.READ)}, {w.site(ins, width.value, Kind.WRITE)}"
        w.must(f"noted_copy(L, S, {sites}, {source}, {target}, {kept}, @)")


def _kept(w: Writer, operand: Operand, width: int) -> str:
    """How many bytes are copied: a number, or none where a predicate ignores the source."""
    if is_predicate(operand):
        return f"{w.read(operand, 'pred')} ? 0u : {width}u"
    return w.read(operand, "u32")


def _groups(w: Writer, ins: Instruction) -> None:
    """Copies are done at once; for races it matters who has waited for them."""
    if not w.noted.notes.races:
        return
    newest = 0
    if ins.operands:
        if not isinstance(ins.operands[0], Immediate):
            raise NotTaken(ins.name)
        newest = ins.operands[0].value
    if "wait_group" not in ins.modifiers:
        w.must("closed_copies(L, S, @)")
    if "commit_group" not in ins.modifiers:
        w.must(f"waited_copies(L, S, {newest}u, @)")


def cvta(w: Writer, ins: Instruction) -> None:
    kind, space = type_of(ins), space_of(ins)
    if kind != "u64" or space == "param":
        raise NotTaken(ins.name)
    sign = "-" if "to" in ins.modifiers else "+"
    text = f"{w.read(ins.operands[1], kind)} {sign} 0x{WINDOWS[space]:x}ull"
    w.write(ins.operands[0], kind, text)


def policy(w: Writer, ins: Instruction) -> None:
    """A number that only hints to caches take."""
    w.write(ins.operands[0], "b64", "1")


def nothing(_: Writer, __: Instruction) -> None:
    return


TABLE: dict[str, Spell] = {
    "ld": ld, "ldu": ld, "st": st, "red": red, "atom": red, "cvta": cvta, "cp": cp,
    "prefetch": nothing, "prefetchu": nothing, "membar": nothing, "fence": nothing,
    "createpolicy": policy, "griddepcontrol": nothing, "nanosleep": nothing,
    "applypriority": nothing,
}  # fmt: skip
