"""What is large is sampled, always alike, and never lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from tests.sampled import MOST, examples, rounds


@pytest.mark.sampled(2)
@pytest.mark.parametrize("one", [1, 2, 3])
@pytest.mark.parametrize("other", [1, 2])
def test_of_many(one: int, other: int) -> None:
    assert one * other <= 6


@pytest.mark.sampled(1, each="kind")
@pytest.mark.parametrize("one", [1, 2, 3])
@pytest.mark.parametrize("kind", ["some", "other"])
def test_of_kinds(one: int, kind: str) -> None:
    assert kind * one


@pytest.mark.parametrize(
    ("of", "count", "of_kind"), [("slow", 4, 2), ("not slow", 2, 1)], ids=["slow", "quick"]
)
def test_the_rest_is_run_with_what_is_slow(of: str, count: int, of_kind: int) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", of, "-k", "test_of_"]
    ran = subprocess.run([*command, __file__], cwd=root, capture_output=True, text=True)
    assert ran.stdout.count("test_of_many[") == count, ran.stdout
    for kind in ("some", "other"):
        assert ran.stdout.count(f"[{kind}-") == of_kind, ran.stdout


def test_a_test_without_the_mark_has_so_many_cases() -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "not slow"]
    large = "tests/ptx/test_instructions.py"
    ran = subprocess.run([*command, large], cwd=root, capture_output=True, text=True)
    assert ran.stdout.count("::test_integers[") == MOST, ran.stdout[-500:]


@pytest.mark.parametrize(("asked", "drawn"), [(6, 6), (20, 10), (400, 100)])
def test_fewer_examples_are_drawn_where_they_are_always_the_same(asked: int, drawn: int) -> None:
    assert examples(asked).max_examples == (drawn if settings().derandomize else asked)


@pytest.mark.parametrize(("asked", "made"), [(1, 1), (2, 1), (60, 20)])
def test_fewer_rounds_are_made_where_they_are_always_the_same(asked: int, made: int) -> None:
    assert rounds(asked) == (made if settings().derandomize else asked)


def test_examples_do_not_depend_on_what_sources_say() -> None:
    providers = pytest.importorskip("hypothesis.internal.conjecture.providers")
    find = getattr(providers, "_get_local_constants", None)
    if find is None:
        pytest.skip("this Hypothesis looks at no sources")
    assert (len(find()) == 0) == settings().derandomize
