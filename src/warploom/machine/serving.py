"""Which lanes of a request to shared memory are served together, and what a request costs.

Shared memory lies in banks, a word wide. A request of one warp is cut into groups of lanes; a
group costs as many wavefronts as different words are wanted of its fullest bank, and lanes that
want the same word share it. The lanes of a group are a coset of a subspace of lane numbers: lane
`l` goes with `l ^ v` for every `v` that the group's basis spans. That is often a run of
consecutive lanes, but not always.

How each machine does it is in its record: measured on an H200 (tests/machine/h200_banks.txt), from
published measurements of AMD's machines, or assumed, as each group says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from warploom.errors import UnsupportedError

RequestKind: TypeAlias = Literal["ld", "st", "ldmatrix", "stmatrix"]
KINDS: tuple[RequestKind, ...] = get_args(RequestKind)
Known: TypeAlias = Literal["measured", "published", "assumed"]

Addresses: TypeAlias = npt.NDArray[np.int64]
Active: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]

# The lanes whose agreement lets wide loads be served in double groups: all lanes i and i^1, or all
# lanes i and i^2, ask for the same address or one of them for none.
PARTNERS = (1, 2)
_NARROW = (1 << 31) - 1  # the highest word that 32 bits hold


@dataclass(frozen=True, slots=True)
class Group:
    """`basis` spans the lanes that are served with lane 0; where lanes ask in equal pairs, `paired`
    joins it (0: such requests are served like others)."""

    basis: tuple[int, ...]
    paired: int = 0
    known: Known = "measured"

    def when_paired(self) -> Group:
        return Group((*self.basis, self.paired), 0, self.known)


@dataclass(frozen=True, slots=True)
class Serving:
    """How one machine serves its shared memory: a group for each kind and width in bytes.

    `tensor_copies`: whole tiles are copied there (TMA); `reverses_bits`: one instruction does."""

    name: str
    lanes: int
    banks: int
    groups: Mapping[tuple[RequestKind, int], Group]
    word_bytes: int = 4
    tensor_copies: bool = False
    reverses_bits: bool = False

    @property
    def has_matrices(self) -> bool:
        return any(kind == "ldmatrix" for kind, _ in self.groups)

    def group(self, kind: RequestKind, width: int) -> Group:
        if (kind, width) in self.groups:
            return self.groups[kind, width]
        widths = [str(w) for k, w in self.groups if k == kind]
        there = f"{kind} is known for {', '.join(widths)} bytes" if widths else ""
        raise UnsupportedError(
            f"nothing is known of how {self.name} serves {kind} of {width} bytes for each lane",
            advice=there or f"it serves {', '.join(dict.fromkeys(k for k, _ in self.groups))}",
        )


@dataclass(frozen=True, slots=True)
class Served:
    """For each request its wavefronts, and those that it would take without conflicts."""

    wavefronts: Counts
    ideal: Counts


def serve(
    serving: Serving,
    addresses: Addresses,
    width: int,
    kind: RequestKind,
    active: Active | None = None,
) -> Served:
    """What requests cost; `addresses` are bytes, one row per request, one column per lane.

    Lanes that are not given are idle. Of ldmatrix and stmatrix the addresses are those of rows.

    >>> from warploom.machine.record import CUDA
    >>> lanes = np.arange(32)[None]
    >>> [serve(CUDA.serving, lanes * stride, 16, "ld").wavefronts.item() for stride in (16, 32, 0)]
    [4, 8, 2]
    """
    group = serving.group(kind, width)
    if active is None:
        active = np.ones(addresses.shape, bool)
    wavefronts = np.zeros(len(addresses), np.int64)
    ideal = np.zeros(len(addresses), np.int64)
    paired = asked_in_pairs(addresses, active) if group.paired else np.zeros(len(addresses), bool)
    for rows, used in ((~paired, group), (paired, group.when_paired())):
        if rows.any():
            words, wanted = _grouped(serving, used, addresses[rows], width, active[rows])
            shape = (int(rows.sum()), -1)
            wavefronts[rows] = passes(words, wanted, serving.banks).reshape(shape).sum(axis=1)
            ideal[rows] = wanted.any(axis=1).reshape(shape).sum(axis=1)
    return Served(wavefronts, ideal)


def cosets(basis: tuple[int, ...], lanes: int) -> npt.NDArray[np.int64]:
    """The cosets of a subspace of lane numbers, one in each row, the first lane first."""
    return _cosets(basis, lanes).copy()


@lru_cache(maxsize=64)
def _cosets(basis: tuple[int, ...], lanes: int) -> npt.NDArray[np.int64]:
    span = np.zeros(1, np.int64)
    for vector in basis:
        span = np.concatenate([span, span ^ vector])
    lane = np.arange(lanes)
    first = (lane[:, None] ^ span).min(axis=1) == lane
    rows: npt.NDArray[np.int64] = lane[first][:, None] ^ np.sort(span)
    return rows


def passes(words: Addresses, wanted: Active, banks: int) -> Counts:
    """For each row the largest number of different wanted words that lie in one bank."""
    narrow = not words.size or int(words.max()) <= _NARROW  # half as wide sorts much faster
    kind: type[np.signedinteger[Any]] = np.int32 if narrow else np.int64
    ordered = np.where(wanted, words, -1).astype(kind)
    ordered.sort(axis=1)
    new = np.empty(ordered.shape, bool)
    new[:, :1] = ordered[:, :1] >= 0
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    bank = ordered & (banks - 1) if not banks & (banks - 1) else ordered % banks
    place = bank + np.arange(0, len(words) * banks, banks)[:, None]
    counts = np.bincount(place[new], minlength=len(words) * banks)
    fullest: Counts = counts.reshape(len(words), banks).max(axis=1)
    return fullest


def asked_in_pairs(addresses: Addresses, active: Active) -> Active:
    """Which requests ask in equal pairs of lanes, by one of PARTNERS for all of their lanes."""
    lane = np.arange(addresses.shape[1])
    found = np.zeros(len(addresses), bool)
    for partner in PARTNERS:
        inside = lane[(lane ^ partner) < len(lane)]
        other = inside ^ partner
        differs = addresses[:, inside] != addresses[:, other]
        found |= ~(differs & active[:, inside] & active[:, other]).any(axis=1)
    return found


def _grouped(
    serving: Serving, group: Group, addresses: Addresses, width: int, active: Active
) -> tuple[Addresses, Active]:
    """The words that each group wants, one row for each group of each request."""
    requests, given = addresses.shape
    padded = np.zeros((requests, serving.lanes), np.int64)
    used = np.zeros((requests, serving.lanes), bool)
    padded[:, :given], used[:, :given] = addresses, active
    members = _cosets(group.basis, serving.lanes)
    count = max(1, width // serving.word_bytes)
    first = padded[:, members].reshape(-1, members.shape[1], 1) // serving.word_bytes
    words = (first + np.arange(count)).reshape(len(first), -1)
    return words, np.repeat(used[:, members].reshape(len(first), -1), count, axis=1)
