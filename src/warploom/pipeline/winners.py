"""The fastest implementations that were measured for common shapes, as they come with the package.

`winners.json` has them by device and by a digest of what is computed (`meant.py`). A search on that
device measures the winner of its program first; elsewhere it is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from warploom.loopnest.ir import Program
from warploom.loopnest.strategies.form import Variant
from warploom.loopnest.tiled import TiledSpace
from warploom.machine.times import time_words
from warploom.pipeline.drawn import packed
from warploom.pipeline.meant import statement
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.search.branching.candidate import Candidates, Decision

FILE = "winners.json"


@dataclass(frozen=True, slots=True)
class Winner:
    """`strategy` is a variant with its number, as races have it."""

    device: str
    strategy: str
    decisions: Mapping[str, int]
    nanoseconds: float

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value}" for name, value in self.decisions.items())
        strategy = self.strategy.rpartition(" ")[0]
        took = f"{time_words(self.nanoseconds)} on {self.device}"
        return f"{took}, by {strategy} with {said}"


@cache
def winners() -> dict[str, tuple[Winner, ...]]:
    """All of them, by what they compute."""
    found: dict[str, tuple[Winner, ...]] = {}
    for each in json.loads(files("warploom.pipeline").joinpath(FILE).read_text()):
        own = Winner(each["device"], each["strategy"], each["decisions"], each["nanoseconds"])
        found[each["statement"]] = (*found.get(each["statement"], ()), own)
    return found


def winner_of(program: Program, device: str | None = None) -> Winner | None:
    """The winner of a program, on a device where one is named."""
    said = statement(program)
    some = winners().get(said, ()) if said is not None else ()
    return next((each for each in some if device in (None, each.device)), None)


Leaf = tuple[str, bytes]  # a variant, and decisions as races keep them


def leaf_of(winner: Winner, nest: Nest, variants: Sequence[Variant]) -> tuple[Leaf, ...]:
    """A winner as a race begins with it; nothing where its strategy is not asked for, or where the
    spaces of today, or decisions of the user, leave no such implementation."""
    counts: dict[str, int] = {}
    for each in variants:
        counts[each.strategy] = counts.get(each.strategy, 0) + 1
        if f"{each.strategy} {counts[each.strategy]}" == winner.strategy:
            candidate = _decided(nest_by(recipe_of(each, nest)), winner)
            return () if candidate is None else ((winner.strategy, packed(candidate, 0)),)
    return ()


def _decided(own: Nest, winner: Winner) -> Candidates | None:
    space: Any = own.space
    if not isinstance(space, TiledSpace):
        return None
    for name, value in winner.decisions.items():
        if name not in space.choices or value not in space.choices[name].values:
            return None
    # What is decided today and was not then has its least value: none of it.
    least = {name: min(each.values) for name, each in space.choices.items()}
    values = {**least, **winner.decisions}
    some = [Decision(name, (space.of,), (value,)) for name, value in values.items()]
    found = space.propagator.root([*own.decisions, *some])
    return found if len(found) and space.branch(found)[0] < 0 else None
