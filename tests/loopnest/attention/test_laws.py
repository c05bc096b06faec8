"""Why attention may go over its keys block by block, checked on numbers; false laws fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warploom.loopnest.attention.laws import LAWS, Law, differences, finished, joined, of_keys

NEAR = 1e-12


def given(seed: int) -> tuple[list[Any], list[Any]]:
    """Three blocks of 5, 7 and 3 keys for 6 rows, of which one sees none and one not all."""
    r = np.random.default_rng(seed)
    scores = [20 * r.standard_normal((6, keys)) for keys in (5, 7, 3)]
    for each in scores:
        each[2] = -np.inf
    scores[1][4] = -np.inf
    return scores, [r.standard_normal((keys, 4)) for keys in (5, 7, 3)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_both_sides_are_the_same(law: Law) -> None:
    for seed in range(20):
        assert max(differences(law, *given(seed))) < NEAR


def test_a_law_that_is_false_fails() -> None:
    def forgets(scores: Any, values: Any) -> Any:
        """Results keep the measure that they had."""
        a, b = (of_keys(scores[at], values[at]) for at in range(2))
        both = joined(a, b)
        return replace(both, results=a.results + b.results), both

    assert max(differences(Law("no factor", forgets), *given(0))) > NEAR


def test_joined_blocks_are_softmax() -> None:
    scores, values = given(1)
    seen = [0, 1, 3, 4, 5]
    with np.errstate(invalid="ignore"):
        found = finished(joined(of_keys(scores[0], values[0]), of_keys(scores[1], values[1])))
    both = np.exp(np.concatenate(scores[:2], axis=1)[seen])
    wanted = (both / both.sum(axis=1, keepdims=True)) @ np.concatenate(values[:2])
    np.testing.assert_allclose(found[seen], wanted, rtol=1e-10)
    assert not found[2].any()
