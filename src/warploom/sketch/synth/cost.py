"""Which fill is best: fewest operations in the index expressions, then fewest constants."""

from __future__ import annotations

from functools import cache

from warploom.index.ir import constants, operations
from warploom.search.budget import Budget
from warploom.sketch.synth.fills import Fills
from warploom.sketch.term.ir import Apply, Program

Price = tuple[int, int]


def cost_of(program: Program, fill: dict[int, int]) -> Price:
    """(operations of all holes together, distinct constants in them)."""
    prices = [_price(program, hole, choice) for hole, choice in fill.items()]
    together: set[int] = set().union(*(used for _, used in prices))
    return sum(count for count, _ in prices), len(together)


@cache
def _price(program: Program, hole: int, choice: int) -> tuple[int, frozenset[int]]:
    step = program.steps[hole]
    assert isinstance(step, Apply)
    expression = step.gathers.expression(choice)
    both = (expression.argument, expression.offset)
    used = frozenset(constants(both[0])) | frozenset(constants(both[1]))
    return sum(operations(part) for part in both), used


def cheapest(program: Program, fills: Fills, budget: Budget) -> Fills:
    """The best of the listed fills, as far as there is time to price them; the first of them where
    several cost the same."""
    prices: list[Price] = []
    for number in range(len(fills)):
        if prices and budget.is_spent():
            break
        prices.append(cost_of(program, fills.as_dict(number)))
    best = min(range(len(prices)), key=lambda i: (prices[i], i))
    return fills.only(best)
