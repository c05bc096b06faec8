"""Checks a certificate that one run of a kernel stands for all schedules, by itself: nothing of the
emulator is used, nor of the proof that wrote it.

What is checked: each phase of an mbarrier has the arrivals and the bytes that it needs; the order
that follows from the events has no cycle; and on it the conditions hold under which every schedule
has these events. An order is kept as sets: for each event, all that is before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import Any

from warploom.trust.checked import Checked, TooMuchError, digest, require, shielded
from warploom.trust.schedule_assumed import OWN_COPIES, check_assumed
from warploom.trust.schedule_blocks import check_blocks
from warploom.trust.schedule_flags import check_flags
from warploom.trust.schedule_meetings import MEETINGS, check_meetings
from warploom.trust.schedule_registers import check_pools
from warploom.trust.schedule_rows import check_rows, check_waits
from warploom.trust.schedule_shape import check_groups, check_shape

_KEYS = {
    "kind", "version", "name", "grid", "block", "reach", "assumed", "registers", "batches",
    "digest",
}  # fmt: skip
_REACH = ("all schedules and all data", "all schedules with this data")
_COUNTED = ("arrive", "expect", "copy", "later")
_PASSES = ("wait", "token", "go")
_ACTS = (*_COUNTED, *_PASSES, "init", "come", "remote", "fence", "exit", "inval", "orders")
_OF_MBARRIERS = (*_COUNTED, "wait", "token", "init", "inval")
_BATCH = {"first", "cluster", "mbarriers", "flags", "loops", "agents"}
_MOST_NODES = 40_000
_WARP = 32
_MOST_BYTES = 1 << 20
_NOT_COVERED = (
    "that these are the events of the kernel",
    "that it needs no assumption which they do not show",
    "data races",
    "that what is counted on is released and acquired on its way",
    "that nothing is decided by who comes first",
)

Node = tuple[Any, ...]
Row = list[Any]


def check_schedule(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    return shielded(lambda: _check(record), lambda why: Checked((), why))


def _check(record: dict[str, Any]) -> Checked:
    require(set(record) == _KEYS, "it has other parts than it should")
    require(repr(record["version"]) == "3", "it is of another version")
    require(digest(record) == record["digest"], "it was changed after it was written")
    require(record["reach"] in _REACH, "it claims no proof")
    require(len(set(record["assumed"])) == len(record["assumed"]), "it assumes something twice")
    require([len(record[each]) for each in ("grid", "block")] == [3, 3], "there are three sides")
    require(all(_whole(side) > 0 for side in record["grid"]), "it has other blocks than its launch")
    blocks = threads = events = 0
    used = False
    fenced = OWN_COPIES not in record["assumed"]
    for batch in record["batches"]:
        found = _Batch(batch, record["registers"], fenced=fenced)
        used |= any(map(found.of_registers, found.rows))
        require(found.first == blocks, "blocks are left out, or there twice")
        blocks += check_blocks(batch["agents"], record["block"])
        require(blocks % found.cluster == 0, "a cluster is torn apart")
        check_rows(found.rows, found.mbarriers, max(a["block"] for a in batch["agents"]) + 1)
        check_waits(found.rows)
        check_shape(found.rows, batch["agents"], batch["mbarriers"])
        check_groups(found.rows, batch["agents"], prod(record["block"]))
        if found.check():
            require(len(record["batches"]) == 1, "blocks that wait for flags do not run together")
        check_assumed(found, found.flags, record["assumed"], record["registers"])
        threads += sum(agent["threads"] for agent in batch["agents"])
        events += len(found.rows)
    require(used or record["registers"] is None, "it says registers that nobody sets")
    clusters = {batch["cluster"] for batch in record["batches"]}
    require(len(clusters) == 1, "its clusters are of several sizes")
    require(blocks == prod(record["grid"]), "it has other blocks than its launch")
    shown = f"{record['name']!s:.80}: {events} events of {threads} threads are "
    shown += "the same in every schedule"
    caveats = tuple(str(each) for each in record["assumed"])
    data = ("that nothing is decided by data",) if record["reach"] == _REACH[0] else ("other data",)
    return Checked((shown,), "", (*_NOT_COVERED, *data, *caveats))


def _whole(value: Any) -> int:
    require(type(value) is int and -2 < value < 1 << 62, "there are numbers that are not whole")
    return int(value)


def _sets(group: Any) -> bool:
    return bool(group[0] == "registers")


def _key(where: Any) -> Any:
    return tuple(where) if isinstance(where, list) else where


class _Batch:
    """Blocks that ran together. A node is an event, ("e", agent, number), or the end of a phase,
    ("p", what, phase); `before` has the nodes before each, as bits."""

    def __init__(
        self, batch: dict[str, Any], registers: int | None, *, fenced: bool = True
    ) -> None:
        """`fenced`: copies need a fence behind the mbarriers of their own block, too."""
        self.fenced = fenced
        require(set(batch) == _BATCH, "a batch has other parts than it should")
        self.mbarriers = [(str(name), _whole(block), _whole(count))
                          for name, block, count, _ in batch["mbarriers"]]  # fmt: skip
        self.bytes = [_whole(byte) for _, _, _, byte in batch["mbarriers"]]
        self.flags, self.loops = batch["flags"], batch["loops"]
        self.first, self.cluster = _whole(batch["first"]), _whole(batch["cluster"])
        require(self.cluster > 0 and self.first % self.cluster == 0, "a cluster is torn apart")
        self.agents = batch["agents"]
        self.registers = registers
        self.rows: dict[Node, Row] = {}
        self.inits: dict[int, list[Node]] = defaultdict(list)
        self.uses: dict[int, list[Node]] = defaultdict(list)
        self.counted: dict[tuple[Any, int], list[Node]] = defaultdict(list)
        for a, agent in enumerate(self.agents):
            parts = {"block", "threads", "warps", "events"}
            require(set(agent) == parts, "an agent has other parts")
            warps = {_whole(each) for each in agent["warps"]}
            require(0 < _whole(agent["threads"]) <= _WARP * len(warps), "an agent has no threads")
            for k, row in enumerate(agent["events"]):
                self._read(("e", a, k), row)
            last = [row[0] == "exit" for row in agent["events"]]
            require(any(last) and last.index(True) == len(last) - 1, "a thread does not end once")
        require(len(self.rows) + len(self.counted) <= 1 << 22, "it is too large")
        if len(self.rows) + len(self.counted) > _MOST_NODES:
            raise TooMuchError(f"whether it holds: more than {_MOST_NODES} events")

    def _read(self, node: Node, row: Row) -> None:
        act, where, phase, amount, bytes_, blocks = row
        require(act in _ACTS, f"an event is of no kind: {act!r:.40}")
        where = _key(where)
        for number in (phase, amount, bytes_, *blocks):
            _whole(number)
        if act in _OF_MBARRIERS:
            require(0 <= _whole(where) < len(self.mbarriers), "an event is about no mbarrier")
        self.rows[node] = [act, where, phase, amount, bytes_, blocks]
        if act in _OF_MBARRIERS:
            (self.inits if act == "init" else self.uses)[where].append(node)
        if act in _COUNTED:
            require(amount >= 0 and bytes_ >= 0, "less than nothing arrives")
        if act in _COUNTED or act == "come":
            self.counted[where, phase].append(node)

    def block(self, node: Node) -> int:
        return _whole(self.agents[node[1]]["block"])

    def threads(self, node: Node) -> int:
        return _whole(self.agents[node[1]]["threads"])

    # -- order ------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Whether some wait for flags."""
        self.phases = [self._phases(number) for number in range(len(self.mbarriers))]
        self._rounds()
        for phase, left in check_meetings(self, self.cluster):
            self.counted[phase].append(left)
        given = [key for key in self.counted if isinstance(key[0], tuple) and _sets(key[0])]
        if given and self.registers is None:
            self._ordered()  # it has no cycle
        for key in given:
            del self.counted[key]  # that registers were waited for orders nothing else
        self._ordered()
        if self.registers is not None and any(map(self.of_registers, self.rows)):
            check_pools(self, _whole(self.registers))
        self.exits: dict[int, list[Node]] = defaultdict(list)
        for node in self.rows:
            if self.rows[node][0] == "exit":
                self.exits[self.block(node)].append(node)
        for node in self.rows:
            self._event(node)
        return check_flags(self, self.flags, self.loops, self.cluster)

    def of_registers(self, node: Node) -> bool:
        act, where = self.rows[node][:2]
        return act in ("come", "go") and _sets(where)

    def _ordered(self) -> None:
        """Sets `before` and `previous`, by taking nodes of which all that is before is taken."""
        needs: dict[Node, list[Node]] = {}
        self.previous: dict[Node, Node | None] = {}
        last: dict[int, Node] = {}
        for node in self.rows:
            self.previous[node] = last.get(node[1])
            needs[node] = [] if last.get(node[1]) is None else [last[node[1]]]
            last[node[1]] = node
            act, where, phase = self.rows[node][:3]
            if act in _PASSES and (where, phase) in self.counted:
                needs[node].append(("p", where, phase))
        for (where, phase), places in self.counted.items():
            needs["p", where, phase] = places
        self.place = {node: number for number, node in enumerate(needs)}
        self.before: dict[Node, int] = {}
        after: dict[Node, list[Node]] = defaultdict(list)
        left = {node: len(some) for node, some in needs.items()}
        for node, some in needs.items():
            for each in some:
                after[each].append(node)
        ready = [node for node, count in left.items() if not count]
        while ready:
            node = ready.pop()
            bits = 0
            for each in needs[node]:
                bits |= self.before[each] | 1 << self.place[each]
            self.before[node] = bits
            for each in after[node]:
                left[each] -= 1
                if not left[each]:
                    ready.append(each)
        require(len(self.before) == len(needs), "an event would have to be before itself")

    def reached_after(self, node: Node, earlier: Node) -> bool:
        """Whether something is over before an event is reached, which is before it has waited."""
        came = self.previous[node]
        if came is None or earlier not in self.place:
            return False
        return came == earlier or bool(self.before[came] >> self.place[earlier] & 1)

    def done_by_all(self, node: Node, earlier: Node) -> bool:
        """Whether each thread has done something before any thread reaches an event: those that
        do the same have met in between."""
        if earlier[1] != node[1] or self.threads(node) == 1:
            return self.reached_after(node, earlier)
        met: set[Any] = set()
        for number in range(earlier[2] + 1, node[2]):
            act, where, phase = self.rows["e", node[1], number][:3]
            if act in (*_COUNTED, "come") and (where, phase) in self.counted:
                met.add((where, phase))
            elif act in _PASSES and (where, phase) in met:
                return True
        return False

    # -- phases -----------------------------------------------------------------------------------

    def _rounds(self) -> None:
        """The rounds of each barrier follow one another."""
        rounds: dict[Any, set[int]] = defaultdict(set)
        for where, phase in self.counted:
            if isinstance(where, tuple) and where[0] in MEETINGS:
                rounds[where].add(phase)
        for where, found in rounds.items():
            require(found == set(range(len(found))), f"{where}: rounds are missing")

    def _phases(self, number: int) -> int:
        """How many phases of an mbarrier are complete; only the last may be not."""
        name, _, needed = self.mbarriers[number]
        mine = sorted(phase for where, phase in self.counted if where == number)
        require(mine == list(range(len(mine))), f"{name}: phases are missing")
        for phase in mine:
            arrived = expected = brought = 0
            for node in self.counted[number, phase]:
                act, _, _, amount, bytes_, _ = self.rows[node]
                count = self.threads(node)
                arrived += amount * count if act in ("arrive", "later") else 0
                expected += bytes_ * count if act in ("arrive", "expect") else 0
                brought += bytes_ * count if act == "copy" else 0
            require(arrived <= needed, f"{name}: phase {phase} has too many arrivals")
            require(max(expected, brought) < _MOST_BYTES, f"{name}: too many bytes in one phase")
            if arrived < needed:
                require(phase == mine[-1], f"{name}: phase {phase} has too few arrivals")
                return phase
            require(expected == brought, f"{name}: bytes of phase {phase} do not balance")
        return len(mine)

    # -- conditions -------------------------------------------------------------------------------

    def _event(self, node: Node) -> None:
        act, where, phase = self.rows[node][:3]
        if act in (*_COUNTED, "wait", "token", "inval"):
            self._initialised(node)
        if act == "inval":
            self._made_invalid(node)
        apart = act == "come" and where[0] in ("wgmma", "flag", "registers")
        follows = act in (*_COUNTED, "wait") or (act == "come" and not apart)
        if follows and phase >= 1:
            over = self.reached_after(node, ("p", where, phase - 1))
            require(over, f"{self._named(where)}: {act} of phase {phase} may come too soon")
        if act in ("wait", "token"):
            self._in_time(node)
        if act == "expect" or (act == "later" and not self.rows[node][3]):
            self._counted_in_time(node)
        if act in ("copy", "remote"):
            self._begun(node)
            self._over_before_exit(node)
        if act == "come" and where[0] == "wgmma":
            done = any(self.rows[other][0] == "go" and self.rows[other][1] == where
                       and self.rows[other][2] >= phase for other in self._later(node))  # fmt: skip
            require(done, "a product is not waited for")

    def _later(self, node: Node) -> Iterator[Node]:
        for number in range(node[2] + 1, len(self.agents[node[1]]["events"])):
            yield ("e", node[1], number)

    def _named(self, where: Any) -> str:
        return self.mbarriers[where][0] if isinstance(where, int) else str(where)

    def _initialised(self, node: Node) -> None:
        where = self.rows[node][1]
        name, block, count = self.mbarriers[where]
        inits = self.inits[where]
        require(len(inits) == 1 and self.threads(inits[0]) == 1, f"{name}: not initialised once")
        require(self.rows[inits[0]][3] == count, f"{name}: initialised for another count")
        require(self.reached_after(node, inits[0]), f"{name}: may be used too soon")
        if (self.rows[node][0] == "copy" and self.fenced) or self.block(node) != block:
            fenced = any(self.rows[each][0] == "fence" and self.reached_after(node, each)
                         for each in self._later(inits[0]))  # fmt: skip
            require(fenced, f"{name}: no fence after it is initialised")

    def _made_invalid(self, node: Node) -> None:
        """All that uses an mbarrier is over, and what is initialised in its place comes later."""
        own = self.rows[node][1]
        name, block, _ = self.mbarriers[own]
        for use in self.uses[own]:
            act, _, phase = self.rows[use][:3]
            over = use == node or self.done_by_all(node, use)
            if act in ("copy", "later"):
                over = over and self.reached_after(node, ("p", own, phase))
            require(over, f"{name} may be made invalid too soon")
        for number in range(own + 1, len(self.mbarriers)):
            if (self.mbarriers[number][1], self.bytes[number]) == (block, self.bytes[own]):
                later = all(self.done_by_all(each, node) for each in self.inits[number])
                require(later, f"{name} may be initialised again too soon")

    def _in_time(self, node: Node) -> None:
        _, where, phase = self.rows[node][:3]
        require(-1 <= phase < self.phases[where], f"{self._named(where)}: a wait for no phase")
        if phase + 1 < self.phases[where]:
            some = any(self.reached_after(each, node) for each in self.counted[where, phase + 1])
            require(some, f"{self._named(where)}: a wait for phase {phase} may come too late")

    def _counted_in_time(self, node: Node) -> None:
        _, where, phase = self.rows[node][:3]
        if phase < self.phases[where]:
            some = any(self.rows[each][0] == "arrive" and self.reached_after(each, node)
                       for each in self.counted[where, phase])  # fmt: skip
            require(some, f"{self._named(where)}: phase {phase} may be complete too soon")

    def _begun(self, node: Node) -> None:
        for block in self.rows[node][5]:
            first = [("e", a, 0) for a, each in enumerate(self.agents) if each["block"] == block]
            known = any(self.reached_after(node, each) for each in first)
            require(known or block == self.block(node), f"block {block} may not have begun")

    def _over_before_exit(self, node: Node) -> None:
        act, where, phase, _, _, blocks = self.rows[node]
        over: Node = ("p", where, phase) if act == "copy" else node
        if act == "copy":
            require(phase < self.phases[where], "a copy is never complete")
        for block in blocks:
            some = any(self.reached_after(each, over) for each in self.exits[block])
            require(some, f"block {block} may end too soon")
