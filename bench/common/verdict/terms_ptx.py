"""A term as PTX for one warp: `k(x0, x1, x2, y)`. What another thread loads comes by a shuffle, by
shared memory, or by a load of its own; sums of all threads by shuffles."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random

from bench.common.verdict.terms import INPUTS, LANES, Term, rounded

STEPS = ("16", "8", "4", "2", "1")


@dataclass
class _Writer:
    kind: str  # f32 or f64
    r: Random
    lost: int | None = None  # a step of a sum that is left out
    lines: list[str] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)  # by object: powers share their parts
    inputs: dict[int, str] = field(default_factory=dict)
    count: int = 0
    shared: int = 0

    def say(self, text: str) -> None:
        self.lines.append(f"  {text};")

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def of(self, t: Term) -> str:
        if id(t) not in self.known:
            self.known[id(t)] = self._of(t)
        return self.known[id(t)]

    def _of(self, t: Term) -> str:
        match t.op:
            case "x":
                return self._input(*t.at)
            case "c":
                return self._constant(t.value)
            case "total":
                return self._total(self.of(t.of[0]))
        given = [self.of(each) for each in t.of]
        out = self.new()
        if t.op == "first":
            self.say(f"selp.{self.kind} {out}, {given[0]}, {given[1]}, %low")
        else:
            self._computed(t.op, out, given)
        return out

    def _computed(self, op: str, out: str, given: list[str]) -> None:
        kind = self.kind
        if op == "exp2" and kind == "f64":  # there is none of doubles
            low, made = f"%s{self.count}a", f"%s{self.count}b"
            self.say(f".reg .f32 {low}, {made}")
            self.say(f"cvt.rn.f32.f64 {low}, {given[0]}")
            self.say(f"ex2.approx.f32 {made}, {low}")
            self.say(f"cvt.f64.f32 {out}, {made}")
            return
        form = {
            "exp2": "ex2.approx", "div": "div.rn", "sqrt": "sqrt.rn", "fma": "fma.rn",
            "add": "add.rn", "sub": "sub.rn", "mul": "mul.rn",
        }.get(op, op)  # fmt: skip
        self.say(f"{form}.{kind} {out}, {', '.join(given)}")

    def _constant(self, value: float) -> str:
        code, digits, sign = (">f", 8, "0f") if self.kind == "f32" else (">d", 16, "0d")
        bits = struct.pack(code, rounded(value, self.kind)).hex().upper()
        out = self.new()
        self.say(f"mov.{self.kind} {out}, {sign}{bits:0>{digits}}")
        return out

    def _input(self, number: int, shift: int) -> str:
        if not shift:
            return self._own(number)
        way = self.r.randrange(3)
        own = self._own(number) if way else ""
        out = self.new()
        index = f"%i{self.count}"
        self.say(f".reg .b32 {index}")
        self.say(f"add.s32 {index}, %t, {shift}")
        self.say(f"and.b32 {index}, {index}, {LANES - 1}")
        if way == 1 and self.kind == "f32":
            self.say(f"shfl.sync.idx.b32 {out}, {own}, {index}, 31, -1")
        elif way == 2:
            self._by_shared(out, own, index)
        else:
            self.say(f".reg .b64 %a{self.count}")
            self.say(f"mad.wide.u32 %a{self.count}, {index}, {self._size}, %p{number}")
            self.say(f"ld.global.{self.kind} {out}, [%a{self.count}]")
        return out

    def _own(self, number: int) -> str:
        if number not in self.inputs:
            self.inputs[number] = self.new()
            self.say(f"ld.global.{self.kind} {self.inputs[number]}, [%own{number}]")
        return self.inputs[number]

    @property
    def _size(self) -> int:
        return 4 if self.kind == "f32" else 8

    def _by_shared(self, out: str, own: str, index: str) -> None:
        self.shared += 1
        place, size = f"room{self.shared}", self._size
        self.say(f".reg .b32 %u{self.shared}<3>")
        self.say(f"mov.u32 %u{self.shared}0, {place}")
        self.say(f"mad.lo.u32 %u{self.shared}1, %t, {size}, %u{self.shared}0")
        self.say(f"mad.lo.u32 %u{self.shared}2, {index}, {size}, %u{self.shared}0")
        self.say(f"st.shared.{self.kind} [%u{self.shared}1], {own}")
        self.say("bar.sync 0")
        self.say(f"ld.shared.{self.kind} {out}, [%u{self.shared}2]")

    def _total(self, value: str) -> str:
        for step in STEPS:
            if self.lost is not None and step == STEPS[self.lost]:
                continue
            other, out = self.new(), self.new()
            if self.kind == "f32":
                self.say(f"shfl.sync.bfly.b32 {other}, {value}, {step}, 31, -1")
            else:
                self._wide_shuffle(other, value, step)
            self.say(f"add.rn.{self.kind} {out}, {value}, {other}")
            value = out
        return value

    def _wide_shuffle(self, out: str, value: str, step: str) -> None:
        low, high = (f"%h{self.count}{n}" for n in "lh")
        self.say(f".reg .b32 {low}, {high}")
        self.say(f"mov.b64 {{{low}, {high}}}, {value}")
        for each in (low, high):
            self.say(f"shfl.sync.bfly.b32 {each}, {each}, {step}, 31, -1")
        self.say(f"mov.b64 {out}, {{{low}, {high}}}")


def text_of(term: Term, kind: str, r: Random, lost: int | None = None) -> str:
    """`lost`: each sum of all threads leaves out one of its five steps."""
    writer = _Writer(kind, r, lost)
    result = writer.of(term)
    size = 4 if kind == "f32" else 8
    rooms = "".join(
        f"  .shared .align 8 .b8 room{n + 1}[{size * LANES}];\n" for n in range(writer.shared)
    )
    names = [f"p{n}" for n in range(INPUTS)]
    parameters = ", ".join(f".param .u64 {name}" for name in [*names, "q"])
    own = "".join(
        f"  ld.param.u64 %p{n}, [{name}];\n  mad.wide.u32 %own{n}, %t, {size}, %p{n};\n"
        for n, name in enumerate(names)
    )
    return f"""\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k({parameters}) {{
{rooms}  .reg .b32 %t; .reg .pred %low; .reg .b64 %p<{INPUTS}>, %own<{INPUTS}>, %q, %to;
  .reg .{kind} %v<{writer.count + 1}>;
  mov.u32 %t, %tid.x;
  setp.lt.u32 %low, %t, 16;
{own}{chr(10).join(writer.lines)}
  ld.param.u64 %q, [q];
  mad.wide.u32 %to, %t, {size}, %q;
  st.global.{kind} [%to], {result};
  ret;
}}
"""
