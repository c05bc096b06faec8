"""Z3 as an independent judge of lane distances.

Comes in: a source, a target and the distance that algebra gave. Goes out: Z3's own `Verdict`.
Addresses are built anew from the instructions, bit by bit, once for the own lane and once for the
lane N further; only what a loop carries or the ring does not express is taken from the forms.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from warploom.index.smt import load_z3
from warploom.machine.value.smt import term
from warploom.ptx.ir import Address, Immediate, Instruction, Offset, Operand, Register, Special
from warploom.ptx.known import form_of
from warploom.ptx.meaning.shape import Unsupported
from warploom.ptx.meaning.table import MEANINGS, meaning_of
from warploom.ptx.symbolic.distance import Distance, Margin
from warploom.ptx.symbolic.form import Atom, Form
from warploom.ptx.symbolic.memory import Access
from warploom.ptx.symbolic.operand import BOUNDS, is_integer, width_of
from warploom.ptx.symbolic.walk import Reading
from warploom.search.outcome import Verdict

MILLISECONDS = 5_000
DEEPEST = 200
ITERATION_BITS = 64


class Guarded(Enum):
    """What the code around a shuffle in a loop tests before it believes another lane."""

    NOW = "the warp is complete at this visit"
    AT_ENTRY = "and was where the loops were entered"
    EVERY_VISIT = "and was at every visit so far, for all its lanes"  # what `write` tests


def judge(
    reading: Reading, source: Access, target: Access, distance: Distance,
    guarded: Guarded = Guarded.EVERY_VISIT,
) -> Verdict:  # fmt: skip
    """Whether the source's address, N lanes further, is always the target's own address."""
    z3 = load_z3()
    # Products and long sums are hard for bit vectors and rarely matter: first as unknowns.
    answer = _ask(z3, reading, source, target, distance, guarded, exact=False)
    if answer is Verdict.PROVED:
        return answer
    return _ask(z3, reading, source, target, distance, guarded, exact=True)


def _ask(
    z3: Any, reading: Reading, source: Access, target: Access, distance: Distance, guarded: Guarded,
    exact: bool,
) -> Verdict:  # fmt: skip
    names: dict[tuple[int, ...], Any] | None = None if exact else {}
    here, there = _Lane(reading, z3, 0, names), _Lane(reading, z3, distance.lanes, names)
    wanted = here.address(target)
    found = there.address(source)
    if wanted is None or found is None:
        return Verdict.UNKNOWN
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    for margin in distance.margins:
        solver.add(_far_from_ends(z3, here, margin))
    if distance.compare is not None:
        solver.add(wanted == here.address(source) + distance.compare)
    solver.add(wanted != found)
    solver.add(*here.known, *there.known, *_iterations(z3, reading, target, guarded, here, there))
    answer = solver.check()
    if answer == z3.unsat:
        return Verdict.PROVED
    return Verdict.REFUTED if answer == z3.sat else Verdict.UNKNOWN


def _iterations(
    z3: Any, reading: Reading, target: Access, guarded: Guarded, here: _Lane, there: _Lane
) -> list[Any]:
    """What is known of the iterations of the loops around the target that two lanes are in.

    Each has visited the target some number of times. Lanes that take the same ways and visited it
    equally often are in the same iterations; but only a test at every visit says that they did.
    """
    visits = [z3.Int(f"visits/{lane.lanes}") for lane in (here, there)]
    facts = [visit >= 1 for visit in visits]
    if guarded is Guarded.EVERY_VISIT:
        facts.append(visits[0] == visits[1])
    for header in reading.flow.around[target.block]:
        if header not in reading.parted:
            iterations = [lane.iteration(header) for lane in (here, there)]
            facts.append(z3.Implies(visits[0] == visits[1], iterations[0] == iterations[1]))
    return facts


def _far_from_ends(z3: Any, lane: _Lane, margin: Margin) -> Any:
    width = width_of(margin.register.type)
    value = lane.short(lane.register(margin.register, margin.at, 0))
    if margin.signed:
        low, high = -(1 << width - 1) + margin.room, (1 << width - 1) - 1 - margin.room
        return z3.And(value >= low, value <= high)
    return z3.And(z3.UGE(value, margin.room), z3.ULE(value, (1 << width) - 1 - margin.room))


class _Lane:
    """Values in the lane `lanes` further, as bit vectors; `known` holds what is true of them."""

    def __init__(
        self, reading: Reading, z3: Any, lanes: int, names: dict[tuple[int, ...], Any] | None
    ) -> None:
        self.reading = reading
        self.z3 = z3
        self.lanes = lanes
        self.names = names  # one unknown for each product and sum seen; None to be exact
        self.known: list[Any] = []
        self._registers: dict[tuple[str, int], Any] = {}
        self._atoms: dict[int, Any] = {}

    def address(self, access: Access) -> Any:
        place = self.reading.flow.code[access.at].operands[1]
        if access.address is None or not isinstance(place, Address):
            return None
        base = self.operand(place.base, access.address.width, access.at, 0)
        return None if base is None else base + place.offset

    # -- from instructions --------------------------------------------------------------------

    def operand(self, operand: Operand, width: int, at: int, depth: int) -> Any:
        z3 = self.z3
        match operand:
            case Register():
                return self.fit(self.register(operand, at, depth), width, signed=False)
            case Immediate(value=value):
                return z3.BitVecVal(value, width)
            case Offset(base, offset):
                inner = self.operand(base, width, at, depth)
                return None if inner is None else inner + offset
            case Special(name) if name in BOUNDS:
                return self.fit(self.special(name), width, signed=False)
            case _:
                return None

    def special(self, name: str) -> Any:
        value = self.z3.BitVec(name, 32)
        low, high = BOUNDS[name]
        moves = self.lanes if name in ("%tid.x", "%laneid") else 0
        self.known += [value >= low, value <= high, value + moves >= low, value + moves <= high]
        return value + moves

    def register(self, register: Register, at: int, depth: int) -> Any:
        """The register as read by instruction `at`."""
        made = self.reading.made_at.get(register.key)
        if made is None or not self.reading.flow.before(made[0], at):
            form = self.reading.reads.get((register.key, at))
            if form is not None:
                return self.form(form)
            return self.z3.BitVec(f"{register.key}@{at}/{self.lanes}", width_of(register.type))
        key = (register.key, made[0])
        if key not in self._registers:
            value = None
            if depth < DEEPEST and self.stays(made[0], at):
                value = self.step(self.reading.flow.code[made[0]], made[0], depth + 1)
            self._registers[key] = self.form(made[1]) if value is None else value
        return self.fit(self._registers[key], width_of(register.type), signed=False)

    def stays(self, made: int, at: int) -> bool:
        """A value made in a loop that was left is not that of any one iteration."""
        flow = self.reading.flow
        around = flow.around[flow.block_of[at]]
        return all(header in around for header in flow.around[flow.block_of[made]])

    def step(self, step: Instruction, at: int, depth: int) -> Any:
        """The register that an instruction writes, by its meaning; None where it has none here."""
        if step.predicate is not None or form_of(step) is None:
            return None
        kind = step.modifiers[-1] if step.modifiers else ""
        if step.opcode == "mov" or (step.opcode == "cvta" and "global" in step.modifiers):
            known = is_integer(kind) and len(step.operands) == 2
            return self.operand(step.operands[1], width_of(kind), at, depth) if known else None
        if step.opcode not in MEANINGS:
            return None
        return self.meaning(step, at, depth)

    def meaning(self, step: Instruction, at: int, depth: int) -> Any:
        try:
            meaning = meaning_of(step)
        except (Unsupported, ValueError):
            return None
        sources = [(operand, width_of(kind)) for operand, kind in meaning.sources]
        if len(meaning.results) != 1 or any(isinstance(operand, str) for operand, _ in sources):
            return None
        args = [
            None if isinstance(operand, str) else self.operand(operand, width, at, depth)
            for operand, width in sources
        ]
        if any(arg is None for arg in args):
            return None
        (result,) = meaning.results
        value = term(self.z3, result.value, args, self.times, self.fit)
        if value is None or not isinstance(result.target, Register):
            return None
        width = max(width_of(result.target.type), value.size())
        return self.fit(value, width, result.kind.startswith("s"))

    def times(self, a: Any, b: Any) -> Any:
        z3 = self.z3
        a, b = z3.simplify(a), z3.simplify(b)
        if self.names is None or z3.is_bv_value(a) or z3.is_bv_value(b):
            return a * b
        return self.named(*sorted((a, b), key=lambda term: int(term.get_id())))

    def named(self, *terms: Any) -> Any:
        """One unknown for these terms, in whichever lane they are met again."""
        assert self.names is not None
        key = tuple(int(term.get_id()) for term in terms)
        if key not in self.names:
            unknown = self.z3.BitVec(f"name{len(self.names)}", terms[0].size())
            self.names[key] = (unknown, terms)  # the terms live on, and so do their numbers
        return self.names[key][0]

    def short(self, value: Any) -> Any:
        """A sum as one unknown plus a constant."""
        if self.names is None:
            return value
        z3 = self.z3
        value = z3.simplify(value, som=True)
        if not z3.is_app_of(value, z3.Z3_OP_BADD):
            return value
        parts = value.children()
        fixed = [part for part in parts if z3.is_bv_value(part)]
        rest = sorted((p for p in parts if not z3.is_bv_value(p)), key=lambda p: int(p.get_id()))
        total = self.named(*rest) if len(rest) > 1 else rest[0]
        return total + fixed[0] if fixed else total

    def fit(self, value: Any, width: int, signed: bool) -> Any:
        size = value.size()
        if size == width:
            return value
        if size > width:
            return self.z3.Extract(width - 1, 0, value)
        extend = self.z3.SignExt if signed else self.z3.ZeroExt
        return extend(width - size, self.short(value))

    def iteration(self, header: int) -> Any:
        """The iteration of a loop that this lane is in."""
        return self.z3.BitVec(f"iteration{header}/{self.lanes}", ITERATION_BITS)

    # -- from forms ---------------------------------------------------------------------------

    def form(self, form: Form) -> Any:
        total = self.z3.BitVecVal(0, form.width)
        for monomial, coefficient in form.terms.items():
            product = self.z3.BitVecVal(coefficient, form.width)
            for index in monomial:
                atom = self.reading.pool.atoms[index]
                signed = atom.bounds is not None and atom.bounds[0] < 0
                product = self.times(product, self.fit(self.atom(atom), form.width, signed))
            total = total + product
        return total

    def atom(self, atom: Atom) -> Any:
        if atom.index not in self._atoms:
            self._atoms[atom.index] = self._atom(atom)
        return self._atoms[atom.index]

    def _atom(self, atom: Atom) -> Any:
        z3 = self.z3
        if atom.op in BOUNDS:
            return self.special(atom.op)
        if not atom.known:
            return z3.BitVec(f"{atom.op}#{atom.index}/{self.lanes}", atom.width)
        if not atom.forms and atom.op.startswith("iteration"):
            return self.iteration(int(atom.op.removeprefix("iteration")))
        if not atom.forms:
            return z3.BitVec(atom.op, atom.width)
        if not atom.moves and atom.op not in ("sext", "zext"):
            return z3.BitVec(f"{atom.op}#{atom.index}", atom.width)
        args = [self.form(arg) for arg in atom.forms]
        if atom.op in ("sext", "zext"):
            return self.fit(args[0], atom.width, atom.op == "sext")
        sorts = [arg.sort() for arg in args]
        value = z3.Function(atom.op, *sorts, z3.BitVecSort(atom.width))(*args)
        if atom.bounds is not None and atom.bounds[0] >= 0 and atom.bounds[1] < 1 << atom.width:
            self.known += [z3.UGE(value, atom.bounds[0]), z3.ULE(value, atom.bounds[1])]
        return value
