"""Where items of a tile lie in shared memory, so that neither way to take them asks a bank twice.

A warp lays down 32 lanes' items in one order and takes them up in the other. Of a few layouts the
one with the fewest wavefronts is taken, the smallest first: counted, not assumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var
from warploom.machine.banks import bank_use
from warploom.machine.record import CUDA

WARP, BANK_BYTES = CUDA.lanes, CUDA.bank_bytes
Place = Callable[[Expr], Expr]


@lru_cache(maxsize=128)
def place_of(registers: int) -> tuple[Place, int]:
    """The place of an item by its number in order, and how many places there are."""
    items = WARP * registers
    layouts: list[Place] = [
        lambda item: item,
        lambda item: item + item // WARP,
        lambda item: item + item // (2 * WARP),
        lambda item: item + item // registers,
        # Where the lanes' first items come to a bank again, one place is left out.
        lambda item: item + item // math.lcm(registers, WARP),
    ]
    best = min(layouts, key=lambda place: (wavefronts(place, registers), _room(place, items)))
    return best, _room(best, items)


def wavefronts(place: Place, registers: int) -> int:
    """Wavefronts of all accesses in both orders, for items of one word."""
    lanes, iterations = np.arange(WARP)[None, :], np.arange(registers)[:, None]
    total = 0
    for item, load in ((lanes * registers + iterations, False), (iterations * WARP + lanes, True)):
        places = np.asarray(evaluate(place(Var("item")), {"item": item}))
        active = np.ones(places.shape, np.bool_)
        total += bank_use(places * BANK_BYTES, BANK_BYTES, active, load=load).wavefronts
    return total


def _room(place: Place, items: int) -> int:
    return int(np.max(evaluate(place(Var("item")), {"item": np.arange(items)}))) + 1
