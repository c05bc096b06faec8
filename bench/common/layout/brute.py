"""All linear layouts of small problems, counted one by one; shares nothing with the search."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from itertools import product

import numpy as np
import numpy.typing as npt

from warploom.layout.patterns.access import IDLE, Access, Problem
from warploom.machine.serving import Group, RequestKind, Serving

Numbers = npt.NDArray[np.int64]


def small_machine(lanes: int, banks: int) -> Serving:
    """A machine with few lanes and banks, which serves consecutive lanes."""
    groups: dict[tuple[RequestKind, int], Group] = {}
    for width in (1, 2, 4, 8, 16):
        together = max(1, min(lanes, banks * 4 // max(4, width)))
        basis = tuple(1 << bit for bit in range(together.bit_length() - 1))
        groups["ld", width] = groups["st", width] = Group(basis)
    return Serving(f"small{lanes}x{banks}", lanes, banks, groups)


def wanted_together(problem: Problem, access: Access) -> list[list[int]]:
    """For each group of lanes of each step the elements that it wants."""
    group = problem.serving.group("ld", access.width * problem.element_bytes)
    members = 1 << len(group.basis)
    found = []
    for step in access.elements:
        for first in range(0, access.lanes, members):
            lanes = step[first : first + members]
            some = sorted({int(e) for e in lanes[lanes[:, 0] != IDLE].ravel()})
            if some:
                found.append(some)
    return found


def fullest(words: Numbers, banks: int) -> Numbers:
    """For each row (one layout) the most different words in one bank."""
    ordered = np.sort(words, axis=1)
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    row, place = new.nonzero()
    keys = row * banks + ordered[row, place] % banks
    counts = np.bincount(keys, minlength=len(words) * banks).reshape(len(words), banks)
    return np.asarray(counts.max(axis=1))


def least_cost(problem: Problem, layouts: Numbers, worst: bool = False) -> Fraction | None:
    """The least of these layouts, each a row of addresses; None if all tear a vector."""
    kept = layouts
    # One offset by exclusive or may align all vectors: that which the widest of them needs.
    widest = max(problem.accesses, key=lambda access: access.width)
    first = widest.elements[widest.elements[:, :, 0] != IDLE][0, 0]
    for access in problem.accesses:
        vectors = access.elements[access.elements[:, :, 0] != IDLE]
        found = kept[:, vectors]
        low = found[:, :, 0] ^ kept[:, first, None]
        aligned = (low % access.width == 0).all(axis=1)
        apart = found ^ found[:, :, :1]
        kept = kept[aligned & (apart == np.arange(access.width)).all(axis=(1, 2))]
    if not len(kept):
        return None
    costs = []
    for access in problem.accesses:
        total = np.zeros(len(kept), np.int64)
        for elements in wanted_together(problem, access):
            byte = kept[:, elements] * problem.element_bytes
            more = np.arange(0, max(problem.element_bytes, 1), 4)
            words = ((byte[:, :, None] + more) // 4).reshape(len(kept), -1)
            total += fullest(words, problem.serving.banks)
        costs.append(total * access.weight)  # exact: weights are halves
    joined = np.max(costs, axis=0) if worst else np.sum(costs, axis=0)
    return Fraction(float(joined.min()))


@lru_cache(maxsize=4)
def bijections(bits: int) -> Numbers:
    """All bijective matrices over F2, each as the images of all numbers."""
    rows: list[tuple[int, ...]] = [()]
    for _ in range(bits):
        rows = [
            (*columns, new)
            for columns in rows
            for new in range(1 << bits)
            if new not in _sums(columns)
        ]
    return np.array([_sums(columns) for columns in rows])


def _sums(columns: tuple[int, ...]) -> list[int]:
    found = [0]
    for column in columns:
        found += [each ^ column for each in found]
    return found


@lru_cache(maxsize=4)
def bank_maps(bits: int, bank_bits: int) -> Numbers:
    """All linear maps from words to banks, each as an address: the word's own number above."""
    numbers = np.arange(1 << bits)
    found = []
    for columns in product(range(1 << bank_bits), repeat=bits):
        bank = np.zeros_like(numbers)
        for bit, column in enumerate(columns):
            bank ^= (numbers >> bit & 1) * column
        found.append(numbers << bank_bits | bank)
    return np.array(found)


