"""Device functions that scan: each lane gets what all lanes before it hold together.

Each round a lane adds what stands some lanes before it, if there is such a lane. How far, round by
round, is found by search and proved; the operators are associative and commutative, and the verdict
names that law: in floating point the sum of a lane is rounded in the order of a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Parameter, Values
from warploom.catalogue.functions import Caller, Group, who
from warploom.catalogue.layout import MOST_WORDS, WARP, element_type
from warploom.errors import CheckError, InternalError
from warploom.index.ir import Expr
from warploom.index.laws import simplify
from warploom.kernel.build import Builder, choose
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell, Kernel
from warploom.sketch.build import Sketch
from warploom.sketch.code.accumulate import joined, neutral_number
from warploom.sketch.code.form import condition_of
from warploom.sketch.code.move import at_place
from warploom.sketch.code.proved import Proved, find
from warploom.sketch.term import spec
from warploom.sketch.term.ir import Program

OPERATORS: dict[str, tuple[str, Any]] = {
    "+": ("sum", np.add), "*": ("product", np.multiply),
    "min": ("minimum", np.minimum), "max": ("maximum", np.maximum),
    "&": ("and", np.bitwise_and), "|": ("or", np.bitwise_or), "^": ("xor", np.bitwise_xor),
}  # fmt: skip
_GOALS: dict[str, Callable[[Any], Any]] = {
    "+": spec.total, "*": spec.product, "min": spec.minimum, "max": spec.maximum,
    "&": spec.bit_and, "|": spec.bit_or, "^": spec.bit_xor,
}  # fmt: skip


def sketch(lanes: int, operator: str = "+") -> Program:
    """Rounds in which a lane adds what a hole brings from some lanes before it, or nothing."""
    s = Sketch(f"scan of {lanes} lanes by {operator}")
    value, lane = s.input("x", lanes), np.arange(lanes)
    rounds = (lanes - 1).bit_length()
    distances = [1 << bit for bit in range(rounds)]
    before = {f"lane - {d}": np.where(lane < d, -1, lane - d) for d in distances}
    for number in range(rounds):
        got = s.choices(before, value, name=f"got{number}")
        value = s.fold("stack", value, got, operator=operator, name=f"s{number + 1}")
    total = _GOALS[operator]
    s.goal(lambda x: [total([x[k] for k in range(i + 1)]) for i in range(lanes)])
    return s.program()


@dataclass(frozen=True, slots=True)
class Round:
    """How far before it a lane looks, and where there is such a lane, over its own number."""

    distance: int
    kept: Expr


@lru_cache(maxsize=64)
def rounds_of(lanes: int, operator: str) -> tuple[tuple[Round, ...], str]:
    """The rounds of a scan, of a fill that was verified, and what the header says of it."""
    proved = find(sketch(lanes, operator))
    count = (lanes - 1).bit_length()
    return tuple(_round(proved, f"got{number}") for number in range(count)), proved.doc


def _round(proved: Proved, name: str) -> Round:
    move = proved.move(name)
    far = np.arange(move.lanes)[:, None] - move.lane_table
    distances = set(far[move.live].tolist())
    kept = condition_of(move.live, np.ones(move.live.shape, np.bool_))
    if len(distances) != 1 or kept is None:
        raise InternalError(f"a round of a scan reads {sorted(distances)} lanes before")
    return Round(distances.pop(), kept)


def _scanning(inclusive: bool) -> Callable[..., Kernel]:
    def build(registers: int, lanes: int, operator: str, dtype: str) -> Kernel:
        kind = element_type(dtype)
        _check(registers, lanes, operator, kind)
        shape = Group(lanes, registers, kind, 1)
        rounds, fill = rounds_of(lanes, operator) if lanes > 1 else ((), "One lane: no fill.")
        word = "inclusive" if inclusive else "exclusive"
        sort = f"{OPERATORS[operator][0]}_{kind!r}"
        name = f"{word}_scan_{sort}_{shape.size}"
        last = "and its own" if inclusive else "without its own"
        what = (
            f"{word}_scan: item i·{registers} + j, in lane i's register j, becomes the {operator}"
        )
        what += f" of all items before it {last}. No shared memory."
        caller = Caller(name, shape, f"{what}\n{who(shape)}\n{fill}")
        k, held = caller.k, caller.registers()
        caller.load(held)
        with k.function(name):
            _Scan(k, [held.at(0, j) for j in range(registers)], lanes, operator).add(
                rounds, inclusive
            )
        caller.store(held)
        return k.done()

    return build


@dataclass(frozen=True, slots=True)
class _Scan:
    k: Builder
    items: list[Cell]
    lanes: int
    operator: str

    def add(self, rounds: tuple[Round, ...], inclusive: bool) -> None:
        """Each lane's items, then the lanes' totals, then both together."""
        k, items = self.k, self.items
        own: Expr = k.lane
        if self.lanes < WARP:
            own = k.let("own", simplify(k.lane % self.lanes, {"lane": (0, WARP - 1)}))
        for before, item in pairwise(items):
            k.set(item, joined(self.operator, before, item))
        if inclusive and len(items) == 1:
            self._lanes(items[0], own, rounds)
            return
        total = k.register("total", items[0].dtype)
        k.set(total, items[-1])
        self._lanes(total, own, rounds)
        # What the lanes before hold together; the first has none.
        lead = k.register("lead", items[0].dtype)
        k.set(lead, k.shuffle(total, 1, "up"))
        none = neutral_number(self.operator, items[0].dtype)
        k.set(lead, choose(own.ge(1), lead, none))
        if inclusive:
            for item in items[:-1]:
                k.set(item, joined(self.operator, lead, item))
            k.set(items[-1], total)
            return
        for before, item in reversed(list(pairwise(items))):
            k.set(item, joined(self.operator, lead, before))
        k.set(items[0], lead)

    def _lanes(self, total: Cell, own: Expr, rounds: tuple[Round, ...]) -> None:
        k = self.k
        got = k.register("got", total.dtype)
        for each in rounds:
            k.set(got, k.shuffle(total, each.distance, "up"))
            with k.when(simplify(at_place(each.kept, own, 0))):
                k.set(total, joined(self.operator, total, got))


def _check(registers: int, lanes: int, operator: str, dtype: DType) -> None:
    if operator not in OPERATORS:
        raise CheckError(f"a scan by '{operator[:20]}'", advice=f"use {', '.join(OPERATORS)}")
    if not 1 <= lanes <= WARP:
        raise CheckError(f"a group of {lanes} lanes", advice=f"a warp has {WARP}")
    if not 1 <= registers <= MOST_WORDS // 2:
        raise CheckError(f"{registers} registers in each lane", advice=f"1 to {MOST_WORDS // 2}")
    if dtype.is_code:
        raise CheckError(f"a scan of {dtype.value}", advice="let registers hold float32")
    neutral_number(operator, dtype)  # some operators are for integers


# -- what they must compute ------------------------------------------------------------------------


def _inputs(size: dict[str, int], random: np.random.Generator, **given: Any) -> Values:
    words = size["count"] * given["lanes"] * given["registers"]
    kind = element_type(given["dtype"])
    if kind.is_float:  # products neither vanish nor overflow
        x = (
            np.exp2(random.uniform(-1, 1, words))
            if given["operator"] == "*"
            else (random.integers(-50, 50, words))
        )
    else:
        limits = np.iinfo(kind.numpy)
        x = random.integers(limits.min, limits.max, words, kind.numpy, endpoint=True)
    return {"count": size["count"], "x": x.astype(kind.numpy)}


def _specification(inclusive: bool) -> Callable[..., Arrays]:
    def specification(values: Values, **given: Any) -> Arrays:
        x = values["x"]
        assert isinstance(x, np.ndarray)
        tiles = x.reshape(-1, given["lanes"] * given["registers"])
        function = OPERATORS[given["operator"]][1]
        with np.errstate(over="ignore"):
            found = function.accumulate(tiles, axis=1, dtype=x.dtype)
        if not inclusive:
            none = neutral_number(given["operator"], element_type(given["dtype"]))
            found = np.concatenate([np.full((len(tiles), 1), none, x.dtype), found[:, :-1]], 1)
        return {"y": found.reshape(-1).astype(x.dtype)}

    return specification


def _sizes(**given: Any) -> list[dict[str, int]]:
    beside = WARP // int(given["lanes"])
    return [{"count": n} for n in sorted({1, 2, 5, beside, beside + 1})]


_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    {"registers": 3},
    {"dtype": "int32", "operator": "min"},
    {"dtype": "uint8", "operator": "^", "registers": 2},
    {"dtype": "float64", "operator": "max", "lanes": 16},
    {"dtype": "int64", "operator": "*", "lanes": 12},
)

ENTRIES = tuple(
    Entry(
        name=name,
        doc=doc,
        parameters={"registers": 1, "lanes": WARP, "operator": "+", "dtype": "float32"},
        build=_scanning(inclusive),
        inputs=_inputs,
        specification=_specification(inclusive),
        sizes=_sizes,
        variants=_VARIANTS,
        tolerance=1e-5,
    )
    for name, doc, inclusive in (
        ("inclusive-scan", "each item together with all before it, across a warp", True),
        ("exclusive-scan", "all items before each, across a warp", False),
    )
)
