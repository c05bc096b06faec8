"""What is said of each function is what it does: every option it reads is explained, no other."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from contextlib import suppress

import pytest

from warploom.errors import CheckError
from warploom.index.ir import variables
from warploom.sketch.holes import build, known
from warploom.sketch.holes.about import ABOUT, About, about
from warploom.sketch.holes.call import Option
from warploom.sketch.holes.linear import forms

EVERY = [(each, name) for each in ABOUT for name in each.names]
# A value of each option that makes sense somewhere.
SOME: Mapping[str, Option] = {
    "main": 0, "second": 1, "out": 0, "axis": 0, "group": 1, "r": 1, "l": 1, "dims": (0,),
    "consts": (0,), "restrict": (0, 0), "in": (0, 1), "in_lim": 1, "fresh": None, "inplace": None,
    "swaps": None,
}  # fmt: skip


class Noting(Mapping[str, Option]):
    """Options that remember which of them somebody asked for."""

    def __init__(self, given: Mapping[str, Option]) -> None:
        self.given, self.asked = dict(given), set[str]()

    def __getitem__(self, name: str) -> Option:
        self.asked.add(name)
        return self.given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def items(self) -> ItemsView[str, Option]:
        """All together, as they are kept beside a set: nobody in particular is asked for."""
        return self.given.items()


def asked_for(each: About, name: str, options: Mapping[str, Option]) -> set[str]:
    noting = Noting(options)
    with suppress(CheckError):
        build(name, noting, each.example.arguments, each.example.out)
    return noting.asked


def test_every_function_is_explained_once() -> None:
    names = [name for each in ABOUT for name in each.names]
    assert sorted(names) == sorted(known())
    assert all(each.what for each in ABOUT)


@pytest.mark.parametrize(("each", "name"), EVERY, ids=[name for _, name in EVERY])
def test_the_options_that_are_read_are_those_that_are_explained(each: About, name: str) -> None:
    own = dict(each.example.options)
    axes = {key: SOME[key] for key in ("main", "second", "out")} if "main" in each.options else {}
    tried = [own, {**own, **axes}]
    tried += [{**some, option: SOME[option]} for option in each.options for some in (own, {})]
    read = set().union(*(asked_for(each, name, options) for options in tried))
    constant = {"consts"} if name.endswith("_no_consts") else set()  # read, and not used
    assert read - constant == set(each.options) - constant


def test_single_gathers_and_holes() -> None:
    assert {name for each in ABOUT if not each.is_hole for name in each.names} == {
        "id", "identity", "reshape", "transpose", "rot_idx", "stack", "broadcast", "load_rep",
        "load_trunc", "load_grid_2d",
    }  # fmt: skip


def test_every_letter_of_linear_forms_is_explained() -> None:
    letters = {letter for form in forms() for letter in variables(form)}
    said = {one for key in about("linear").letters for one in key.split(", ")}
    assert letters == said
