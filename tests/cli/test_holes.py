"""`warploom holes` lists and explains, and its examples are real sets."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Cli

from warploom.sketch.holes import known


def test_all_are_listed(cli: Cli) -> None:
    ran = cli("holes")
    assert ran.status == 0
    words = set(ran.out.replace(",", " ").split())
    assert set(known()) <= words
    records = json.loads(cli("holes", "--json", "-").out)
    assert {name for each in records for name in each["names"]} == set(known())


@pytest.mark.parametrize("name", ["row_xforms", "col_linear", "bits", "cond_keep", "rot_idx"])
def test_one_is_explained_with_its_choices(cli: Cli, name: str) -> None:
    ran = cli("holes", name, "--limit", "3")
    assert ran.status == 0
    assert ran.out.startswith(name)
    assert "x.flat[" in ran.out or "(x.flat[" in ran.out
    assert "options:" in ran.out


def test_letters(cli: Cli) -> None:
    said = cli("holes", "row_linear").out
    assert "greatest common divisor of L and S" in said
    assert "linear[" in said


def test_a_name_that_is_none(cli: Cli) -> None:
    ran = cli("holes", "row_xfroms")
    assert ran.status == 2
    assert "did you mean row_xforms?" in ran.err
