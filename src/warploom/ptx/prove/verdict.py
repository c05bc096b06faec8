"""From a run that was kept to a verdict: for what it stands, and what is in the way of more."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from warploom.errors import Span
from warploom.machine.judges import Practice
from warploom.machine.last import NO_CHANCE, Chance
from warploom.machine.proof import Proof, Reach, Unproved
from warploom.machine.race import Side
from warploom.ptx.emulate.asked import Asked
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.driver import WORKSPACE
from warploom.ptx.emulate.skeleton import MAY_DEPEND, NOWHERE, Act, Recorded
from warploom.ptx.ir import Instruction
from warploom.ptx.known import STRONG, keys_of, registers, space_of
from warploom.ptx.prove.conditions import check, narrow, outlives, waived
from warploom.ptx.prove.flags import FlagLoops, check_flags, counted_on
from warploom.ptx.prove.registers import check_meetings, check_registers
from warploom.ptx.prove.spins import Spins, is_wait
from warploom.ptx.prove.taint import Dependence, Taint, TaintFlow

CONVERGED = (
    "lanes of a warp that part ways meet again before an instruction that is .aligned or has .sync"
)
TOGETHER = "a product of a warpgroup is complete only when all four of its warps have come to it"
RESIDENT = "all blocks of the launch run at once, so that who waits for a flag keeps nobody away"
ALONE = "no launch that overlaps this one writes the flags that it waits for"
OUTLIVES = "a cp.async under way when its block ends does no harm, of which the manual says nothing"
SAME_VALUE = "writes that race write one value, whatever the data are"
OWN_COPIES = "copies see the mbarriers of their own block without a fence, as they do on GPUs"
FIRST = "no launch before this one is under way, so that griddepcontrol.wait waits for nothing"
LEADER = "elect.sync picks the lowest of its lanes, as it does on GPUs"
NOT_MET = "setmaxnreg needs no meeting of the warpgroup since the one before, as it does on GPUs"
_MOST_SHOWN = 4
_ELSEWHERE = -2  # in place of an instruction of another function
_WHAT = {
    "branch": "a branch", "predicate": "whether this is done", "address": "an address",
    "operand": "an operand", "descriptor": "a descriptor", "lanes": "which lanes exchange values",
    "wait": "what is waited for", "flag": "what a flag is set to",
    "value": "what is stored, as others store it in no order,",
    "map": "a tensor map",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run leaves for its verdict."""

    code: Code
    skeletons: Sequence[Recorded]
    raced: bool
    benign: bool
    registers: int | None = None  # of a thread as it starts, where the kernel bounds them
    loops: FlagLoops | None = None
    after: bool = False  # the launch before is known, and may overlap
    dependents: bool = False  # another may overlap that is not known yet
    undecided: Sequence[tuple[Side, Side]] = ()  # strong accesses of a launch before, and of this
    unused: Sequence[Span] = ()  # loads that race, and that this data makes no use of
    chance: Chance = NO_CHANCE
    asked: Asked | None = None
    relied: frozenset[str] = frozenset()  # rules of practice without which accesses would race


def verdict(evidence: Evidence) -> Proof:
    spins = Spins(evidence.code)
    flags: frozenset[int] = frozenset()
    if evidence.loops is not None:
        flags = frozenset(evidence.loops.loads)
        evidence.loops.tell(spins)
    schedule = [
        *_raced(evidence),
        *_overlapped(evidence),
        *_by_chance(evidence),
        *_ordered(evidence),
        *_pooled(evidence),
        *_waited(spins),
        *_not_covered(spins, flags),
        *_flagged(evidence),
    ]
    data = [*_unused(evidence)]
    flow = TaintFlow(evidence.code, spins, _seen(evidence), flags, _maps(evidence))
    for each in (*flow.decided(), *flow.stored(_steps(evidence, evidence.chance.same))):
        (schedule if each.taint is Taint.ORDER else data).append(_told(evidence.code, each))
    reach = Reach.ALL_DATA
    if schedule or data:
        reach = Reach.THIS_SCHEDULE if schedule else Reach.THIS_DATA
    once = {(each.condition, each.message): each for each in reversed([*schedule, *data])}
    failed = tuple(reversed(once.values()))
    agents = [agent for each in evidence.skeletons for agent in each.agents]
    events = sum(len(agent.events) for agent in agents)
    return Proof(reach, failed, tuple(_assumed(evidence)), len(agents), events,
                 tuple(evidence.skeletons))  # fmt: skip


