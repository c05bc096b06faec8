"""How many lanes away another load finds what this one needs: proved, refuted or unknown.

Comes in: the address forms of an earlier load (the source) and a later one (the destination).
Goes out: a `Distance`. A proof says that the source's address, N lanes further, *is* the
destination's address, wrap-around of narrow indices included. Where only a wrap could spoil it,
the proof names what is to be tested at run time: that a narrow index is far from its ends
(`Margin`), or that two addresses of the own lane lie as far apart as they should (`compare`).
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.index.terms import modular
from warploom.machine.record import CUDA
from warploom.ptx.ir import Register
from warploom.ptx.symbolic.form import Atom, Form, Pool, constant
from warploom.ptx.symbolic.memory import Access
from warploom.ptx.symbolic.walk import Reading
from warploom.search.outcome import Verdict


@dataclass(frozen=True, slots=True)
class Margin:
    """At instruction `at`, `register` must be at least `room` away from where it wraps."""

    at: int
    register: Register
    signed: bool
    room: int


@dataclass(frozen=True, slots=True)
class Distance:
    """How many lanes apart, what a check says of that, and what is left to run time."""

    verdict: Verdict
    lanes: int = 0
    margins: tuple[Margin, ...] = ()
    compare: int | None = None  # bytes from the source's to the destination's own address
    reason: str = ""

    @property
    def tests(self) -> int:
        """How much is left to run time."""
        return len(self.margins) + (2 if self.compare is not None else 0)


@dataclass(frozen=True, slots=True)
class Shape:
    """An address taken apart: loads with equal `key` may lie a constant distance apart."""

    key: tuple[object, ...]
    place: int  # bytes
    stride: int  # bytes from lane to lane; 0 where it is not a constant


def shape_of(reading: Reading, access: Access) -> Shape | None:
    """None where the address in other lanes is not known and cannot be compared."""
    form = access.address
    if form is None:
        return None
    pool = reading.pool
    flat = pool.flat(form)
    stride = _stride(pool, flat)
    if stride is None:
        return Shape((form.width, form), 0, 0)
    key = (form.width, flat.without_constant)
    return Shape(key, flat.signed(flat.constant), stride)


def _stride(pool: Pool, flat: Form) -> int | None:
    """Bytes by which the flat address moves from lane to lane, if that is a constant."""
    if not pool.known(flat):
        return None
    total = 0
    for monomial, coefficient in flat.terms.items():
        atoms = [pool.atoms[index] for index in monomial]
        if not any(atom.moves for atom in atoms):
            continue
        if len(atoms) != 1 or atoms[0].args:
            return None
        total += flat.signed(coefficient)
    return total


def decide(
    reading: Reading, source: Access, target: Access, limit: int = CUDA.lanes - 1
) -> Distance:
    """The lane distance from `source` to `target`, and what it rests on."""
    a, b = source.address, target.address
    if a is None or b is None or a.width != b.width:
        return Distance(Verdict.UNKNOWN, reason="an address is not known")
    if a == b:
        return Distance(Verdict.PROVED, 0)
    first, second = shape_of(reading, source), shape_of(reading, target)
    assert first is not None
    assert second is not None
    if first.key != second.key:
        return _irregular(reading, a, b, limit)
    if first.stride == 0:
        return Distance(Verdict.REFUTED, reason="all lanes read one address, and it is another")
    gap = second.place - first.place
    lanes, rest = divmod(gap, first.stride)
    if rest or abs(lanes) > limit:
        return Distance(Verdict.REFUTED, lanes, reason="no whole number of lanes within the limit")
    return _prove(reading, source, target, lanes, gap)


def _irregular(reading: Reading, a: Form, b: Form, limit: int) -> Distance:
    """Addresses that are no plain sum: try every distance, as exact forms."""
    pool = reading.pool
    if not (pool.known(a) and pool.known(b)):
        return Distance(Verdict.UNKNOWN, reason="an address in another lane is not known")
    for lanes in sorted(range(-limit, limit + 1), key=abs):
        if lanes and pool.moved(a, lanes) == b:
            return Distance(Verdict.PROVED, lanes)
    return Distance(Verdict.UNKNOWN, reason="no constant lane distance was found")


def _prove(reading: Reading, source: Access, target: Access, lanes: int, gap: int) -> Distance:
    pool = reading.pool
    a, b = source.address, target.address
    assert a is not None
    assert b is not None
    there = pool.moved(a, lanes)
    if there == b:
        return Distance(Verdict.PROVED, lanes)
    if _split(pool, there) == _split(pool, b):
        margins = _margins(reading, source, there, b)
        if margins is not None:
            return Distance(Verdict.PROVED, lanes, margins)
    # The own address may be compared at run time; then only the way to the other lane is open.
    straight = a + constant(a.width, gap)
    if _split(pool, there) != _split(pool, straight):
        return Distance(Verdict.UNKNOWN, lanes, reason="an index inside the address may wrap")
    margins = () if there == straight else _margins(reading, source, there, straight)
    if margins is None:
        return Distance(Verdict.UNKNOWN, lanes, reason="no register holds the index that may wrap")
    if source.base is None or target.base is None:
        return Distance(Verdict.UNKNOWN, lanes, reason="the address is not in a register")
    return Distance(Verdict.PROVED, lanes, margins, gap)


# -- wrap-around ------------------------------------------------------------------------------


def _split(pool: Pool, form: Form) -> Form:
    """The form with `ext(u + c)` read as `ext(u) + c`: equal if no index is near its ends."""

    def factor(index: int) -> Form:
        atom = pool.atoms[index]
        inner = _narrow(atom)
        if inner is None or not inner.constant:
            return Form(form.width, {(index,): 1})
        bare = pool.extend(inner.without_constant, atom.width, atom.op == "sext")
        new = bare + constant(atom.width, inner.signed(inner.constant))
        return modular(form.width, new.signed_terms)

    return pool.composed(form, form.width, factor)


def _narrow(atom: Atom) -> Form | None:
    if atom.op in ("sext", "zext") and isinstance(atom.args[0], Form):
        return atom.args[0]
    return None


def _margins(reading: Reading, source: Access, a: Form, b: Form) -> tuple[Margin, ...] | None:
    """What keeps every index in which the forms differ from wrapping, by registers at hand."""
    pool = reading.pool
    classes: dict[tuple[str, Form], set[int]] = {}
    for index in (a - b).atoms():  # the others wrap in both or in neither
        atom = pool.atoms[index]
        inner = _narrow(atom)
        if inner is not None:
            bare = inner.without_constant
            # An index that cannot wrap without its constant may stand on the other side as a sum.
            opened = pool.single(pool.extend(bare, atom.width, atom.op == "sext"))
            plain = {0} if opened is None or opened.op != atom.op else set()
            offsets = classes.setdefault((atom.op, bare), plain)
            offsets.add(inner.signed(inner.constant))
    found = []
    for (op, bare), offsets in sorted(classes.items(), key=repr):
        margin = _margin(reading, source, op, bare, offsets)
        if margin is None:
            return None
        found.append(margin)
    return tuple(found)


def _margin(
    reading: Reading, source: Access, op: str, bare: Form, offsets: set[int]
) -> Margin | None:
    best: Margin | None = None
    for index, places in reading.origins.items():
        atom = reading.pool.atoms[index]
        inner = _narrow(atom)
        if inner is None or atom.op != op or inner.without_constant != bare:
            continue
        here = inner.signed(inner.constant)
        room = max(abs(offset - here) for offset in offsets)
        for at, register in places:
            if not reading.flow.before(at, source.at) or room >> (inner.width - 2):
                continue
            if best is None or (room, at) < (best.room, best.at):
                best = Margin(at, register, op == "sext", room)
    return best
