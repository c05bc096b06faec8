"""Checks a certificate about a layout by itself: nothing of the solver is used, nor of its rules.
Which lanes a machine serves together is in its record, or in the certificate if it is a user's own.

What is checked: the layout's addresses are different, keep vectors whole and take the wavefronts
that are said; the bound holds for every layout; and, where it is not met, nothing of its class
costs less than is said. The argument for each stands where it is checked.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.trust.cases import Cases, Least
from warploom.trust.checked import (
    Checked,
    TooMuchError,
    Work,
    bits_of,
    digest,
    fraction,
    require,
    room_for,
    sums_of,
    whole_numbers,
)
from warploom.trust.family import mapped, members
from warploom.trust.problem import OBJECTIVES, Problem, counts_of, problem_of
from warploom.trust.serving import WORD

Numbers = npt.NDArray[np.int64]

_KEYS = {"kind", "version", "problem", "objective", "waste", "class", "bound", "least", "cost",
         "layout", "addresses", "wavefronts", "proof", "digest"}  # fmt: skip
_ATOM_ROWS = 8  # after which the swizzle of a tensor copy, and of wgmma, repeats
_FROM_COPIES, _FROM_DESCRIPTORS = 128, 16  # bytes: where they begin without a swizzle
_MOST_TRIED = 1 << 18  # sets of chunks; the argument by counting is written where fewer do
_MOST_PLACES = 1 << 40  # an address


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
    named = record["kind"] == "layout" and repr(record["version"]) in OBJECTIVES
    require(set(record) == _KEYS and named, "it has other parts than it should")
    require(digest(record) == record["digest"], "it was changed after it was written")
    problem = problem_of(record)
    cost, chunks = _check_addresses(problem, record), _chunks(problem)
    least = [[_least(problem, g, chunks) for g in a.groups] for a in problem.accesses]
    bound = problem.cost([*map(sum, least)])
    require(str(bound) == record["bound"], f"the bound is {bound}")
    what = OBJECTIVES[str(record["version"])][record["objective"]]  # times weights
    shown = [f"the layout costs {cost} ({what})", f"no layout whatever costs less than {bound}"]
    claimed, klass, proof = fraction(record["least"]), record["class"], record["proof"]
    if claimed > bound:
        match proof["by"], klass:
            case "members", "none" | "pad" | "swizzle" | "tma" | "wgmma":
                _check_members(problem, claimed, klass, proof["members"])
            case "cases", "xor":
                Cases(problem, least, claimed, proof).visit(proof["cases"])
            case "counting", "any":
                _check_counting(problem, least, claimed, proof["count"])
            case _:
                return Checked(tuple(shown), f"whether anything costs less than {claimed}")
        some = klass if problem.waste else f"{klass} without unused places"
        shown.append(f"no layout of the class {some} costs less than {claimed}")
    known = cost <= max(bound, claimed)
    return Checked(tuple(shown), "" if known else f"whether {cost} is the least")


def _check_addresses(problem: Problem, record: dict[str, Any]) -> Fraction:
    require(record["addresses"] is not None, "it has no layout")
    addresses = whole_numbers(record["addresses"])
    require(len(addresses) == problem.size and addresses.min() >= 0, "addresses are missing")
    require(int(addresses.max()) < _MOST_PLACES, "an address is too large")
    require(len(np.unique(addresses)) == problem.size, "two elements have one address")
    require(not _unfit(problem, addresses), "a vector is torn, or places are wasted")
    counts = counts_of(problem, addresses)
    cost = problem.cost(counts)
    require(repr(counts) == repr(record["wavefronts"]), f"the wavefronts are {counts}")
    require(str(cost) == record["cost"], f"the cost is {cost}")
    require(_is_of_class(problem, addresses, record["class"]), "the layout is not of its class")
    return cost


def _is_of_class(problem: Problem, addresses: Numbers, klass: str) -> bool:
    """Whether the layout is what its class says; `mixed` and `any` may be anything."""
    numbers, first = np.arange(problem.size), addresses[0]
    if klass == "xor":
        columns = [int(a ^ first) for a in addresses[1 << np.arange(bits_of(problem.size))]]
        return bool((sums_of(columns, numbers) ^ first == addresses).all())
    if klass in ("mixed", "any"):
        return True
    for member in members(problem.tile, klass):
        problem.work.take(problem.size)
        if (mapped(problem.tile, klass, member, numbers) == addresses).all():
            return True
    return False


def alignment_of(record: dict[str, Any]) -> int:
    """The bytes of which the first of a tile has to be a multiple, in a certificate that holds.

    A tile that begins at another word has the same wavefronts, as all its banks are others alike.
    Tensor copies and wgmma swizzle by the address itself: the pattern repeats after eight rows of
    the swizzle. Without one, a copy writes from a multiple of 128 bytes on, and wgmma reads from
    one of 16."""
    if record["class"] not in ("tma", "wgmma"):
        return WORD
    tile, addresses = problem_of(record).tile, whole_numbers(record["addresses"])
    numbers = np.arange(tile.size)
    spans = [
        member[-1] if member else 0
        for member in members(tile, record["class"])
        if (mapped(tile, record["class"], member, numbers) == addresses).all()
    ]
    plain = _FROM_COPIES if tile.copied or record["class"] == "tma" else _FROM_DESCRIPTORS
    return min(max(_ATOM_ROWS * span, plain) for span in spans)


def _chunks(problem: Problem) -> dict[int, tuple[int, int, int]]:
    """For each element of a vector: the longest vector's first element, its length, the place."""
    found: dict[int, tuple[int, int, int]] = {}
    for access in sorted(problem.accesses, key=lambda a: -a.elements.shape[2]):
        width = access.elements.shape[2]
        for vector in np.unique(access.vectors, axis=0).tolist() if width > 1 else ():
            for place, element in enumerate(vector):
                found.setdefault(element, (vector[0], width, place))
    return found


def _least(problem: Problem, group: Numbers, chunks: dict[int, tuple[int, int, int]]) -> int:
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


def _check_members(problem: Problem, claimed: Fraction, klass: str, given: list[Any]) -> None:
    """Every member of the family is there, and each costs as much as is said, or does not fit."""
    problem.work.take(len(given) * problem.size)
    whole = [m for m, _ in given] == list(islice(members(problem.tile, klass), len(given) + 1))
    require(whole, f"these are not all members of the class {klass}")
    for member, counts in given:
        addresses = mapped(problem.tile, klass, member, np.arange(problem.size))
        found = None if _unfit(problem, addresses) else counts_of(problem, addresses)
        require(found == counts, f"{member} takes {found}")
        require(found is None or problem.cost(found) >= claimed, f"{member} costs less")


def _unfit(problem: Problem, addresses: Numbers) -> bool:
    wasted = not problem.waste and bool(addresses.max() >= problem.size)
    moved = ((addresses[a.vectors], a.elements.shape[2]) for a in problem.accesses)
    return wasted or any(
        (v != v[:, :1] + np.arange(w)).any() or (v[:, 0] % w).any() for v, w in moved
    )


def _check_counting(problem: Problem, least: Least, claimed: Fraction, count: int) -> None:
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
