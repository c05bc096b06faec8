"""What a launch found, as errors for a person: at the line of the source, where that is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from warploom.errors import (
    Culprit,
    KernelError,
    RaceError,
    Span,
    SynchronisationError,
    UninitialisedError,
)
from warploom.machine.proof import Proof
from warploom.machine.race import Race, Side
from warploom.ptx.launch import LoadedModule
from warploom.ptx.source import SourcePlace

FENCE = "fence.proxy.async"
_FENCE_ADVICE = (
    "put fence.proxy.async behind the writes, before the barrier that the copying thread passes; "
    "in CUDA C++ it is cuda::ptx::fence_proxy_async"
)


@dataclass(frozen=True, slots=True)
class RaceFinding:
    """The races of one cause, a pair of source lines or a missing fence: the first that was seen,
    as an error, and the place of its other side.

    `pairs` counts the pairs of instructions; a line may become many (unrolled, several elements).
    """

    error: RaceError
    pairs: int
    same_value: bool
    other: Span | None = None
    wrote: bool = False  # the other side did


def race_findings(module: LoadedModule, races: Iterable[Race]) -> list[RaceFinding]:
    """One finding for each pair of source lines, in the order in which they were seen. Accesses
    that lack the same fence are one finding, too."""
    groups: dict[Hashable, list[Race]] = {}
    for race in races:
        sides = frozenset(_at(module, side) for side in (race.first, race.second))
        groups.setdefault((race.fence, sides, race.same_value), []).append(race)
    merged = _by_fence(groups)
    return [_finding(module, same) for same in merged]


def _by_fence(groups: Mapping[Any, list[Race]]) -> list[list[Race]]:
    """Pairs of lines that lack a fence and share a line lack the same one."""
    found: list[tuple[set[Hashable], list[Race]]] = []
    for (fence, sides, _), races in groups.items():
        near = [each for each in found if fence and each[0] & sides]
        lines = set(sides).union(*[each[0] for each in near]) if fence else set()
        all_races = [race for each in near for race in each[1]] + races
        if near:
            found[found.index(near[0])] = (lines, all_races)
            found = [each for each in found if each not in near[1:]]
        else:
            found.append((lines, all_races))
    return [races for _, races in found]


def _finding(module: LoadedModule, races: list[Race]) -> RaceFinding:
    first = races[0]
    error = (fence_fault if first.fence else race_fault)(module, first, len(races))
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
    first, second = race.first, race.second
    place = _place(module, second)
    outer = place.own.frames[1:] if place else ()
    inlined = f" (inlined at {outer[0].words})" if outer else ""
    inner = f" (in {place.inner_words})" if place and place.inner else ""
    message = (
        f"data race: this {second.words}{inlined}{inner} by block {second.block}, "
        f"thread {second.thread} and the {first.words}{_where(module, first)} by block "
        f"{first.block}, thread {first.thread}: nothing orders them"
    )
    if race.same_value:
        message += " (both write the same value)"
    return _fault(module, race, _counted(message, pairs), "")


def fence_fault(module: LoadedModule, race: Race, pairs: int = 1) -> RaceError:
    """Accesses that are in order, but go two ways to memory that only a fence joins."""
    first, second = race.first, race.second
    message = (
        f"missing fence: generic-proxy {first.kind.value}{_where(module, first)}, async-proxy "
        f"{second.kind.value}{_where(module, second)}: {FENCE} is missing between them"
    )
    return _fault(module, race, _counted(message, pairs), _FENCE_ADVICE)


def _counted(message: str, pairs: int) -> str:
    return f"{message} ({pairs} pairs of instructions of these lines)" if pairs > 1 else message


def _fault(module: LoadedModule, race: Race, message: str, advice: str) -> RaceError:
    place = _place(module, race.second)
    label = race.second.label
    shown = (place.span() if place else None) or (label if isinstance(label, Span) else None)
    touched = f"both touch {race.place}" if race.place else ""
    error = RaceError(message, shown, "; ".join(filter(None, (touched, advice))))
    side = race.second
    error.culprit = Culprit(f"block {side.block}, thread {side.thread}", "", side.kind.writes)
    return error


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
