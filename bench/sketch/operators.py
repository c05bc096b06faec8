"""Sketches with one operator changed, and a judge that shares nothing with how fills are verified.

The judge runs program and goal in plain Python: on every assignment of a few small numbers to the
symbols (all of them, where they are at most 4096) and on some large ones. A zero is the neutral
element of the fold that consumes it, and 0 in the end.

    python -m bench.sketch.operators [--programs 200]
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import add, and_, mul, or_, xor
from typing import Any

from bench.common.sketch.generate import Pick, seeded
from bench.common.sketch.nested import FLATTEN, LAWFUL, nested_sketch
from bench.harness import arguments, environment, save

from warploom.errors import CheckError, SearchError
from warploom.search.outcome import Verdict
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply, Fold, Literal, Program, Symbol, Term, Zero, fold_of
from warploom.sketch.term.read import live_steps

NOTHING = "nothing"  # what a zero is until a fold consumes it
COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": add, "*": mul, "min": min, "max": max, "&": and_, "|": or_, "^": xor,
}  # fmt: skip
NEUTRAL = {"+": 0, "*": 1, "min": math.inf, "max": -math.inf, "&": -1, "|": 0, "^": 0}
SMALL = (0, 1, 2, 3, -1, 5)
ASSIGNMENTS = 4096
FIRST_SEED = 40_000
OUTCOMES = ("refused", "impossible", "too far", "agrees", "disagrees")


# -- the judge -------------------------------------------------------------------------------------


def fold(operator: str, items: Sequence[Any]) -> Any:
    if None in items:
        return None
    return reduce(COMPUTE[operator], [NEUTRAL[operator] if i is NOTHING else i for i in items])


def number(term: Term, values: dict[int, int]) -> Any:
    match term:
        case Zero():
            return NOTHING
        case Symbol(symbol):
            return values[symbol]
        case Fold(operator, items):
            return fold(operator, [number(item, values) for item in items])
        case _:
            return None


def run(program: Program, fill: Sequence[int], values: dict[int, int]) -> list[Any]:
    picks = dict(zip(program.holes, fill, strict=True))
    arrays: list[list[Any]] = []
    for position, step in enumerate(program.steps):
        if isinstance(step, Literal):
            arrays.append([number(term, values) for term in step.values])
            continue
        source = [cell for arg in step.args for cell in arrays[arg]]
        table = step.gathers.tables[picks.get(position, 0)].tolist()
        cells = [source[p] if p >= 0 else NOTHING if p == -1 else None for p in table]
        if step.fold is not None:
            n = step.fold
            runs = [cells[at : at + n] for at in range(0, len(cells), n)]
            cells = [fold(step.operator, items) for items in runs]
        arrays.append(cells)
    return arrays[-1]


def symbols_of(program: Program) -> list[int]:
    found: set[int] = set()
    literals = [step.values for step in program.steps if isinstance(step, Literal)]
    stack = [term for terms in (*literals, program.goals[0].values) for term in terms]
    while stack:
        term = stack.pop()
        stack += term.items if isinstance(term, Fold) else ()
        found |= {term.number} if isinstance(term, Symbol) else set()
    return sorted(found)


def assignments(symbols: Sequence[int], seed: str) -> Iterator[dict[int, int]]:
    """Every one over as many small numbers as there is room for, then large ones."""
    most = next((b for b in range(len(SMALL), 1, -1) if b ** len(symbols) <= ASSIGNMENTS), 0)
    for values in product(SMALL[:most], repeat=len(symbols)) if most else ():
        yield dict(zip(symbols, values, strict=True))
    draw = random.Random(seed)
    for bits in (2, 4, 8, 30, 30, 60):
        yield {symbol: draw.getrandbits(bits) for symbol in symbols}


def agrees(program: Program, fill: Sequence[int]) -> bool:
    """Whether the filled program gives the goal on every assignment."""
    for values in assignments(symbols_of(program), str(fill)):
        wanted = [number(term, values) for term in program.goals[0].values]
        held = run(program, fill, values)
        if [0 if c is NOTHING else c for c in held] != [0 if c is NOTHING else c for c in wanted]:
            return False
    return True


# -- changes ---------------------------------------------------------------------------------------


def changed(program: Program, pick: Pick) -> Program | None:
    """One operator of a step or of the goal changed; None if there is none."""
    steps = list(program.steps)
    folds = [n for n in live_steps(program) if getattr(steps[n], "fold", None) is not None]
    goal = program.goals[0]
    inside = [cell for cell, value in enumerate(goal.values) if isinstance(value, Fold)]
    if inside and (not folds or pick(3) == 0):
        cells = list(goal.values)
        at = inside[pick(len(inside))]
        cells[at] = other_term(cells[at], pick)
        return replace(program, goals=(replace(goal, values=tuple(cells)),))
    if not folds:
        return None
    position = folds[pick(len(folds))]
    step = steps[position]
    assert isinstance(step, Apply)
    steps[position] = replace(step, operator=other(step.operator, pick))
    return replace(program, steps=tuple(steps))


def other(operator: str, pick: Pick) -> str:
    others = [sign for sign in LAWFUL if sign != operator]
    return others[pick(len(others))]


def other_term(term: Term, pick: Pick) -> Term:
    """The operator of one of the folds in it changed."""
    assert isinstance(term, Fold)
    inner = [n for n, item in enumerate(term.items) if isinstance(item, Fold)]
    if inner and pick(2):
        items = list(term.items)
        at = inner[pick(len(inner))]
        items[at] = other_term(items[at], pick)
        return fold_of(items, term.operator)
    return fold_of(term.items, other(term.operator, pick))


def judged(seed: int) -> str | None:
    """What became of a sketch with one operator changed; None: it has no operator to change.

    `agrees`: fills were proved, and program and goal agree on all inputs with each of them.
    `disagrees`: one was proved for which they do not.
    """
    pick = seeded(seed)
    operators = tuple(dict.fromkeys(LAWFUL[pick(len(LAWFUL))] for _ in range(2)))
    program = changed(nested_sketch(pick, operators, FLATTEN if pick(2) else ()), pick)
    if program is None:
        return None
    try:
        result = synthesize(program)
    except CheckError:
        return "refused"
    except SearchError:
        return "too far"
    if not len(result.fills):
        return "impossible"
    proved = [
        fill
        for fill, verdict in zip(result.fills.choices.tolist(), result.verdicts, strict=True)
        if verdict.verdict is Verdict.PROVED
    ]
    return "agrees" if all(agrees(program, fill) for fill in proved) else "disagrees"


def tally(programs: int, first: int = FIRST_SEED) -> Counter[str]:
    """What became of so many changed programs."""
    seen: Counter[str] = Counter()
    seed = first
    while seen.total() < programs:
        outcome = judged(seed)
        seen.update([outcome] if outcome else [])
        seed += 1
    return seen


def main() -> int:
    parser = arguments(__doc__, "operators.json")
    parser.add_argument("--programs", type=int, default=200)
    given = parser.parse_args()
    started = time.process_time()
    seen = tally(given.programs)
    record = {
        **environment(),
        "programs": given.programs,
        "first_seed": FIRST_SEED,
        "outcomes": {outcome: seen[outcome] for outcome in OUTCOMES},
        "meaning": {
            "refused": "a located error before the search",
            "impossible": "no fill",
            "too far": "the search does not do it, and says so",
            "agrees": "proved, and equal on every input tried: the change cannot be told",
            "disagrees": "proved, and not equal on some input",
        },
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    print(json.dumps(record, indent=1))
    save(given.out, record)
    return 1 if seen["disagrees"] else 0


if __name__ == "__main__":
    sys.exit(main())
