"""Attention as users state it, as a loop nest: which nests are it, and what is made of one."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from warploom import explore
from warploom.errors import CheckError
from warploom.kernel.dtype import DType, bf16, f16, f32
from warploom.loopnest.attention.bound import AttentionBound, expected
from warploom.loopnest.attention.space import AttentionSpace, possible
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.build import LoopNest, cast, choose, exp
from warploom.loopnest.strategies.form import NotMeantError
from warploom.machine.record import H200
from warploom.pipeline.named_nest import named_nest


def attend(
    heads: tuple[int, int], queries: int, keys: int, head: int, causal: bool = False,
    dtype: DType = bf16, rounded: bool = True, least: float | None = None, seen: int = 0,
    lower: int | None = None,
) -> LoopNest:  # fmt: skip
    """softmax(Q·Kᵀ / √head)·V, of which the second axis of heads shares keys."""
    x = LoopNest("attend")
    h, g, i, j = (x.axis(*each) for each in (("h", heads[0]), ("g", heads[1]), ("i", queries),
                                            ("j", keys)))  # fmt: skip
    e, c = x.axis("e", head), x.axis("c", head)
    Q, O = x.array("Q", h, g, i, c, dtype=dtype), x.array("O", h, g, i, e, dtype=dtype)  # noqa: E741
    K, V = x.array("K", h, j, c, dtype=dtype), x.array("V", h, j, e, dtype=dtype)
    scores: Any = x.sum(cast(Q[h, g, i, c], f32) * cast(K[h, j, c], f32), over=c) * head**-0.5
    if causal:
        scores = choose(j.expr.le(i.expr + (keys - queries + seen)), scores, -inf)
    if lower is not None:
        scores = choose((i.expr + lower).le(j.expr), scores, -inf)
    scores = x.value(scores)
    weights = x.value(exp(scores - x.fold("max", scores, over=j, start=least)))
    factor = cast(cast(weights, dtype), f32) if rounded else weights
    results = x.sum(factor * cast(V[h, j, e], f32), over=j)
    O[h, g, i, e] = cast(results / x.sum(weights, over=j), dtype)
    return x


def test_it_is_read() -> None:
    found = attention_of(attend((3, 2), 72, 104, 64, True, f16).done())
    made = found.attention
    assert (made.heads, made.groups, made.queries, made.keys) == (6, 2, 72, 104)
    assert (made.head, made.causal, made.kind, made.factor) == (64, True, "f16", 0.125)
    assert found.names == {"q": "Q", "k": "K", "v": "V", "o": "O"}
    assert found.along({found.query: 40, found.key: 72, found.heads[0]: 1}).heads == 2


@pytest.mark.parametrize(
    ("sizes", "band"),
    [
        ({}, (None, None)),
        ({"causal": True}, (32, None)),
        ({"causal": True, "seen": 2}, (34, None)),
        ({"lower": -7}, (None, -7)),
        ({"causal": True, "seen": -30, "lower": -7}, (2, -7)),
    ],
)
def test_a_band_is_read_off_conditions(sizes: dict[str, Any], band: tuple[int, int]) -> None:
    made = attention_of(attend((1, 1), 64, 96, 64, **sizes).done()).attention
    assert (made.upper, made.lower) == band
    assert made.map is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rounded": False}, "not rounded"),
        ({"least": 0.0}, "less the greatest"),
        ({"causal": True, "seen": -1}, "see no key"),
        ({"head": 80}, "head of 80"),
        ({"causal": True, "keys": 56}, "see no key"),
        ({"dtype": f32}, "not all bf16|not rounded"),
    ],
)
def test_what_is_no_attention(given: dict[str, Any], said: str) -> None:
    plain: dict[str, Any] = {"heads": (1, 1), "queries": 64, "keys": 64, "head": 64}
    with pytest.raises(NotMeantError, match=said):
        attention_of(attend(**(plain | given)).done())


def test_scores_of_rows_with_themselves_are_no_attention() -> None:
    x = LoopNest("diagonal")
    j, c, e = x.axis("j", 64), x.axis("c", 64), x.axis("e", 64)
    Q, K, V = (x.array(name, j, c if name != "V" else e, dtype=bf16) for name in "QKV")
    s = x.value(x.sum(cast(Q[j, c], f32) * cast(K[j, c], f32), over=c) * 0.125)
    p = x.value(exp(s - x.fold("max", s, over=j)))
    result = x.sum(cast(cast(p, bf16), f32) * cast(V[j, e], f32), over=j)
    x.array("O", j, e, dtype=bf16)[j, e] = cast(result / x.sum(p, over=j), bf16)
    with pytest.raises(NotMeantError, match="axes are not those"):
        attention_of(x.done())


def test_a_known_name_states_it() -> None:
    sizes = {"batch": 1, "heads": 4, "queries": 8, "keys": 16, "head": 64, "groups": 2}
    made = named_nest("attention", {**sizes, "causal": True, "cap": 30}, "default", None, "f16")
    found = attention_of(made).attention
    assert (found.groups, found.upper, found.kind) == (2, 8, "f16")
    assert found.map is not None
    with pytest.raises(CheckError, match="attention of i8"):
        named_nest("attention", sizes, "default", None, "i8")


def test_a_bound_is_below_what_is_expected() -> None:
    attention = attention_of(attend((4, 1), 2048, 2048, 128, True).done()).attention
    space, rates = AttentionSpace(attention, H200), H200.rates
    bound, root = AttentionBound(space, rates), space.propagator.root(())
    least = float(bound(root)[0])
    times = [expected(attention, each, rates) for each in possible(attention, H200)]
    assert len(times) > 100
    assert min(times) > least


@pytest.mark.slow
def test_it_is_explored_from_the_users_call() -> None:
    found = explore(
        attend((2, 1), 160, 192, 64, True), evaluations=4, model=True,
        strategy="fused-attention", machine="h200",
    )  # fmt: skip
    assert "softmax in one pass over j" in str(found)
    assert found.trial is not None
    assert not found.trial.wrong
