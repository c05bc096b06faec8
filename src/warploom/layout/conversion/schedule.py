"""Schedules of shuffles with the fewest rounds.

Linear conversions get a linear schedule, whose choices by lane are cheap: of the pairs (lane,
register) of a warp, those of one round are a coset of a subspace that meets the registers of either
side only in zero, and lies within what stays in its lane if that can be (two subspaces always have
a common complement). Others are edges of a bipartite graph from senders to receivers: as many
colours as the largest degree are enough (König). Elements that several lanes hold or want are
searched.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warploom.layout.conversion.parcels import Parcel, parcels_as_held, sent_apart
from warploom.layout.conversion.shuffle import NOBODY, Bound, Shuffles, Wants, bound_of
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.facts import as_matrix
from warploom.layout.patterns.access import IDLE
from warploom.layout.solver.subspace import Span


def schedule(wants: Wants) -> Shuffles:
    """The fewest rounds that are found, with the bound below which there are none."""
    bound = bound_of(wants)
    found = []
    if wants.parts == 1:
        found += [plan for plan in (_linear(wants, bound), *_rotated(wants, bound)) if plan]
    if not any(plan.rounds == bound.rounds for plan in found):
        found.append(_sent(wants, bound))
    return min(found, key=lambda plan: (plan.rounds, plan.selects))


# -- linear ----------------------------------------------------------------------------------------


def _linear(wants: Wants, bound: Bound) -> Shuffles | None:
    """Both sides linear, each element once: see the head of this file. Pairs (lane, register) are
    numbers, the lane in the lowest bits."""
    count = wants.held.shape[1]
    if wants.wanted.shape[1] != count or count & (count - 1):
        return None
    held, wanted = wants.held.T.ravel(), wants.wanted.T.ravel()
    place = {element: number for number, element in enumerate(held.tolist())}
    if len(place) != len(held) or set(place) != set(wanted.tolist()) or IDLE in place:
        return None
    origin = np.array([place[element] for element in wanted.tolist()], dtype=np.int64)
    matrix = as_matrix(origin)
    if matrix is None:
        return None
    columns = matrix.columns
    bits = len(columns)
    below, lane_bits = wants.lanes - 1, wants.lanes.bit_length() - 1
    registers = [1 << bit for bit in range(lane_bits, bits)]
    sent = _kernel([column & below for column in columns])
    stays = _kernel([column & below ^ ((1 << bit) & below) for bit, column in enumerate(columns)])
    at_home = origin & below == np.arange(len(origin)) & below
    everywhere = np.unique((np.arange(len(origin)) & below)[at_home]).size == wants.lanes
    inside = stays if everywhere else [1 << bit for bit in range(bits)]
    lanes_first = sorted(inside, key=lambda vector: vector >> lane_bits)
    basis = _common_complement(_meet(registers, inside), _meet(sent, inside), lanes_first)
    return _from_rounds(basis, origin, wants.lanes, bound)


def _from_rounds(basis: Sequence[int], origin: Numbers, size: int, bound: Bound) -> Shuffles:
    """The plan whose rounds are cosets of a subspace: round n has the pair (lane 0, register n)."""
    below, lane_bits, count = size - 1, size.bit_length() - 1, len(origin) // size
    members = np.zeros(1, dtype=np.int64)
    for vector in basis:
        members = np.concatenate([members, members ^ vector])
    rotation = np.empty(size, dtype=np.int64)
    rotation[members & below] = members >> lane_bits
    slots, lanes = np.arange(count)[:, None], np.arange(size)
    origins = origin[(slots ^ rotation) << lane_bits | lanes]  # [slot, receiver]
    sources = origins & below
    offers = np.empty((count, size), dtype=np.int64)
    np.put_along_axis(offers, sources, origins >> lane_bits, axis=1)
    return Shuffles(offers[:, None], sources, slots ^ rotation, bound)


def _kernel(images: Sequence[int]) -> list[int]:
    """The combinations of bits whose images cancel."""
    found, span = [], dict[int, tuple[int, int]]()
    for bit, image in enumerate(images):
        vector = 1 << bit
        while image and image.bit_length() in span:
            other, mixed = span[image.bit_length()]
            image, vector = image ^ other, vector ^ mixed
        if image:
            span[image.bit_length()] = (image, vector)
        else:
            found.append(vector)
    return found


def _meet(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """What two subspaces have in common."""
    both = [*left, *right]
    found = Span()
    for combination in _kernel(both):
        vector = 0
        for place, each in enumerate(left):
            vector ^= each if combination >> place & 1 else 0
        found.add(vector)
    return found.basis


def _common_complement(one: Sequence[int], two: Sequence[int], whole: Sequence[int]) -> list[int]:
    """A subspace of `whole` that together with either subspace, both of one dimension, is all; of
    what is in neither, the first vectors of `whole`."""
    common = _meet(one, two)
    pairs = zip(_rest(common, one), _rest(common, two), strict=True)
    found = [a ^ b for a, b in pairs]
    return found + _rest([*one, *two], whole)


def _rest(known: Sequence[int], more: Sequence[int]) -> list[int]:
    span = Span(known)
    return [vector for vector in more if span.add(vector)]


# -- rotated ---------------------------------------------------------------------------------------


def _rotated(wants: Wants, bound: Bound) -> list[Shuffles]:
    """Register r of each lane comes in round r, or in that turned by a multiple of the lane or of
    its upper bits: cheap choices, where it goes up."""
    count = wants.wanted.shape[1]
    held = wants.held.ravel()
    if (wants.wanted == IDLE).any() or np.unique(held).size != held.size or IDLE in held:
        return []
    size = int(max(held.max(), wants.wanted.max())) + 1
    where = np.full(size, -1)
    where[held] = np.arange(held.size)
    origin = where[wants.wanted.T]  # [register, lane] → lane · registers + register
    if (origin < 0).any():
        return []
    lanes, registers = np.arange(wants.lanes), np.arange(count)[:, None]
    found = []
    shifts = range(wants.lanes.bit_length() - 1)
    rotations = {tuple(step * (lanes >> bit) % count) for step in range(count) for bit in shifts}
    for rotation in sorted(rotations):
        placed = (registers + np.array(rotation)) % count
        taken = np.empty_like(origin)
        np.put_along_axis(taken, placed, origin, axis=0)
        sources, offered = taken // wants.held.shape[1], taken % wants.held.shape[1]
        if (np.sort(sources, axis=1) != lanes).any():
            continue
        offers = np.empty_like(offered)
        np.put_along_axis(offers, sources, offered, axis=1)
        found.append(Shuffles(offers[:, None], sources, placed, bound))
    return found


# -- any -------------------------------------------------------------------------------------------


def _sent(wants: Wants, bound: Bound) -> Shuffles:
    """Words as they lie or packed for each receiver, whichever takes fewer rounds."""
    best = parcels_as_held(wants, bound)
    if wants.parts > 1 and best.count > bound.rounds:
        best = min(best, sent_apart(wants), key=lambda each: each.count)
    # Words as they lie are all that there is to send only where a word is one element.
    exhausted = best.exhausted and wants.parts == 1
    return _plan(wants, best.parcels, best.rounds, best.count, bound, exhausted)


def _plan(
    wants: Wants,
    parcels: Sequence[Parcel],
    rounds: Sequence[dict[int, int]],
    count: int,
    bound: Bound,
    exhausted: bool,
) -> Shuffles:
    """The tables of a schedule: `rounds[n]` says which parcel each receiver takes. What a lane
    holds itself is put where it is wanted by slots that stay."""
    parts, registers = wants.parts, wants.wanted.shape[1]
    where = [
        {element: r for r, element in reversed(list(enumerate(row))) if element != IDLE}
        for row in wants.held.tolist()
    ]
    lanes = np.arange(wants.lanes)
    nobody = np.full((parts, wants.lanes), NOBODY)
    offers = [nobody.copy() for _ in range(count)]
    sources = [lanes.copy() for _ in range(count)]
    got: list[dict[int, int]] = [{} for _ in lanes]
    for number, taken in enumerate(rounds):
        for receiver, at in taken.items():
            parcel = parcels[at]
            sources[number][receiver] = parcel.sender
            for part, element in enumerate(parcel.elements):
                if element != IDLE:
                    offers[number][part, parcel.sender] = where[parcel.sender][element]
                    got[receiver].setdefault(element, number * parts + part)
    placed = np.full((registers, wants.lanes), NOBODY)
    for register in range(registers):
        own = nobody.copy()
        for lane in range(wants.lanes):
            element = int(wants.wanted[lane, register])
            if element in where[lane]:
                own[register % parts, lane] = where[lane][element]
                placed[register, lane] = len(offers) * parts + register % parts
            elif element != IDLE:
                placed[register, lane] = got[lane][element]
        if (own != NOBODY).any():
            offers.append(own)
            sources.append(lanes.copy())
    if not offers:  # nothing is wanted at all
        offers.append(nobody)
        sources.append(lanes.copy())
    return Shuffles(np.stack(offers), np.stack(sources), placed, bound, exhausted)
