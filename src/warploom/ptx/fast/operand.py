"""Operands in C. A register is an array over the lanes of a warp; arithmetic is a loop over them.

Instructions that work lane by lane are gathered into one loop as long as nothing comes between
them, so that values stay in the machine's vector registers; accesses of memory, shuffles and the
like stand between the loops and see arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from warploom.errors import UnsupportedError
from warploom.machine.record import CUDA
from warploom.machine.semantics import Kind
from warploom.ptx import ir
from warploom.ptx.emulate.context import CARRY, immediate
from warploom.ptx.fast.notes import Noted, NotedSite
from warploom.ptx.known import registers
from warploom.ptx.types import DTYPES, bits_of, is_float, is_signed

LANES = CUDA.lanes  # of a warp

SPECIAL = {
    **{f"%tid.{axis}": f"S->tid[{n}][l]" for n, axis in enumerate("xyz")},
    **{f"%ctaid.{axis}": f"S->block[{n}]" for n, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": f"L->block[{n}]" for n, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": f"L->grid[{n}]" for n, axis in enumerate("xyz")},
    "%laneid": "(uint32_t)l",
    "%warpid": "(uint32_t)S->number",
    "%nwarpid": "(uint32_t)L->warps",
    "%lanemask_eq": "(1u << l)",
    "%lanemask_lt": "((1u << l) - 1u)",
    "%lanemask_le": "((2u << l) - 1u)",
    "%lanemask_ge": "(~0u << l)",
    "%lanemask_gt": "(~1u << l)",
    "%dynamic_smem_size": "(uint32_t)L->dynamic_shared",
    "%total_smem_size": "(uint32_t)L->shared_size",
}  # fmt: skip


Spell: TypeAlias = "Callable[[Writer, ir.Instruction], None]"


class NotTaken(UnsupportedError):  # noqa: N818 - no mistake of the user's, and never shown as one
    """The fast engine leaves this kernel to the evaluator; the message says why."""


def scalar(kind: str) -> str:
    """The C type of a value of a PTX type."""
    if kind == "pred":
        return "uint32_t"
    if kind in ("f32", "f64"):
        return "float" if kind == "f32" else "double"
    bits = 8 * DTYPES[kind].itemsize
    if bits > 64:
        raise NotTaken(f"values of .{kind}")
    return f"{'' if is_signed(kind) else 'u'}int{bits}_t"


def plain(bits: int) -> str:
    """The C type that holds the bits of a register."""
    return f"uint{32 if bits == 1 else bits}_t"


@dataclass(slots=True)
class Writer:
    """The text of one function as it grows, and where its registers live."""

    module: ir.Module
    function: ir.Function
    shared: dict[str, int]
    parameters: dict[str, int]  # offset of each in the bytes of all
    locals: dict[str, int]
    lasting: frozenset[str]  # registers that outlive a block
    used: frozenset[str]  # registers that anybody reads
    watched: frozenset[str] = frozenset()  # registers that may hold uninitialised values
    noted: Noted = field(default_factory=Noted)
    names: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # bits of each register; 1 for a predicate
    symbols: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    arrays: dict[str, str] = field(default_factory=dict)  # of the block: declaration by name
    loop: list[str] = field(default_factory=list)  # the loop that is being gathered
    held: dict[str, str] = field(default_factory=dict)  # its variables, by key of the register
    changed: dict[str, None] = field(default_factory=dict)  # the keys that it has written
    tables: dict[str, str] = field(default_factory=dict)  # name of each table, by its numbers
    # Of a register and a width: arrays of the addresses in it, and of how they lie.
    shapes: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    count: int = 0
    guard: str = ""  # the predicate of the instruction that is written, as an array

    # -- text -------------------------------------------------------------------------------

    def start(self) -> None:
        """A new block begins."""
        self.lines, self.arrays, self.guard, self.shapes = [], {}, "", {}

    def put(self, line: str) -> None:
        """A line between loops."""
        self.close()
        self.lines.append(f"  {line}")

    def close(self) -> None:
        """Ends the loop that is being gathered; what it wrote goes into arrays."""
        if not self.loop:
            return
        stores = []
        for key in self.changed:
            name, value = self.names[key], self.held[key]
            if key in self.lasting:
                stores.append(f"KEEP(S->{name}[l], {value});")
            else:
                self.arrays.setdefault(name, f"{plain(self.sizes[name])} {name}[LANES];")
                stores.append(f"{name}[l] = {value};")
        body = "\n".join(f"    {line}" for line in (*self.loop, *stores))
        self.lines.append(f"  EACH {{\n{body}\n  }}")
        self.loop, self.held, self.changed = [], {}, {}

    def each(self, line: str) -> None:
        """A line of the loop over the lanes."""
        self.loop.append(line)

    def value(self, kind: str, text: str) -> str:
        """A variable of the loop."""
        self.count += 1
        self.each(f"const {scalar(kind)} x{self.count} = {text};")
        return f"x{self.count}"

    def array(self, bits: int) -> str:
        """An array over the lanes that lasts to the end of the block."""
        self.count += 1
        name = f"a{self.count}"
        self.arrays[name] = f"{plain(bits)} {name}[LANES] = {{0}};"
        return name

    def filled(self, bits: int, text: str) -> str:
        """An array with a value for each lane."""
        name = self.array(bits)
        self.arrays[name] = f"{plain(bits)} {name}[LANES];"
        self.each(f"{name}[l] = {text};")
        return name

    # -- registers --------------------------------------------------------------------------

    def _register(self, operand: ir.Register | ir.Component) -> str:
        """The key; the name and size are known from now on."""
        if isinstance(operand, ir.Component):
            key, declared = f"{operand.register.key}.{operand.index}", operand.register.type
        elif operand.vector == 1:
            key, declared = operand.key, operand.type
        else:
            raise NotTaken("a whole vector register")
        if key not in self.names:
            bits = 1 if declared == "pred" else 8 * DTYPES[declared].itemsize
            if bits > 64:
                raise NotTaken(f"a register of .{declared}")
            self.names[key] = f"r{len(self.names)}"
            self.sizes[self.names[key]] = bits
        return key

    def _held(self, key: str) -> str:
        """The variable that holds a register in this loop."""
        if key not in self.held:
            name = self.names[key]
            place = f"S->{name}[l]" if key in self.lasting else f"{name}[l]"
            if key not in self.lasting:
                self.arrays.setdefault(name, f"{plain(self.sizes[name])} {name}[LANES] = {{0}};")
            self.count += 1
            self.held[key] = f"v{self.count}"
            self.each(f"{plain(self.sizes[name])} v{self.count} = {place};")
        return self.held[key]

    def is_unread(self, operand: ir.Operand) -> bool:
        """Whether a result is thrown away."""
        if isinstance(operand, ir.Symbol):
            return operand.name == "_"
        return isinstance(operand, ir.Register | ir.Component) and (
            self._register(operand) not in self.used
        )

    def lasting_array(self, operand: ir.Operand, bits: int) -> str:
        """Where the lanes of a result lie that others fill in; 0 where nobody reads it later."""
        if isinstance(operand, ir.Symbol) and operand.name == "_":
            return "0"
        if not isinstance(operand, ir.Register | ir.Component):
            raise NotTaken(f"a result in {operand}")
        key = self._register(operand)
        if self.sizes[self.names[key]] != bits:
            raise NotTaken("a result of another width than its register")
        return f"S->{self.names[key]}" if key in self.lasting else "0"

    def read(self, operand: ir.Operand, kind: str) -> str:
        """The operand as a value of a type, for the lane l."""
        match operand:
            case ir.Register() | ir.Component():
                key = self._register(operand)
                return self._cast(self._held(key), self.sizes[self.names[key]], kind)
            case ir.Immediate():
                return constant(operand, kind)
            case ir.Special(name) if name in SPECIAL:
                return self._cast(SPECIAL[name], 32, kind)
            case ir.Negated(inner) if kind == "pred":
                return f"({self.read(inner, kind)} ^ 1u)"
            case ir.Symbol() | ir.Offset() | ir.Address():
                return self._cast(self.address_of(operand), 64, kind)
            case _:
                raise NotTaken(f"the operand {operand}")

    def bits(self, operand: ir.Operand, kind: str) -> str:
        """The bits of an operand of a type; a constant is written as one of that type."""
        if isinstance(operand, ir.Immediate):
            return raw(operand, kind)
        return self.read(operand, f"u{8 * DTYPES[kind].itemsize}")

    def _cast(self, text: str, bits: int, kind: str) -> str:
        if (kind == "pred") != (bits == 1):
            raise NotTaken("a predicate as a number")
        if kind == "pred":
            return text
        wanted = 8 * DTYPES[kind].itemsize
        if wanted != bits:
            text = f"(uint{wanted}_t){text}"
        if kind in ("f32", "f64"):
            return f"{kind}({text})"
        return f"(int{wanted}_t){text}" if is_signed(kind) else text

    def write(self, operand: ir.Operand, kind: str, text: str) -> None:
        """A result of a type; a wider register is filled by sign or zeros."""
        if isinstance(operand, ir.Symbol) and operand.name == "_":
            return
        if not isinstance(operand, ir.Register | ir.Component):
            raise NotTaken(f"a result in {operand}")
        key = self._register(operand)
        bits = self.sizes[self.names[key]]
        self._put(key, self._bits(text, bits, kind), bits)

    def _put(self, key: str, text: str, bits: int) -> None:
        self.shapes = {known: names for known, names in self.shapes.items() if known[0] != key}
        if self.guard:
            old = self._held(key)
            self.each(f"{old} = {self.guard}[l] ? {text} : {old};")
        elif key in self.held:
            self.each(f"{self.held[key]} = {text};")
        else:
            self.count += 1
            self.held[key] = f"v{self.count}"
            self.each(f"{plain(bits)} v{self.count} = {text};")
        self.changed[key] = None

    def _bits(self, text: str, bits: int, kind: str) -> str:
        if (kind == "pred") != (bits == 1):
            raise NotTaken("a truth value in a register of numbers")
        if kind == "pred":
            return text
        have = 8 * DTYPES[kind].itemsize
        if bits < have:
            raise NotTaken("a result wider than its register")
        if kind in ("f32", "f64"):
            text = f"b{have}({text})"
        elif not is_float(kind) and is_signed(kind) and bits > have:
            return f"(uint{bits}_t)(int{bits}_t)(int{have}_t)({text})"
        else:
            text = f"(uint{have}_t)({text})"
        return text if bits == have else f"(uint{bits}_t){text}"

    def carry(self) -> str:
        """The carry flag, as a value of the loop."""
        self._flag()
        return self._held(CARRY)

    def set_carry(self, text: str) -> None:
        self._flag()
        self._put(CARRY, text, 1)

    def _flag(self) -> None:
        self.names.setdefault(CARRY, "carry")
        self.sizes["carry"] = 1

    def flag(self, key: str) -> str:
        """Whether a watched register holds no value, for the lane l."""
        return self._held(self._beside(key))

    def set_flag(self, key: str, text: str) -> None:
        self._put(self._beside(key), text, 1)

    def watched_in(self, operands: tuple[ir.Operand, ...]) -> list[str]:
        """Keys of the registers in operands that may hold uninitialised values."""
        if not self.watched:
            return []
        keys = dict.fromkeys(self._register(register) for register in registers(operands))
        return [key for key in keys if key in self.watched]

    def flags(self, *operands: ir.Operand) -> str:
        """Whether any of the operands holds no value, for the lane l; empty if all surely do."""
        return " | ".join(self.flag(key) for key in self.watched_in(operands))

    def set_flags(self, operand: ir.Operand, text: str) -> None:
        for key in self.watched_in((operand,)):
            self.set_flag(key, text)

    def _beside(self, key: str) -> str:
        self._flag()
        name = self.names.setdefault(f"{key}?", f"{self.names[key]}_none")
        self.sizes[name] = 1
        return f"{key}?"

    # -- addresses --------------------------------------------------------------------------

    def shape(self, operand: ir.Operand, bits: int, width: int) -> tuple[str, str, int]:
        """Addresses of shared memory as an array, how they lie, and how far all are from there.

        Loads at several distances from one register, which must be multiples of their width in
        bytes, ask how they lie only once; under a predicate nobody asks.
        """
        base, far = operand, 0
        if isinstance(operand, ir.Address) and isinstance(operand.base, ir.Register):
            base, far = operand.base, operand.offset
        whole = not isinstance(base, ir.Register) or self.guard or base.vector != 1
        if whole or far % width or (isinstance(operand, ir.Address) and operand.more):
            return *self._shape(self.address(operand), bits), 0
        assert isinstance(base, ir.Register)
        key = (self._register(base), bits)
        if key not in self.shapes:
            self.shapes[key] = self._shape(self.read(base, "u64"), bits)
        return *self.shapes[key], far

    def _shape(self, text: str, bits: int) -> tuple[str, str]:
        found, how = self.filled(64, text), self.array(8)
        if not self.guard:
            self.put(f"shape_{bits}({found}, m, {how});")
        return found, how

    def address(self, operand: ir.Operand) -> str:
        """The byte address of `[…]`, as an unsigned 64-bit number."""
        if not isinstance(operand, ir.Address) or operand.more:
            raise NotTaken("an address of several parts")
        base, offset = operand.base, operand.offset
        if isinstance(base, ir.Register | ir.Component):
            bits = self.sizes[self.names[self._register(base)]]
            if bits not in (32, 64):
                raise NotTaken("an address in a narrow register")
            text = self.read(base, f"u{bits}")
            if offset:
                text = f"({text} + (uint{bits}_t)0x{offset % (1 << bits):x}ull)"
            return text if bits == 64 else f"(uint64_t)(uint32_t){text}"
        if isinstance(base, ir.Immediate):
            return f"0x{(base.value + offset) % (1 << 64):x}ull"
        text = self.address_of(base)
        return f"({text} + 0x{offset % (1 << 64):x}ull)" if offset else text

    def address_of(self, operand: ir.Operand) -> str:
        """The address of a variable, in its own space."""
        if isinstance(operand, ir.Offset | ir.Address):
            return f"({self.address_of(operand.base)} + 0x{operand.offset % (1 << 64):x}ull)"
        if not isinstance(operand, ir.Symbol):
            raise NotTaken(f"the address of {operand}")
        name = operand.name
        if name in self.locals or name in self.shared:
            return f"{self.locals.get(name, self.shared.get(name))}ull"
        if name not in self.symbols:
            self.symbols.append(name)
        return f"L->symbols[{self.symbols.index(name)}]"

    # -- what is done between loops -----------------------------------------------------------

    def must(self, call: str) -> None:
        """A call that fails ends the launch: the evaluator will say why. `@` is the active mask."""
        self.close()
        if not self.guard:
            self.put(f"if (!{call.replace('@', 'm')}) return FAULT;")
            return
        self.count += 1
        name = f"m{self.count}"
        self.put(f"const uint32_t {name} = m & packed({self.guard});")
        self.put(f"if ({name} && !{call.replace('@', name)}) return FAULT;")

    def note(
        self, ins: ir.Instruction, space: str, at: str, width: int, kind: Kind, far: int = 0,
        part: bool = False,
    ) -> None:  # fmt: skip
        """An access that was made, where somebody asks; its addresses are `far` beyond `at`."""
        if self.noted.notes:
            site = self.site(ins, width, kind, part=part)
            verb = {"shared": "noted_shared", "local": "noted_local"}.get(space, "noted")
            self.must(f"{verb}(L, S, {site}, {at}, (uint64_t){far}ll, @)")

    def site(
        self, ins: ir.Instruction, width: int, kind: Kind, rows: bool = False, part: bool = False
    ) -> int:
        if kind not in (Kind.READ, Kind.WRITE, Kind.ATOMIC):
            raise NotTaken(f"{ins.name}: the order of memory")
        made = NotedSite(self.module.span(ins), width, kind, "nc" in ins.modifiers, rows, part)
        return self.noted.site(made)


def constant(operand: ir.Immediate, kind: str) -> str:
    if kind == "pred":
        return "1u" if immediate(operand, kind)[0] else "0u"
    text = raw(operand, kind)
    if kind in ("f32", "f64"):
        return f"{kind}({text})"
    return f"(int{8 * DTYPES[kind].itemsize}_t){text}" if is_signed(kind) else text


def raw(operand: ir.Immediate, kind: str) -> str:
    """The bits of a constant of a type."""
    value = immediate(operand, kind)
    return f"(uint{8 * value.dtype.itemsize}_t)0x{int(bits_of(value)[0]):x}ull"


def sources(w: Writer, ins: ir.Instruction, *kinds: str) -> list[str]:
    """The operands after the first, each in a variable: some are read several times."""
    return [
        w.value(kind, w.read(operand, kind))
        for operand, kind in zip(ins.operands[1:], kinds, strict=False)
    ]


def sources_bits(w: Writer, ins: ir.Instruction, *kinds: str) -> list[str]:
    """The bits of the operands after the first, each in a variable."""
    return [
        w.value(f"u{8 * DTYPES[kind].itemsize}", w.bits(operand, kind))
        for operand, kind in zip(ins.operands[1:], kinds, strict=False)
    ]


def refuse(ins: ir.Instruction, *words: str) -> None:
    for word in words:
        if word in ins.modifiers:
            raise NotTaken(f"{ins.name}: .{word}")


def alone(spell: Spell) -> Spell:
    """In a loop of its own: compilers make no vectors of it, and would make none of the others."""

    def wrapped(w: Writer, ins: ir.Instruction) -> None:
        w.close()
        spell(w, ins)
        w.close()

    return wrapped
