"""Which loads still hold when a later one runs: what stores, atomics and barriers may touch.

Comes in: a `Reading`. Goes out: every load as an `Access`, and for each the earlier loads that ran
on all paths to it, in the same iteration of every loop, with nothing between that may have written
what they read. Whatever is not shown to be harmless is taken as harmful.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.ptx.ir import Address, Instruction, Register, Vector
from warploom.ptx.known import STRONG, control_of, form_of, record_of, space_of
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.symbolic.form import Form
from warploom.ptx.symbolic.operand import BOUNDS, roots, width_of
from warploom.ptx.symbolic.walk import Reading

MOST_PAIRS = 300_000  # of stores and loads
FARTHEST = {  # between two lanes of a block
    name: high - low for name, (low, high) in BOUNDS.items() if name.startswith(("%tid", "%laneid"))
}


@dataclass(frozen=True, slots=True)
class Access:
    """One load. `kind` is all that two loads must share: space, cache words, width and type."""

    at: int
    block: int
    space: str
    fixed: bool  # nothing in the kernel writes what it reads
    address: Form | None
    kind: str
    size: int  # bytes
    into: tuple[Register, ...]
    base: Register | None
    offset: int
    refusal: str  # why it cannot take part; empty if it can


@dataclass(frozen=True, slots=True)
class Effect:
    """What an instruction may do to values already loaded."""

    all_fixed: bool = False  # forget even loads from memory that is promised not to change
    spaces: frozenset[str] = frozenset()  # forget ordinary loads of these spaces
    address: Form | None = None  # unless provably elsewhere
    size: int = 0


NOTHING = Effect()
EVERY_SPACE = frozenset({"global", "shared", "local", "generic"})
FORGET_ALL = Effect(True, EVERY_SPACE)
FORGET = Effect(False, EVERY_SPACE)


def accesses(reading: Reading) -> list[Access]:
    """All loads that can be reached, in text order."""
    found = []
    for at, step in enumerate(reading.flow.code):
        block = reading.flow.block_of[at]
        if step.opcode == "ld" and block in reading.reached:
            found.append(_access(reading, at, step, block))
    return found


def _access(reading: Reading, at: int, step: Instruction, block: int) -> Access:
    address = reading.addresses.get(at)
    place = step.operands[1] if len(step.operands) > 1 else None
    base = place.base if isinstance(place, Address) and isinstance(place.base, Register) else None
    into, count = _destinations(step)
    element = width_of(step.modifiers[-1]) // 8 if step.modifiers else 0
    written = address is not None and bool(roots(reading.pool, address) & reading.written)
    space = space_of(step)
    return Access(
        at, block, space, space in ("const", "param") or ("nc" in step.modifiers and not written),
        address, step.name, element * count, into, base,
        place.offset if isinstance(place, Address) else 0,
        _refusal(step, space, into, address),
    )  # fmt: skip


def _destinations(step: Instruction) -> tuple[tuple[Register, ...], int]:
    target = step.operands[0] if step.operands else None
    parts: tuple[object, ...] = target.elements if isinstance(target, Vector) else (target,)
    registers = tuple(part for part in parts if isinstance(part, Register) and part.vector == 1)
    return (registers if len(registers) == len(parts) else ()), len(parts)


def _refusal(
    step: Instruction, space: str, into: tuple[Register, ...], address: Form | None
) -> str:
    said = {word.split("::")[0] for word in step.modifiers}
    kind = step.modifiers[-1] if step.modifiers else ""
    if form_of(step) is None:
        return "the load has a modifier that we do not know"
    if said & STRONG:
        return "the load is volatile or ordered"
    if said & {"cv", "lu", "unified"}:
        return "the load asks to be made anew"
    if step.predicate is not None:
        return "the load is predicated"
    if space not in ("global", "shared", "generic"):
        return f"{space} memory is not shared between lanes"
    if address is None:
        return "the address is not one register and an offset"
    if not into or width_of(kind) not in (8, 16, 32, 64):
        return "the destination is not plain registers of 16, 32 or 64 bits"
    if any(width_of(r.type) not in (16, 32, 64) for r in into):
        return "the destination is not plain registers of 16, 32 or 64 bits"
    if len({r.key for r in into}) != len(into):
        return "one register is loaded twice"
    return ""


def effect_of(reading: Reading, at: int, writers: frozenset[str]) -> Effect:
    step = reading.flow.code[at]
    record = record_of(step)
    ordered = bool(STRONG & set(step.modifiers))
    match MemoryEffect.ANYTHING if record is None else record.memory:
        case MemoryEffect.NOTHING:
            return NOTHING
        case MemoryEffect.READS:
            return FORGET if ordered else NOTHING
        case MemoryEffect.WRITES:
            return FORGET if ordered else _store(reading, at, step)
        case MemoryEffect.UPDATES:
            return FORGET
        case MemoryEffect.MEETS:
            return Effect(False, writers)
        case MemoryEffect.ANYTHING:  # fences, calls, copies, and what we do not know
            return FORGET_ALL


def _store(reading: Reading, at: int, step: Instruction) -> Effect:
    space = space_of(step)
    value = step.operands[1] if len(step.operands) > 1 else None
    count = len(value.elements) if isinstance(value, Vector) else 1
    size = width_of(step.modifiers[-1]) // 8 * count
    hit = EVERY_SPACE if space == "generic" else frozenset({space, "generic"})
    return Effect(False, hit, reading.addresses.get(at) if size else None, size)


def writing_spaces(reading: Reading) -> frozenset[str]:
    """Spaces that the kernel may write at all: a barrier can only show what somebody wrote."""
    found: set[str] = set()
    for at, step in enumerate(reading.flow.code):
        record = record_of(step)
        if record is not None and record.memory in (MemoryEffect.WRITES, MemoryEffect.UPDATES):
            space = space_of(step)
            found |= EVERY_SPACE if space == "generic" else {space, "generic"}
        elif effect_of(reading, at, frozenset()).all_fixed:
            found |= EVERY_SPACE
    return frozenset(found)


def survivors(reading: Reading, loads: list[Access]) -> dict[int, int]:
    """By load number: the set of load numbers, as bits, that still hold just before it runs."""
    flow = reading.flow
    here: dict[int, list[tuple[int, int]]] = {block: [] for block in flow.order}
    writers = writing_spaces(reading)
    number_at = {load.at: number for number, load in enumerate(loads)}
    known: dict[Effect, int] = {NOTHING: -1}
    for block in reading.reached:
        for at in range(flow.blocks[block].start, flow.blocks[block].stop):
            effect = effect_of(reading, at, writers)
            if len(known) * len(loads) > MOST_PAIRS:  # too many to compare one by one
                effect = Effect(effect.all_fixed, effect.spaces)
            if effect not in known:
                known[effect] = _kept(reading, effect, loads)
            kept = known[effect]
            if kept != -1 or at in number_at:
                here[block].append((at, kept))
    inside = _inside(reading, loads)
    result: dict[int, int] = {}
    out: dict[int, int] = {}
    changed = True
    while changed:
        changed = False
        for block in flow.order:
            if block not in reading.reached:
                continue
            alive = _entering(reading, block, out, inside)
            for at, kept in here[block]:
                alive &= kept
                if at in number_at:
                    result[number_at[at]] = alive
                    alive |= 1 << number_at[at]
            if out.get(block) != alive:
                out[block] = alive
                changed = True
    quiet = _quiet(reading, loads, here)
    stretch = _stretches(reading)
    mine = _by_block(loads, stretch)
    return {n: alive & (quiet | mine[stretch[loads[n].block]]) for n, alive in result.items()}


def _by_block(loads: list[Access], name: dict[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for number, load in enumerate(loads):
        block = name[load.block]
        found[block] = found.get(block, 0) | 1 << number
    return found


def _stretches(reading: Reading) -> dict[int, int]:
    """Each block by the first of the straight run it stands in: no lane can part from it there."""
    flow = reading.flow
    first: dict[int, int] = {}
    for block in flow.order:
        first[block] = block
        before = [e for e in flow.blocks[block].into if (e.source, e.target) in reading.taken]
        if len(before) != 1 or before[0].source not in first:
            continue
        source = flow.blocks[before[0].source]
        beside = [e for e in source.out if (e.source, e.target) in reading.taken]
        last = flow.code[source.stop - 1]
        if len(beside) == 1 and control_of(last) not in (Control.CALL, Control.LEAVE):
            first[block] = first[before[0].source]
    return first


def _quiet(reading: Reading, loads: list[Access], here: dict[int, list[tuple[int, int]]]) -> int:
    """Loads that nothing after their block can touch, on whatever path, as bits.

    Once lanes diverge, some run ahead on another path; what they write there may be seen by a load
    in a later block, though no path from its source to it writes anything.
    """
    after = _after(reading, {block: _all_kept(steps) for block, steps in here.items()})
    mine = _by_block(loads, {block: block for block in reading.flow.order})
    quiet = 0
    for block, bits in mine.items():
        quiet |= bits & after[block]
    return quiet


def _all_kept(steps: list[tuple[int, int]]) -> int:
    left = -1
    for _, kept in steps:
        left &= kept
    return left


def _after(reading: Reading, kept: dict[int, int]) -> dict[int, int]:
    """By block: what all blocks that can be reached from its end leave alone, as bits."""
    flow = reading.flow
    left = dict.fromkeys(flow.order, -1)
    changed = True
    while changed:
        changed = False
        for block in reversed(flow.order):
            bits = left[block]
            for edge in flow.blocks[block].out:
                if (edge.source, edge.target) in reading.taken:
                    bits &= kept[edge.target] & left[edge.target]
            if bits != left[block]:
                left[block] = bits
                changed = True
    return left


def _inside(reading: Reading, loads: list[Access]) -> dict[int, int]:
    """Loads inside each loop, as bits; they do not outlive it."""
    return {
        header: sum(1 << n for n, load in enumerate(loads) if load.block in loop.body)
        for header, loop in reading.flow.loops.items()
    }


def _entering(reading: Reading, block: int, out: dict[int, int], inside: dict[int, int]) -> int:
    flow = reading.flow
    if block == flow.order[0]:
        return 0
    alive = -1
    for edge in flow.blocks[block].into:
        if (edge.source, edge.target) not in reading.taken:
            continue
        passed = out.get(edge.source, -1)  # a loop's end counts as harmless until visited
        for header in flow.around[edge.source]:
            if header not in flow.around[block]:
                passed &= ~inside[header]
        alive &= passed
    return alive


def _kept(reading: Reading, effect: Effect, loads: list[Access]) -> int:
    """The loads that an effect leaves alone, as bits."""
    lost = 0
    for number, load in enumerate(loads):
        hit = effect.all_fixed or (not load.fixed and load.space in effect.spaces)
        if hit and not _elsewhere(reading, effect, load):
            lost |= 1 << number
    return ~lost


def _elsewhere(reading: Reading, effect: Effect, load: Access) -> bool:
    """Whether no lane of the block can have written what any lane of it loaded."""
    if effect.address is None or load.address is None or effect.size == 0 or load.size == 0:
        return False
    if effect.address.width != load.address.width:
        return False
    gap = effect.address - load.address
    if not gap.is_constant:
        return False
    distance = gap.signed(gap.constant)
    reach = _reach(reading, load.address)
    return reach is not None and (distance >= load.size + reach or -distance >= effect.size + reach)


def _reach(reading: Reading, address: Form) -> int | None:
    """How far apart the addresses of two lanes of one block can lie; None if not known."""
    total = 0
    for monomial, coefficient in address.terms.items():
        atoms = [reading.pool.atoms[index] for index in monomial]
        if all(atom.uniform for atom in atoms):
            continue
        if len(atoms) != 1 or atoms[0].op not in FARTHEST:
            return None
        total += abs(address.signed(coefficient)) * FARTHEST[atoms[0].op]
    return total
