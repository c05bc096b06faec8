"""`make test` samples what is large, `make accept` runs all of it.

`@pytest.mark.sampled(n)`: of a test's many cases `make test` runs n. Which n is the same in every
run and on every machine: those whose names have the smallest digests; the others are marked `slow`.
`@pytest.mark.sampled(n, each="device")`: n of each value of the parameter `device`.
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


def _digest(item: pytest.Item) -> bytes:
    return sha256(item.nodeid.encode()).digest()


def mark_the_rest(items: list[pytest.Item]) -> None:
    """Marks as `slow` what is not in the sample of its test."""
    families: dict[tuple[str, str, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker and isinstance(item, pytest.Function):
            kind = str(item.callspec.params[marker.kwargs["each"]]) if marker.kwargs else ""
            families[item.nodeid.partition("::")[0], item.originalname, kind].append(item)
    for family in families.values():
        marker = family[0].get_closest_marker("sampled")
        assert marker is not None
        (count,) = marker.args
        quick = [each for each in family if not each.get_closest_marker("slow")]
        for item in sorted(quick, key=_digest)[count:]:
            item.add_marker(pytest.mark.slow)


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
