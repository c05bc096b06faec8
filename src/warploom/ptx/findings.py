"""What a launch found, as errors for a person: at the line of the source, where that is known."""

from __future__ import annotations

from warploom.errors import KernelError, Span
from warploom.machine.race import Race
from warploom.ptx.launch import LoadedModule


def race_fault(module: LoadedModule, race: Race) -> KernelError:
    """A race as an error at its second side; the first is named with its line."""
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
    return KernelError(message + (" (one value)" if race.same_value else ""), shown or spans[1])


def rounding_note(module: LoadedModule, race: Race) -> str:
    """Writes that are no race, as they differ by rounding alone: said where somebody looks on."""
    label = race.second.label
    where = f" at {module.places.words(label)}" if isinstance(label, Span) else ""
    return (
        f"threads store one sum{where}, which differs from lane to lane by the rounding of a "
        "fused product; no race"
    )
