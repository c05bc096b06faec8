"""What is large is sampled, always alike, and never lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from tests.sampled import examples


@pytest.mark.sampled(2)
@pytest.mark.parametrize("one", [1, 2, 3])
@pytest.mark.parametrize("other", [1, 2])
def test_of_many(one: int, other: int) -> None:
    assert one * other <= 6


@pytest.mark.parametrize(("of", "count"), [("slow", 4), ("not slow", 2)])
def test_the_rest_is_run_with_what_is_slow(of: str, count: int) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", of, "-k", "test_of_many"]
    ran = subprocess.run([*command, __file__], cwd=root, capture_output=True, text=True)
    assert ran.stdout.count("test_of_many[") == count, ran.stdout


@pytest.mark.parametrize(("asked", "drawn"), [(6, 6), (20, 10), (400, 100)])
def test_fewer_examples_are_drawn_where_they_are_always_the_same(asked: int, drawn: int) -> None:
    assert examples(asked).max_examples == (drawn if settings().derandomize else asked)
