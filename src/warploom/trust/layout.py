"""Checks a certificate about a layout by itself: nothing of the solver is used, nor of its rules.
Which lanes a machine serves together is in its record, or in the certificate if it is a user's own.

What is checked: the layout's addresses are different, keep vectors whole and take the wavefronts
that are said; the bound holds for every layout; and, where it is not met, nothing of its class
costs less than is said. The argument for each stands where it is checked.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.trust.checked import (
    Checked,
    TooMuchError,
    Work,
    bits_of,
    digest,
    fraction,
    rank_of,
    require,
    room_for,
    span_of,
    sums_of,
    whole_numbers,
)
from warploom.trust.family import Tile, mapped, members
from warploom.trust.serving import WORD, groups_of, served, serving_of

Numbers = npt.NDArray[np.int64]
Least = list[list[int]]  # wavefronts of each group of each access, in every layout

_KEYS = {"kind", "version", "problem", "objective", "waste", "class", "bound", "least", "cost",
         "layout", "addresses", "wavefronts", "proof", "digest"}  # fmt: skip
_OBJECTIVES = {"1": {"sum": "wavefronts per request, added up", "worst": "the most per request"},
               "2": {"total": "all wavefronts", "worst": "the most of an access"}}  # fmt: skip
_CLASSES = ("none", "pad", "swizzle", "xor", "mixed", "any", "tma", "wgmma")
_ATOM_ROWS = 8  # after which the swizzle of a tensor copy, and of wgmma, repeats
_FROM_COPIES, _FROM_DESCRIPTORS = 128, 16  # bytes: where they begin without a swizzle
_MOST_TRIED = 1 << 18  # sets of chunks; the argument by counting is written where fewer do
_MOST_COUNTED = 1 << 24  # groups of lanes in cases; a proof that we wrote took 1.7 million
_MOST_SHARED = 1 << 9  # elements of one bank among which words may be shared, where that is tried


@dataclass(frozen=True, slots=True, eq=False)
class _Access:
    name: str
    weight: Fraction  # what one wavefront costs
    elements: Numbers
    vectors: Numbers  # of lanes that are not idle
    groups: list[Numbers]  # elements wanted together


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    tile: Tile
    accesses: list[_Access]
    worst: bool
    waste: bool

    @property
    def size(self) -> int:
        return self.tile.size

    @property
    def element_bytes(self) -> int:
        return self.tile.element_bytes

    def bytes_of(self, elements: int) -> int:
        """Two elements of 4 bits are one byte."""
        return elements * self.tile.element_bytes // self.tile.packed

    @property
    def banks(self) -> int:
        return self.tile.banks

    def cost(self, counts: list[int]) -> Fraction:
        each = [a.weight * c for a, c in zip(self.accesses, counts, strict=True)]
        return max(each) if self.worst else sum(each, Fraction(0))


def check_layout(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    try:
        return _check(record)
    except TooMuchError as error:
        return Checked((), str(error))
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise CheckError(f"the certificate is not of this form: {error!r:.80}") from None
    except (RecursionError, MemoryError):
        raise CheckError("the certificate is too large") from None


def _check(record: dict[str, Any]) -> Checked:
    named = record["kind"] == "layout" and repr(record["version"]) in _OBJECTIVES
    require(set(record) == _KEYS and named, "it has other parts than it should")
    require(digest(record) == record["digest"], "it was changed after it was written")
    problem = _problem(record)
    cost, chunks = _check_addresses(problem, record), _chunks(problem)
    least = [[_least(problem, g, chunks) for g in a.groups] for a in problem.accesses]
    bound = problem.cost([*map(sum, least)])
    require(str(bound) == record["bound"], f"the bound is {bound}")
    what = _OBJECTIVES[str(record["version"])][record["objective"]]  # times weights
    shown = [f"the layout costs {cost} ({what})", f"no layout whatever costs less than {bound}"]
    claimed, klass, proof = fraction(record["least"]), record["class"], record["proof"]
    if claimed > bound:
        match proof["by"], klass:
            case "members", "none" | "pad" | "swizzle" | "tma" | "wgmma":
                _check_members(problem, claimed, klass, proof["members"])
            case "cases", "xor":
                _Cases(problem, least, claimed, proof).visit(proof["cases"])
            case "counting", "any":
                _check_counting(problem, least, claimed, proof["count"])
            case _:
                return Checked(tuple(shown), f"whether anything costs less than {claimed}")
        some = klass if problem.waste else f"{klass} without unused places"
        shown.append(f"no layout of the class {some} costs less than {claimed}")
    known = cost <= max(bound, claimed)
    return Checked(tuple(shown), "" if known else f"whether {cost} is the least")


def _check_addresses(problem: _Problem, record: dict[str, Any]) -> Fraction:
    require(record["addresses"] is not None, "it has no layout")
    addresses = whole_numbers(record["addresses"])
    require(len(addresses) == problem.size and addresses.min() >= 0, "addresses are missing")
    require(len(np.unique(addresses)) == problem.size, "two elements have one address")
    require(not _unfit(problem, addresses), "a vector is torn, or places are wasted")
    counts = _counts(problem, addresses)
    cost = problem.cost(counts)
    require(repr(counts) == repr(record["wavefronts"]), f"the wavefronts are {counts}")
    require(str(cost) == record["cost"], f"the cost is {cost}")
    require(_is_of_class(problem, addresses, record["class"]), "the layout is not of its class")
    return cost


def _is_of_class(problem: _Problem, addresses: Numbers, klass: str) -> bool:
    """Whether the layout is what its class says; `mixed` and `any` may be anything."""
    numbers, first = np.arange(problem.size), addresses[0]
    if klass == "xor":
        columns = [int(a ^ first) for a in addresses[1 << np.arange(bits_of(problem.size))]]
        return bool((sums_of(columns, numbers) ^ first == addresses).all())
    found = (
        mapped(problem.tile, klass, member, numbers) for member in members(problem.tile, klass)
    )
    return klass in ("mixed", "any") or any((each == addresses).all() for each in found)


def alignment_of(record: dict[str, Any]) -> int:
    """The bytes of which the first of a tile has to be a multiple, in a certificate that holds.

    A tile that begins at another word has the same wavefronts, as all its banks are others alike.
    Tensor copies and wgmma swizzle by the address itself: the pattern repeats after eight rows of
    the swizzle. Without one, a copy writes from a multiple of 128 bytes on, and wgmma reads from
    one of 16."""
    if record["class"] not in ("tma", "wgmma"):
        return WORD
    tile, addresses = _problem(record).tile, whole_numbers(record["addresses"])
    numbers = np.arange(tile.size)
    spans = [
        member[-1] if member else 0
        for member in members(tile, record["class"])
        if (mapped(tile, record["class"], member, numbers) == addresses).all()
    ]
    plain = _FROM_COPIES if tile.copied or record["class"] == "tma" else _FROM_DESCRIPTORS
    return min(max(_ATOM_ROWS * span, plain) for span in spans)


def _counts(problem: _Problem, addresses: Numbers) -> list[int]:
    """The wavefronts of each access over all of its steps."""
    return [sum(_wavefronts(problem, addresses[g]) for g in a.groups) for a in problem.accesses]


def _wavefronts(problem: _Problem, addresses: Numbers) -> int:
    each = range(max(1, problem.element_bytes // 4))
    words = np.unique([problem.bytes_of(a) // 4 + i for a in addresses.tolist() for i in each])
    return int(np.bincount(words % problem.banks).max())


def _problem(record: dict[str, Any]) -> _Problem:
    given = record["problem"]
    serving = serving_of(given["machine"])
    lanes, banks = serving.lanes, serving.banks
    size, element_bytes = math.prod(given["shape"]), given["element_bytes"]
    require(bool(whole_numbers(given["shape"]).min() >= 1), "there is no such tensor")
    require(repr(element_bytes) in ("1", "2", "4", "8", "16"), f"elements of {element_bytes!r}")
    require(record["objective"] in _OBJECTIVES[str(record["version"])], "no such objective")
    require(type(record["waste"]) is bool and record["class"] in _CLASSES, "no such question")
    klass, packed = record["class"], given.get("packed", 1)
    halves = repr(packed) == "2" and element_bytes == 1 and klass not in ("tma", "wgmma")
    require(halves or repr(packed) == "1", "there are no such elements")
    copied = serving.tensor_copies and klass in ("tma", "wgmma")
    require(copied or given["copies"] == [], "no copy writes this class")
    operands = tuple((rows, major == "k") for _, rows, major in given.get("operands", []))
    require(bool(operands) == (klass == "wgmma"), "only the class wgmma is of operands")
    require(all(type(rows) is int and rows > 0 for rows, _ in operands), "an operand has rows")
    accesses = []
    for each in given["accesses"]:
        name, elements = each["name"], whole_numbers(each["elements"])
        require(elements.ndim == 3 and elements.max() < size, f"{name}: elements outside")
        whole = (elements == -1).all(axis=2) | (elements >= 0).all(axis=2)
        require(bool(whole.all()) and elements.shape[1] <= lanes, f"{name}: no such lanes")
        width = elements.shape[2] * element_bytes // packed
        require(elements.shape[2] % packed == 0, f"{name}: vectors have whole bytes")
        asked = served(serving, each["kind"], width)
        groups = [group for step in elements for group in groups_of(step, *asked, lanes)]
        vectors = elements[elements[:, :, 0] >= 0]
        weight = fraction(each["weight"]) / (len(elements) if record["version"] == 1 else 1)
        accesses.append(_Access(name, weight, elements, vectors, groups))
    require(bool(accesses) and all(a.weight >= 0 for a in accesses), "a weight is negative")
    weighed = record["objective"] == "worst", bool(record["waste"])
    copies = given["copies"] != []
    tile = Tile(size, given["shape"][-1], element_bytes, banks, operands, copies, packed)
    return _Problem(tile, accesses, *weighed)


def _chunks(problem: _Problem) -> dict[int, tuple[int, int, int]]:
    """For each element of a vector: the longest vector's first element, its length, the place."""
    found: dict[int, tuple[int, int, int]] = {}
    for access in sorted(problem.accesses, key=lambda a: -a.elements.shape[2]):
        width = access.elements.shape[2]
        for vector in np.unique(access.vectors, axis=0).tolist() if width > 1 else ():
            for place, element in enumerate(vector):
                found.setdefault(element, (vector[0], width, place))
    return found


