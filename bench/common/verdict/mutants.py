"""Kernels with one index changed: a number, a register, a comparison, an offset or a lane."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
from bench.common.verdict.computations import COMPUTATIONS, KERNELS, TEXT, Computation

from warploom import ptx
from warploom.errors import WarploomError
from warploom.ptx.launch import Kernel
from warploom.verdict.argument import said
from warploom.verdict.case import Case, case_of
from warploom.verdict.judged import judge

SECONDS = 10.0  # of a plain launch, which a mutant may never end
PATIENCE = 60.0  # of the judge
APART = 1e-3
MOST_IDLE = 3000  # draws in a row that give nothing new
_WHOLE = re.compile(
    r"\t(add|sub|mul|mad|shl|shr|and|or|xor|neg|not|min|max|div|rem|selp|mov)\."
    r"[\w.]*[subp](16|32|64) ?\t"
)
_COMPARED = re.compile(r"\tsetp\.(lt|le|gt|ge|eq|ne)\.[sub]")
_MOVED = re.compile(r"\t(ld|st)\.(global|shared)")
_SHUFFLED = re.compile(r"\tshfl\.sync")
_NUMBER = re.compile(r"(?<=[ \t])(-?\d+)(?=[,;])")
_OFFSET = re.compile(r"\[(%\w+)(?:\+(-?\d+))?\]")
_REGISTER = re.compile(r"%(rd|r)\d+\b")
_OTHER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}


def entry(name: str) -> str:
    """The text of one kernel of the file, as a module of its own."""
    text = TEXT
    head = text[: text.index(".visible .entry")]
    start = text.index(f".visible .entry {name}(")
    return head + text[start : text.index("\n}\n", start) + 3]


@dataclass(frozen=True)
class Mutant:
    text: str
    line: int
    was: str
    now: str


def mutants(name: str) -> Iterator[Mutant]:
    """Each once, until hardly any is new."""
    r = Random(name)
    text = entry(name)
    lines = text.split("\n")
    inside = range(next(n for n, each in enumerate(lines) if each.startswith("{")), len(lines))
    seen = set()
    idle = 0
    while idle < MOST_IDLE:
        at = r.choice(inside)
        now = changed(r, lines, at)
        idle += 1
        if now is None or (at, now) in seen:
            continue
        idle = 0
        seen.add((at, now))
        yield Mutant("\n".join([*lines[:at], now, *lines[at + 1 :]]), at + 1, lines[at], now)


def changed(r: Random, lines: list[str], at: int) -> str | None:
    """A line with another index, or None where none is in it."""
    line = lines[at]
    if found := _COMPARED.search(line):
        if r.random() < 0.5:
            return line.replace(f"setp.{found[1]}", f"setp.{_OTHER[found[1]]}", 1)
        return _another_number(r, line) or _another_register(r, lines, at)
    if _MOVED.match(line) and (place := _OFFSET.search(line)):
        away = int(place[2] or 0) + r.choice((4, -4, 8))
        return line[: place.start()] + f"[{place[1]}+{away}]" + line[place.end() :]
    if _SHUFFLED.match(line):
        return _another_number(r, line)
    if _WHOLE.match(line):
        if r.random() < 0.6 and (made := _another_number(r, line)):
            return made
        return _another_register(r, lines, at)
    return None


def _another_number(r: Random, line: str) -> str | None:
    found = list(_NUMBER.finditer(line))
    if not found:
        return None
    place = r.choice(found)
    value = int(place[1])
    now = r.choice((value + 1, value - 1, value * 2, value ^ 2))
    return None if now == value else line[: place.start()] + str(now) + line[place.end() :]


def _another_register(r: Random, lines: list[str], at: int) -> str | None:
    """One that is read becomes another of its kind that stands above."""
    read = list(_REGISTER.finditer(lines[at]))[1:]
    if not read:
        return None
    place = r.choice(read)
    above = {m[0] for each in lines[:at] for m in [_REGISTER.search(each)]
             if m and m[1] == place[1] and each.startswith("\t")}  # fmt: skip
    others = sorted(above - {place[0]})
    if not others:
        return None
    return lines[at][: place.start()] + r.choice(others) + lines[at][place.end() :]


# -- what they do ----------------------------------------------------------------------------------


def launched(computation: Computation, kernel: Kernel, seed: int) -> list[Any] | str:
    """What a plain launch writes to inputs and outputs; or why it does not end well."""
    case = _case(computation)
    case.fill(np.random.default_rng(seed), "normal")
    try:
        (launch,) = case.launches
        kernel.launch(
            launch.grid, launch.block, launch.passed(case.fresh()), seconds=SECONDS, races=True,
            benign=True,
        )  # fmt: skip
    except WarploomError as error:
        return type(error).__name__
    return [each.numbers().copy() for each in case.named.values()]


@cache
def _right(name: str, seed: int) -> list[Any]:
    found = launched(COMPUTATIONS[name], KERNELS.kernel(name), seed)
    assert not isinstance(found, str)
    return found


def _case(c: Computation) -> Case:
    listed = [said(name, text) for name, text in c.args.items()]
    return case_of(listed, c.shape, c.grid, c.block, None, "0", 7)


def changes(name: str, mutant: Mutant) -> str:
    """Whether a mutant writes something else: `same`, `other`, or the error that it ends in."""
    computation = COMPUTATIONS[name]
    try:
        kernel = ptx.load(mutant.text, name).kernel(name)
    except WarploomError:
        return "malformed"
    for seed in (1, 2):
        found = launched(computation, kernel, seed)
        if isinstance(found, str):
            return found
        right = _right(name, seed)
        for a, b in zip(found, right, strict=True):
            with np.errstate(all="ignore"):
                far = ~(np.abs(a - b) <= APART * (np.abs(b) + 1e-6)) & ~(np.isnan(a) & np.isnan(b))
            if far.any():
                return "other"
    return "same"


def verdict(name: str, mutant: Mutant) -> tuple[str, int]:
    """What the judge says, and how many draws it took."""
    c = COMPUTATIONS[name]
    kernel = ptx.load(mutant.text, name).kernel(name)
    found = judge(
        kernel, c.reference, c.args, grid=c.grid, block=c.block, shape=c.shape, seconds=PATIENCE,
        seed=mutant.line,
    )  # fmt: skip
    return found.verdict, found.shapes[0].draws
