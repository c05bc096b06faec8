"""`make test` samples what is large, `make accept` runs all of it.

`@pytest.mark.sampled(n)`: of a test's many cases `make test` runs n. Which n is the same in every
run and on every machine: those whose names have the smallest digests; the others are marked `slow`.
`@pytest.mark.sampled(n, each="device")`: n of each value of the parameter `device`.
A test without this mark has `MOST` of its cases run, unless it is about the project's own texts:
each of these is looked at.
`@examples(n)`: Hypothesis tries n examples, in `make test` a quarter of them.
`rounds(n)`: a loop over seeds makes n rounds, in `make test` a third of them.
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import settings

MOST = 2
OWN_TEXTS = {"tests", "bench", "cli", "report"}  # folders whose tests look at pages and records


def _digest(item: pytest.Item) -> bytes:
    return sha256(item.nodeid.encode()).digest()


def mark_the_rest(items: list[pytest.Item]) -> None:
    """Marks as `slow` what is not in the sample of its test."""
    families: dict[tuple[str, str, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            marker = item.get_closest_marker("sampled")
            kind = item.callspec.params[marker.kwargs["each"]] if marker and marker.kwargs else ""
            families[item.nodeid.partition("::")[0], item.originalname, str(kind)].append(item)
    for family in families.values():
        quick = [each for each in family if not each.get_closest_marker("slow")]
        for item in sorted(quick, key=_digest)[_count(family[0]) :]:
            item.add_marker(pytest.mark.slow)


def _count(item: pytest.Function) -> int | None:
    """How many cases of a test are run."""
    marker = item.get_closest_marker("sampled")
    if marker:
        return int(marker.args[0])
    return None if item.path.parent.name in OWN_TEXTS else MOST


def examples(count: int, least: int = 10, **other: Any) -> settings:
    """In `make accept` new ones each time; in `make test` the same ones, so many at least."""
    same = settings().derandomize
    return settings(max_examples=min(count, max(least, count // 4)) if same else count, **other)


def leave_out_constants() -> None:
    """Hypothesis also tries numbers and words that it finds in the sources of modules that are
    loaded: other examples after every change, and seconds to read them. `make accept` has them."""
    module = "hypothesis.internal.conjecture.providers"
    providers = importlib.import_module(module) if importlib.util.find_spec(module) else None
    known = getattr(providers, "_local_constants", None)
    if settings().derandomize and providers is not None and known is not None:
        pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: known)


def rounds(count: int) -> int:
    """How often a test draws by itself, from seeds that stay: in `make test` a third as often."""
    return max(1, count // 3) if settings().derandomize else count
