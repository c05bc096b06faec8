"""Checks a certificate about a filled sketch by itself: nothing of the search is used, nor of the
languages of sketches and of index expressions.

What is checked: every gather reads what its index expressions say, or its table; every cell of the
last step then holds the term that the goal has there, up to the laws that are named; operators are
those that are named; no zero has to be two numbers; and whatever such a proof leaves out is said.
Names and texts are for the reader: none of them decides what is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import Checked, digest, require, shielded
from warploom.trust.choices import table_of
from warploom.trust.terms import UNDEFINED, ZERO, Terms
from warploom.trust.warp import caveats, run_warp, warp_lines

Numbers = npt.NDArray[np.int64]

VERSION = 2
_KEYS = {
    "kind", "version", "name", "size", "warp", "steps", "words", "goal", "laws", "operators",
    "verdict", "not_covered", "digest",
}  # fmt: skip
_INPUT = {"name", "shape", "values"}
_APPLY = {"name", "shape", "cells", "args", "reads", "fold", "operator", "fill"}
_GOAL = {"number", "of", "text", "shape", "values"}
_FILL = {"family", "parameters", "text"}
_MOST_CELLS = 1 << 22  # of one array
_MOST_OF_ALL = 1 << 24
_AT_ONCE = 1 << 12  # runs of a fold that are lists of Python at one time


def check_fill(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    return _shielded(record)[0]


def left_out(record: dict[str, Any]) -> tuple[str, ...]:
    """What a certificate has to say that it does not cover; it holds but for that it may not."""
    return _shielded(record, whole=False)[1]


def _shielded(record: dict[str, Any], whole: bool = True) -> tuple[Checked, tuple[str, ...]]:
    return shielded(lambda: _check(record, whole), lambda why: (Checked((), why), ()))


def _check(record: dict[str, Any], whole: bool) -> tuple[Checked, tuple[str, ...]]:
    require(set(record) == _KEYS and record["kind"] == "fill", "it has other parts than it should")
    require(repr(record["version"]) == f"{VERSION}", "it is of another version")
    require(digest(record) == record["digest"], "it was changed after it was written")
    _check_labels(record)
    require(record["verdict"] == "proved", f"it claims {record['verdict']!r:.40}, not a proof")
    laws, goal, last = record["laws"], record["goal"], record["steps"][-1]
    require(laws in ([], ["flatten"]), f"it uses laws that are none: {laws!r:.40}")
    require(not (laws and record["words"]), "under laws 'fold' stands for nothing else")
    terms = Terms(bool(laws), record["words"])
    held = _run(terms, record["steps"])
    require(goal["shape"] == last["shape"], "its goal and its last step differ in shape")
    wanted = [terms.read(value) for value in goal["values"]]
    require(len(wanted) == _size(goal["shape"]), "cells of its goal are missing")
    _compare(terms, held, wanted, f"{last['name']!r:.80}")
    if record["warp"] is not None:
        _compare(terms, run_warp(terms, record["warp"]), wanted, "its program")
        _check_inputs(record["warp"], record["steps"])
    require(sorted(terms.operators) == record["operators"], "it uses other operators than it says")
    tile = () if record["warp"] is None else caveats(record["warp"])
    needed, said = (*terms.caveats(), *tile), record["not_covered"]
    missing = [each for each in needed if not any(_says(text, each) for text in said)]
    require(
        not (whole and missing), f"it does not say that it leaves out: {missing and missing[0]}"
    )
    return Checked(tuple(_shown(record, terms)), not_covered=tuple(said)), needed


def _compare(terms: Terms, held: Numbers, wanted: list[int], name: str) -> None:
    """Every cell holds what the goal has there; zeros are then the number 0."""
    require(len(held) == len(wanted), f"{name} has other cells than its goal")
    for cell, (found, asked) in enumerate(zip(held.tolist(), wanted, strict=True)):
        require(found != UNDEFINED, f"cell {cell} of {name} is undefined")
        same = (ZERO if found < 0 else found) == asked
        require(same, f"cell {cell} of {name} does not hold its goal")
    terms.zeros.end(held)


def _check_inputs(warp: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    """The tiles that a warp reads are those that the steps begin with."""
    tiles = [a for a in warp["arrays"] if a["space"] in ("input", "constant")]
    first = [each for each in steps[: len(tiles)] if set(each) == _INPUT]
    same = [(tile["name"], tile["shape"]) for tile in tiles] == [
        (each["name"], each["shape"]) for each in first
    ]
    require(same, "the tiles of its program are not those of its steps")
    held = [value for each in first for value in each["values"]]
    numbered = repr(held) == repr([*range(len(held))])
    require(numbered, "the tiles of its program hold other symbols than those of its steps")


def _says(text: str, caveat: str) -> bool:
    """Whether a text is this caveat, to which it may add why."""
    return text == caveat or text.startswith(f"{caveat} (")


def _shown(record: dict[str, Any], terms: Terms) -> Iterator[str]:
    goal, last = record["goal"], record["steps"][-1]
    which = f" (goal {goal['number']} of {goal['of']})" if goal["of"] > 1 else ""
    yield (
        f"each of the {len(goal['values'])} cells of {last['name']!r:.80} holds its goal, called "
        f"{goal['text']!r:.80}{which}"
    )
    rounds = " (in floating point the result may round differently)"
    used = [
        f"{what}: {operator}{rounds if what == 'reassociated' and operator in '+*' else ''}"
        for what, operator in sorted(terms.used)
    ]
    named = ", ".join(record["operators"]) or "none"
    yield f"operators: {named}; laws: {'; '.join([*record['laws'], *used]) or 'the order of items'}"
    if any(step.get("operator") == "fold" for step in record["steps"]) and record["words"]:
        said = (f"{word} at depth {d}" for d, word in enumerate(record["words"]) if d)
        yield f"'fold' stands for {', '.join(said)}"
    if record["size"]:
        yield "said to be built at " + ", ".join(
            f"{key}={value}" for key, value in record["size"].items()
        )
    if record["warp"] is not None:
        yield from warp_lines(record["warp"])


# -- what is there for the reader ------------------------------------------------------------------


def _check_labels(record: dict[str, Any]) -> None:
    """What is there for the reader is a text, whatever it says: it is not part of the proof."""
    words, steps, goal = record["words"], record["steps"], record["goal"]
    lists = [words, steps, record["not_covered"], record["operators"]]
    whole = all(isinstance(each, list) for each in lists) and isinstance(record["size"], dict)
    require(whole, "it has other parts than it should")
    require(set(goal) == _GOAL, "its goal has other parts than it should")
    number, count = goal["number"], goal["of"]
    counted = type(number) is type(count) is int and 1 <= number <= count
    require(counted, "its goal has a number that is none")
    texts = [record["name"], goal["text"], *words, *record["not_covered"]]
    for step in steps:
        fill = step.get("fill")
        require(fill is None or set(fill) == _FILL, "a fill has other parts than it should")
        texts += [step["name"]]
        texts += [] if fill is None else [fill["family"], fill["text"]]
    require(all(isinstance(text, str) for text in texts), "what should be a text is none")
    plain = all(isinstance(value, int | str) for value in record["size"].values())
    require(plain, "a size is none")


def _size(shape: list[int]) -> int:
    require(all(type(n) is int and n > 0 for n in shape), "a shape has an axis that is none")
    size = math.prod(shape)
    require(size <= _MOST_CELLS, f"an array has more than {_MOST_CELLS} cells")
    return size


# -- steps -----------------------------------------------------------------------------------------


def _run(terms: Terms, steps: list[dict[str, Any]]) -> Numbers:
    """The terms that the last step holds."""
    arrays: list[Numbers] = []
    cells = 0
    for step in steps:
        size = _size(step["shape"])
        cells += max(size, _size(step.get("cells", [])))
        require(cells <= _MOST_OF_ALL, f"its arrays have more than {_MOST_OF_ALL} cells together")
        if set(step) == _INPUT:
            held = np.array([terms.read(value) for value in step["values"]], np.int64)
            require(len(held) == size, f"{step['name']!r:.80} lacks values")
            arrays.append(terms.zeros.made(held))
            continue
        require(set(step) == _APPLY, f"{step['name']!r:.80} has other parts than it should")
        args = [arrays[arg] for arg in step["args"] if type(arg) is int and arg >= 0]
        there = len(args) == len(step["args"]) > 0
        require(there, f"{step['name']!r:.80} reads what is not there")
        arrays.append(_applied(terms, step, args, size))
    return arrays[-1]


def _applied(terms: Terms, step: dict[str, Any], args: list[Numbers], size: int) -> Numbers:
    name, length, operator = f"{step['name']!r:.80}", step["fold"], step["operator"]
    _size(step["cells"])
    lengths = [len(each) for each in args]
    table = table_of(step["reads"], name, step["cells"], lengths, terms.work)
    fresh = terms.zeros.made(np.where(table == ZERO, ZERO, UNDEFINED))
    joined = np.concatenate([*args, [UNDEFINED]])
    cells = np.where(table == ZERO, fresh, joined[np.where(table < 0, len(joined) - 1, table)])
    if length is None:
        require(operator is None, f"{name} has an operator, and folds nothing")
        require(len(cells) == size, f"{name} lacks cells")
        return cells
    require(type(length) is int and length > 0, f"{name} folds runs of no length")
    require(len(cells) == size * length, f"{name} lacks cells")
    rows = cells.reshape(-1, length)
    found: list[int] = []
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE].tolist()
        found += [terms.fold(operator, row) for row in some]
    return np.array(found, np.int64)
