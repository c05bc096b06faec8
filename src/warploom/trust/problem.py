"""The problem of a certificate about a layout, as its checker reads it: which elements are wanted
together, and what addresses cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import Work, fraction, require, whole_numbers
from warploom.trust.family import Tile
from warploom.trust.serving import groups_of, served, serving_of

Numbers = npt.NDArray[np.int64]
Count = TypeVar("Count", int, Numbers)

OBJECTIVES = {"1": {"sum": "wavefronts per request, added up", "worst": "the most per request"},
              "2": {"total": "all wavefronts", "worst": "the most of an access"}}  # fmt: skip
_CLASSES = ("none", "pad", "swizzle", "xor", "mixed", "any", "tma", "wgmma")
_MOST_NUMBERS = 1 << 27  # numbers that are computed: some seconds
_MOST_OF_WEIGHTS = 10**300  # their numerators and denominators


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    name: str
    weight: Fraction  # what one wavefront costs
    elements: Numbers
    vectors: Numbers  # of lanes that are not idle
    groups: list[Numbers]  # elements wanted together
    together: Numbers  # the same, one after another
    group: Numbers  # the number of the group of each


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    tile: Tile
    accesses: list[Access]
    worst: bool
    waste: bool
    work: Work

    @property
    def size(self) -> int:
        return self.tile.size

    @property
    def element_bytes(self) -> int:
        return self.tile.element_bytes

    def bytes_of(self, elements: Count) -> Count:
        """Two elements of 4 bits are one byte."""
        return elements * self.tile.element_bytes // self.tile.packed

    @property
    def banks(self) -> int:
        return self.tile.banks

    def cost(self, counts: list[int]) -> Fraction:
        each = [a.weight * c for a, c in zip(self.accesses, counts, strict=True)]
        return max(each) if self.worst else sum(each, Fraction(0))


def problem_of(record: dict[str, Any]) -> Problem:
    given = record["problem"]
    serving = serving_of(given["machine"])
    lanes, banks = serving.lanes, serving.banks
    size, element_bytes = math.prod(given["shape"]), given["element_bytes"]
    require(bool(whole_numbers(given["shape"]).min() >= 1), "there is no such tensor")
    require(repr(element_bytes) in ("1", "2", "4", "8", "16"), f"elements of {element_bytes!r}")
    require(record["objective"] in OBJECTIVES[str(record["version"])], "no such objective")
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
        groups = [group for step in elements for group in groups_of(step, *asked)]
        vectors = elements[elements[:, :, 0] >= 0]
        weight = _weight(each["weight"], name) / (len(elements) if record["version"] == 1 else 1)
        number = np.repeat(np.arange(len(groups)), np.array([*map(len, groups)], np.int64))
        together = np.concatenate([np.zeros(0, np.int64), *groups])
        accesses.append(Access(name, weight, elements, vectors, groups, together, number))
    require(bool(accesses) and all(a.weight >= 0 for a in accesses), "a weight is negative")
    common = 1
    for denominator in {a.weight.denominator for a in accesses}:
        common = math.lcm(common, denominator)
        require(common <= _MOST_OF_WEIGHTS, "its weights have no common denominator that is small")
    weighed = record["objective"] == "worst", bool(record["waste"])
    copies = given["copies"] != []
    tile = Tile(size, given["shape"][-1], element_bytes, banks, operands, copies, packed)
    return Problem(tile, accesses, *weighed, Work(_MOST_NUMBERS))


def _weight(given: object, name: str) -> Fraction:
    """Sums of very many different fractions would have very many digits."""
    found = fraction(given)
    small = max(found.numerator, found.denominator) <= _MOST_OF_WEIGHTS
    require(small, f"{name}: a weight of too many digits")
    return found


def counts_of(problem: Problem, addresses: Numbers) -> list[int]:
    """The wavefronts of each access over all of its steps: the most words of one bank that a group
    of lanes wants, added up."""
    each = np.arange(max(1, problem.element_bytes // 4))
    found = []
    for access in problem.accesses:
        problem.work.take(access.together.size * len(each))
        first = problem.bytes_of(addresses[access.together]) // 4
        words = np.repeat(access.group, len(each)), (first[:, None] + each).ravel()
        order = np.lexsort(words[::-1])
        group, word = words[0][order], words[1][order]
        other = (np.diff(group, prepend=-1) != 0) | (np.diff(word, prepend=-1) != 0)
        banks = group[other] * problem.banks + word[other] % problem.banks
        found.append(int(most_alike(banks, problem.banks, len(access.groups)).sum()))
    return found


def most_alike(numbers: Numbers, span: int, groups: int) -> Numbers:
    """How often one number is there, in each group: its numbers begin at a multiple of `span`."""
    most = np.zeros(groups, np.int64)
    number, counts = np.unique(numbers, return_counts=True)
    np.maximum.at(most, number // span, counts)
    return most
