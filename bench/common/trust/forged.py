"""Certificates of fills as a forger writes them, signed, and an oracle that runs them on numbers.

The oracle knows nothing of terms: it runs the steps and the goal on random numbers, with each zero
one number, and with every number that a zero may be.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any

from warploom.errors import CheckError
from warploom.trust import fill
from warploom.trust.checked import digest
from warploom.trust.fill import check_fill, left_out
from warploom.trust.terms import NEUTRAL, ZERO, Terms

Json = dict[str, Any]
COMPUTE: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b, "*": lambda a, b: a * b, "min": min, "max": max,
    "&": lambda a, b: int(a) & int(b), "|": lambda a, b: int(a) | int(b),
    "^": lambda a, b: int(a) ^ int(b),
}  # fmt: skip
MAY_BE = (0, 1, -1, math.inf, -math.inf)  # the neutral elements


def signed(record: Json) -> Json:
    return record | {"digest": digest(record)}


def literal(name: str, values: list[Any]) -> Json:
    return {"name": name, "shape": [len(values)], "values": values}


def fold(name: str, args: list[int], table: list[int], length: int, operator: str) -> Json:
    """As a step of a certificate that reads a table."""
    return {
        "name": name, "shape": [len(table) // length], "cells": [len(table)], "args": args,
        "reads": {"table": table}, "fold": length, "operator": operator, "fill": None,
    }  # fmt: skip


def forged(steps: list[Json], values: list[Any], operators: set[str], **more: Any) -> Json:
    """With every caveat that it needs."""
    goal = {"number": 1, "of": 1, "text": "", "shape": [len(values)], "values": values}
    record = {
        "kind": "fill", "version": 2, "name": "forged", "size": {}, "warp": None, "steps": steps,
        "words": [], "goal": goal, "laws": [], "operators": sorted(operators), "verdict": "proved",
        "not_covered": [], **more,
    }  # fmt: skip
    record["not_covered"] = list(left_out(signed(record)))
    return signed(record)


class Oracle:
    """The steps and the goal of a certificate on numbers; zeros are given."""

    def __init__(self, record: Json, numbers: dict[int, int], zeros: tuple[float, ...]) -> None:
        self.numbers, self.zeros = numbers, iter(zeros)
        self.arrays: list[list[float]] = []
        for step in record["steps"]:
            self.arrays.append(self._step(step))

    def _step(self, step: Json) -> list[float]:
        if "values" in step:
            return [next(self.zeros) if v is None else self.term(v) for v in step["values"]]
        joined = [value for arg in step["args"] for value in self.arrays[arg]]
        cells = [next(self.zeros) if at == ZERO else joined[at] for at in step["reads"]["table"]]
        length = step["fold"]
        rows = [cells[at : at + length] for at in range(0, len(cells), length)]
        return [reduce(COMPUTE[step["operator"]], row) for row in rows]

    def term(self, value: Any) -> float:
        match value:
            case None:
                return 0
            case int():
                return self.numbers[value]
            case {"number": number}:
                return float(number)
        return reduce(COMPUTE[value[0]], map(self.term, value[1:]))


def is_true(record: Json, random: Random) -> bool:
    """Whether there are numbers for the zeros with which the goal is met, whatever symbols are."""
    steps = record["steps"]
    count = sum(v is None for s in steps for v in s.get("values", ()))
    count += sum(s["reads"]["table"].count(ZERO) for s in steps if "reads" in s)
    trials = [
        {n: random.choice((-1, 1)) * random.randrange(2, 99) for n in range(6)} for _ in range(3)
    ]

    def meets(zeros: tuple[float, ...]) -> bool:
        for numbers in trials:
            try:
                run = Oracle(record, numbers, zeros)
            except (OverflowError, ValueError):  # no bits of what is infinite
                return False
            wanted = [run.term(value) for value in record["goal"]["values"]]
            if run.arrays[-1] != wanted:
                return False
        return True

    return any(map(meets, itertools.product(MAY_BE, repeat=count)))


def vanishing(steps: list[Json]) -> list[Any]:
    """What the last step holds if zeros vanish, whatever consumes them: what a forger wants."""
    arrays: list[list[Any]] = []
    for step in steps:
        if "values" in step:
            arrays.append(step["values"])
            continue
        joined = [value for arg in step["args"] for value in arrays[arg]]
        cells = [None if at == ZERO else joined[at] for at in step["reads"]["table"]]
        length = step["fold"]
        rows = (cells[at : at + length] for at in range(0, len(cells), length))
        kept = [[cell for cell in row if cell is not None] for row in rows]
        arrays.append([[step["operator"], *row] if row else None for row in kept])
    return arrays[-1]


def drawn(random: Random) -> tuple[list[Json], list[Any]]:
    """Some folds of some operators over symbols and at most three zeros."""
    signs = random.sample(sorted(NEUTRAL), 2)
    zeros = 3
    values: list[Any] = [random.choice([None, 0, 1, 2]) for _ in range(3)]
    steps, sizes = [literal("x", values)], [3]
    zeros -= values.count(None)
    for number in range(1, 1 + random.randint(1, 3)):
        args = random.choices(range(number), k=random.randint(1, 2))
        places = sum(sizes[arg] for arg in args)
        table = []
        for _ in range(4):
            blank = zeros > 0 and random.random() < 0.15
            zeros -= blank
            table.append(ZERO if blank else random.randrange(places))
        length = random.choice([1, 2, 4])
        steps.append(fold(f"s{number}", args, table, length, random.choice(signs)))
        sizes.append(4 // length)
    return steps, vanishing(steps)


def accepted_record(steps: list[Json], wanted: list[Any], flatten: bool) -> Json | None:
    """The certificate, with the operators that the checker will see, if it is accepted."""
    terms = Terms(flatten, [])
    laws = ["flatten"] if flatten else []
    try:
        fill._run(terms, steps)
        for value in wanted:
            terms.read(value)
        record = forged(steps, wanted, terms.operators, laws=laws)
        check_fill(json.loads(json.dumps(record)))
    except CheckError:
        return None
    return record
