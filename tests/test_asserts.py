"""`python -O` drops assertions: they may narrow a type, and never be what an answer rests on."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.common.trust import layout as layouts
from bench.common.trust import made as fills
from tests.sources import outline, text_of
from tests.trust import test_fill_certificates as of_fills
from tests.trust import test_layout_certificates as of_layouts

from warploom.errors import InternalError, ensure
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.task import Task

ROOT = Path(__file__).parents[1] / "src" / "warploom"


def narrows(test: ast.expr) -> bool:
    """`x is not None`, `isinstance(x, …)`, `not isinstance(…)`, `callable(x)`, and these joined."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(map(narrows, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrows(operand) and not isinstance(operand, ast.UnaryOp)
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance" | "callable")):
            return True
    return False


def checks(text: str) -> list[int]:
    """The lines of assertions that check more than a type."""
    return sorted(node.lineno for node in outline(text).assertions if not narrows(node.test))


FOLDERS = sorted(each.name for each in ROOT.iterdir() if each.is_dir())


@pytest.mark.parametrize("folder", FOLDERS)
def test_assertions_only_narrow_types(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        assert checks(text_of(file)) == [], file.relative_to(ROOT)


def test_what_is_found() -> None:
    assert checks("assert x is not None and isinstance(y, int)\nassert not isinstance(z, A)") == []
    assert checks("assert a == b\nassert right(x), 'lost'\nassert not x") == [1, 2, 3]


def test_a_promise_that_is_broken_is_an_error_of_ours() -> None:
    ensure([1], "something")
    with pytest.raises(InternalError, match="broken: two is three"):
        ensure(len("ab") == 3, "two is three")


OPTIMISED = """
import json, sys
from warploom.cli.verify import CHECKERS
from warploom.errors import CheckError
assert not "with assertions"
for kind, record in json.load(sys.stdin):
    try:
        sys.stdout.write("open " if CHECKERS[kind](record).open else "holds ")
    except CheckError:
        sys.stdout.write("refuted ")
"""


def forged() -> list[tuple[str, dict[str, Any]]]:
    """Two certificates that hold, and all that the tests of certificates make of them."""
    fill, layout = fills.written("sums"), layouts.written(TASK, "xor")
    found = [("fill", json.loads(fill)), ("layout", layout)]
    for path, value, _ in of_fills.SIGNED.values():
        record = json.loads(fill)
        place = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        found.append(("fill", of_fills.signed(record)))
    for change in of_layouts.FORGED.values():
        record = json.loads(json.dumps(layout))
        change(record)
        found.append(("layout", layouts.signed(record)))
    return found


TASK = Task(pattern("but-two:4x32"))


def test_certificates_are_refuted_without_assertions_too() -> None:
    made = forged()
    ran = subprocess.run(
        [sys.executable, "-O", "-c", OPTIMISED],
        input=json.dumps(made), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == ["holds"] * 2 + ["refuted"] * (len(made) - 2)
