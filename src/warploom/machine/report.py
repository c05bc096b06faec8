"""What a launch did, whichever evaluator ran it: its shape, its counters, the races it had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from html import escape
from math import prod
from typing import Any

from warploom.errors import DeviceError
from warploom.machine.counters import Counters
from warploom.machine.overlap import Footprint
from warploom.machine.proof import Explored, Proof
from warploom.machine.race import Race

_FIGURES = [each.name for each in fields(Counters) if each.name != "serving"]


class UncountedError(DeviceError, AttributeError):
    """A figure of a launch that nobody asked for; `hasattr` is False of it."""


@dataclass(slots=True, repr=False)
class Report(Counters):
    """What a launch did. Printed it is a few lines, with the figures that were counted.

    Figures that nobody asked for are absent: reading one is an error that says which option counts
    it. `counted` says whether somebody asked, and `races_checked` whether races were looked for.

    `mix` counts thread executions by opcode, where there are opcodes. `races` has one for each
    pair of instructions; a launch that stops at the first race gives none, it raises. `rounding`
    has those pairs of writes that differ by the rounding of a fused sum, where they are no races.
    """

    grid: tuple[int, int, int] = (1, 1, 1)
    threads: int = 1  # of a block
    mix: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    engine: str = "numpy"  # what ran it
    in_pieces: bool = False  # whether compiled code computed for the evaluator
    cores: int = 1  # and on how many
    races: list[Race] = field(default_factory=list)
    rounding: list[Race] = field(default_factory=list)
    output: list[str] = field(default_factory=list)  # what printf of the kernel said
    kernel: str = ""  # its name
    fidelity: str = ""  # what of it was exact, approximate and not covered, where that is known
    counted: bool = False
    races_checked: bool = False
    proof: Proof | None = None  # for what this run stands, where that was asked for
    explored: Explored | None = None  # other schedules that were run, where that was asked for
    footprint: Footprint | None = None  # what it touched, for a launch that overlaps it

    def __str__(self) -> str:
        head, *rest = self._sentences()
        return "\n".join([head, *(f"  {each}" for each in rest)])

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        """For a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    def _sentences(self) -> Iterator[str]:
        shape = f"{number_of(prod(self.grid), 'block')} of {number_of(self.threads, 'thread')}"
        yield f"{self.kernel or 'a kernel'}: {shape}{self._ran}"
        executed = f"; {self.thread_instructions} thread instructions" if self.mix else ""
        yield self._found + executed
        if self.counted:
            yield (
                f"{self.sectors} sectors of global memory; "
                f"{number_of(self.bank_conflicts, 'bank conflict')}; "
                f"{number_of(self.divergent_branches, 'divergent branch', 'es')}; "
                f"{number_of(self.barriers, 'barrier')}"
            )

    def drop_uncounted(self) -> None:
        """Takes away the figures of memory and lanes, none of which was counted."""
        for each in _FIGURES:
            delattr(self, each)

    def __getattr__(self, name: str) -> Any:
        """Only what is absent comes here."""
        if not name.startswith("_") and hasattr(Counters, name):
            raise UncountedError(
                f"'{name}' was not counted in this launch", advice="launch it with counters=True"
            )
        raise AttributeError(f"a report has no '{name}'")

    @property
    def _ran(self) -> str:
        """By whom, if the clock ran."""
        cores = f" on {self.cores} cores" if self.cores > 1 else ""
        return f"; {self.seconds:.2g} s by engine '{self.engine}'{cores}" if self.seconds else ""

    @property
    def _found(self) -> str:
        if not self.races_checked:
            return "races were not looked for"
        return number_of(len(self.races), "data race") if self.races else "no data races"

    @property
    def counters(self) -> Counters:
        """The figures that counting adds."""
        return self

    @property
    def thread_instructions(self) -> int:
        return sum(self.mix.values())


def number_of(number: int, what: str, ending: str = "s") -> str:
    """
    >>> number_of(1, "block"), number_of(2, "branch", "es")
    ('1 block', '2 branches')
    """
    return f"{number} {what}{'' if number == 1 else ending}"
