"""How attention is cut up and moved: what is decided, with nothing left open."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.matrix.tiling import BARRIERS, REGISTERS, ROWS, SLACK

OWN = 24  # registers of a thread for what is no matrix
STEP = 16  # terms of a sum in one product


@dataclass(frozen=True, slots=True)
class AttentionTiling:
    """A block takes 64 queries for each of its `consumers`, and so many `keys` at once, in so many
    `stages`. Tiles of `together` heads are made together, that L2 keeps their keys. `persistent`
    blocks make several tiles, and bring `resident` blocks of queries at once. `ahead`: results
    of one block of keys are under way while scores of the next become weights; in `turns`, one
    warp group begins products after another.

    Where queries are few, those of all heads that share keys are `packed` into one tile, and keys
    are cut into `splits`, each for a block of its own: another kernel joins what they leave."""

    consumers: int = 2
    keys: int = 128
    stages: int = 2
    together: int = 1
    persistent: bool = True
    resident: int = 1
    ahead: bool = False
    turns: bool = False
    packed: bool = False
    splits: int = 1

    @property
    def queries(self) -> int:
        return ROWS * self.consumers

    @property
    def name(self) -> str:
        words = [f"{self.queries}×{self.keys}", f"{self.stages} stages", f"{self.together} heads"]
        words += [f"persistent, {self.resident} Q"] * self.persistent
        words += ["ahead"] * self.ahead + ["turns"] * self.turns
        words += [f"packed, {self.splits} splits"] * self.packed
        return ", ".join(words)

    def rows(self, attention: Attention) -> int:
        """How many rows all tiles have that have keys in common."""
        return attention.queries * (attention.groups if self.packed else 1)

    def heads(self, attention: Attention) -> int:
        return attention.all_heads // (attention.groups if self.packed else 1)

    def tiles(self, attention: Attention) -> int:
        high = -(-self.rows(attention) // self.queries)
        return high * self.heads(attention) * self.splits

    def shared_bytes(self, attention: Attention) -> int:
        row = attention.head * attention.dtype.bytes
        held = self.resident * self.queries + 2 * self.stages * self.keys
        return held * row + BARRIERS * (2 * self.stages + self.resident) + SLACK

    def registers(self, attention: Attention) -> int:
        """Returns those of a thread: products, their sums, and factors, two in a register."""
        return self.keys // 2 + attention.head // 2 + self.keys // 4

    def is_possible(self, attention: Attention, shared_most: int) -> bool:
        return (
            self.consumers in REGISTERS
            and (not self.turns or (self.ahead and self.consumers > 1))
            and (self.splits == 1 or self.may_split(attention))
            and self.keys % STEP == 0
            and self.registers(attention) + OWN <= REGISTERS[self.consumers][1]
            and self.shared_bytes(attention) <= shared_most
        )

    def may_split(self, attention: Attention) -> bool:
        """Whether all rows are in one tile, and each split has keys."""
        begin, end = attention.blocks(0, attention.queries - 1, self.keys)
        return (
            self.packed
            and self.rows(attention) <= self.queries
            and self.together == 1
            and self.splits <= end - begin
        )
