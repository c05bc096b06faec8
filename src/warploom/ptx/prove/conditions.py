"""The conditions under which every schedule has the events and phases of one run.

Each is checked on the skeleton's guaranteed order (`order`). An mbarrier that all of them hold of
has the same arrivals, bytes and waits in each of its phases whoever comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from warploom.ptx.emulate.skeleton import COUNTS, NOWHERE, Act, Ended, Event, Recorded
from warploom.ptx.prove.handed import Allowed, Manual
from warploom.ptx.prove.order import COUNTED, Order, Place

MOST_BYTES = 1 << 20  # of one phase


@dataclass(frozen=True, slots=True)
class Failed:
    """A condition that does not hold, why, and the place of the event in question."""

    condition: str
    message: str
    site: int = NOWHERE


@dataclass(slots=True)
class Conditions:
    recorded: Recorded
    order: Order = field(init=False)
    _plain: Order | None = None  # whatever is released
    told: dict[Allowed, Order] = field(default_factory=dict)  # by what is taken for wide enough
    init: dict[int, list[Place]] = field(default_factory=dict)
    fences: dict[int, list[int]] = field(default_factory=dict)  # by agent
    exits: dict[int, list[Place]] = field(default_factory=dict)  # by block
    uses: dict[int, list[tuple[Place, Event]]] = field(default_factory=dict)  # by mbarrier

    def __post_init__(self) -> None:
        strict = self.recorded.strict
        self.order = self._told(Allowed.NOTHING) if strict else Order(self.recorded.agents)
        for place, event in self.order.each():
            if event.act is Act.INIT:
                self.init.setdefault(event.where, []).append(place)
            elif event.act in (Act.INVAL, Act.WAIT, Act.TOKEN, *COUNTED):
                self.uses.setdefault(event.where, []).append((place, event))
            elif event.act is Act.FENCE:
                self.fences.setdefault(place[0], []).append(place[1])
            elif event.act is Act.EXIT:
                block = self.recorded.agents[place[0]].block
                self.exits.setdefault(block, []).append(place)

    @property
    def plain(self) -> Order:
        """The order of what is done, whether or not anybody releases it."""
        if self._plain is None:
            strict = self.recorded.strict
            self._plain = Order(self.recorded.agents) if strict else self.order
        return self._plain

    def _told(self, excused: Allowed) -> Order:
        """The order that is released and acquired all the way."""
        if excused not in self.told:
            homes = [each.block for each in self.recorded.mbarriers]
            manual = Manual(homes, excused)
            self.told[excused] = Order(self.recorded.agents, manual=manual)
        return self.told[excused]

    def failed(self) -> Iterator[Failed]:
        for broken in self.recorded.broken:
            yield Failed(broken.condition, broken.message, broken.site)
        if self.order.cycle is not None:
            site = self.order.event(self.order.cycle).site
            yield Failed("order", "this waits for what can only come after it", site)
            return
        for ended in self.recorded.mbarriers:
            yield from self._balanced(ended)
        if self.recorded.strict:
            yield from self.outlived()
        for place, event in self.order.each():
            for check in _CHECKS.get(event.act, ()):
                yield from check(self, place, event)

    # -- mbarriers ------------------------------------------------------------------------------

    def _barrier(self, event: Event) -> Ended:
        found: Ended = self.recorded.mbarriers[event.where]
        return found

    def _balanced(self, ended: Ended) -> Iterator[Failed]:
        """C5: bytes that were expected came, and no phase lacks bytes alone."""
        if ended.pending == 0 and ended.bytes:  # none are pending after all were dropped, too
            yield Failed("C5", f"{ended.name}: {ended.bytes} bytes of its last phase never come")
        if ended.most >= MOST_BYTES:
            yield Failed(
                "C5", f"{ended.name}: {ended.most} bytes in one phase; {MOST_BYTES - 1} at most"
            )

    def first_phase(self, place: Place, event: Event) -> Iterator[Failed]:
        """C1: nothing is counted in a phase that may come while the one before is not complete."""
        if event.phase >= 1 and not self.order.completed((event.where, event.phase - 1), place):
            what = _SPOKEN[event.act]
            yield Failed(
                "C1", f"{self._barrier(event).name}: {what} of phase {event.phase} may come "
                f"before phase {event.phase - 1} is complete", event.site,
            )  # fmt: skip

    def right_parity(self, place: Place, event: Event) -> Iterator[Failed]:
        """C2: a parity is asked for only when the phase before is complete: else an older one of
        the same parity answers."""
        if event.phase >= 1 and not self.order.completed((event.where, event.phase - 1), place):
            yield Failed(
                "C2", f"{self._barrier(event).name}: this wait for phase {event.phase} may come "
                f"before phase {event.phase - 1} is complete, when an older phase of the same "
                "parity lets it pass", event.site,
            )  # fmt: skip

    def in_time(self, place: Place, event: Event) -> Iterator[Failed]:
        """C3: a wait has passed before the phase after its own can be complete."""
        after = event.phase + 1
        if after >= self._barrier(event).phases:
            return
        if not any(
            self._after(place, c) for c in self.order.contributions.get((event.where, after), ())
        ):
            which = f"phase {event.phase}" if event.phase >= 0 else "the phase before the first"
            yield Failed(
                "C3", f"{self._barrier(event).name}: this wait for {which} may come so late that "
                f"phase {after} is complete, too", event.site,
            )  # fmt: skip

    def _after(self, place: Place, other: Place) -> bool:
        """Whether an event is passed before another one is reached."""
        return self.order.before(place, other)

    def expected_first(self, place: Place, event: Event) -> Iterator[Failed]:
        """C4: bytes that are expected without an arrival are so before an arrival of the phase."""
        if event.phase >= self._barrier(event).phases or (event.act is Act.LATER and event.amount):
            return
        phase = (event.where, event.phase)
        arrivals = (
            c for c in self.order.contributions.get(phase, ())
            if self.order.event(c).act is Act.ARRIVE
        )  # fmt: skip
        if not any(self._after(place, c) for c in arrivals):
            yield Failed(
                "C4", f"{self._barrier(event).name}: phase {event.phase} may be complete before "
                "this is counted in it", event.site,
            )  # fmt: skip

    def initialised(self, place: Place, event: Event) -> Iterator[Failed]:
        """init: one thread initialises an mbarrier, before every use."""
        (first, *more) = self.init.get(event.where, [(-1, -1)])
        name = self._barrier(event).name
        if more or first[0] < 0 or len(self.recorded.agents[first[0]].threads) > 1:
            yield Failed("init", f"{name} is initialised by several threads", event.site)
        elif not self.order.initialised(event.where, place):
            unfenced = list(self._fenced(first, place, event))
            known = self.plain if unfenced else self.order  # a fence would tell, too
            if not known.before(first, place):
                yield Failed("init", f"{name} may be used before it is initialised", event.site)
            else:
                yield from unfenced

    def _fenced(self, first: Place, place: Place, event: Event) -> Iterator[Failed]:
        """fence: other blocks see that an mbarrier is initialised only after a fence; so do copies,
        by the manual."""
        far = self.recorded.agents[place[0]].block != self._barrier(event).block
        agent, at = first
        if not far and (event.act is not Act.COPY or waived(self.recorded, agent, at)):
            return
        if not any(k > at and self.order.before((agent, k), place)
                   for k in self.fences.get(agent, ())):  # fmt: skip
            whom = "another block" if far else "a copy"
            yield Failed(
                "fence", f"{self._barrier(event).name}: no fence.mbarrier_init stands between its "
                f"initialisation and its use by {whom}", event.site,
            )  # fmt: skip

    def made_invalid(self, place: Place, event: Event) -> Iterator[Failed]:
        """mbarrier: made invalid after all that uses it, and before its place is used again."""
        own = self._barrier(event)
        for other, use in self.uses.get(event.where, ()):
            done = other == place or self.order.before_all(other, place)
            if use.act in (Act.COPY, Act.LATER):
                done &= self.order.completed((use.where, use.phase), place)
            if not done:
                yield Failed("mbarrier", f"{own.name} may be made invalid while it is still used",
                             event.site)  # fmt: skip
                return
        later = range(event.where + 1, len(self.recorded.mbarriers))
        for number in later:
            again = self.recorded.mbarriers[number]
            inits = (
                self.init.get(number, [])
                if (again.block, again.byte) == (own.block, own.byte)
                else []
            )
            if not all(self.order.before_all(place, each) for each in inits):
                yield Failed("mbarrier", f"{own.name} may be initialised again before it is made "
                             "invalid", event.site)  # fmt: skip

    # -- barriers of threads ----------------------------------------------------------------------

    def generation(self, place: Place, event: Event) -> Iterator[Failed]:
        """barrier: C1 of barriers of threads; of products their warps' own order is enough, and
        flags are looked at apart."""
        kind = event.where[0]
        if kind in ("wgmma", "flag", "registers") or event.phase < 1:
            return
        if not self.order.completed((event.where, event.phase - 1), place):
            name = f"barrier {event.where[2]}" if kind == "barrier" else f"the {kind}'s barrier"
            yield Failed(
                "barrier", f"{name}: this arrival may come before all have come to the time "
                "before, and be counted there", event.site,
            )  # fmt: skip

    # -- beginnings and ends ---------------------------------------------------------------------

    def begun(self, place: Place, event: Event) -> Iterator[Failed]:
        """begin: a block has begun before another one touches its shared memory. That is no matter
        of memory: whoever hears of it in any way may count on it."""
        own = self.recorded.agents[place[0]].block
        for block in set(event.blocks) - {own}:
            there = (a for a, each in enumerate(self.recorded.agents) if each.block == block)
            if not any(self.plain.before((a, 0), place) for a in there):
                message = f"block {self.recorded.first + block} may not have begun when this "
                yield Failed("begin", message + "reaches its shared memory", event.site)

    def copied_in_time(self, _: Place, event: Event) -> Iterator[Failed]:
        """exit: copies are complete before a block ends whose shared memory they touch."""
        phase = (event.where, event.phase)
        done = event.phase < self._barrier(event).phases
        for block in event.blocks:
            exits = self.exits.get(block, [])
            if not (done and any(self.order.completed(phase, each) for each in exits)):
                name = f"block {self.recorded.first + block}"
                yield Failed("exit", f"{name} may end before this copy is complete", event.site)

    def outlived(self) -> Iterator[Failed]:
        """exit: by the manual, a cp.async is done only for who has waited for it."""
        message = "a thread may end before this copy is done"
        for site in self.recorded.left:
            yield Failed("exit", message, site)
        for place, event in self.order.each():
            if event.act is Act.LATER:
                exits = self.exits.get(self.recorded.agents[place[0]].block, [])
                phase = (event.where, event.phase)
                if not any(self.order.completed(phase, each) for each in exits):
                    message = (
                        "a block may end before this arrival comes, as it does when copies are done"
                    )
                    yield Failed("exit", message, event.site)

    def reached_in_time(self, place: Place, event: Event) -> Iterator[Failed]:
        """exit: accesses of another block's shared memory are done before that block ends, and what
        tells of that releases it all the way."""
        for block in event.blocks:
            if self._done(place, event, block) is not None:
                continue
            name = f"block {self.recorded.first + block}"
            message = f"{name} may have ended when this reaches its shared memory"
            if any(self.plain.before(place, each) for each in self.exits.get(block, [])):
                message = f"{name} may end while this is under way in its shared memory: not all"
                message += " arrivals and waits on the way there release it, and acquire it"
            yield Failed("exit", message, event.site)

    def _done(self, place: Place, event: Event, block: int) -> Allowed | None:
        """What has to be excused for an access to be over when a block ends."""
        ways = [Allowed.NOTHING]
        if not self.recorded.strict:
            ways += [Allowed.WAITS] + [Allowed.ALL] * bool(event.how)
        exits = self.exits.get(block, [])
        for excused in ways:
            order = self._told(excused)
            if any(order.before(place, e) or self._counted(order, place, e) for e in exits):
                return excused
        return None

    def _counted(self, order: Order, place: Place, end: Place) -> bool:
        """Whether a phase is complete that has counted what an access of an mbarrier does."""
        agent, at = place
        if self.order.event(place).how != COUNTS:
            return False
        site = self.order.event(place).site
        later = (e for e in order.agents[agent].events[at:] if e.act in COUNTED and e.site == site)
        return any(order.completed((e.where, e.phase), end) for e in islice(later, 1))

    def narrow(self) -> bool:
        """Whether accesses are done only if a scope is taken for wider than it is."""
        return any(
            self._done(place, event, block) not in (None, Allowed.NOTHING)
            for place, event in self.order.each() if event.act is Act.REMOTE
            for block in event.blocks
        )  # fmt: skip

    def multiplied_in_time(self, place: Place, event: Event) -> Iterator[Failed]:
        """exit: products have been waited for before their threads end."""
        if event.where[0] != "wgmma":
            return
        agent, at = place
        later = self.order.agents[agent].events[at:]
        if not any(e.act is Act.GO and e.where == event.where and e.phase >= event.phase
                   for e in later):  # fmt: skip
            yield Failed("exit", "a thread may end before its product is complete", event.site)


def waived(recorded: Recorded, agent: int, at: int) -> bool:
    """Whether an mbarrier needs no fence for copies of its own block: by practice, where the thread
    that initialises it passes none that is made for this."""
    later = recorded.agents[agent].events[at + 1 :]
    return not recorded.strict and not any(e.act is Act.FENCE and e.amount for e in later)


def narrow(recorded: Recorded) -> bool:
    """Whether it is assumed that who is told in the scope of a block knows of other blocks."""
    if not recorded.complete or recorded.cluster == 1:
        return False
    made = Conditions(recorded)
    return made.order.cycle is None and made.narrow()


def outlives(recorded: Recorded) -> bool:
    """Whether a cp.async may be under way when its block ends."""
    if not recorded.complete:
        return False
    made = Conditions(recorded)
    return made.order.cycle is None and any(made.outlived())


Check = Callable[[Conditions, Place, Event], Iterator[Failed]]
_SPOKEN = {
    Act.ARRIVE: "this arrival", Act.EXPECT: "these expected bytes", Act.COPY: "this copy",
    Act.LATER: "this arrival",
}  # fmt: skip
_CHECKS: dict[Act, tuple[Check, ...]] = {
    **dict.fromkeys(COUNTED, (Conditions.initialised, Conditions.first_phase)),
    Act.WAIT: (Conditions.initialised, Conditions.right_parity, Conditions.in_time),
    Act.TOKEN: (Conditions.initialised, Conditions.in_time),
    Act.COME: (Conditions.generation, Conditions.multiplied_in_time),
    Act.REMOTE: (Conditions.begun, Conditions.reached_in_time),
    Act.INVAL: (Conditions.initialised, Conditions.made_invalid),
}
_CHECKS[Act.EXPECT] += (Conditions.expected_first,)
_CHECKS[Act.LATER] += (Conditions.expected_first,)
_CHECKS[Act.COPY] += (Conditions.begun, Conditions.copied_in_time)


def check(recorded: Recorded) -> list[Failed]:
    """The conditions that do not hold, each once for each place."""
    if not recorded.complete:
        return [Failed("events", "the run has too many events to be kept")]
    found: dict[tuple[str, int], Failed] = {}
    for each in Conditions(recorded).failed():
        found.setdefault((each.condition, each.site), each)
    return list(found.values())
