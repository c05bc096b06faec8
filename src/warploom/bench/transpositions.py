"""A fill for every m×n transposition: sizes come in, one verified record for each comes out.

The sketch is three holes of the `linear` sets: within each thread, across lanes, within each thread
(crc), or the other way round (rcr). A case is first tried with the forms that filled smaller ones,
which mean the same at every size; where none is right, the whole sets are searched. Either way the
fill is verified at its own size. `update` keeps the records in a file and goes on where it
stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from warploom.errors import CheckError, ParseError
from warploom.index.show import show
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Undecided
from warploom.sketch.front import load_text
from warploom.sketch.holes import choices_of
from warploom.sketch.holes.linear import Linear
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.transfer import offers
from warploom.sketch.term.gather import Family, Sense, Setting
from warploom.sketch.term.ir import Apply, GatherSet, Program
from warploom.sketch.term.verify import Verifier

ORDERS = ("crc", "rcr")
LARGEST = 64
SAVE_EVERY = 30.0  # seconds

Recipe = tuple[tuple[Family, Setting], ...]  # what each of the three steps does
Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Transposition:
    """One transposition. `fill` holds, by step, the flat offset read for cell (x0, x1)."""

    order: str
    m: int
    n: int
    options: tuple[int, ...]  # gathers to choose from, by step
    fill: dict[str, str]  # empty if there is none
    found: str  # searched, carried (over from a smaller case), impossible or undecided
    verified: bool
    seconds: float

    @property
    def key(self) -> Key:
        return self.order, self.m, self.n


@dataclass(slots=True)
class Recipes:
    """Fills of smaller cases, which are read at other sizes."""

    known: list[Recipe] = field(default_factory=list)

    def learn(self, recipe: Recipe) -> None:
        self.known.append(recipe)

    def fills(self, program: Program) -> list[dict[int, int]]:
        """What they are for this program, the cheapest first."""
        sets = _gathers(program)

        def read(position: int, choice: tuple[Family, Setting], reading: Sense) -> int:
            family, row = choice
            gathers = sets[position]
            found = family.counterparts(row[None], gathers.family, reading)
            return int(choices_of(gathers, found).max(initial=-1))

        recipes = [dict(zip(sets, recipe, strict=True)) for recipe in self.known]
        offered = (fill for _, fill in offers(recipes, read, (Sense.NATURAL,)))
        # Sets are ordered by cost.
        return sorted(
            (fill for fill in offered if min(fill.values()) >= 0),
            key=lambda fill: sum(fill.values()),
        )


def sketch(m: int, n: int, order: str = "crc") -> str:
    """m lanes by n registers, from column-major to row-major; a swizzle of registers is a `c`."""
    if order not in ORDERS:
        raise CheckError(f"unknown order '{order[:20]}'", advice=f"orders: {', '.join(ORDERS)}")
    shape = f"[{m},{n}]"
    lines = [f"x: [{m * n}] = range(0, {m * n})", f"s0: {shape} = load_rep(x)"]
    for number, kind in enumerate(order):
        name = "row_linear" if kind == "c" else "col_linear"
        lines.append(f"s{number + 1}: {shape} = ?{name}(s{number})")
    return "\n".join([*lines, f"goal: {shape} trove"]) + "\n"


def run(
    m_range: Iterable[int] = range(1, LARGEST + 1),
    n_range: Iterable[int] = range(1, LARGEST + 1),
    order: str = "crc",
    *,
    seconds: float | None = None,
    carry: bool = True,
    done: Collection[Key] = (),
) -> Iterator[Transposition]:
    """All cases but those already `done`, small ones first.

    `seconds` bounds the search of one case; without `carry` each is searched by itself.
    """
    cases = sorted(set(product(m_range, n_range)), key=lambda case: (case[0] * case[1], case))
    recipes = Recipes()
    for m, n in cases:
        if (order, m, n) not in done:
            yield fill_one(m, n, order, recipes if carry else Recipes(), Budget(seconds))


def fill_one(
    m: int, n: int, order: str, recipes: Recipes | None = None, budget: Budget | None = None
) -> Transposition:
    """Fills and verifies one case; what a search finds is added to the recipes."""
    started = time.perf_counter()
    recipes = Recipes() if recipes is None else recipes
    program = load_text(sketch(m, n, order), f"{m}x{n} {order}")
    verifier = Verifier(program, program.goals[0])
    found = "carried"
    fill = next((f for f in recipes.fills(program) if verifier.verify(_open(program, f))), None)
    if fill is None:
        found, fill = _search(program, budget)
        if fill is not None:
            recipes.learn(tuple((g.family, g.row(fill[p])) for p, g in _gathers(program).items()))
    verified = fill is not None and bool(verifier.verify(_open(program, fill)))
    return Transposition(
        order,
        m,
        n,
        tuple(map(len, _gathers(program).values())),
        {} if fill is None else _shown(program, fill),
        found,
        verified,
        round(time.perf_counter() - started, 4),
    )


def _search(program: Program, budget: Budget | None) -> tuple[str, dict[int, int] | None]:
    result = synthesize(program, mode="first", budget=budget)
    if isinstance(result.outcome, Found):
        return "searched", {**dict.fromkeys(_gathers(program), 0), **result.fills.as_dict(0)}
    return ("undecided" if isinstance(result.outcome, Undecided) else "impossible"), None


def _gathers(program: Program) -> dict[int, GatherSet]:
    """The three sets by position, also where a set has one member and is no hole."""
    steps = {i: s.gathers for i, s in enumerate(program.steps) if isinstance(s, Apply)}
    return {i: gathers for i, gathers in steps.items() if isinstance(gathers.family, Linear)}


def _open(program: Program, fill: dict[int, int]) -> dict[int, int]:
    return {hole: fill[hole] for hole in program.holes}


def _shown(program: Program, fill: dict[int, int]) -> dict[str, str]:
    return {
        program.steps[position].name: show(gathers.expression(fill[position]).offset)
        for position, gathers in _gathers(program).items()
    }


# -- the file of records -----------------------------------------------------------------------


def update(
    path: Path, cases: Callable[[Collection[Key]], Iterator[Transposition]], resume: bool = True
) -> list[Transposition]:
    """Runs the cases that the file does not have yet, and keeps it up to date.

    `cases` takes the keys of those it has, e.g. `lambda done: run(order="rcr", done=done)`. Stopped
    by Ctrl-C, it leaves what was finished.
    """
    kept = {case.key: case for case in load(path) if case.verified} if resume else {}
    saved = time.monotonic()
    try:
        for case in cases(kept.keys()):
            kept[case.key] = case
            if time.monotonic() - saved > SAVE_EVERY:
                save(path, kept.values())
                saved = time.monotonic()
    finally:
        save(path, kept.values())
    return list(kept.values())


def save(path: Path, cases: Iterable[Transposition]) -> None:
    """One line for each case; the file is there whole or not at all."""
    ordered = sorted(cases, key=lambda case: case.key)
    lines = [json.dumps(asdict(case), separators=(",", ":")) for case in ordered]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    partial.replace(path)


def load(path: Path) -> list[Transposition]:
    """The records of a file; none if it is not there."""
    if not path.exists():
        return []
    try:
        return [_case(row) for row in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ParseError(
            f"cannot read the records in '{path}': {error}", advice="delete the file to start again"
        ) from None


def _case(row: dict[str, Any]) -> Transposition:
    return Transposition(
        order=str(row["order"]),
        m=int(row["m"]),
        n=int(row["n"]),
        options=tuple(map(int, row["options"])),
        fill={str(step): str(text) for step, text in dict(row["fill"]).items()},
        found=str(row["found"]),
        verified=row["verified"] is True,
        seconds=float(row["seconds"]),
    )


def summary(cases: Collection[Transposition]) -> list[str]:
    """Counts by how the fill was found, total time, and the cases without a fill."""
    lines = []
    for order in ORDERS:
        some = [case for case in cases if case.order == order]
        if not some:
            continue
        right = sum(case.verified for case in some)
        searched = sum(case.found == "searched" for case in some)
        total = sum(case.seconds for case in some)
        lines.append(
            f"{order}: {right} of {len(some)} verified in {total:.0f} s, {searched} by search, the"
            f" others carried over; sets of at most {max(max(case.options) for case in some)}"
        )
        wrong = [f"{case.m}×{case.n} ({case.found})" for case in some if not case.verified]
        lines += [f"{order}: without a fill: {', '.join(wrong)}"] if wrong else []
    return lines
