"""Launches of a script that are looked at from outside: what each finds is noted, by tool.

While a `Watch` is on, `warploom.emulate` launches with its checks. Data races are noted, and the
script goes on; what ends a launch is noted, too, and raised as always.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from warploom.choices import TOOLS
from warploom.errors import KernelError, LimitError, Span
from warploom.machine.report import Report
from warploom.ptx.emulate.asked import Model
from warploom.ptx.findings import race_findings, tool_of
from warploom.ptx.launch import Kernel


@dataclass(frozen=True, slots=True)
class Finding:
    """What one tool found; `other` is the second place of a race."""

    tool: str
    kernel: str
    error: KernelError
    other: Span | None = None
    other_writes: bool = False
    pairs: int = 1


@dataclass(slots=True)
class Watch:
    """What the chosen tools found in all launches. `unseen` are launches that ended before their
    end, at what no chosen tool tells of, or at a time limit: of the rest of them nothing is known.
    """

    tools: Collection[str] = TOOLS
    strict: bool = False  # also races that change nothing
    model: Model = "practice"  # by which rules races are judged
    findings: list[Finding] = field(default_factory=list)
    unseen: list[KernelError | LimitError] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    output: list[str] = field(default_factory=list)  # what kernels printed
    launches: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """What a launch is asked for."""
        return {
            "races": "all" if "racecheck" in self.tools else False, "benign": not self.strict,
            "check": "initcheck" in self.tools, "model": self.model,
        }  # fmt: skip

    def launch(self, kernel: Kernel, run: Callable[[], Report]) -> Report:
        """Runs a launch, and notes what it finds."""
        self.launches += 1
        try:
            report = run()
        except KernelError as error:
            self.output += error.output
            tool = tool_of(error)
            if tool in self.tools:
                self.findings.append(Finding(tool, kernel.name, error))
            else:
                self.unseen.append(error)
            raise
        except LimitError as error:
            self.unseen.append(error)
            raise
        self.reports.append(report)
        self.output += report.output
        self.findings += [
            Finding("racecheck", kernel.name, each.error, each.other, each.wrote, each.pairs)
            for each in race_findings(kernel.owner, report.races)
        ]
        return report


_watching: list[Watch] = []  # the last one is on; a list, as threads of a script share it


def current_watch() -> Watch | None:
    return _watching[-1] if _watching else None


@contextmanager
def watched(watch: Watch) -> Iterator[Watch]:
    """Within it, every launch of `warploom.emulate` is noted."""
    _watching.append(watch)
    try:
        yield watch
    finally:
        _watching.remove(watch)
