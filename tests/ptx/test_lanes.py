# ruff: noqa: E501 - tables and programs read better with a line each
"""Votes, matches, reductions and elections heed their mask of members."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

from warploom import ptx

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 values, .param .u64 masks, .param .u64 out)
{{ .reg .pred %p<3>; .reg .b32 %t, %v, %m, %x, %y; .reg .b64 %rd<4>;
mov.u32 %t, %tid.x; ld.param.u64 %rd1, [values]; mad.wide.u32 %rd1, %t, 4, %rd1; ld.global.u32 %v, [%rd1];
ld.param.u64 %rd2, [masks]; mad.wide.u32 %rd2, %t, 4, %rd2; ld.global.u32 %m, [%rd2];
ld.param.u64 %rd3, [out]; mad.wide.u32 %rd3, %t, 4, %rd3; setp.gt.s32 %p1, %v, 1; and.b32 %y, %v, 1; mov.u32 %x, 77;
{body}
st.global.u32 [%rd3], %x; ret; }}
"""


def bits(group: list[int]) -> int:
    return sum(1 << lane for lane in group)


Meaning = Callable[[dict[int, int], int], int]  # value by lane of the group, own lane → result
CASES: dict[str, tuple[str, Meaning]] = {
    "ballot": ("vote.sync.ballot.b32 %x, %p1, %m;", lambda g, _: bits([i for i in g if g[i] > 1])),
    "all": ("vote.sync.all.pred %p2, %p1, %m; selp.u32 %x, 1, 0, %p2;", lambda g, _: int(all(v > 1 for v in g.values()))),
    "any": ("vote.sync.any.pred %p2, %p1, %m; selp.u32 %x, 1, 0, %p2;", lambda g, _: int(any(v > 1 for v in g.values()))),
    "uni": ("vote.sync.uni.pred %p2, %p1, %m; selp.u32 %x, 1, 0, %p2;", lambda g, _: int(len({v > 1 for v in g.values()}) == 1)),
    "match": ("match.any.sync.b32 %x, %y, %m;", lambda g, own: bits([i for i in g if g[i] & 1 == g[own] & 1])),
    "match all": ("match.all.sync.b32 %x|%p2, %y, %m;", lambda g, _: bits(list(g)) if len({v & 1 for v in g.values()}) == 1 else 0),
    "add": ("redux.sync.add.s32 %x, %v, %m;", lambda g, _: sum(g.values())),
    "max": ("redux.sync.max.s32 %x, %v, %m;", lambda g, _: max(g.values())),
    "and": ("redux.sync.and.b32 %x, %v, %m;", lambda g, _: reduce(lambda a, b: a & b, g.values())),
    "elect": ("elect.sync %x|%p2, %m;", lambda g, _: min(g)),
}  # fmt: skip


def partitions(rng: np.random.Generator) -> list[list[list[int]]]:
    """Lanes of a warp in groups: tiles of a power of two, and any."""
    tiles = [[list(range(s, s + n)) for s in range(0, 32, n)] for n in (32, 16, 8, 2)]
    colour = rng.integers(0, 4, 32)
    return [*tiles, [np.flatnonzero(colour == c).tolist() for c in range(4) if (colour == c).any()]]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_groups_of_lanes(name: str, apart: bool) -> None:
    """All groups at once; or one half of them behind a branch, while the others wait."""
    body, meaning = CASES[name]
    if apart:
        body = f"and.b32 %y, %m, 1; setp.eq.u32 %p2, %y, 0; and.b32 %y, %v, 1; @%p2 bra B;\n{body} bra E;\nB: {body}\nE:"
    rng = np.random.default_rng(7)
    for groups in partitions(rng):
        values = rng.integers(-3, 9, 64).astype(np.int32)
        if name == "match all":
            values[:16] = 4
        masks, want = np.zeros(64, np.uint32), []
        for thread in range(64):
            group = next(g for g in groups if thread % 32 in g)
            masks[thread] = bits(group)
            held = {lane: int(values[thread - thread % 32 + lane]) for lane in group}
            want.append(meaning(held, thread % 32) & 0xFFFFFFFF)
        out = np.zeros(64, np.uint32)
        ptx.load(TEXT.format(body=body)).kernel("k").launch(1, 64, [values, masks, out])
        assert out.tolist() == want, groups