def _raced(evidence: Evidence) -> Iterator[Unproved]:
    if evidence.raced:
        yield Unproved("races", "this run has a data race")


def _unused(evidence: Evidence) -> Iterator[Unproved]:
    """races: a load that is of no use here may be of use with other data."""
    for span in evidence.unused:
        yield Unproved("races", "this load races, and is of no use with this data alone", span)


def _steps(evidence: Evidence, labels: Iterable[Hashable]) -> list[Instruction]:
    """The instructions that have these labels."""
    module, wanted = evidence.code.module, set(labels)
    return [
        flow.instruction for block in evidence.code.blocks for flow in block.passages
        if module.span(flow.instruction) in wanted
    ]  # fmt: skip


def _by_chance(evidence: Evidence) -> Iterator[Unproved]:
    """memory: nothing counts on what atomics happened to see, nor on which write was last."""
    module = evidence.code.module
    for looks in evidence.chance.looks:
        atomics = [ins for ins in _steps(evidence, looks) if ins.opcode in ("atom", "red")]
        if len(atomics) == len(looks):
            message = "what follows is in order only because of who came first to this atomic"
            yield Unproved("memory", message, module.span(atomics[0]))
    for first, last in evidence.chance.last:
        line = f"line {first.line}" if isinstance(first, Span) else "another"
        message = f"this or the write of {line} may be last, as nothing orders them"
        yield Unproved("memory", message, last if isinstance(last, Span) else None)


def _overlapped(evidence: Evidence) -> Iterator[Unproved]:
    """overlap: no strong accesses of two launches of which either may be first."""
    for first, second in evidence.undecided:
        where = f" of line {first.label.line}" if isinstance(first.label, Span) else ""
        message = f"this may come before or after the {first.words}{where} of the launch before"
        span = second.label if isinstance(second.label, Span) else None
        yield Unproved("overlap", message, span)


def _ordered(evidence: Evidence) -> Iterator[Unproved]:
    for recorded in evidence.skeletons:
        loops = {} if evidence.loops is None else evidence.loops.found
        rest, _ = counted_on(recorded, loops) if loops else (recorded, [])
        for each in check(rest):
            span = None if each.site == NOWHERE else recorded.sites[each.site]
            yield Unproved(each.condition, each.message, span)


def _pooled(evidence: Evidence) -> Iterator[Unproved]:
    """registers: who asks for more gets them, in every order."""
    for recorded in evidence.skeletons:
        found = [*check_registers(recorded, evidence.registers)] if recorded.complete else []
        found += check_meetings(recorded) if recorded.complete and recorded.strict else ()
        for each in found:
            yield Unproved(each.condition, each.message, recorded.sites[each.site])


def _waited(spins: Spins) -> Iterator[Unproved]:
    """Waits that a kernel may pass by without a yes."""
    for rank in sorted(spins.ran):
        for ins in spins.instructions(rank):
            if is_wait(ins) and ins.start not in spins.asked:
                message = "this is not asked in a loop that only waits, and is left by a yes alone"
                yield Unproved("waits", message, spins.code.module.span(ins))


def passed_unasked(code: Code) -> list[Unproved]:
    """Waits that may be passed without a yes, of a run that came to no end."""
    return list(_waited(Spins(code)))


def _flagged(evidence: Evidence) -> Iterator[Unproved]:
    """flags: loops that look at flags need all writes of these, which no block may miss."""
    if evidence.loops is None or not evidence.loops.found:
        return
    for recorded in evidence.skeletons:
        rest, chains = counted_on(recorded, evidence.loops.found)
        for each in check_flags(rest, evidence.loops.found, chains):
            yield Unproved(each.condition, each.message, recorded.sites[each.site])
    if len(evidence.skeletons) > 1:
        yield Unproved("flags", "more blocks than run at once, of which some look at flags")
    elif evidence.asked is not None and evidence.asked.at_once:
        yield from _kept_away(evidence, evidence.asked)


