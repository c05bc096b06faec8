"""What a launch did, whichever evaluator ran it: its shape, its counters, the races it had."""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.machine.counters import Counters
from warploom.machine.race import Race


@dataclass(slots=True)
class Report(Counters):
    """Memory figures are zero where nobody asked for them.

    `mix` counts thread executions by opcode, where there are opcodes. `races` has one for each
    pair of instructions; a launch that stops at the first race gives none, it raises. `rounding`
    has those pairs of writes that differ by the rounding of a fused sum, where they are no races.
    """

    grid: tuple[int, int, int] = (1, 1, 1)
    threads: int = 1  # of a block
    mix: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    engine: str = "numpy"  # what ran it
    cores: int = 1  # and on how many
    races: list[Race] = field(default_factory=list)
    rounding: list[Race] = field(default_factory=list)
    output: list[str] = field(default_factory=list)  # what printf of the kernel said

    @property
    def counters(self) -> Counters:
        """The figures that counting adds."""
        return self

    @property
    def thread_instructions(self) -> int:
        return sum(self.mix.values())
