"""A kernel that was run on the simulator, as a picture: what it asks of memory, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warploom.emit import emit
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.machine.report import Report
from warploom.pictured import Pictured
from warploom.report.grid import rules, side_by_side
from warploom.report.page import listing
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.traffic import HEAT_NOTE, Noted, Stream, heat_html, heat_map, stream_words


@dataclass(frozen=True, slots=True, eq=False)
class Simulated(Pictured):
    """A kernel, what a launch of it did, and what its first warp asked of memory."""

    kernel: Kernel
    report: Report
    streams: tuple[Stream, ...]
    verdict: str = ""  # beside its specification


def simulated(kernel: Kernel, arguments: Sequence[Any]) -> Simulated:
    """Runs the kernel on these arguments, in place."""
    watch = Noted()
    report = run(kernel, list(arguments), watch=watch)
    return Simulated(kernel, report, tuple(watch.streams.values()))


def picture(seen: Simulated, brief: bool = False) -> Picture:
    del brief  # everything is known already
    heats = [heat_map(stream) for stream in seen.streams]
    code = [(line, "") for line in emit(seen.kernel, "cuda").splitlines()]
    facts = _facts(seen)
    told = "; ".join(f"{fact.label} {fact.value}" for fact in facts)
    return Picture(
        "Kernel",
        seen.kernel.name,
        facts,
        (Part("Memory", heat_html(heats), HEAT_NOTE), Part("The kernel", listing(code))),
        (Figure("memory", HEAT_NOTE, side_by_side("Requests to memory", heats)),),
        (
            f"{seen.kernel.name}: {told}",
            *(f"  {stream.title}: {stream_words(stream)}" for stream in seen.streams),
        ),
        None,
        ("flow.css",),
        rules(heats),
    )


def _facts(seen: Simulated) -> tuple[Fact, ...]:
    report = seen.report
    lost = report.bank_conflicts
    facts = [
        Fact("threads of a block", str(seen.kernel.threads)),
        Fact("sectors of a launch", str(report.sectors)),
        Fact("bytes used of those moved", f"{100 * report.efficiency:.0f} %"),
        Fact("lost to bank conflicts", f"{lost} passes", "bad" if lost else "good"),
        Fact("shuffles", str(report.shuffles)),
        Fact("barriers", str(report.barriers)),
    ]
    if seen.verdict:
        good = "good" if seen.verdict == "as specified" else "bad"
        facts.insert(0, Fact("result", seen.verdict, good))
    return tuple(facts)
