"""Which fill is best: fewest operations in the index expressions, then fewest constants."""

from __future__ import annotations

from warploom.index.ir import constants, operations
from warploom.sketch.synth.fills import Fills
from warploom.sketch.term.ir import Apply, Program

Price = tuple[int, int]


def cost_of(program: Program, fill: dict[int, int]) -> Price:
    """(operations of all holes together, distinct constants in them)."""
    return _Prices(program).of(fill)


def cheapest(program: Program, fills: Fills) -> Fills:
    """The best of the listed fills; the first of them where several cost the same."""
    prices = _Prices(program)
    costs = [prices.of(fills.as_dict(i)) for i in range(len(fills))]
    return fills.only(costs.index(min(costs)))


class _Prices:
    """What choices of one program cost; many fills share a choice, so each is looked at once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[tuple[int, int], tuple[int, frozenset[int]]] = {}

    def of(self, fill: dict[int, int]) -> Price:
        prices = [self._choice(hole, choice) for hole, choice in fill.items()]
        together: set[int] = set().union(*(used for _, used in prices))
        return sum(count for count, _ in prices), len(together)

    def _choice(self, hole: int, choice: int) -> tuple[int, frozenset[int]]:
        if (hole, choice) not in self._known:
            step = self._program.steps[hole]
            assert isinstance(step, Apply)
            expression = step.gathers.expression(choice)
            both = (expression.argument, expression.offset)
            used = constants(both[0]) | constants(both[1])
            self._known[hole, choice] = sum(map(operations, both)), used
        return self._known[hole, choice]