def _kept_away(evidence: Evidence, asked: Asked) -> Iterator[Unproved]:
    """flags: blocks that wait for flags may keep others away for which the machine has no room."""
    if prod(asked.grid) <= asked.at_once:
        return
    message = f"{asked.at_once} blocks run at once, and who waits here may keep the others away"
    for recorded in evidence.skeletons:
        events = [event for agent in recorded.agents for event in agent.events]
        for site in {e.site for e in events if e.act is Act.GO and e.where[0] == "flag"}:
            yield Unproved("flags", message, recorded.sites[site])


def _certain(evidence: Evidence) -> bool:
    """Whether all blocks are there: a driver launches no cooperative kernel otherwise."""
    return evidence.asked is not None and WORKSPACE in evidence.asked.symbols


def _not_covered(spins: Spins, flags: frozenset[int]) -> Iterator[Unproved]:
    """What ran that orders or decides things in ways that are not looked into."""
    used = {key for rank in spins.ran for key in _used(spins, rank)}
    for rank in sorted(spins.ran):
        for ins in spins.instructions(rank):
            message = "" if ins.start in flags else _uncovered(ins, used)
            if message:
                yield Unproved("memory", message, spins.code.module.span(ins))


def _used(spins: Spins, rank: int) -> Iterator[str]:
    block = spins.code.blocks[rank]
    flows = [*block.passages, *filter(None, (block.leaving, block.coming))]
    slots = {slot: key for key, slot in spins.code.slots.items()}
    for flow in flows:
        for slot in (*flow.reads, *(() if flow.guard_slot is None else (flow.guard_slot,))):
            yield slots[slot]


def _uncovered(ins: Instruction, used: set[str]) -> str:
    if ins.opcode == "call":
        return "calls of functions are not looked into"
    if ins.opcode == "discard":
        return "what memory holds after this is not known"
    if ins.opcode in ("ld", "ldu") and STRONG & set(ins.modifiers) and space_of(ins) != "param":
        return MAY_DEPEND
    if ins.opcode == "atom":
        read = any(key in used for each in registers(ins.operands[:1]) for key in keys_of(each))
        if read or {"acquire", "acq_rel"} & set(ins.modifiers):
            return "what this atomic sees depends on who came first"
        if "cas" in ins.modifiers:
            return "whether this swap is made depends on who came first"
    return ""


def _seen(evidence: Evidence) -> Mapping[int, frozenset[int]]:
    """By where a load stands: where those stand that wrote what it saw."""
    known = _writers(evidence, [each.seen for each in evidence.skeletons])
    return {load: writers - {NOWHERE} for load, writers in known.items()}


def _maps(evidence: Evidence) -> Mapping[int, frozenset[int]]:
    """By where a tensor map is read: where those stand that wrote it, or nowhere."""
    return _writers(evidence, [each.maps for each in evidence.skeletons])


def _writers(
    evidence: Evidence, sites: Sequence[Mapping[int, frozenset[int]]]
) -> Mapping[int, frozenset[int]]:
    """Places of instructions, of each batch by their sites, as where they stand."""
    module = evidence.code.module
    start_of: dict[Span, int] = {}
    for block in evidence.code.blocks:
        for flow in block.passages:
            start_of[module.span(flow.instruction)] = flow.instruction.start
    found: dict[int, set[int]] = {}
    for recorded, seen in zip(evidence.skeletons, sites, strict=True):
        starts = [start_of.get(span, _ELSEWHERE) for span in recorded.sites]
        for load, writers in seen.items():
            known = {NOWHERE if each == NOWHERE else starts[each] for each in writers}
            found.setdefault(starts[load], set()).update(known)
    return {load: frozenset(writers) for load, writers in found.items()}


def _told(code: Code, found: Dependence) -> Unproved:
    what = _WHAT[found.what]
    if found.taint is Taint.DATA:
        message = f"{what} depends on data that were loaded"
    else:
        message = f"{what} depends on who came first, or on time or place"
    if found.source is not None and found.source is not found.instruction:
        message += f" ({found.source.name}, line {code.module.span(found.source).line})"
    condition = "data" if found.taint is Taint.DATA else "order"
    return Unproved(condition, message, code.module.span(found.instruction))