def _least(problem: _Problem, group: Numbers, chunks: dict[int, tuple[int, int, int]]) -> int:
    """What a group takes in every layout. Words of chunks that are kept whole are known, and so is
    their bank modulo the words of a chunk; other elements may at best fill words together."""
    size, words, loose = problem.element_bytes, set[tuple[int, int, int]](), 0
    for element in group.tolist():
        first, length, place = chunks.get(element, (element, 1, 0))
        long = problem.bytes_of(length)
        if long < 4:
            loose += 1
        for i in range(max(1, size // 4)) if long >= 4 else ():
            words.add((first, long // 4, problem.bytes_of(place) // 4 + i))
    alone = -(-loose * size // (4 * problem.tile.packed))  # words that they fill
    least = max(1, -(-(len(words) + alone) // problem.banks))
    for modulus in (2, 4, 8):
        fullest = Counter(place % modulus for _, length, place in words if length >= modulus)
        least = max(least, -(-max(fullest.values(), default=0) // (problem.banks // modulus)))
    return least


def _check_members(problem: _Problem, claimed: Fraction, klass: str, given: list[Any]) -> None:
    """Every member of the family is there, and each costs as much as is said, or does not fit."""
    whole = [m for m, _ in given] == list(members(problem.tile, klass))
    require(whole, f"these are not all members of the class {klass}")
    for member, counts in given:
        addresses = mapped(problem.tile, klass, member, np.arange(problem.size))
        found = None if _unfit(problem, addresses) else _counts(problem, addresses)
        require(found == counts, f"{member} takes {found}")
        require(found is None or problem.cost(found) >= claimed, f"{member} costs less")


def _unfit(problem: _Problem, addresses: Numbers) -> bool:
    wasted = not problem.waste and bool(addresses.max() >= problem.size)
    moved = ((addresses[a.vectors], a.elements.shape[2]) for a in problem.accesses)
    return wasted or any(
        (v != v[:, :1] + np.arange(w)).any() or (v[:, 0] % w).any() for v, w in moved
    )


def _check_counting(problem: _Problem, least: Least, claimed: Fraction, count: int) -> None:
    """Vectors are whole, so chunks of equally many words lie in as many banks each, side by side.
    Some of these have `count` chunks if there are more than so many each; but any so many there are
    more than some group allows of one place in them. Not meeting the bound costs one wavefront more
    in some group that has a weight, and in all that want the same words."""
    size, chunks = problem.element_bytes, _chunks(problem)
    known = [chunks.get(element, (element, 1, 0)) for element in range(problem.size)]
    width = problem.bytes_of(known[0][1]) // 4
    require(width > 0 and len({length for _, length, _ in known}) == 1, "chunks are not alike")
    number = {first: i for i, first in enumerate(dict.fromkeys(first for first, _, _ in known))}
    full = type(count) is int and len(number) > problem.banks // width * (count - 1) >= 0
    require(full, "the words have room")
    costs: dict[tuple[frozenset[tuple[int, int]], int], Fraction] = {}
    for access, floors in zip(problem.accesses, least, strict=True):
        for group, floor in zip(access.groups, floors, strict=True) if access.weight else ():
            key = frozenset((number[known[e][0]], problem.bytes_of(known[e][2]) // 4 + i)
                            for e in group for i in range(max(1, size // 4))), floor  # fmt: skip
            costs[key] = costs.get(key, Fraction(0)) + access.weight
    limits = [(frozenset(chunk for chunk, at in words if at == place), floor)
              for words, floor in costs for place in range(width)]  # fmt: skip
    some = room_for(limits, len(number), count, [], Work(_MOST_TRIED))
    require(some is None, f"{some} of {len(number)} chunks of words have room in the same banks")
    bound, more = problem.cost([*map(sum, least)]), min(costs.values())
    require(not problem.worst and claimed <= bound + more, "it claims more than it shows")


class _Cases:
    """All linear layouts: element e lies at L(e) ^ c, L a bijective matrix over F2.

    A column is the bank, in bits, of one vector of a basis: first the directions of vectors, whose
    banks are their places, then `basis`. Wavefronts depend only on which sums of vectors have bank
    0, not on the names of banks: adding bank bits to one another changes nothing, as long as places
    stay. So the part of a column above the places may be taken to be the next unused bank bit or a
    sum of used ones. A place bit j of a difference of first elements of vectors longer than 2^j is
    0. Words of one bank differ but for what shares a word: `loose` bits where no vector says what.
    """

    def __init__(self, problem: _Problem, least: Least, claimed: Fraction, proof: Any) -> None:
        self._problem, self._claimed, self._proof = problem, claimed, proof
        self._work = Work(_MOST_COUNTED)
        size, bits = problem.element_bytes, bits_of(problem.size)
        inside = bits_of(max(1, 4 * problem.tile.packed // size))
        vector = max(problem.accesses, key=lambda a: a.elements.shape[2]).vectors[0]
        directions = (vector[1 << np.arange(bits_of(len(vector)))] ^ vector[0]).tolist()
        for access in problem.accesses:
            apart, sums = access.vectors ^ access.vectors[:, :1], span_of(directions)
            require(bool((apart == sums[: apart.shape[1]]).all()), "vectors differ in direction")
        self._bank_bits = bits_of(problem.banks) - bits_of(max(1, size // 4))
        self._places = max(0, len(directions) - inside)
        self._loose = max(0, inside - len(directions))
        self._apart = []  # differences of first elements of vectors with more than 2^j
        for j in range(inside, len(directions)):
            wide = [a.vectors[:, 0] for a in problem.accesses if a.elements.shape[2] > 1 << j]
            self._apart.append((np.unique(np.concatenate(wide)) ^ wide[0][0]).tolist())
        basis = [*directions, *proof["basis"]]
        self._total = bits - min(inside, len(directions))
        into = np.argsort(span_of(basis))  # from elements to coordinates
        # A sum that is no element would make another number of each, and of directions, too.
        require(all(0 < each < problem.size for each in basis), "a basis of no elements")
        require(len(basis) == bits == rank_of(basis), "this is no basis")
        self._shapes = [Counter[tuple[int, ...]]() for _ in least]  # points of a group, its least
        for shapes, access, floors in zip(self._shapes, problem.accesses, least, strict=True):
            for group, floor in zip(access.groups, floors, strict=True):
                points = np.unique(into[group] >> min(inside, len(directions)))
                shapes[(*np.sort(points ^ points[0]).tolist(), floor)] += 1

    def visit(self, case: Any, more: tuple[int, ...] = ()) -> None:
        columns = [1 << place for place in range(self._places)] + [*more]
        if isinstance(case, list):
            found = self._cost(columns, case)
            require(found >= self._claimed, f"columns {columns}: {case} cost only {found}")
            return
        require(len(columns) < self._total, "a case goes on when all is decided")
        require({int(key) for key in case} == self._menu(columns), f"after {columns} cases lack")
        for column, inner in case.items():
            self.visit(inner, (*more, int(column)))

    def _menu(self, columns: list[int]) -> set[int]:
        vector = self._proof["basis"][len(columns) - self._places]
        used = int(np.bitwise_or.reduce([0, *columns])) >> self._places
        highs = set(range(1 << used.bit_length()))
        if used.bit_length() < self._bank_bits - self._places:
            highs.add(1 << used.bit_length())
        free = [1 << j for j, z in enumerate(self._apart) if rank_of([*z, vector]) > rank_of(z)]
        return {high << self._places | int(low) for high in highs for low in span_of(free)}

    def _cost(self, columns: list[int], named: list[int]) -> Fraction:
        """What all layouts with these columns cost at least, by the accesses that are named."""
        shares, whole = [span_of([])], len(columns) == self._total
        if whole and self._loose:
            kernel = np.flatnonzero(sums_of(columns, np.arange(1 << self._total)) == 0).tolist()
            require(len(kernel) <= _MOST_SHARED, "too many words to share")
            count = min(self._loose, len(kernel).bit_length() - 1)
            some = [list(few) for few in combinations(kernel[1:], count)]
            shares = [span_of(few) for few in some if rank_of(few) == count]
        left, known = 0 if whole else self._loose, set(named)
        return min(self._counted(columns, known, share, left) for share in shares)

    def _counted(self, columns: list[int], named: set[int], share: Numbers, loose: int) -> Fraction:
        counts = [0] * len(self._shapes)
        for number, shapes in enumerate(self._shapes):
            self._work.take(len(shapes))
            for (*points, floor), count in shapes.items():
                if number in named:
                    words = np.unique((np.array(points)[:, None] ^ share).min(axis=1))
                    known = words & (1 << len(columns)) - 1
                    together = (words >> len(columns) << 16) | sums_of(columns, known)
                    most = int(np.unique(together, return_counts=True)[1].max())
                    floor = max(floor, -(-most // (1 << loose)))
                counts[number] += count * floor
        return self._problem.cost(counts)
