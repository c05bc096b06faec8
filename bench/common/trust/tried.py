"""Whether the claim of a certificate of impossibility is true: every fill tried, in plain Python.

Nothing is shared with the checker or with what writes certificates. Terms are None (undefined),
`()` (zero), a number for a symbol, ("=", number), or (operator, items in order).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from warploom.index.evaluate import evaluate
from warploom.index.parse import parse
from warploom.sketch.holes import build

Plain = Any


def is_true(record: dict[str, Any]) -> bool:
    """Whether no choice gives all of its goal cells, and each hole is in the way as it says."""
    wanted = [_term(value, record) for value in record["goal"]["values"]]
    tables = [_choices(step, record["steps"]) for step in record["steps"]]
    if any(_held(record, taken) == wanted for taken in product(*tables)):
        return False
    return all(_is_in_the_way(record, tables, wanted, each) for each in record["blocked"])


def fills(record: dict[str, Any]) -> Iterator[list[Plain]]:
    """What the last step holds in each fill, all of its cells."""
    for taken in product(*(_choices(step, record["steps"]) for step in record["steps"])):
        yield _run(record, taken)


def _is_in_the_way(
    record: dict[str, Any], tables: list[Any], wanted: list[Plain], said: dict[str, Any]
) -> bool:
    taken: list[Any] = []
    for position, choices in enumerate(tables):
        own = said["tables"].get(f"{position}")
        if own is None and len(choices) > 1:
            return False
        if own is not None and position != said["step"] and own not in choices:
            return False
        taken.append(choices[0] if own is None else own)
    return _held(record, taken) == wanted


def _choices(step: dict[str, Any], steps: list[dict[str, Any]]) -> list[Any]:
    """Tables. Those of a family are made by what the search uses."""
    if "values" in step:
        return [None]
    said, shapes = step["choices"], [tuple(steps[arg]["shape"]) for arg in step["args"]]
    if isinstance(said, dict):
        axes = dict(zip(("main", "second", "out"), said["axes"], strict=True))
        name = f"{said['family']}{'_no_group' if said['whole'] else ''}"
        return build(name, axes, tuple(shapes), tuple(step["cells"])).tables.tolist()
    return [each.get("table") or _tabulated(step, each, shapes) for each in said]


def _tabulated(
    step: dict[str, Any], reads: dict[str, str], shapes: list[tuple[int, ...]]
) -> list[int]:
    argument, offset = parse(reads["argument"]), parse(reads["offset"])
    sizes, found = [math.prod(shape) for shape in shapes], []
    for place in product(*map(range, step["cells"])):
        known = {f"x{axis}": at for axis, at in enumerate(place)}
        which, where = int(evaluate(argument, known)), int(evaluate(offset, known))
        if which == len(sizes):
            found.append(-1)
        else:
            found.append(sum(sizes[:which]) + where if 0 <= where < sizes[which] else -2)
    return found


def _held(record: dict[str, Any], taken: Any) -> list[Plain]:
    last = _run(record, taken)
    return [last[cell] for cell in record["goal"]["cells"]]


def _run(record: dict[str, Any], taken: Any) -> list[Plain]:
    arrays: list[list[Plain]] = []
    for step, table in zip(record["steps"], taken, strict=True):
        if "values" in step:
            arrays.append([_term(value, record) for value in step["values"]])
            continue
        args = [arrays[arg] for arg in step["args"]]
        cells = [_read(args, place) for place in table]
        n = step["fold"]
        arrays.append(
            cells
            if n is None
            else [
                _folded(step["operator"], cells[at : at + n], record)
                for at in range(0, len(cells), n)
            ]
        )
    return arrays[-1]


def _read(args: list[list[Plain]], place: int) -> Plain:
    source = [cell for arg in args for cell in arg]
    return () if place == -1 else source[place] if 0 <= place < len(source) else None


def _term(value: Any, record: dict[str, Any]) -> Plain:
    if value is None:
        return ()
    if value == "?":
        return None
    if isinstance(value, dict):
        return ("=", value["number"])
    if isinstance(value, list):
        return _joined(value[0], [_term(item, record) for item in value[1:]], record)
    return value


def _depth(term: Plain) -> int:
    is_fold = isinstance(term, tuple) and term and term[0] != "="
    return 1 + max(map(_depth, term[1])) if is_fold else 0


def _folded(operator: str, items: list[Plain], record: dict[str, Any]) -> Plain:
    if None in items:
        return None
    kept = items if operator.endswith("()") else [item for item in items if item != ()]
    if not kept:
        return ()
    depth, words = 1 + max(map(_depth, kept)), record["words"]
    if operator == "fold" and depth < len(words):
        operator = words[depth]
    return _joined(operator, kept, record)


def _joined(operator: str, items: list[Plain], record: dict[str, Any]) -> Plain:
    if None in items:
        return None
    if record["laws"] and operator != "fold" and not operator.endswith("()"):
        parts: list[Plain] = []
        for item in items:
            same = isinstance(item, tuple) and item and item[0] == operator
            parts += item[1] if same else [item]
        if len(parts) == 1:
            return parts[0]
        items = parts
    return (operator, tuple(sorted(items, key=repr)))