def _told_without_fence(recorded: Recorded) -> bool:
    """Whether copies tell mbarriers behind whose initialisation no fence stands."""
    copies = {e.where for each in recorded.agents for e in each.events if e.act is Act.COPY}
    return any(
        event.act is Act.INIT and event.where in copies and waived(recorded, number, at)
        for number, agent in enumerate(recorded.agents) for at, event in enumerate(agent.events)
    )  # fmt: skip


def begins(skeletons: Sequence[Recorded]) -> Iterator[str]:
    """What the flags that are waited for held before anybody had written them."""
    for recorded in skeletons:
        waited = {
            event.where for agent in recorded.agents for event in agent.events
            if event.act is Act.GO and event.where[0] == "flag"
        }  # fmt: skip
        held: dict[str, None] = {}
        for flag in sorted(waited):
            held[f"{recorded.initial[flag]} in {recorded.regions[flag[1]]}"] = None
        if held:
            shown = [*held][:_MOST_SHOWN] + ["…"] * (len(held) > _MOST_SHOWN)
            what = "flags that are waited for hold at the start what they do here"
            yield f"{what}: {', '.join(shown)}"


def _opcodes(code: Code) -> set[str]:
    """Those of instructions that ran."""
    return {
        flow.instruction.opcode
        for block, times in zip(code.blocks, code.executed, strict=True) if times
        for flow in block.passages
    }  # fmt: skip


def _waits_for_grid(code: Code) -> bool:
    return any(
        flow.instruction.opcode == "griddepcontrol" and "wait" in flow.instruction.modifiers
        for block, times in zip(code.blocks, code.executed, strict=True) if times
        for flow in block.passages
    )  # fmt: skip


def _parts_before_aligned(evidence: Evidence) -> bool:
    """Whether lanes diverge in a kernel with aligned barriers of clusters, or by the manual also
    with those of blocks."""
    strict = any(each.strict for each in evidence.skeletons)
    return any(each.parted for each in evidence.skeletons) and any(
        block.barrier is not None and block.barrier.aligned
        and (block.barrier.cluster or (strict and block.barrier.number is not None))
        for block, times in zip(evidence.code.blocks, evidence.code.executed, strict=True) if times
    )  # fmt: skip


def _starts_with(evidence: Evidence) -> Iterator[str]:
    """What setmaxnreg stands on."""
    if evidence.registers is None:
        yield "nobody waits for registers, as no bound of the kernel says how many there are"
    else:
        yield f"the kernel is compiled for {evidence.registers} registers of a thread"
    if any(not r.strict and r.complete and any(check_meetings(r)) for r in evidence.skeletons):
        yield NOT_MET


def _assumed(evidence: Evidence) -> Iterator[str]:
    groups = {
        event.where[0] for each in evidence.skeletons for agent in each.agents
        for event in agent.events if event.act in (Act.COME, Act.GO)
    }  # fmt: skip
    if groups & {"warp", "wgmma"} or _parts_before_aligned(evidence):
        yield CONVERGED
    if "elect" in _opcodes(evidence.code):
        yield LEADER
    if any(_told_without_fence(each) for each in evidence.skeletons):
        yield OWN_COPIES
    if any(not each.strict and outlives(each) for each in evidence.skeletons):
        yield OUTLIVES
    if "flag" in groups:
        if not _certain(evidence):
            yield RESIDENT
        yield from begins(evidence.skeletons)
        if evidence.dependents or "griddepcontrol" in _opcodes(evidence.code):
            yield ALONE
    if not evidence.after and _waits_for_grid(evidence.code):
        yield FIRST
    if "wgmma" in groups:
        yield TOGETHER
    if "registers" in groups:
        yield from _starts_with(evidence)
    if evidence.benign:
        yield SAME_VALUE
    yield from sorted(_relied(evidence))


def _relied(evidence: Evidence) -> frozenset[str]:
    """What GPUs do of which the manual says less, as far as that was needed."""
    relied = evidence.relied.union(*(each.practice for each in evidence.skeletons))
    if any(not each.strict and narrow(each) for each in evidence.skeletons):
        relied |= {Practice.NARROW.value}
    return relied
