"""From one register layout to another: nothing, renames, selects, shuffles or shared memory.

    >>> from warploom.layout.formats.fragment_text import read_fragment
    >>> one, other = read_fragment("(32,1):(1,0)"), read_fragment("((2,16),1):((16,1),0)")
    >>> convert(one, other, 4).chosen
    'shuffles'

Every way that there is comes out; `chosen` is by the rule below. Plans are plain data; the
catalogue makes kernels of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warploom.errors import CheckError, InternalError
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.conversion.schedule import schedule
from warploom.layout.conversion.shuffle import Shuffles, Wants, moved
from warploom.layout.conversion.staging import Staging, best_stagings, through
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import ELEMENT_BYTES, IDLE, coordinates
from warploom.machine.record import CUDA, Machine, machine_named
from warploom.search.budget import Budget

WORD_BYTES = 4
MOST_CONVERTED = 256  # words of a thread: it has no more registers
WIDE = "gfx942"  # the machine that is meant where warps have 64 lanes
BARRIER_COST = 16  # in wavefronts: the block meets, and a latency that shuffles do not have
OWN_BARRIER_COST = 1  # the same where every warp loads what it stored itself
# Fitted to the six conversions of bench/layout/cases.py that have shuffles, in wavefronts' times.
SHUFFLES_COST = 2.5  # whatever their number: lanes and registers are chosen first
SELECT_COST = 0.6
INSTRUCTION_COST = 0.25  # to issue one, beside its wavefronts


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """`source` and `target` are in units of `unit_bytes`: elements that stay together in whole
    words are moved as words. A way that is None does not exist; `why` says for what reason."""

    source: Fragment
    target: Fragment
    element_bytes: int
    unit_bytes: int
    renames: tuple[int, ...] | None
    shuffles: Shuffles | None
    shared: Staging | None
    matrices: Staging | None
    other_matrices: tuple[Staging, ...] = ()  # that cost as much
    machine: Machine = CUDA
    why: dict[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """By rule, not by measurement: renames are free; a round of shuffles costs a wavefront,
        selects more than half of one, and shared memory its wavefronts and the barriers."""
        if self.renames is not None:
            identity = tuple(range(self.target.registers))
            return "nothing" if self.renames == identity else "renames"
        costs = self.costs
        fitting = [way for way in costs if not self.refusal(way)]
        return min(fitting or costs, key=lambda way: costs[way])

    def refusal(self, way: str) -> str:
        """Why it cannot be done so; empty where it can."""
        if self.renames is not None:
            same = self.renames == tuple(range(self.target.registers))
            fits = way == "renames" or (way == "nothing" and same)
            return "" if fits else "every thread holds what it wants" + ", elsewhere" * (not same)
        if way in ("nothing", "renames"):
            return "threads do not hold what they want"
        if way == "shuffles":
            return "" if self.shuffles is not None else self.why.get(way, "there are none")
        staging = {"shared": self.shared, "matrices": self.matrices}[way]
        if staging is None:
            return self.why.get(way, "there is none")
        taken = staging.slots * self.unit_bytes
        most = self.machine.shared_bytes
        declared = f"a block may declare at most {most}"
        return f"it takes {taken} bytes, and {declared}" if taken > most else ""

    @property
    def _round_cost(self) -> float:
        """In wavefronts: a word of every lane goes through the crossbar of shared memory."""
        serving = self.machine.serving
        return self.source.lanes * WORD_BYTES / (serving.banks * serving.word_bytes)

    @property
    def costs(self) -> dict[str, float]:
        found = {}
        if self.shuffles is not None:
            words = max(1, self.unit_bytes // WORD_BYTES)
            moved = self.shuffles.rounds * self._round_cost
            rounds = SHUFFLES_COST + moved + SELECT_COST * self.shuffles.selects
            found["shuffles"] = rounds * words * self.source.warps
        for name, way in (("shared", self.shared), ("matrices", self.matrices)):
            if way is not None:
                issued = way.instructions * self.source.warps
                waiting = OWN_BARRIER_COST if way.within_warps else BARRIER_COST
                found[name] = way.wavefronts + INSTRUCTION_COST * issued + waiting
        return found


def convert(
    source: Fragment,
    target: Fragment,
    element_bytes: int,
    budget: Budget | None = None,
    *,
    shared: bool = True,
    machine: Machine | None = None,
) -> Conversion:
    """All ways from one fragment to the other; the machine is by default the usual one of warps
    with so many lanes."""
    _check(source, target, element_bytes)
    machine = machine or usual_machine(source.lanes)
    if machine.lanes != source.lanes:
        raise CheckError(
            f"{source.name} is of warps of {source.lanes} lanes, and {machine.name} has "
            f"{machine.lanes}"
        )
    source, target, unit_bytes = in_words(source, target, element_bytes)
    why: dict[str, str] = {}
    renames = _renames(source, target)
    shuffles = None
    if renames is None:
        _check_registers(source, target)
        shuffles = _shuffles(source, target, unit_bytes, why)
    vectors: list[Staging] = []
    matrices: list[Staging] = []
    if shared and renames is None:
        asked = (source, target, unit_bytes, budget)
        vectors = best_stagings(*asked, serving=machine.serving)
        matrices = best_stagings(*asked, matrices=True, serving=machine.serving)
        if not all(_brings(each, target) for each in vectors + matrices):
            raise InternalError("a way through shared memory loses elements")
        if not vectors:
            why["shared"] = "no layout was found in time"
        if not matrices and budget is not None and budget.is_spent():
            why["matrices"] = "no layout was found in time"
        elif not matrices:
            has = machine.serving.has_matrices
            why["matrices"] = f"ldmatrix and stmatrix {'do not fit' if has else 'are not there'}"
    return Conversion(
        source,
        target,
        element_bytes,
        unit_bytes,
        renames,
        shuffles,
        vectors[0] if vectors else None,
        matrices[0] if matrices else None,
        tuple(matrices[1:]),
        machine,
        why,
    )


def _check_registers(*of: Fragment) -> None:
    """What renames nothing has code for each of them; more would take minutes."""
    for each in of:
        if each.registers > MOST_CONVERTED:
            raise CheckError(
                f"{each.name}: a thread would hold {each.registers} elements or words",
                advice=f"a conversion is of at most {MOST_CONVERTED}",
            )


def usual_machine(lanes: int) -> Machine:
    """What a conversion is for where nobody names a machine."""
    return CUDA if lanes == CUDA.lanes else machine_named(WIDE)


def _check(source: Fragment, target: Fragment, element_bytes: int) -> None:
    if element_bytes not in ELEMENT_BYTES[:4]:
        raise CheckError(f"an element of {element_bytes} bytes", advice="1, 2, 4 or 8")
    if source.blocks != target.blocks:
        raise CheckError(
            "blocks of the cluster share the tensor in another way before than after",
            advice="a conversion is within one block; through the cluster's memory it is two",
        )
    if source.shape != target.shape:
        one, two = ("×".join(map(str, each.shape)) for each in (source, target))
        raise CheckError(f"from a tensor of {one} to one of {two}", advice="both are of one shape")
    if source.warps != target.warps:
        raise CheckError(f"from {source.warps} warps to {target.warps}")
    if source.lanes != target.lanes:
        raise CheckError(f"from warps of {source.lanes} lanes to warps of {target.lanes}")
    lost = np.setdiff1d(target.elements, np.append(source.elements, IDLE))
    if lost.size:
        place = coordinates(source.shape, int(lost[0]))
        raise CheckError(f"no thread holds the element at {place}, which the target needs")


def in_words(
    source: Fragment, target: Fragment, element_bytes: int
) -> tuple[Fragment, Fragment, int]:
    """Both in words, as far as elements that share a word on one side share one on the other."""
    while element_bytes < WORD_BYTES:
        held, wanted = _paired(source.elements), _paired(target.elements)
        if held is None or wanted is None or not _kept_together(held, wanted):
            break
        # Pairs are numbered in the order of their first elements, which keeps linear maps linear.
        firsts = np.unique(held[..., 0])
        firsts = firsts[firsts != IDLE]
        sides = [
            np.where(pairs[..., 0] == IDLE, IDLE, np.searchsorted(firsts, pairs[..., 0]))
            for pairs in (held, wanted)
        ]
        source = Fragment(source.name, (len(firsts),), sides[0])
        target = Fragment(target.name, (len(firsts),), sides[1])
        element_bytes *= 2
    return source, target, element_bytes


def _paired(elements: Numbers) -> Numbers | None:
    if elements.shape[2] % 2:
        return None
    pairs = elements.reshape(*elements.shape[:2], -1, 2)
    partly = (pairs == IDLE).any(axis=3) & ~(pairs == IDLE).all(axis=3)
    return None if partly.any() else pairs


def _kept_together(source: Numbers, target: Numbers) -> bool:
    """Whether the target's pairs are among the source's, and an element is in one pair only."""
    held = np.unique(source.reshape(-1, 2), axis=0)
    wanted = np.unique(target.reshape(-1, 2), axis=0)
    known = {tuple(pair) for pair in held.tolist()} | {(IDLE, IDLE)}
    flat = held[held[:, 0] != IDLE].ravel()
    return {tuple(pair) for pair in wanted.tolist()} <= known and np.unique(flat).size == flat.size


def _renames(source: Fragment, target: Fragment) -> tuple[int, ...] | None:
    """For each register of the target the register of the source that is it in every thread."""
    found = []
    for register in range(target.registers):
        wanted = target.elements[:, :, register, None]
        same = ((source.elements == wanted) | (wanted == IDLE)).all(axis=(0, 1))
        if not same.any():
            return None
        found.append(register if same[register : register + 1].any() else int(np.argmax(same)))
    return tuple(found)


def _shuffles(
    source: Fragment, target: Fragment, unit_bytes: int, why: dict[str, str]
) -> Shuffles | None:
    """One schedule that does for every warp."""
    for warp in range(source.warps):
        strange = np.setdiff1d(target.elements[warp], np.append(source.elements[warp], IDLE))
        if strange.size:
            place = coordinates(source.shape, int(strange[0]))
            why["shuffles"] = f"warp {warp} wants the element at {place}, which another holds"
            return None
    parts = max(1, WORD_BYTES // unit_bytes)
    plan = schedule(Wants(source.elements[0], target.elements[0], parts))
    for warp in range(1, source.warps):
        if not right(plan, source.elements[warp], target.elements[warp]):
            why["shuffles"] = f"warp {warp} would need other shuffles than warp 0"
            return None
    if not right(plan, source.elements[0], target.elements[0]):
        raise InternalError("a schedule loses elements")
    return plan


def _brings(staging: Staging, target: Fragment) -> bool:
    after = through(staging, target)
    return bool(((after == target.elements) | (target.elements == IDLE)).all())


def right(plan: Shuffles, held: Numbers, wanted: Numbers) -> bool:
    """Whether a plan gives a warp what it wants; where nothing is wanted, anything may be."""
    after = moved(plan, held.T).T
    return bool(((after == wanted) | (wanted == IDLE)).all())
