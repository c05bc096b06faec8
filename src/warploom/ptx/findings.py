"""What a launch found, as errors for a person: at the line of the source, where that is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from warploom.errors import KernelError, Span
from warploom.machine.proof import Proof
from warploom.machine.race import Race, Side
from warploom.ptx.launch import LoadedModule


@dataclass(frozen=True, slots=True)
class RaceFinding:
    """The races of one pair of source lines: the first that was seen, as an error.

    `pairs` counts the pairs of instructions; a line may become many (unrolled, several elements).
    """

    error: KernelError
    pairs: int
    same_value: bool


def race_findings(module: LoadedModule, races: Iterable[Race]) -> list[RaceFinding]:
    """One finding for each pair of source lines, in the order in which they were seen."""
    groups: dict[Hashable, list[Race]] = {}
    for race in races:
        sides = frozenset(_at(module, side) for side in (race.first, race.second))
        groups.setdefault((sides, race.same_value), []).append(race)
    return [
        RaceFinding(race_fault(module, same[0], len(same)), len(same), same[0].same_value)
        for same in groups.values()
    ]


def _at(module: LoadedModule, side: Side) -> Hashable:
    """What a person sees of a side: what it does, on which line."""
    place = module.places.at(side.label) if isinstance(side.label, Span) else None
    return side.words, side.label if place is None else place.words


def race_fault(module: LoadedModule, race: Race, pairs: int = 1) -> KernelError:
    """A race as an error at its second side; the first is named with its line. `pairs` of
    instructions of these lines race."""
    first, second = race.first, race.second
    spans = [each.label if isinstance(each.label, Span) else None for each in (first, second)]
    places = [None if span is None else module.places.at(span) for span in spans]
    where = (
        ""
        if spans[0] is None
        else f" at {places[0].words if places[0] else f'line {spans[0].line}'}"
    )
    outer = places[1].own.frames[1:] if places[1] else ()
    inlined = f" (inlined at {outer[0].words})" if outer else ""
    inner = f" (in {places[1].inner_words})" if places[1] and places[1].inner else ""
    message = (
        f"data race: this {second.words}{inlined}{inner} by block {second.block}, "
        f"thread {second.thread} and the {first.words}{where} by block {first.block}, "
        f"thread {first.thread}: nothing orders them"
    )
    shown = places[1].span() if places[1] else None
    if race.same_value:
        message += " (both write the same value)"
    if pairs > 1:
        message += f" ({pairs} pairs of instructions of these lines)"
    return KernelError(message, shown or spans[1])


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
