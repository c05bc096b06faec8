"""Checks flags in global memory, in a certificate that one run stands for all schedules.

A flag lets a thread pass in every schedule only when all writes of it are done: its comparison is
false of all that the flag may hold before, and true of what it holds then. What was done before a
write is known to who passes if a release stands right before it, and an acquire right after the
wait. Whoever sets the flag back does so after all who wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from warploom.trust.checked import require

Node = tuple[Any, ...]
_WORD, _SIGN = 1 << 32, 1 << 31
_BLOCK, _CLUSTER, _GRID = 1, 2, 3
_ACQUIRE, _RELEASE = 1, 2
_SIGNED = {"lt": -1, "le": -1, "gt": 1, "ge": 1, "eq": 0, "ne": 0}  # which way they are true
_PLAIN = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


class Batch(Protocol):
    """What is asked of the events of blocks that ran together."""

    agents: list[dict[str, Any]]
    rows: dict[Node, list[Any]]

    def block(self, node: Node) -> int: ...

    def threads(self, node: Node) -> int: ...

    def reached_after(self, node: Node, earlier: Node) -> bool: ...

    def done_by_all(self, node: Node, earlier: Node) -> bool: ...


def check_flags(batch: Batch, flags: list[Any], loops: list[Any], cluster: int) -> bool:
    """Whether there are any that somebody waits for; raises where these may fail."""
    writes: dict[int, list[Node]] = defaultdict(list)
    waits: dict[int, list[Node]] = defaultdict(list)
    for node, (act, where, *_) in batch.rows.items():
        if act in ("come", "go") and where[0] == "flag":
            require(0 <= where[1] < len(flags), "an event is about no flag")
            (writes if act == "come" else waits)[where[1]].append(node)
    pairs = all(len(each) == 2 for each in flags) and {*writes, *waits} == set(range(len(flags)))
    require(pairs, "there are flags that are none")
    for flag, looks in waits.items():
        name, initial = str(flags[flag][0]), _whole(flags[flag][1])
        back = [node for node in writes[flag] if batch.rows[node][2]]
        first = [node for node in writes[flag] if not batch.rows[node][2]]
        for node in back:
            early = not all(batch.done_by_all(node, look) for look in looks)
            require(not early, f"{name} may be set back too soon")
        for look in looks:
            number = _whole(batch.rows[look][4])
            require(0 <= number < len(loops), "a wait for a flag is in no loop")
            loop = loops[number]
            _lets_pass_at_last(batch, name, initial, first, loop, _whole(batch.rows[look][3]))
        everybody = {batch.block(node) for node in (*writes[flag], *looks)}
        least = _least(everybody, cluster)
        for node in (*first, *looks):
            require(_ordered(batch, node, least), f"{name}: a release or acquire is missing")
    return bool(waits)


def _whole(value: Any) -> int:
    require(type(value) is int and -_SIGN <= value < _WORD, "a number of a flag is none")
    return int(value)


def _least(blocks: set[int], cluster: int) -> int:
    if len(blocks) == 1:
        return _BLOCK
    return _CLUSTER if len({block // cluster for block in blocks}) == 1 else _GRID


def _lets_pass_at_last(
    batch: Batch, name: str, initial: int, writes: list[Node], loop: Any, number: int
) -> None:
    compare, type_, until = loop
    signed = type_ == "s32"
    require(type_ in ("s32", "u32", "b32"), "a flag is of another type")
    word = _PLAIN.get(compare, compare)
    require(word in _HOLDS, "a comparison is none")
    require(signed or compare in _PLAIN or type_ == "u32" or word in ("eq", "ne"), "it is unsigned")
    word = word if until else _OPPOSITE[word]

    def passes(value: int) -> bool:
        return _HOLDS[word](_as(value, signed), _as(number, signed))

    require(not passes(initial), f"{name} lets pass before it is written")
    stores = [node for node in writes if not batch.rows[node][4]]
    if stores:
        alone = len(writes) == 1 and batch.threads(writes[0]) == 1
        require(alone, f"{name} is stored to more than once")
        require(passes(batch.rows[stores[0]][3]), f"{name} is never what is waited for")
        return
    parts = [_as(batch.rows[node][3], True) for node in writes for _ in range(batch.threads(node))]
    total = _as(initial, signed) + sum(parts)
    grows = all(part > 0 for part in parts) and 0 <= total < _SIGN
    require(grows and passes(total), f"{name} is never what is waited for")
    # A comparison that is true from some number on is false of less than all if it is so of most.
    rises = _SIGNED[word] > 0 or word == "eq"
    most = total - min(parts, default=0)
    require(len(parts) == 1 or (rises and not passes(most)), f"{name} may let pass too soon")


def _as(value: int, signed: bool) -> int:
    value %= _WORD
    return value - _WORD if signed and value >= _SIGN else value


def _ordered(batch: Batch, node: Node, least: int) -> bool:
    """A release stands right before a write, an acquire right after a wait, in such a scope."""
    writes = batch.rows[node][0] == "come"
    for each in _beside(batch, node, -1 if writes else 1):
        act, where, phase, scope, ways, _ = batch.rows[each]
        if act == "orders":
            if ways & (_RELEASE if writes else _ACQUIRE) and scope >= least:
                return True
            continue
        flagged = act in ("come", "go") and where[0] == "flag"
        if not flagged or (act != batch.rows[node][0] and not phase):
            return False
    return False


def _beside(batch: Batch, node: Node, step: int) -> Iterator[Node]:
    """The events of an agent on one side of another, from near to far."""
    _, agent, at = node
    count = len(batch.agents[agent]["events"])
    for number in range(at + step, count if step > 0 else -1, step):
        yield ("e", agent, number)
