"""What attention computes: sizes, types, and which keys a query sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from warploom.errors import CheckError
from warploom.kernel.dtype import DType, bf16, f16
from warploom.loopnest.attention.scores import ScoreMap

Kind: TypeAlias = Literal["bf16", "f16"]
HEAD_SIZES = (64, 96, 128, 192, 256)
LARGEST = 1e30  # of a scale: it and what is over it are single precision, also times log2 e


@dataclass(frozen=True, slots=True)
class Attention:
    """Arrays are (batch, heads, rows, head), dense; `groups` of query heads share one of keys.

    The last query sees the last key: `causal` ones see none after that but `after` more (fewer, if
    that is below zero), and with a `window` only so many up to there. `sums` asks for the logarithm
    of each row's sum of exponentials, too. A `map` is what scores become before they are scaled.
    """

    batch: int
    heads: int
    queries: int
    keys: int
    head: int
    causal: bool = False
    kind: Kind = "bf16"
    groups: int = 1
    window: int | None = None
    sums: bool = False
    scale: float | None = None
    after: int = 0
    map: ScoreMap | None = None

    def __post_init__(self) -> None:
        if self.head not in HEAD_SIZES:
            raise CheckError(f"a head of {self.head} numbers", advice=f"one of {HEAD_SIZES}")
        if min(self.batch, self.heads, self.queries, self.keys, self.groups) < 1:
            raise CheckError("attention has a size below 1")
        if self.heads % self.groups:
            raise CheckError(
                f"{self.heads} heads of queries, {self.groups} for each head of keys",
                advice="heads are a multiple of the heads in a group",
            )
        if not 1 / LARGEST <= self.factor <= LARGEST:
            raise CheckError(
                f"a scale of {self.scale}", advice=f"a number from {1 / LARGEST:g} to {LARGEST:g}"
            )
        if self.window is not None and self.window < 1:
            raise CheckError(f"a window of {self.window} keys", advice="at least 1")
        if self.after and not self.causal:
            raise CheckError(f"{self.after} keys after a query's own", advice="only if causal")

    @property
    def dtype(self) -> DType:
        return bf16 if self.kind == "bf16" else f16

    @property
    def all_heads(self) -> int:
        return self.batch * self.heads

    @property
    def factor(self) -> float:
        """What products of queries and keys are multiplied with."""
        return self.head**-0.5 if self.scale is None else self.scale

    @property
    def shift(self) -> int:
        """How far the last key that a query sees is after the query's own number."""
        return self.keys - self.queries

    @property
    def upper(self) -> int | None:
        """The last key that query 0 sees; None if all see the last one."""
        return self.shift + self.after if self.causal else None

    @property
    def lower(self) -> int | None:
        """The first key that query 0 sees, below zero if there are more; None if all see key 0."""
        return None if self.window is None else self.shift - self.window + 1

    @property
    def has_empty_rows(self) -> bool:
        """Whether some query sees no key."""
        upper, lower = self.upper, self.lower
        none = upper is not None and (upper < 0 or (lower is not None and lower > upper))
        return none or (lower is not None and self.queries - 1 + lower > self.keys - 1)

    def blocks(self, first: int, last: int, keys: int) -> tuple[int, int]:
        """From which to before which block of so many keys these queries see; at least one."""
        begin, end = 0, -(-self.keys // keys)
        if self.upper is not None:
            end = max(-(-min(max(last + 1 + self.upper, 0), self.keys) // keys), 1)
        if self.lower is not None:
            begin = min(max(first + self.lower, 0) // keys, end - 1)
        return begin, end

    def sizes(self, name: str) -> tuple[int, ...]:
        """The shape of an array of the kernel."""
        own = {"q": self.queries, "k": self.keys, "v": self.keys, "o": self.queries}
        if name == "lse":
            return self.batch, self.heads, self.queries
        heads = self.heads // (self.groups if name in "kv" else 1)
        return self.batch, heads, own[name], self.head
