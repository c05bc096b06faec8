"""What a launch found, as errors for a person: at the line of the source, where that is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import (
    Culprit,
    KernelError,
    RaceError,
    Span,
    SynchronisationError,
    UninitialisedError,
)
from warploom.machine.judges import Cause
from warploom.machine.proof import Proof
from warploom.machine.race import Race, Side
from warploom.ptx.causes import NO_GPU, Missing, missing
from warploom.ptx.launch import LoadedModule
from warploom.ptx.source import SourcePlace
from warploom.ptx.types import DTYPES, type_of

MOST_VALUES = 8  # of a vector
_FENCED = (Cause.PROXY, Cause.MAP, Cause.REGISTER)  # what a fence mends that orders many accesses


@dataclass(frozen=True, slots=True)
class RaceFinding:
    """The races of one cause, a pair of source lines or what is missing: the first that was seen,
    as an error, and the place of its other side.

    `pairs` counts the pairs of instructions; a line may become many (unrolled, several elements).
    """

    error: RaceError
    pairs: int
    same_value: bool
    other: Span | None = None
    wrote: bool = False  # the other side did


def race_findings(module: LoadedModule, races: Iterable[Race]) -> list[RaceFinding]:
    """One finding for each cause, in the order in which they were seen: for each pair of source
    lines that nothing orders, and for accesses that lack the same fence, wait or scope."""
    groups: dict[Hashable, list[Race]] = {}
    for race in races:
        sides = frozenset(_at(module, side) for side in (race.first, race.second))
        key = (race.cause, race.breaks, sides, race.same_value)
        groups.setdefault(key, []).append(race)
    return [_finding(module, same) for same in _by_cause(groups)]


def _by_cause(groups: Mapping[Any, list[Race]]) -> list[list[Race]]:
    """Pairs of lines that lack the same thing and share a line lack it once; so do those between
    which one fence would stand."""
    found: list[tuple[tuple[Cause, bool], set[Hashable], list[Race]]] = []
    for (cause, breaks, sides, _), races in groups.items():
        kind = (cause, breaks)
        joins = cause is not Cause.ORDER
        near = [
            each for each in found
            if joins and each[0] == kind and (each[1] & sides or _one_fence([*each[2], *races]))
        ]  # fmt: skip
        lines = set(sides).union(*[each[1] for each in near]) if joins else set()
        all_races = [race for each in near for race in each[2]] + races
        if near:
            found[found.index(near[0])] = (kind, lines, all_races)
            found = [each for each in found if each not in near[1:]]
        else:
            found.append((kind, lines, all_races))
    return [races for _, _, races in found]


def _one_fence(races: list[Race]) -> bool:
    """Whether one fence behind all that was done first, and before all that came next, mends all
    of these: in the lines of a text, where nothing goes back."""
    firsts = [race.first.label for race in races]
    seconds = [race.second.label for race in races]
    if races[0].cause not in _FENCED:
        return False
    begins = [each.line for each in firsts if isinstance(each, Span)]
    ends = [each.line for each in seconds if isinstance(each, Span)]
    return len(begins) == len(ends) == len(races) and max(begins) < min(ends)


def _finding(module: LoadedModule, races: list[Race]) -> RaceFinding:
    first = races[0]
    error = race_fault(module, first, len(races))
    label = first.first.label
    place = module.places.at(label) if isinstance(label, Span) else None
    other = (place.span() if place else None) or (label if isinstance(label, Span) else None)
    wrote = first.first.kind.writes
    return RaceFinding(error, len(races), first.same_value, other, wrote)


def _at(module: LoadedModule, side: Side) -> Hashable:
    """What a person sees of a side: what it does, on which line."""
    place = module.places.at(side.label) if isinstance(side.label, Span) else None
    return side.words, side.label if place is None else place.words


def race_fault(module: LoadedModule, race: Race, pairs: int = 1) -> RaceError:
    """A race as an error at its second side; the first is named with its line. `pairs` of
    instructions of these lines race."""
    label = race.first.label
    begun = module.instruction(label) if isinstance(label, Span) else None
    lacks = missing(race, begun)
    tell = _plain if race.cause in (Cause.ORDER, Cause.WAIT, Cause.GRID) else _by_ways
    message = f"{lacks.kind}: {tell(module, race)}: {lacks.what}"
    if race.same_value:
        message += " (both write the same value)"
    if not race.breaks:
        message += f"; {NO_GPU}"
    return _fault(module, race, _counted(message, pairs), lacks)


def _plain(module: LoadedModule, race: Race) -> str:
    """Who did what, the second first."""
    first, second = race.first, race.second
    place = _place(module, second)
    outer = place.own.frames[1:] if place else ()
    inlined = f" (inlined at {outer[0].words})" if outer else ""
    inner = f" (in {place.inner_words})" if place and place.inner else ""
    return (
        f"this {second.words}{inlined}{inner} by block {second.block}, thread {second.thread} and "
        f"the {first.words}{_where(module, first)} by block {first.block}, thread {first.thread}"
    )


def _by_ways(module: LoadedModule, race: Race) -> str:
    """What was done by which way to memory, in order."""
    first, second = race.first, race.second
    ways = ("generic-proxy ", "async-proxy ") if race.cause is Cause.PROXY else ("", "")
    other = "read as a tensor map" if race.cause is Cause.MAP else second.kind.value
    if race.cause is Cause.REGISTER:
        same = first.label == second.label  # no fence was passed before at all
        touched = "" if same else f"an access{_where(module, first)}, "
        return f"{race.place}: {touched}a product{_where(module, second)}"
    return (
        f"{ways[0]}{first.kind.value}{_where(module, first)}, "
        f"{ways[1]}{other}{_where(module, second)}"
    )


def _counted(message: str, pairs: int) -> str:
    return f"{message} ({pairs} pairs of instructions of these lines)" if pairs > 1 else message


def _fault(module: LoadedModule, race: Race, message: str, lacks: Missing) -> RaceError:
    place = _place(module, race.second)
    label = race.second.label
    shown = (place.span() if place else None) or (label if isinstance(label, Span) else None)
    touched = f"both touch {race.place}{_values(module, race)}" if race.place else ""
    manual = f'PTX manual: "{lacks.manual}"'
    error = RaceError(message, shown, "; ".join(filter(None, (touched, lacks.remedy, manual))))
    side = race.second
    error.culprit = Culprit(f"block {side.block}, thread {side.thread}", "", side.kind.writes)
    error.cause, error.manual, error.breaks = race.cause.value, lacks.manual, race.breaks
    return error


def _values(module: LoadedModule, race: Race) -> str:
    """What memory holds and what the second brings, as the second's instruction takes numbers."""
    label = race.second.label
    ins = module.instruction(label) if isinstance(label, Span) else None
    kind = "" if ins is None else type_of(ins)
    if not race.held or kind not in DTYPES or kind == "pred":
        return ""
    held = f", which holds {_numbers(race.held, kind)}"
    return f"{held}; the second writes {_numbers(race.given, kind)}" if race.given else held


