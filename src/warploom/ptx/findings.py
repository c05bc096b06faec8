"""What a launch found, as errors for a person: at the line of the source, where that is known."""

from __future__ import annotations

from warploom.errors import KernelError, Span
from warploom.machine.race import Race
from warploom.ptx.emulate.launch import LoadedModule


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
    outer = places[1].frames[1:] if places[1] else ()
    inlined = f" (inlined at {outer[0].words})" if outer else ""
    message = (
        f"data race: this {second.words}{inlined} by block {second.block}, thread {second.thread} "
        f"and the {first.words}{where} by block {first.block}, thread {first.thread}: "
        "nothing orders them"
    )
    shown = places[1].span() if places[1] else None
    return KernelError(message + (" (one value)" if race.same_value else ""), shown or spans[1])
