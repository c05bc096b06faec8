"""Grids that meet (`grid.sync()` of cooperative groups): a barrier of all blocks in the driver's
workspace.

One thread of each block adds to a word of it, the first block so much that the highest bit turns
when all have added, and looks at the word until that bit is another than before. So the loop ends
in every order when all have come, and not before: it is a barrier whose phases are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.skeleton import GRID, TURNS, Act, FlagLoop, Recorded
from warploom.ptx.ir import Immediate, Instruction, Register
from warploom.ptx.prove.conditions import Failed
from warploom.ptx.prove.spins import read_keys, written_keys

_TURNED = {("gt", -1): False, ("ge", 0): False, ("lt", 0): True, ("le", -1): True}
_ADDS = {"add", "release", "gpu", "u32"}
_LOOKS = {"acquire", "gpu", "u32"}
_HALF = 1 << 31


@dataclass(slots=True)
class GridLoops:
    """The loops of a kernel in which threads wait for the grid, by identity of their last block."""

    code: Code
    found: dict[int, FlagLoop] = field(default_factory=dict)
    steps: set[int] = field(default_factory=set)  # where those that look and that add stand

    def __post_init__(self) -> None:
        for rank in range(len(self.code.blocks)):
            self._look(rank)

    def _look(self, rank: int) -> None:
        """Whether a block asks for a turned bit, and begins again where it did not turn."""
        block = self.code.blocks[rank]
        inside = [flow.instruction for flow in block.passages]
        branch = block.leaving
        if len(inside) != 3 or branch is None or block.barrier is not None or block.leaves:
            return
        load, xor, compared = inside
        if any(ins.predicate for ins in inside) or not _is_look(load) or len(block.successors) != 2:
            return
        added = self._added(load, xor)
        turned = _asks_for_turn(xor, compared)
        predicate = branch.instruction.predicate
        if added is None or turned is None or predicate is None:
            return
        if written_keys(compared) != [predicate.key] or not self._alone(inside, branch.instruction):
            return
        # The first successor is where the branch goes that is taken.
        taken = turned != branch.instruction.negated
        if block.successors[0 if not taken else 1] != rank:
            return
        span = self.code.module.span(load)
        self.found[id(block)] = FlagLoop(span, TURNS, "u32", 0, -1, holds=turned, taken=taken)
        self.steps |= {load.start, added.start}

    def _added(self, load: Instruction, xor: Instruction) -> Instruction | None:
        """What added to the word before the loop, and gave the word as it was."""
        if xor.opcode != "xor" or xor.modifiers != ("b32",):
            return None
        seen = written_keys(load)
        others = [key for key in read_keys(xor) if key not in seen]
        if len(others) != 1 or len(read_keys(xor)) != 2:
            return None
        made = [ins for ins in self._every() if others[0] in written_keys(ins)]
        reads = [ins for ins in self._every() if others[0] in read_keys(ins)]
        if len(made) != 1 or reads != [xor] or made[0].predicate is not None:
            return None
        right = made[0].opcode == "atom" and set(made[0].modifiers) - {"global"} == _ADDS
        return made[0] if right and made[0].operands[1] == load.operands[1] else None

    def _alone(self, inside: list[Instruction], branch: Instruction) -> bool:
        """Whether what a loop makes is read by its next step alone."""
        steps = [*inside, branch]
        for at, ins in enumerate(inside):
            for key in written_keys(ins):
                readers = [each for each in self._every() if key in read_keys(each)]
                if readers != [steps[at + 1]]:
                    return False
        return True

    def _every(self) -> Iterator[Instruction]:
        for block in self.code.blocks:
            for flow in (*block.passages, *filter(None, (block.leaving, block.coming))):
                yield flow.instruction


def _is_look(ins: Instruction) -> bool:
    plain = ins.opcode == "ld" and set(ins.modifiers) - {"global"} == _LOOKS
    return plain and isinstance(ins.operands[0], Register)


def _asks_for_turn(xor: Instruction, compared: Instruction) -> bool | None:
    """Whether a comparison holds where the highest bit has turned, or where it has not."""
    if compared.opcode != "setp" or len(compared.operands) != 3 or len(compared.modifiers) != 2:
        return None
    number = compared.operands[2]
    if compared.modifiers[1] != "s32" or not isinstance(number, Immediate):
        return None
    if read_keys(compared) != written_keys(xor):
        return None
    return _TURNED.get((compared.modifiers[0], int(number.value)))


def check_grids(recorded: Recorded) -> Iterator[Failed]:
    """flags: of those that come to a phase one adds a half less the others, and these one each."""
    phases: dict[int, list[int]] = {}
    sites: dict[int, int] = {}
    for agent in recorded.agents:
        for event in agent.events:
            if event.act is Act.COME and event.where == GRID:
                phases.setdefault(event.phase, []).extend([event.amount] * len(agent.threads))
                sites[event.phase] = event.site
    for phase, amounts in phases.items():
        others = len(amounts) - 1
        if sorted(amounts) != [1] * others + [_HALF - others]:
            message = "what the blocks add does not turn the bit when all of them have come"
            yield Failed("flags", message, sites[phase])
