"""Defaults of commands and of Python are equal, or the docstring says why not."""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from typing import Any

import pytest

import warploom
from warploom.cli.commands.explore import Explore
from warploom.cli.commands.layout import Convert, Solve
from warploom.cli.commands.map import Map
from warploom.cli.commands.ptx import Run, Shuffle
from warploom.cli.commands.synth import Synth

PAIRS: dict[str, type] = {
    "explore": Explore, "map_array": Map, "solve_layout": Solve, "convert_layout": Convert,
    "emulate": Run, "insert_shuffles": Shuffle, "synthesize": Synth,
}  # fmt: skip
# Nothing is written in another way there; of a sketch the goal that a file names is the first.
NOTHING = {("explore", "store"), ("synthesize", "goal")}
OTHERWISE = {("emulate", "races"): "--races", ("emulate", "benign"): "--benign"}


def usual(field: dataclasses.Field[Any]) -> object:
    given = field.default
    if given is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        given = field.default_factory()
    given = getattr(given, "default", given)
    return given.value if isinstance(given, Enum) else given or None


@pytest.mark.parametrize("name", PAIRS)
def test_defaults_are_equal_or_said(name: str) -> None:
    function = getattr(warploom, name)
    options = {each.name: usual(each) for each in dataclasses.fields(PAIRS[name])}
    given = inspect.signature(function).parameters
    common = [each for each in given if each in options and (name, each) not in NOTHING]
    assert len(common) > 1
    for each in common:
        if (name, each) in OTHERWISE:
            assert (given[each].default or None) != options[each]
            assert OTHERWISE[name, each] in (function.__doc__ or "")
        elif given[each].default is not inspect.Parameter.empty:
            assert (given[each].default or None) == options[each], each
