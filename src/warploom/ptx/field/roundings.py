"""What elements went through on their way: how often they were rounded, in which types sums were
held to which more was added, and how much cancelled.

It is noted by instruction, in columns of `Elements` that decide nothing. Exact is what changes no
number: a negation, a maximum, a wider type, a product with a power of two, a sum with 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from warploom.errors import Span

if TYPE_CHECKING:
    from warploom.ptx.field.elements import Elements

Array = npt.NDArray[Any]
How = Literal["sum", "fma", "product", "quotient", "exact", "narrower", "other"]
TYPES = ("f64", "f32", "tf32", "f16", "bf16")  # by bits of the column `held`
MOST_BITS = 60.0  # of a cancellation; a double has no more
_HOW: dict[str, How] = {
    "add": "sum", "sub": "sum", "fma": "fma", "mad": "fma", "mul": "product", "neg": "exact",
    "abs": "exact", "min": "exact", "max": "exact", "div": "quotient",
}  # fmt: skip
COLUMNS = {
    "roundings": "i4",  # on the longest path to it
    "sums": "i4",  # additions, one after another, that it is the result of; 0 of what is no sum
    "type": "u1",  # in which it was rounded last, or was given: a place of TYPES, from 1
    "held": "u1",  # types of sums to which more was added, on any path to it
    "cancelled": "f4",  # the most bits that a sum of what was rounded lost, on any path to it
}


@dataclass(frozen=True, slots=True)
class Note:
    """What an instruction does to numbers, in which type, and where it stands."""

    how: How
    kind: str
    span: Span | None = None


def how_of(opcode: str) -> How:
    return _HOW.get(opcode, "other")


def code_of(kind: str) -> int:
    return TYPES.index(kind) + 1


def names_of(mask: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(TYPES) if mask >> bit & 1)


def noted(e: Elements, note: Note, given: list[Array], made: Array, first: int) -> None:
    """After an instruction: of its results, those from `first` on are new."""
    at = np.flatnonzero((made >= first) & ~e.is_constant(made))
    if not at.size:
        return
    new, given = made[at], [each[at] for each in given]
    steps, sums, addends = _looked_at(e, note, given)
    held = np.bitwise_or.reduce([e["held"][x] for x in given])
    for x, counts in addends:
        held = held | np.where(counts, _bits(e, x), 0).astype(np.uint8)
        _first_place(e, note, x[counts])
    _put(
        e, new, held,
        roundings=np.max([e["roundings"][x] for x in given], axis=0) + steps, sums=sums,
        cancelled=np.max(
            [_lost(e, note, given, new), *(e["cancelled"][x] for x in given)], axis=0
        ),
    )  # fmt: skip
    e["type"][new] = e["type"][given[0]] if note.how == "exact" else code_of(note.kind)
    if note.how in ("sum", "fma", "product", "quotient"):
        _keep_types(e, given, new, addends)


def _keep_types(
    e: Elements, given: list[Array], new: Array, addends: list[tuple[Array, Array]]
) -> None:
    """A sum that is only scaled, or has a constant added to it, is held as narrowly as before."""
    adds = (
        np.any([counts for _, counts in addends], axis=0) if addends else np.zeros(new.size, bool)
    )
    kept = (e["sums"][new] > 0) & ~adds
    for each in given:
        is_it = kept & (e["sums"][each] == e["sums"][new])
        e["type"][new[is_it]] = np.maximum(e["type"][new], e["type"][each])[is_it]


def cut_off(e: Elements, numbers: Array) -> Array:
    """Elements of which the upper half is left: those that are no bf16 are rounded to one."""
    out = numbers.copy()
    rounds = ~e.is_constant(numbers) & (e["type"][numbers] != code_of("bf16"))
    for number in np.unique(numbers[rounds]).tolist():
        if number not in e.cut:
            one = np.array([number])
            first, made = e.count, e.copied(one)
            noted(e, Note("narrower", "bf16"), [one], made, first)
            e.cut[number] = int(made[0])
    out[rounds] = [e.cut[number] for number in numbers[rounds].tolist()]
    return out


def _put(e: Elements, new: Array, held: Array, **went: Array) -> None:
    """The most of each: what lanes make alike is one element."""
    for name, value in went.items():
        if e.merging:
            np.maximum.at(e[name], new, value.astype(e[name].dtype))
        else:
            e[name][new] = value
    if e.merging:
        np.bitwise_or.at(e["held"], new, held.astype(np.uint8))
    else:
        e["held"][new] = held


def _looked_at(
    e: Elements, note: Note, given: list[Array]
) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """Roundings, additions one after another, and sums to which something is added."""
    x = given[0]
    one, none = np.ones(x.size, np.int64), np.zeros(x.size, np.int64)
    match note.how:
        case "sum":
            return one, *_added(e, (x, given[1]), (e["sums"][x], e["sums"][given[1]]))
        case "fma":
            y, z = given[1:]
            alone = e["constant"][z] == 0
            scaled, whose = _scaled(e, x, y)
            fixed = e.is_constant(x) & e.is_constant(y)
            sums, addends = _added(e, (whose, z), (scaled, e["sums"][z]), fixed)
            steps = np.where(alone & (_shifts(e, x) | _shifts(e, y)), 0, 1)
            return steps, np.where(alone, scaled, sums), addends
        case "product":
            steps = np.where(_shifts(e, x) | _shifts(e, given[1]), 0, 1)
            return steps, _scaled(e, x, given[1])[0], []
        case "quotient":
            scales = e.is_constant(given[1]) | e["exponential"][given[1]]
            return one, np.where(scales, e["sums"][x], 0), []
        case "exact":
            return none, e["sums"][x] if len(given) == 1 else none, []
        case "narrower":
            return one, e["sums"][x], []
    return one, none, []


def _added(
    e: Elements, pair: tuple[Array, Array], sums: tuple[Array, Array], fixed: Array | None = None
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Additions one after another; `fixed`: where the first is a constant. What is added to a
    constant stays the sum that it was."""
    x, y = pair
    numbers = (e.is_constant(x) if fixed is None else fixed), e.is_constant(y)
    both = ~numbers[0] & ~numbers[1]
    longest = np.maximum(sums[0], sums[1])
    addends = [(each, both & (count > 0)) for each, count in zip(pair, sums, strict=True)]
    return longest + both, addends


