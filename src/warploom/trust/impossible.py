"""Checks a certificate that a sketch has no fill, without the search: by trying every choice.

What is checked: with none of the choices of the holes do the goal cells that are named hold what
they should, up to the laws that are named. First it is computed cell by cell what can get there at
all; where that is not enough, all fills are run, and equal states in between only once. Members of
the families of `choices.py` are made here; of other holes the choices are those that are listed.
Zeros count as nothing, whatever number they would have to be: so no fill is left out for that.
Names and texts are for the reader. A hole that is said to be in the way comes with tables for all
holes: those of the others are among their choices, and all together give the goal cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.trust.checked import Checked, Work, digest, require, shielded
from warploom.trust.choices import MOST_HELD, table_of, tables_of
from warploom.trust.reach import Sketch, Step
from warploom.trust.terms import ANY, NEUTRAL, UNDEFINED, ZERO, Terms

VERSION = 1
OTHER_LAWS = "fills that are right only by other laws of the operators"
_KEYS = {
    "kind", "version", "name", "size", "steps", "words", "goal", "laws", "blocked", "verdict",
    "not_covered", "digest",
}  # fmt: skip
_INPUT = {"name", "shape", "values"}
_APPLY = {"name", "shape", "cells", "args", "function", "choices", "fold", "operator"}
_GOAL = {"number", "of", "text", "shape", "cells", "values"}
_BLOCKED = {"step", "tables"}
NUMBERS = "fills that are right on numbers alone, as where a zero is 0"
_MOST_CELLS = 1 << 20  # of an array
_MOST_WORK = 1 << 30  # numbers that are computed: about a minute
_MOST_SHOWN = 8  # cells, or values


def check_impossible(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    return shielded(lambda: _check(record), lambda why: Checked((), why))


def _check(record: dict[str, Any]) -> Checked:
    fine = set(record) == _KEYS and record["kind"] == "impossible"
    require(fine, "it has other parts than it should")
    require(repr(record["version"]) == f"{VERSION}", "it is of another version")
    require(digest(record) == record["digest"], "it was changed after it was written")
    _check_labels(record)
    require(record["verdict"] == "impossible", f"it claims {record['verdict']!r:.40}")
    laws, goal = record["laws"], record["goal"]
    require(laws in ([], ["flatten"]), f"it uses laws that are none: {laws!r:.40}")
    require(not (laws and record["words"]), "under laws 'fold' stands for nothing else")
    work = Work(_MOST_WORK)
    terms = Terms(bool(laws), record["words"])
    steps = _steps(terms, record["steps"], work)
    wanted = _wanted(terms, goal, record["steps"][-1]["shape"])
    sketch = Sketch(steps, goal["cells"], wanted, terms, work)
    reached = sketch.reached()
    far = [n for n, each in enumerate(reached) if each is not None and wanted[n] not in each]
    if not far and sketch.is_filled():
        raise CheckError("the certificate does not hold: there is a fill for all of its goal cells")
    _check_blocked(terms, record, steps, wanted, work)
    _check_words(terms, wanted)
    needed = _left_out(record, terms)
    missing = [each for each in needed if each not in record["not_covered"]]
    require(not missing, f"it does not say that it leaves out: {missing and missing[0]}")
    shown = [*_shown(record, steps, bool(far)), *_reasons(record, terms, reached, far)]
    return Checked(tuple(shown), not_covered=tuple(record["not_covered"]))


def _wanted(terms: Terms, goal: dict[str, Any], shape: list[int]) -> list[int]:
    require(goal["shape"] == shape, "its goal and its last step differ in shape")
    cells, size = goal["cells"], math.prod(shape)
    numbers = all(type(cell) is int and 0 <= cell < size for cell in cells)
    require(numbers and len(cells) > 0, "a cell of its goal is none")
    require(len(set(cells)) == len(cells) == len(goal["values"]), "cells of its goal are missing")
    wanted = [terms.read(value) for value in goal["values"]]
    require(UNDEFINED not in wanted, "its goal asks for what is undefined")
    return wanted


def _check_words(terms: Terms, wanted: list[int]) -> None:
    """A step written `fold` has, at each depth, the operator that the goal has there."""
    there = terms.at_depths(wanted)
    for depth in terms.asked:
        word, operators = terms.word(depth), there[depth]
        require(
            operators <= {word},
            f"'fold' stands for {word!r} at depth {depth}, where its goal has {sorted(operators)}",
        )


# -- steps -----------------------------------------------------------------------------------------


def _size(shape: Any, what: str) -> int:
    fine = isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape)
    require(fine and len(shape) < 32, f"{what} has a shape that is none")
    require(math.prod(shape) <= _MOST_CELLS, f"{what} has more than {_MOST_CELLS} cells")
    return math.prod(shape)


def _steps(terms: Terms, said: list[dict[str, Any]], work: Work) -> list[Step]:
    steps: list[Step] = []
    room = Work(MOST_HELD)
    for each in said:
        name = f"{each['name']!r:.80}"
        size = _size(each["shape"], name)
        if set(each) == _INPUT:
            values = np.array([terms.read(value) for value in each["values"]], np.int64)
            require(len(values) == size, f"{name} lacks values")
            steps.append(Step(size, values, (), np.zeros((1, 0), np.int64), None, ""))
            continue
        require(set(each) == _APPLY, f"{name} has other parts than it should")
        steps.append(_applied(each, name, size, said[: len(steps)], work, room))
    require(len(steps) > 0, "it has no steps")
    return steps


def _applied(
    each: dict[str, Any],
    name: str,
    size: int,
    before: list[dict[str, Any]],
    work: Work,
    room: Work,
) -> Step:
    args, fold, operator = each["args"], each["fold"], each["operator"]
    there = all(type(arg) is int and 0 <= arg < len(before) for arg in args) and len(args) > 0
    require(there, f"{name} reads what is not there")
    inner = _size(each["cells"], name)
    if fold is None:
        require(operator is None, f"{name} has an operator, and folds nothing")
    else:
        require(type(fold) is int and fold > 0, f"{name} folds runs of no length")
        _check_operator(name, operator, fold)
    require(inner == size * (fold or 1), f"{name} lacks cells")
    shapes = tuple(tuple(before[arg]["shape"]) for arg in args)
    tables = tables_of(each["choices"], name, tuple(each["cells"]), shapes, work, room)
    return Step(size, None, tuple(args), tables, fold, operator or "")


def _check_operator(name: str, operator: Any, fold: int) -> None:
    require(isinstance(operator, str), f"{name} has an operator that is none")
    function = operator.endswith("()") and operator != "()"
    require(function or operator == ANY or operator in NEUTRAL, f"{name} has no operator")
    require(not function or fold == 1, f"{operator!r:.40} has more than one item")


def _check_blocked(
    terms: Terms, record: dict[str, Any], steps: list[Step], wanted: list[int], work: Work
) -> None:
    """With another gather in place of one hole there is a fill."""
    for each in record["blocked"]:
        require(set(each) == _BLOCKED, "a hole in the way has other parts than it should")
        hole, tables = each["step"], each["tables"]
        fine = type(hole) is int and 0 <= hole < len(steps) and steps[hole].values is None
        require(fine, "a hole in the way is none")
        filled = []
        for position, (step, said) in enumerate(zip(steps, record["steps"], strict=True)):
            if step.values is not None:
                filled.append(step)
                continue
            lengths = [steps[arg].size for arg in step.args]
            name = f"{said['name']!r:.80}"
            reads = {"table": tables[f"{position}"]} if f"{position}" in tables else None
            if reads is None:
                require(len(step.tables) == 1, f"{name} has no table beside the hole in the way")
                filled.append(step)
                continue
            table = table_of(reads, name, said["cells"], lengths, work)
            own = bool((step.tables == table).all(axis=1).any())
            require(own != (position == hole), f"{name} would be another one beside a hole")
            filled.append(Step(step.size, None, step.args, table[None], step.fold, step.operator))
        sketch = Sketch(filled, record["goal"]["cells"], wanted, terms, work)
        require(sketch.is_filled(), "a hole is not in the way as it says")


# -- what is said ----------------------------------------------------------------------------------


def _left_out(record: dict[str, Any], terms: Terms) -> list[str]:
    """What a certificate has to say that it does not cover."""
    folds = terms.operators | terms.applied
    found = [NUMBERS]
    found += [OTHER_LAWS] if folds & (set(NEUTRAL) | {ANY}) else []
    listed = (
        step
        for step in record["steps"]
        if set(step) == _APPLY and isinstance(step["choices"], list) and step["function"]
    )
    found += [
        f"whether {step['function']!r:.80} has other choices for {step['name']!r:.80}"
        for step in listed
    ]
    return list(dict.fromkeys(found))


def left_out(record: dict[str, Any]) -> list[str]:
    """What a record has to say that it does not cover, before anything of it is checked."""
    terms = Terms(bool(record["laws"]), record["words"])
    for step in record["steps"]:
        terms.applied |= {step["operator"]} if step.get("operator") else set()
        for value in step.get("values", []):
            terms.read(value)
    for value in record["goal"]["values"]:
        terms.read(value)
    return _left_out(record, terms)


def _shown(record: dict[str, Any], steps: list[Step], cellwise: bool) -> Iterator[str]:
    goal, last = record["goal"], record["steps"][-1]
    which = f" (goal {goal['number']} of {goal['of']})" if goal["of"] > 1 else ""
    pairs = zip(steps, record["steps"], strict=True)
    holes = [_hole(*pair) for pair in pairs if len(pair[0].tables) > 1]
    yield (
        f"no fill gives {len(goal['cells'])} of the {math.prod(goal['shape'])} cells of "
        f"{last['name']!r:.80} what the goal called {goal['text']!r:.80} has there{which}"
    )
    how = "cell by cell" if cellwise else "all fills were run"
    yield f"choices: {', '.join(holes) or 'none'}; {how}"
    yield f"laws: {'; '.join(record['laws']) or 'the order of items'}"
    for each in record["blocked"]:
        name = record["steps"][each["step"]]["name"]
        yield f"{name!r:.80} is in the way: with another gather in its place there is a fill"


def _hole(step: Step, said: dict[str, Any]) -> str:
    # A family is told as it was made here: what the sketch calls it is a label.
    if isinstance(said["choices"], dict):
        how = ", ".join(f"{key}={value}" for key, value in sorted(said["choices"].items()))
        return f"{len(step.tables)} of {said['name']!r:.80} ({how:.160}; made here)"
    function = f"{said['function']:.80}, " if said["function"] else ""
    return f"{len(step.tables)} of {said['name']!r:.80} ({function}as listed)"


def _reasons(
    record: dict[str, Any], terms: Terms, reached: list[Any], far: list[int]
) -> Iterator[str]:
    """What each cell should hold, and what can reach it."""
    goal, texts = record["goal"], {ZERO: "zero"}
    for value in (
        *goal["values"],
        *(v for each in record["steps"] for v in each.get("values", [])),
    ):
        _note(terms, value, texts)
    for n in [*(far or range(len(reached)))][:_MOST_SHOWN]:
        cell = ", ".join(map(str, np.unravel_index(goal["cells"][n], goal["shape"])))
        yield f"cell ({cell}) should hold {_text(goal['values'][n])}; {_said(reached[n], texts)}"


def _note(terms: Terms, value: Any, texts: dict[int, str]) -> None:
    """How a term is written, and its parts."""
    texts.setdefault(terms.read(value), _text(value))
    for item in value[1:] if isinstance(value, list) else ():
        _note(terms, item, texts)


def _said(values: frozenset[int] | None, texts: dict[int, str]) -> str:
    if values is None:
        return "what can reach it was not listed"
    known = sorted(texts.get(each, "a part of one of them") for each in values if each != UNDEFINED)
    known = list(dict.fromkeys(known))
    more = ["others"] if len(known) > _MOST_SHOWN else []
    other = ["what is no part of any of these cells"] if UNDEFINED in values else []
    listed = ", ".join([*known[:_MOST_SHOWN], *more, *other])
    return f"at most these can reach it: {listed or 'nothing'}"


def _text(value: Any) -> str:
    match value:
        case None:
            return "zero"
        case {"number": number}:
            return f"={number}"
        case [operator, *items]:
            inner = ", ".join(map(_text, items[:_MOST_SHOWN]))
            return f"{operator:.40}({inner}{', …' if len(items) > _MOST_SHOWN else ''})"
    return f"{value}"


def _check_labels(record: dict[str, Any]) -> None:
    """What is there for the reader is a text, whatever it says: it is not part of the proof."""
    goal, steps = record["goal"], record["steps"]
    lists = [record["words"], steps, record["not_covered"], record["blocked"], goal["cells"]]
    whole = all(isinstance(each, list) for each in lists) and isinstance(record["size"], dict)
    require(whole, "it has other parts than it should")
    require(set(goal) == _GOAL, "its goal has other parts than it should")
    number, count = goal["number"], goal["of"]
    counted = type(number) is type(count) is int and 1 <= number <= count
    require(counted, "its goal has a number that is none")
    texts = [record["name"], goal["text"], *record["words"], *record["not_covered"]]
    texts += [step["name"] for step in steps]
    texts += [f for step in steps if (f := step.get("function")) is not None]
    require(all(isinstance(text, str) for text in texts), "what should be a text is none")
    plain = all(isinstance(value, int | str) for value in record["size"].values())
    require(plain, "a size is none")
