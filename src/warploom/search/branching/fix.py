"""Decisions that a user writes down: `size(m1)=16`, `dim_kind(sum_1.k1)=LOOP|UNROLL`, `cache=…`.

In come texts and a propagator; out go decisions, or one error that names what is not known or which
of the decisions contradict each other. Without objects a decision is on all instances of a choice;
what turns out not to be there is not meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from warploom.errors import CheckError, ParseError, nearest, spelled
from warploom.search.branching.candidate import Decision
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.ir import Choice, Value

FORM = re.compile(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*=\s*([^=()]+)\s*")
ADVICE = "write choice=value, choice(object)=value or choice(object, object)=value|value"


def fixed(propagator: Propagator, texts: Sequence[str]) -> tuple[Decision, ...]:
    """The decisions that texts stand for; they do not contradict each other as far as propagation
    sees."""
    taken = {text: _decisions(propagator, text) for text in texts}
    every = tuple(each for own in taken.values() for each in own)
    if not len(propagator.root()):
        return every  # nothing is possible even without them
    for own in taken.values():
        for each in own:
            propagator.place(each)
    if len(propagator.root(every)):
        return every
    raise _contradiction(propagator, taken, every)


def allows(propagator: Propagator, texts: Sequence[str]) -> bool:
    """Whether there is anything of what a user decided."""
    try:
        fixed(propagator, texts)
    except CheckError:
        return False
    return True


def _contradiction(
    propagator: Propagator, taken: dict[str, list[Decision]], every: tuple[Decision, ...]
) -> CheckError:
    conflict = propagator.conflict(every)
    texts = [text for text, own in taken.items() if any(each in own for each in conflict)]
    if len(texts) > 1:
        return CheckError(f"{' and '.join(texts)} contradict each other", advice="give up one")
    return CheckError(
        f"no implementation has {' and '.join(map(str, conflict))}",
        advice=spelled(
            "--explain shows what is possible without it", "leave it out of fix, or fix another"
        ),
    )


def _decisions(propagator: Propagator, text: str) -> list[Decision]:
    match = FORM.fullmatch(text)
    if match is None:
        raise ParseError(f"'{text[:80]}' is not a decision", advice=ADVICE)
    name, objects, right = match.groups()
    choices = {each.name: each for each in propagator.space.choices}
    _check_known(name, choices, "choice")
    choice = choices[name]
    values: list[Value | None] = [_value(choice, word.strip()) for word in right.split("|")]
    if choice.absent:
        values.append(None)
    named = [tuple(map(str, instance)) for instance in choice.instances]
    if objects is None:
        return [Decision(name, instance, tuple(values)) for instance in named]
    wanted = tuple(word.strip() for word in objects.split(","))
    if wanted not in named and wanted[::-1] not in named:
        labels = dict.fromkeys(label for instance in named for label in instance)
        for label in wanted:
            _check_known(label, labels, f"object of {name}")
        raise CheckError(f"{name} is not made for ({', '.join(wanted)})", advice=ADVICE)
    return [Decision(name, wanted, tuple(values))]


def _value(choice: Choice, word: str) -> Value:
    for value in choice.values:
        if str(value) == word:
            return value
    raise CheckError(
        f"'{word}' is not a value of the choice '{choice.name}'",
        advice=f"its values are {', '.join(map(str, choice.values))}",
    )


def _check_known(name: str, known: Iterable[str], what: str) -> None:
    names = list(known)
    if name not in names:
        listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        advice = nearest(name, names, f"known are {listed}", cutoff=0.4)
        raise CheckError(f"there is no {what} called '{name[:80]}'", advice=advice)
