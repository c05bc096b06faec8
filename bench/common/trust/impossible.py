"""Random sketches without a fill, their certificates, and the same altered in every way.

Half of the sketches have tables of their own (`bench/common/sketch/generate.py`), half the
built-in functions on small matrices, so that families are made by the checker, too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bench.common.sketch.generate import seeded, sketch
from bench.common.trust.altered import changed, leaves
from bench.common.trust.tried import fills

from warploom.errors import CheckError
from warploom.pipeline.impossibility import certificate_of_impossible, plain_record
from warploom.search.outcome import Found, Impossible
from warploom.sketch.front import load_text
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Program
from warploom.trust.checked import digest

Record = dict[str, Any]

_FUNCTIONS = (
    "row_xforms", "col_xforms", "row_rots", "col_rots", "row_xforms_no_group", "row_linear",
    "col_rots_no_group", "col_linear", "col_xforms_no_group", "cond_keep",
)  # fmt: skip


def program(seed: int) -> Program:
    return sketch(seeded(seed)) if seed % 2 else load_text(_text(Random(seed)), f"random {seed}")


def _text(random: Random) -> str:
    """A small matrix moved about by built-in functions, perhaps summed, with a goal that is near
    to what such moves give."""
    rows, columns = random.randint(2, 6), random.randint(2, 5)
    count = rows * columns
    lines, name = [f"x: [{count}] = range(0, {count})", f"a: [{rows},{columns}] = load_rep(x)"], "a"
    for number in range(random.randint(1, 2)):
        lines.append(f"b{number}: [{rows},{columns}] = ?{random.choice(_FUNCTIONS)}({name})")
        name = f"b{number}"
    cells = [[column * rows + row for column in range(columns)] for row in range(rows)]
    for row in cells:
        by = random.randrange(columns)
        row[:] = row[by:] + row[:by]
    if random.random() < 0.7:
        one, other = random.choices(cells, k=2)
        one[0], other[-1] = other[-1], one[0]
    if random.random() < 0.4:
        lines.append(f"s: [{rows}] = + identity{{fold_len={columns}}}({name})")
        return "\n".join([*lines, f"{_laws(random)}goal: [{rows}] = + {cells}"])
    return "\n".join([*lines, f"goal: [{rows},{columns}] = {cells}"])


def _laws(random: Random) -> str:
    return "@flatten " if random.random() < 0.5 else ""


def impossible(first: int = 0) -> Iterator[tuple[int, Result]]:
    """Sketches without a fill, with their seeds."""
    seed = first
    while True:
        found = searched(seed)
        if found is not None and isinstance(found.outcome, Impossible):
            yield seed, found
        seed += 1


def solvable(first: int = 0) -> Iterator[Result]:
    seed = first
    while True:
        found = searched(seed)
        if found is not None and isinstance(found.outcome, Found):
            yield found
        seed += 1


def searched(seed: int) -> Result | None:
    """None: the sketch was refused."""
    try:
        return synthesize(program(seed))
    except CheckError:
        return None


def proof(found: Result) -> Record:
    return certificate_of_impossible(found)


def forged(found: Result) -> Record:
    """The claim that a sketch with a fill has none."""
    cells = range(len(found.goal.values))
    return plain_record(found.program, found.goal, cells, [])


# -- alterations -----------------------------------------------------------------------------------


def altered(record: Record, random: Random) -> tuple[str, Record]:
    """Changed in some way, with a digest that is right unless that is what was changed."""
    way = random.choice(list(_WAYS))
    made = _WAYS[way](copy.deepcopy(record), random)
    if way != "old digest":
        made["digest"] = digest(made)
    return way, made


def _any_field(record: Record, random: Random) -> Record:
    proof_alone = [path for path in leaves(record) if path[0] not in ("name", "size", "digest")]
    return changed(record, random.choice(proof_alone), random)


def _old_digest(record: Record, random: Random) -> Record:
    path = random.choice([path for path in leaves(record) if path[0] != "digest"])
    return changed(record, path, random)


def _goal_of_a_fill(record: Record, random: Random) -> Record:
    """The goal cells are what some fill gives, where they are written as such."""
    if all(isinstance(step.get("choices", []), list) for step in record["steps"]):
        held = random.choice([*fills(record)][:64])
        wanted = [held[cell] for cell in record["goal"]["cells"]]
        if None not in wanted:
            record["goal"]["values"] = [_written(term) for term in wanted]
            return record
    return _fewer_cells(record, random)


def _written(term: Any) -> Any:
    if term == ():
        return None
    if isinstance(term, tuple):
        if term[0] == "=":
            return {"number": term[1]}
        return [term[0], *map(_written, term[1])]
    return term


def _one_choice_more(record: Record, random: Random) -> Record:
    """The gather that would do is among the choices."""
    for each in record["blocked"]:
        step = record["steps"][each["step"]]
        if isinstance(step["choices"], list):
            step["choices"].append({"table": each["tables"][str(each["step"])]})
            return record
    return _any_field(record, random)


def _fewer_cells(record: Record, random: Random) -> Record:
    goal = record["goal"]
    if len(goal["cells"]) > 1:
        at = random.randrange(len(goal["cells"]))
        del goal["cells"][at], goal["values"][at]
        return record
    goal["cells"], goal["values"] = [], []
    return record


def _fewer_words(record: Record, random: Random) -> Record:
    """It does not say what it leaves out, or that a gather would do where none does."""
    if record["not_covered"]:
        record["not_covered"].pop(random.randrange(len(record["not_covered"])))
        return record
    return _wrong_hole(record, random)


def _wrong_hole(record: Record, random: Random) -> Record:
    for each in record["blocked"]:
        table = each["tables"][str(each["step"])]
        used = random.randrange(len(table))
        table[used] = -2
        return record
    holes = [n for n, step in enumerate(record["steps"]) if "choices" in step]
    record["blocked"] = [{"step": random.choice(holes), "tables": {}}] if holes else [{}]
    return record


def _another_input(record: Record, random: Random) -> Record:
    inputs = [step for step in record["steps"] if "values" in step]
    values = random.choice(inputs)["values"]
    values[random.randrange(len(values))] = random.choice([None, "?", True, 0, 10**6, ["+"], {}])
    return record


def _another_step(record: Record, random: Random) -> Record:
    step = random.choice(record["steps"])
    if random.random() < 0.5:
        del step[random.choice(list(step))]
    else:
        record["steps"].remove(step)
    return record


_WAYS: dict[str, Callable[[Record, Random], Record]] = {
    "any field": _any_field,
    "old digest": _old_digest,
    "the goal of a fill": _goal_of_a_fill,
    "the choice that would do": _one_choice_more,
    "fewer goal cells": _fewer_cells,
    "less is left out": _fewer_words,
    "a hole that is not in the way": _wrong_hole,
    "another input": _another_input,
    "another step": _another_step,
}