@lru_cache(maxsize=4)
def every_map(words: int, banks: int) -> Numbers:
    """All maps from words to banks whatever, each as an address: the word's own number above."""
    numbers = np.arange(banks**words)[:, None]
    return np.arange(words) * banks + numbers // banks ** np.arange(words) % banks


def least_of_all(problem: Problem, seconds: float) -> Fraction | None:
    """The least sum over all maps from words to banks, by CP-SAT: a bank for each word, and for
    each group of lanes the fullest bank. None where it does not finish in time."""
    cp = import_module("ortools.sat.python.cp_model")
    model, banks = cp.CpModel(), problem.serving.banks
    lies = [[model.new_bool_var("") for _ in range(banks)] for _ in range(problem.size)]
    for row in lies:
        model.add_exactly_one(row)
    total, scale = [], 2  # weights are halves
    for access in problem.accesses:
        for elements in wanted_together(problem, access):
            most = model.new_int_var(1, len(elements), "")
            for bank in range(banks):
                model.add(sum(lies[element][bank] for element in elements) <= most)
            total.append(int(scale * access.weight) * most)
    model.minimize(sum(total))
    solver = cp.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    if solver.solve(model) != cp.OPTIMAL:
        return None
    return Fraction(round(solver.objective_value), scale)


def random_problem(random: np.random.Generator, bits: int, banks: int, affine: float) -> Problem:
    """Accesses of words, one element for each lane: most of them affine, some of them anything."""
    lanes = int(random.choice([4, 8]))
    size = 1 << bits
    accesses = []
    for number in range(random.integers(1, 6)):
        steps = int(random.choice([1, 2, 4]))
        if random.random() < affine:
            elements = _affine(random, size, steps, lanes)
        else:
            elements = random.integers(0, size, (steps, lanes))
            elements[random.random(elements.shape) < 0.2] = IDLE
        weight = float(random.choice([1, 1, 2, 0.5]))
        accesses.append(Access(f"access {number}", elements[:, :, None], "ld", weight))
    return Problem("random", (size,), 4, tuple(accesses), small_machine(lanes, banks))


def _affine(random: np.random.Generator, size: int, steps: int, lanes: int) -> Numbers:
    result = np.full((steps, lanes), random.integers(0, size))
    for bit in range(lanes.bit_length() - 1):
        result ^= np.where(np.arange(lanes) >> bit & 1, random.integers(0, size), 0)
    for bit in range(steps.bit_length() - 1):
        result ^= np.where(np.arange(steps) >> bit & 1, random.integers(0, size), 0)[:, None]
    return result


def random_vectors(random: np.random.Generator) -> Problem:
    """Sixteen elements of any size, moved in vectors along the rows or scattered."""
    element_bytes = int(random.choice([1, 1, 2, 2, 4, 8]))
    lanes, banks = 4, int(random.choice([2, 4]))
    most = banks * 4 // element_bytes  # no machine has vectors wider than its banks together
    accesses = []
    for number in range(random.integers(1, 4)):
        width = int(random.choice([w for w in (1, 1, 2, 4) if w <= max(1, min(4, most))]))
        first = _affine(random, 16 // width, 2, lanes) * width
        if random.random() < 0.3:
            first[random.random(first.shape) < 0.2] = IDLE
        elements = np.where(first[:, :, None] == IDLE, IDLE, first[:, :, None] + np.arange(width))
        accesses.append(Access(f"access {number}", elements, "ld", 1.0))
    return Problem("vectors", (4, 4), element_bytes, tuple(accesses), small_machine(lanes, banks))
