"""Size transfer: a fill found at a small size comes in, a fill proved at a larger size comes out.

A gather is written with parameters (`xform[cf=1,cr=2,dr=4]`, `valign[1](4:=1,0)`, `d0 < 4 - d1`).
A number in such a text either means itself at every size, or it means the size, its half, its end …
So each choice of the small fill is read in every way it can be written, every number is replaced
by all that it may mean at the larger size, and the texts that name a gather there are counterparts.
Should no combination of these be right, only the form of the text is kept and its numbers are open.
The ordinary search runs on what is left and the ordinary verification proves what it finds: a wrong
guess costs time, never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from warploom.errors import CheckError
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.sketch.synth.fills import Fills
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply, GatherSet, Program, Shape, Step
from warploom.sketch.term.verify import Verifier

# Fills of the small size that are tried before giving up.
FILLS_TO_TRY = 16
# A set with more spellings than this is left open: the search is faster than reading them.
MAX_SPELLINGS = 1 << 18
# A text with more readings than this is taken to mean only what it says.
MAX_READINGS = 1 << 14

_NUMBER = re.compile(r"(?<!\w)-?\d+(?!\w)")
_SWIZZLE = re.compile(r"(xform|rot)\[(?!group=)")

Match = Callable[[GatherSet, int, GatherSet], tuple[int, ...]]
Sizes = frozenset[tuple[int, int]]  # (length at the small size, at the large one)


@dataclass(frozen=True, slots=True, eq=False)
class Narrowed:
    """A program whose holes offer only some choices: `kept[position]` says which."""

    program: Program
    kept: dict[int, tuple[int, ...]]


def transfer(small: Result, large: Program, *, budget: Budget | None = None) -> Result:
    """The first fill of `small` that has a right counterpart in `large`, the same sketch larger.

    Undecided with reason COUNTERPART if there is none, which says nothing about other fills.
    """
    _check_same_sketch(small.program, large)
    goal = small.program.goals.index(small.goal)
    result: Result | None = None
    numbers = range(min(len(small.fills), FILLS_TO_TRY))
    for match, number in product((counterparts, alike), numbers):
        narrowed = narrow(small.program, small.fills.as_dict(number), large, match)
        found = synthesize(narrowed.program, goal, mode="best", budget=budget)
        result = _widened(found, large, goal, narrowed)
        if isinstance(result.outcome, Found) or result.stopped is not Reason.COUNTERPART:
            return result
    if result is None:
        raise CheckError("there is no fill to transfer", advice="find one at the small size first")
    return result


def narrow(small: Program, fill: dict[int, int], large: Program, match: Match) -> Narrowed:
    """`large` with, in each hole, only what matches the choice of `fill`; all if nothing does."""
    steps: list[Step] = []
    kept: dict[int, tuple[int, ...]] = {}
    for position, (old, new) in enumerate(zip(small.steps, large.steps, strict=True)):
        if isinstance(old, Apply) and isinstance(new, Apply) and new.gathers.is_hole:
            some = match(old.gathers, fill.get(position, 0), new.gathers)
            some = some or tuple(range(len(new.gathers)))
            kept[position] = some
            new = replace(new, gathers=_only(new.gathers, some))
        steps.append(new)
    return Narrowed(replace(large, steps=tuple(steps)), kept)


def counterparts(small: GatherSet, choice: int, large: GatherSet) -> tuple[int, ...]:
    """The choices of the large set that one choice of the small set may correspond to."""
    texts, known = _spellings(small), _spellings(large)
    if texts is None or known is None:
        return ()
    sizes = _sizes(small, large)
    wanted = {w for text, which in texts if which == choice for w in readings(text, sizes)}
    return tuple(sorted({which for text, which in known if text in wanted}))


def alike(small: GatherSet, choice: int, large: GatherSet) -> tuple[int, ...]:
    """The choices of the large set that are written like the small one but for the numbers."""
    known = _spellings(large)
    form = _NUMBER.sub("#", small.describe(choice))
    if known is None:
        return ()
    return tuple(sorted({which for text, which in known if _NUMBER.sub("#", text) == form}))


def readings(text: str, sizes: Sizes) -> Iterator[str]:
    """Everything that a gather's text may become at the larger size.

    >>> sorted(readings("rot[shift=3]", frozenset({(4, 32)})))
    ['rot[group=4,shift=24]', 'rot[group=4,shift=3]', 'rot[group=4,shift=31]', 'rot[shift=24]', \
'rot[shift=3]', 'rot[shift=31]']
    """
    pieces = _NUMBER.split(text)
    meanings = [images(int(number), sizes) for number in _NUMBER.findall(text)]
    for values in islice(product(*meanings), MAX_READINGS):
        filled = "".join(p + str(v) for p, v in zip(pieces, values, strict=False)) + pieces[-1]
        yield filled
        # Without a group the whole axis is one; a group of that length may be meant instead.
        if _SWIZZLE.match(filled):
            yield from (_SWIZZLE.sub(rf"\1[group={length},", filled) for length, _ in sizes)


def images(number: int, sizes: Sizes) -> list[int]:
    """What a number may mean: itself, or the same share of, or distance from the end of, a size."""
    found = [number]
    for small, large in sorted(sizes):
        sign = -1 if number < 0 else 1
        if number * large % small == 0:
            found.append(number * large // small)
        if 0 < abs(number) <= small:
            found.append(sign * (abs(number) + large - small))
    return list(dict.fromkeys(found))


def _sizes(small: GatherSet, large: GatherSet) -> Sizes:
    both: list[tuple[Shape, Shape]] = [
        *zip(small.arg_shapes, large.arg_shapes, strict=True),
        (small.out_shape, large.out_shape),
    ]
    return frozenset(pair for a, b in both for pair in zip(a, b, strict=True) if pair[0] != pair[1])


def _spellings(gathers: GatherSet) -> list[tuple[str, int]] | None:
    if gathers.spellings is None:
        return [(gathers.describe(i), i) for i in range(len(gathers))]
    texts = list(islice(gathers.spellings(), MAX_SPELLINGS + 1))
    return texts if len(texts) <= MAX_SPELLINGS else None


def _only(gathers: GatherSet, some: tuple[int, ...]) -> GatherSet:
    return replace(
        gathers,
        tables=np.ascontiguousarray(gathers.tables[list(some)]),
        describe=lambda i: gathers.describe(some[i]),
        expression=lambda i: gathers.expression(some[i]),
        spellings=None,
    )


def _widened(found: Result, large: Program, goal: int, narrowed: Narrowed) -> Result:
    """The result in the choices of the whole program, verified there."""
    columns = []
    by_hole = {hole: found.fills.choices[:, n] for n, hole in enumerate(found.fills.holes)}
    for hole in large.holes:
        kept = np.array(narrowed.kept[hole], np.int64)
        columns.append(kept[by_hole.get(hole, np.zeros(len(found.fills), np.int64))])
    choices = np.stack(columns, axis=1) if columns else found.fills.choices
    fills = Fills(large.holes, found.fills.count, choices)
    verifier = Verifier(large, large.goals[goal])
    verdicts = tuple(verifier.verify(fills.as_dict(i)) for i in range(len(fills)))
    outcome = found.outcome
    if isinstance(outcome, Impossible):
        outcome = Undecided(Reason.COUNTERPART)
    elif isinstance(outcome, Found):
        outcome = Found(fills, False, outcome.stopped)
    return Result(large, large.goals[goal], outcome, fills, verdicts, found.stats)


def _check_same_sketch(small: Program, large: Program) -> None:
    advice = "build both from one function of the sizes"
    if len(small.steps) != len(large.steps) or len(small.goals) != len(large.goals):
        raise CheckError("the two sizes have different numbers of steps or goals", advice=advice)
    for old, new in zip(small.steps, large.steps, strict=True):
        if _outline(old) != _outline(new):
            raise CheckError(f"step '{old.name}' differs between the two sizes", advice=advice)


def _outline(step: Step) -> tuple[object, ...]:
    """What must not change with the size: all but lengths."""
    if isinstance(step, Apply):
        gathers = step.gathers
        ranks = tuple(map(len, gathers.arg_shapes))
        return step.name, len(step.shape), step.args, gathers.function, ranks, step.operator
    return step.name, len(step.shape)
