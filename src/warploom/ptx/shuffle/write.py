"""A plan as edits of the text: only statements are put in, everything else stays as it was.

A load that is N lanes away from its source becomes

    shfl.sync.down.b32  %f7, source, N, 31, mask;     // .up for N < 0
    @corner ld.global.f32  %f7, [%rd31+4];            // the load as it was

`corner` holds in lanes whose source lane is not in the warp or not in the same row of the block,
in all lanes of a warp that is not complete here (or was not where the source ran), and where a
narrow index is about to wrap. What several shuffles share is computed once:

    prologue          room to the right: min(31 - lane, ntid.x - 1 - tid.x), and to the left
    before the first  activemask of the block; the room becomes 0 in an incomplete warp
    before each       corner: room < |N|, or a test of the proof

In a loop a complete warp is not enough: lanes may have parted and met again in different
iterations, for nothing makes them run in step. So a predicate keeps, over all visits of the block,
whether the warp was complete, and whether that was so for all of its lanes:

    activemask.b32 mask; setp.eq.s32 full, mask, -1;
    and.pred same, same, full;                        // set in the prologue
    @full vote.sync.all.pred same, same, -1;

By induction, lanes for which `same` holds have visited the block equally often: a lane that is one
visit ahead made that visit either without the others, and says so in the vote, or with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.machine.record import CUDA
from warploom.ptx.ir import Directive, Function, Instruction, Register
from warploom.ptx.show import Edit, insert_after, insert_at_top, insert_before, replace
from warploom.ptx.shuffle.plan import Plan, Shuffle
from warploom.ptx.symbolic.distance import Margin
from warploom.ptx.symbolic.memory import Access
from warploom.ptx.symbolic.operand import width_of

LAST = CUDA.lanes - 1  # the highest lane
VARIANTS = ("corner", "predicated", "no-corner", "no-load")
_BANKS = {"pred": "p", "b16": "h", "b32": "r", "b64": "d"}


def edits(plan: Plan, variant: str) -> list[Edit]:
    """The edits for one kernel, in the order of the text."""
    if not plan.shuffles:
        return []
    return _Writer(plan, variant).write()


@dataclass(slots=True)
class _Patch:
    """What is put before and after one instruction, and what stands in its place."""

    before: list[str] = field(default_factory=list)
    instead: list[str] | None = None
    after: list[str] = field(default_factory=list)


class _Writer:
    def __init__(self, plan: Plan, variant: str) -> None:
        self.plan = plan
        self.variant = variant
        self.reading = plan.reading
        self.flow = plan.reading.flow
        self.prefix = _fresh_prefix(plan.reading.module.text.source.text)
        self.counts = dict.fromkeys(_BANKS, 0)
        self.patches: dict[int, _Patch] = {}
        self.made: dict[tuple[object, ...], str] = {}
        self.prologue: list[str] = []
        self.rooms: dict[tuple[int, str], int] = {}  # the widest margin asked of each register
        for margin in (m for shuffle in plan.shuffles for m in shuffle.distance.margins):
            place = margin.at, margin.register.key
            self.rooms[place] = max(margin.room, self.rooms.get(place, 0))

    def register(self, kind: str) -> str:
        number = self.counts[kind]
        self.counts[kind] += 1
        return f"%{self.prefix}{_BANKS[kind]}{number}"

    def patch(self, at: int) -> _Patch:
        return self.patches.setdefault(at, _Patch())

    def write(self) -> list[Edit]:
        shuffles = sorted(self.plan.shuffles, key=lambda shuffle: shuffle.target.at)
        if self.variant != "no-load":
            for shuffle in shuffles:  # masks first: they must stand before any of their users
                self.prepare(shuffle)
        for shuffle in shuffles:
            self.patch(shuffle.target.at).instead = self.code(shuffle)
        return self.as_edits()

    def prepare(self, shuffle: Shuffle) -> None:
        if shuffle.lanes == 0:
            return
        first = {shuffle.target.block: shuffle.target.at}
        if not shuffle.source.fixed or shuffle.source.block == shuffle.target.block:
            first.setdefault(shuffle.source.block, shuffle.source.at)
            first[shuffle.source.block] = min(first[shuffle.source.block], shuffle.source.at)
        for block, at in first.items():
            known = self.made.get(("first", block))
            if known is None or at < int(known):
                self.made["first", block] = str(at)

    # -- what shuffles share ------------------------------------------------------------------

    def mask(self, block: int) -> tuple[str, str]:
        """Registers with the active lanes of a block, and whether they are all there."""
        key = ("mask", block)
        if key not in self.made:
            mask, full = self.register("b32"), self.register("pred")
            before = self.patch(int(self.made["first", block])).before
            before[:0] = [f"activemask.b32 {mask};", f"setp.eq.s32 {full}, {mask}, -1;"]
            self.made[key] = f"{mask} {full}"
        mask, full = self.made[key].split()
        return mask, full

    def same_iteration(self, block: int) -> str | None:
        """Whether all lanes are in the same iteration of the loops around a block; None outside
        them."""
        if not self.flow.around[block]:
            return None
        key = ("same", block)
        if key not in self.made:
            same = self.register("pred")
            _, full = self.mask(block)
            self.prologue.append(f"setp.eq.s32 {same}, 0, 0;")
            self.patch(int(self.made["first", block])).before[2:2] = [
                f"and.pred {same}, {same}, {full};",
                f"@{full} vote.sync.all.pred {same}, {same}, -1;",
            ]
            self.made[key] = same
        return self.made[key]

    def together(self, shuffle: Shuffle) -> list[str]:
        """Predicates that must all hold for another lane's value to be the one meant."""
        same = self.same_iteration(shuffle.target.block)
        found = [same or self.mask(shuffle.target.block)[1]]
        if not shuffle.source.fixed and shuffle.source.block != shuffle.target.block:
            found.append(self.mask(shuffle.source.block)[1])
        return found

    def ready(self, shuffle: Shuffle, lines: list[str]) -> str:
        """One predicate for all of `together`."""
        parts = self.together(shuffle)
        key = ("ready", shuffle.target.block, *parts)
        if len(parts) == 1:
            return parts[0]
        if key not in self.made:
            result = self.register("pred")
            lines.append(f"and.pred {result}, {parts[0]}, {parts[1]};")
            lines += [f"and.pred {result}, {result}, {part};" for part in parts[2:]]
            self.made[key] = result
        return self.made[key]

    def room(self, shuffle: Shuffle, lines: list[str]) -> str:
        """How many lanes there are on the side of the source; 0 in an incomplete warp."""
        ready = self.ready(shuffle, lines)
        side = "right" if shuffle.lanes > 0 else "left"
        key = ("room", side, shuffle.target.block, ready)
        if key not in self.made:
            result = self.register("b32")
            lines.append(f"selp.b32 {result}, {self.whole_room(side)}, 0, {ready};")
            self.made[key] = result
        return self.made[key]

    def whole_room(self, side: str) -> str:
        """Lanes to the side that are in the warp and in the same row of the block."""
        key = ("side", side)
        if key in self.made:
            return self.made[key]
        lane, result = self.lane(), self.register("b32")
        if side == "right":
            self.prologue.append(f"sub.s32 {result}, {LAST}, {lane};")
        rows = not _one_row(self.reading.function)
        if side == "left":
            column = self.column() if rows else lane
            self.prologue.append(f"min.u32 {result}, {lane}, {column};")
        elif rows:
            width = self.register("b32")
            self.prologue += [
                f"mov.u32 {width}, %ntid.x;",
                f"sub.s32 {width}, {width}, {self.column()};",
                f"sub.s32 {width}, {width}, 1;",
                f"min.u32 {result}, {result}, {width};",
            ]
        self.made[key] = result
        return result

    def lane(self) -> str:
        return self.special("%laneid")

    def column(self) -> str:
        return self.special("%tid.x")

    def special(self, name: str) -> str:
        if ("special", name) not in self.made:
            self.made["special", name] = self.register("b32")
            self.prologue.append(f"mov.u32 {self.made['special', name]}, {name};")
        return self.made["special", name]

    def captured(self, source: Access) -> list[str]:
        """Registers that keep what a source loaded."""
        key = ("captured", source.at)
        if key not in self.made:
            after = self.patch(source.at).after
            names = []
            for register in source.into:
                kind = f"b{width_of(register.type)}"
                names.append(self.register(kind))
                after.append(f"mov.{kind} {names[-1]}, {register.name};")
            self.made[key] = " ".join(names)
        return self.made[key].split()

    # -- tests that a proof asks for ----------------------------------------------------------

    def near_wrap(self, margin: Margin) -> str:
        """A predicate set where the index is widened: it is too near to where it wraps."""
        room = self.rooms[margin.at, margin.register.key]
        key = ("wrap", margin.at, margin.register.key, margin.signed)
        if key not in self.made:
            width = width_of(margin.register.type)
            moved, result = self.register(f"b{width}"), self.register("pred")
            shift = (1 << width - 1) - room if margin.signed else -room
            shift = (shift + (1 << width - 1)) % (1 << width) - (1 << width - 1)
            last = (1 << width) - 1 - 2 * room
            self.patch(margin.at).after += [
                f"add.s{width} {moved}, {margin.register.name}, {shift};",
                f"setp.gt.u{width} {result}, {moved}, {last};",
            ]
            self.made[key] = result
        return self.made[key]

    def expected(self, shuffle: Shuffle) -> tuple[str, int]:
        """A register with the base address that the target must have, set beside the source."""
        source, target, gap = shuffle.source, shuffle.target, shuffle.distance.compare
        assert source.base is not None
        assert gap is not None
        width = width_of(source.base.type)
        away = source.offset + gap - target.offset
        key = ("expected", source.at, away)
        if key not in self.made:
            self.made[key] = self.register(f"b{width}")
            line = f"add.s{width} {self.made[key]}, {source.base.name}, {away};"
            self.patch(source.at).before.append(line)
        return self.made[key], width

    def corner(self, shuffle: Shuffle, lines: list[str]) -> str:
        """The predicate of the lanes that load as before."""
        distance = shuffle.distance
        tests = [self.near_wrap(margin) for margin in distance.margins]
        key: tuple[object, ...] = ("corner", shuffle.target.block, shuffle.lanes, *tests)
        if shuffle.lanes:
            key = (*key, self.room(shuffle, lines))
        if key not in self.made:
            self.made[key] = self.any_of(shuffle, tests, lines)
        result = self.made[key]
        if distance.compare is None:
            return result
        base = shuffle.target.base
        assert base is not None
        name, width = self.expected(shuffle)
        both = self.register("pred")
        lines.append(f"setp.ne.or.s{width} {both}, {name}, {base.name}, {result};")
        return both

    def any_of(self, shuffle: Shuffle, tests: list[str], lines: list[str]) -> str:
        result = self.register("pred")
        rest = list(tests)
        if shuffle.lanes:
            room, lanes = self.room(shuffle, lines), abs(shuffle.lanes)
            if rest:
                lines.append(f"setp.lt.or.s32 {result}, {room}, {lanes}, {rest.pop()};")
            else:
                lines.append(f"setp.lt.s32 {result}, {room}, {lanes};")
        elif rest:
            lines.append(f"mov.pred {result}, {rest.pop()};")
        else:
            lines.append(f"setp.ne.s32 {result}, 0, 0;")
        lines += [f"or.pred {result}, {result}, {test};" for test in rest]
        return result

    # -- one shuffle --------------------------------------------------------------------------

    def code(self, shuffle: Shuffle) -> list[str]:
        values = self.captured(shuffle.source)
        into = shuffle.target.into
        exact = shuffle.lanes == 0 and not shuffle.distance.tests
        if exact or self.variant == "no-load":
            return [_move(r, v) for r, v in zip(into, values, strict=True)]
        lines: list[str] = []
        corner = "" if self.variant == "no-corner" else self.corner(shuffle, lines)
        for register, value in zip(into, values, strict=True):
            if shuffle.lanes == 0:
                lines.append(_move(register, value))
            else:
                lines += self.exchange(shuffle, register, value, lines)
        if corner:
            step = self.flow.code[shuffle.target.at]
            lines.append(f"@{corner} {self.reading.module.source_of(step)}")
        return lines

    def exchange(
        self, shuffle: Shuffle, register: Register, value: str, lines: list[str]
    ) -> list[str]:
        """One register across lanes: 32 bits at a time."""
        width = width_of(register.type)
        if width == 32:
            return [self.shfl(shuffle, register.name, value, lines)]
        if width == 16:
            packed, got, rest = self.register("b32"), self.register("b32"), self.register("b16")
            return [
                f"mov.b32 {packed}, {{{value}, {value}}};",
                self.shfl(shuffle, got, packed, lines),
                f"mov.b32 {{{register.name}, {rest}}}, {got};",
            ]
        low, high = self.register("b32"), self.register("b32")
        new_low, new_high = self.register("b32"), self.register("b32")
        return [
            f"mov.b64 {{{low}, {high}}}, {value};",
            self.shfl(shuffle, new_low, low, lines),
            self.shfl(shuffle, new_high, high, lines),
            f"mov.b64 {register.name}, {{{new_low}, {new_high}}};",
        ]

    def shfl(self, shuffle: Shuffle, into: str, value: str, lines: list[str]) -> str:
        mask = self.mask(shuffle.target.block)[0]
        guard = f"@{self.ready(shuffle, lines)} " if self.variant == "predicated" else ""
        way, edge = ("down", LAST) if shuffle.lanes > 0 else ("up", 0)
        return f"{guard}shfl.sync.{way}.b32 {into}, {value}, {abs(shuffle.lanes)}, {edge}, {mask};"

    # -- the text -----------------------------------------------------------------------------

    def as_edits(self) -> list[Edit]:
        function = self.reading.function
        declared = [
            f".reg .{kind} %{self.prefix}{letter}<{self.counts[kind]}>;"
            for kind, letter in _BANKS.items()
            if self.counts[kind]
        ]
        found = [insert_at_top(function, "".join(f"\n\t{line}" for line in declared))]
        if self.prologue:
            self.patch(0).before[:0] = self.prologue
        for at, patch in sorted(self.patches.items()):
            found += _as_edits(self.flow.code[at], patch)
        return found


def _as_edits(step: Instruction, patch: _Patch) -> list[Edit]:
    found = []
    if patch.before:
        found.append(insert_before(step, "".join(f"{line}\n\t" for line in patch.before)))
    if patch.instead is not None:
        found.append(replace(step, "\n\t".join(patch.instead)))
    if patch.after:
        found.append(insert_after(step, "".join(f"\n\t{line}" for line in patch.after)))
    return found


def _move(register: Register, value: str) -> str:
    return f"mov.b{width_of(register.type)} {register.name}, {value};"


def _one_row(function: Function) -> bool:
    """Whether every launch has blocks of one row, so that the next lane is the next column.

    Only `.reqntid` says so: `.maxntid` bounds the number of threads, not the shape.
    """
    for directive in function.directives:
        if directive.name.lstrip(".") == "reqntid":
            return all(size == 1 for size in _sizes(directive)[1:])
    return False


def _sizes(directive: Directive) -> list[int]:
    return [int(word) for word in directive.words if word.isdigit()]


def _fresh_prefix(text: str) -> str:
    prefix = "wl_"
    number = 0
    while f"%{prefix}" in text:
        number += 1
        prefix = f"wl{number}_"
    return prefix
