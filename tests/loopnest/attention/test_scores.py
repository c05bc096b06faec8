"""What becomes of scores: maps that users state, without branches, beside what they mean."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, TypeAlias

import pytest

from warploom.emit.cuda import cuda
from warploom.kernel.dtype import bf16, f16, f32
from warploom.loopnest.attention.program import attention_nest
from warploom.loopnest.attention.space import packed_possible, possible
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.attention.tiling import AttentionTiling as Cut
from warploom.loopnest.build import LoopNest, cast, choose, erf, exp, log, maximum, tanh
from warploom.loopnest.ir import Program
from warploom.loopnest.strategies.attention import split, variants
from warploom.loopnest.strategies.form import NotMeantError, Room
from warploom.loopnest.target import Target
from warploom.loopnest.trial import tried_kernels
from warploom.machine.record import H200
from warploom.pipeline.attention_nest import AttentionNest, PackedNest
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by

Map: TypeAlias = Callable[[LoopNest, Any, Any, Any], Any]
GROUPS = Room(warp_groups=True)


def own(map: Map, queries: int = 72, keys: int = 88, normalised: bool = False) -> LoopNest:
    """A variant of a user's own, as the page of loop nests has it."""
    x = LoopNest("own")
    h, i, j = x.axis("h", 2), x.axis("i", queries), x.axis("j", keys)
    c, e = x.axis("c", 64), x.axis("e", 64)
    q, o = x.array("q", h, i, c, dtype=bf16), x.array("o", h, i, e, dtype=bf16)
    k, v = x.array("k", h, j, c, dtype=bf16), x.array("v", h, j, e, dtype=bf16)
    s: Any = x.sum(cast(q[h, i, c], f32) * cast(k[h, j, c], f32), over=c)
    s = x.value(map(x, s * 0.125, i, j))
    p = x.value(exp(s - x.fold("max", s, over=j)))
    total = x.sum(p, over=j)
    weights = cast(cast(p / total if normalised else p, bf16), f32)
    result = x.sum(weights * cast(v[h, j, e], f32), over=j)
    o[h, i, e] = cast(result if normalised else result / total, bf16)
    return x


def _by_row(x: LoopNest, s: Any, i: Any, _: Any) -> Any:
    return s * cast(x.array("of_rows", i, dtype=f16)[i], f32)


def _by_sum(x: LoopNest, s: Any, i: Any, _: Any) -> Any:
    n = x.axis("n", 9)
    return s + x.sum(x.array("of_rows", i, n)[i, n], over=n)


MAPS: dict[str, Map] = {
    "soft cap": lambda _, s, i, j: choose(j.expr.le(i.expr + 16), tanh(s / 3) * 3, -inf),
    "slope": lambda x, s, i, j: s - cast(x.index(i.expr - j.expr), f32) * 0.05,
    "prefix": lambda _, s, i, j: choose(j.expr.le(i.expr).or_(j.expr.lt(20)), s, -inf),
    "both bounds": lambda _, s, i, j: maximum(abs(s), 0.5) - exp(s * 0.125),
    "factors of rows": _by_row,
}


def nest_of(program: Program, packed: bool = False) -> AttentionNest:
    (variant,) = (split if packed else variants)(program, True, GROUPS)
    made = nest_by(recipe_of(variant, Nest(program, H200.rates, Target(machine=H200))))
    assert isinstance(made, PackedNest if packed else AttentionNest)
    return made


def wrong(nest: AttentionNest, tiling: Cut) -> str:
    """What a tiling computes otherwise than its nest says, on the simulator."""
    sizes = nest.shortened(tiling)
    part = 2 * nest.stated.attention.dtype.rounding[0]
    return tried_kernels(nest.program, nest.kernels_of(tiling, sizes), sizes, part=part).wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_what_was_stated(name: str) -> None:
    program = own(MAPS[name]).done()
    made = attention_of(program).attention
    assert made.map is not None
    assert not wrong(nest_of(program), Cut(2, 48, ahead=name == "slope"))


def test_masks_and_factors_outside_are_no_map() -> None:
    plain = own(lambda _, s, i, j: choose(j.expr.le(i.expr + 16), s * 2, -inf) / 4)
    made = attention_of(plain.done()).attention
    assert made.map is None
    assert (made.upper, made.factor) == (16, 0.0625)


def test_weights_may_be_normalised_before() -> None:
    program = own(lambda _, s, *__: s, normalised=True).done()
    assert not wrong(nest_of(program), Cut(1, 48))


def test_a_bias_and_logarithms() -> None:
    made = attention_nest(
        2, 2, 66, 40, 64, groups=2, bias=(True, False, True), bias_dtype=bf16, sums=True, dtype=f16
    )
    assert not wrong(nest_of(made.done()), Cut(1, 32, together=1))


@pytest.mark.parametrize(
    ("map", "said"),
    [
        (lambda _, s, *__: erf(s), "go through 'erf'"),
        (lambda _, s, *__: s / (s + 1.0), "go through '/'"),
        (_by_sum, "of no sum, or of several"),
    ],
)
def test_what_no_map_can_be(map: Map, said: str) -> None:
    with pytest.raises(NotMeantError, match=said):
        attention_of(own(map).done())


def test_tanh_has_no_branches() -> None:
    program = own(MAPS["soft cap"]).done()
    text = cuda(nest_of(program).kernels_of(Cut(2, 64), {})[0])
    assert "tanh" not in text
    assert "rsqrtf" in text


# -- few queries -----------------------------------------------------------------------------------

FEW = {
    "one query": attention_nest(2, 8, 1, 300, 64, groups=8),
    "in a window": attention_nest(1, 2, 5, 400, 64, causal=True, window=150, cap=4.0, sums=True),
    "two warp groups": attention_nest(1, 16, 5, 100, 64, groups=16, causal=True, dtype=f16),
}
SPLIT = {
    "one query": Cut(1, 32, packed=True, splits=4),
    "in a window": Cut(1, 64, 3, packed=True, splits=2, ahead=True),
    "two warp groups": Cut(2, 32, packed=True, persistent=False, splits=4),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FEW)
def test_splits_of_keys_are_joined(name: str) -> None:
    nest = nest_of(FEW[name].done(), packed=True)
    tiling = SPLIT[name]
    assert tiling.is_possible(nest.stated.attention, H200.shared_bytes_most)
    assert len(nest.kernels_of(tiling, {})) == 2
    assert not wrong(nest, tiling)


def test_many_queries_are_not_packed() -> None:
    with pytest.raises(NotMeantError, match="more than 128"):
        split(attention_nest(1, 1, 200, 200, 64).done(), True, GROUPS)


def test_splits_have_keys_each() -> None:
    nest = nest_of(FEW["in a window"].done(), packed=True)
    every = list(packed_possible(nest.stated.attention, H200))
    assert {each.splits for each in every if each.keys == 64} == {1, 2, 4}
    assert not any(each.packed for each in possible(nest.stated.attention, H200))


def test_the_logarithm_is_of_the_same_sum() -> None:
    x = attention_nest(1, 1, 64, 64, 64)
    n = x.axis("n", 64)
    given, other = x.array("given", n), x.array("other", n)
    other[n] = log(given[n])
    with pytest.raises(NotMeantError, match="second result"):
        attention_of(x.done())