def _scaled(e: Elements, x: Array, y: Array) -> tuple[Array, Array]:
    """A product is the sum that a factor is where the other only scales it, as a constant does or
    an exponential, and which factor that is."""
    found = []
    for one, other in ((x, y), (y, x)):
        scales = e.is_constant(other) | e["exponential"][other]
        found.append(np.where(scales, e["sums"][one], 0))
    left = found[0] >= found[1]
    return np.maximum(*found), np.where(left, x, y)


def _shifts(e: Elements, x: Array) -> Array:
    """Where it is a power of two: a product with it is exact."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(np.frexp(e["constant"][x])[0]) == 0.5)


def _bits(e: Elements, x: Array) -> Array:
    kind = e["type"][x].astype(np.int64)
    return np.where(kind > 0, 1 << np.maximum(kind - 1, 0), 0)


def _first_place(e: Elements, note: Note, held: Array) -> None:
    """Where sums of a type are first added to."""
    if note.span is not None:
        for code in np.unique(e["type"][held]).tolist():
            if code:
                e.holding.setdefault(TYPES[code - 1], note.span)


def _lost(e: Elements, note: Note, given: list[Array], new: Array) -> Array:
    """Bits that an addition loses, where something in it has been rounded."""
    if note.how not in ("sum", "fma"):
        return np.zeros(new.size)
    x, y = (e["real"][each] for each in given[:2])
    with np.errstate(all="ignore"):
        addends = (x, y) if note.how == "sum" else (x * y, e["real"][given[2]])
    rounded = np.max([e["roundings"][each] for each in given], axis=0) > 0
    return np.where(rounded, lost_bits(e, np.max(np.abs(addends), axis=0), new), 0.0)


def lost_bits(e: Elements, largest: Array, new: Array) -> Array:
    """log2 of how much larger addends are than their sum; what cancels as a whole leaves nothing
    that could be wrong."""
    total = np.abs(e["real"][new])
    with np.errstate(all="ignore"):
        lost = np.log2(largest) - np.log2(total)
    return np.where(np.isfinite(lost), np.clip(lost, 0.0, MOST_BITS), 0.0)


def noted_product(
    e: Elements, kind: str, span: Span | None, x: Array, y: Array, before: Array, made: Array,
    group: int, given: str,
) -> None:  # fmt: skip
    """After before + Σₖ x · y on tensor cores: x by row and k, y by column and k. Each group of k
    is added and rounded once, as the machine has it. `given`: the type of the factors; tf32 cuts
    longer ones off."""
    depth = x.shape[-1]
    cut = [_cut(e, each) if given == "tf32" else e["roundings"][each] for each in (x, y)]
    total = e["roundings"][before].astype(np.int64)
    for first in range(0, depth, group):
        part = slice(first, first + group)
        rows, columns = (each[..., part].max(axis=-1) for each in cut)
        total = np.maximum(total, np.maximum(rows[..., :, None], columns[..., None, :])) + 1
    adds = e["sums"][before] > 0
    rows, columns = (np.bitwise_or.reduce(e["held"][each], axis=-1) for each in (x, y))
    held = rows[..., :, None] | columns[..., None, :] | e["held"][before]
    held = held | np.where(adds, _bits(e, before), 1 << code_of(kind) - 1)
    if span is not None:
        _first_place(e, Note("sum", kind, span), before[adds])
        e.holding.setdefault(kind, span)
    new = made.reshape(-1)
    rows, columns = (e["cancelled"][each].max(axis=-1) for each in (x, y))
    passed = np.maximum(rows[..., :, None], columns[..., None, :])
    passed = np.maximum(passed, e["cancelled"][before]).reshape(-1)
    _put(
        e, new, held.reshape(-1), roundings=total.reshape(-1),
        sums=(e["sums"][before] + depth).reshape(-1),
        cancelled=np.maximum(passed, _lost_in_product(e, x, y, before, new)),
    )  # fmt: skip
    e["type"][new] = code_of(kind)


def _cut(e: Elements, x: Array) -> Array:
    """Roundings of factors, with that of those that have more bits than tf32."""
    longer = np.isin(e["type"][x], (code_of("f32"), code_of("f64"))) & ~e.is_constant(x)
    return np.asarray(e["roundings"][x] + longer)


def _lost_in_product(e: Elements, x: Array, y: Array, before: Array, new: Array) -> Array:
    u, v = np.abs(e["real"][x]), np.abs(e["real"][y])
    largest = np.abs(e["real"][before])
    for k in range(x.shape[-1]):
        largest = np.maximum(largest, u[..., :, None, k] * v[..., None, :, k])
    rounded = e["roundings"][before] > 0
    for each, axis in ((x, -1), (y, -2)):
        rounded = rounded | np.expand_dims((e["roundings"][each] > 0).any(axis=-1), axis)
    return np.where(rounded.reshape(-1), lost_bits(e, largest.reshape(-1), new), 0.0)