def _numbers(raw: bytes, kind: str) -> str:
    """Bytes as numbers of a type; of a type of bits in hexadecimal digits."""
    values = np.frombuffer(raw, DTYPES[kind])[:MOST_VALUES]
    bits = 2 * DTYPES[kind].itemsize
    words = [
        f"0x{int(each):0{bits}x}" if kind[0] == "b" and values.dtype.kind != "f" else f"{each:.9g}"
        if values.dtype.kind == "f" else str(int(each)) for each in values
    ]  # fmt: skip
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def _place(module: LoadedModule, side: Side) -> SourcePlace | None:
    return module.places.at(side.label) if isinstance(side.label, Span) else None


def _where(module: LoadedModule, side: Side) -> str:
    """` at line 12`, in lines of the source where they are known."""
    return f" at {module.places.words(side.label)}" if isinstance(side.label, Span) else ""


def tool_of(error: KernelError) -> str:
    """Which tool of a sanitizer tells of an error: one of `choices.TOOLS`. What has no tool of its
    own, such as a failed assertion, is memcheck's, as it is compute-sanitizer's."""
    match error:
        case RaceError():
            return "racecheck"
        case SynchronisationError():
            return "synccheck"
        case UninitialisedError():
            return "initcheck"
    return "memcheck"


def proof_lines(module: LoadedModule, proof: Proof) -> list[str]:
    """A verdict in words: its line, the conditions that failed, and what is assumed."""
    lines = [f"proof: {proof.text}"]
    for each in proof.failed:
        where = "" if each.span is None else f" at {module.places.words(each.span)}"
        lines.append(f"  {each.condition}{where}: {each.message}")
    return lines + [f"  assumed: {each}" for each in proof.assumed]


def proof_record(module: LoadedModule, proof: Proof) -> dict[str, Any]:
    """A verdict as data."""
    failed = [
        {
            "condition": each.condition,
            "message": each.message,
            "where": None if each.span is None else module.places.words(each.span),
        }
        for each in proof.failed
    ]
    return {
        "reach": proof.reach.value, "failed": failed, "assumed": list(proof.assumed),
        "agents": proof.agents, "events": proof.events,
    }  # fmt: skip


def rounding_note(module: LoadedModule, race: Race) -> str:
    """Writes that are no race, as they differ by rounding alone: said where somebody looks on."""
    label = race.second.label
    where = f" at {module.places.words(label)}" if isinstance(label, Span) else ""
    return (
        f"threads store one sum{where}, which differs from lane to lane by the rounding of a "
        "fused product; no race"
    )
