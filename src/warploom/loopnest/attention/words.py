"""How attention is cut up, in words."""

from __future__ import annotations

from warploom.loopnest.attention.stated import Stated
from warploom.loopnest.attention.tiling import AttentionTiling


def tiling_words(stated: Stated, tiling: AttentionTiling) -> list[str]:
    q, k, v, o = (stated.names[each] for each in "qkvo")
    groups = "a warp group" if tiling.consumers == 1 else f"{tiling.consumers} warp groups"
    words = [
        f"tiles of {tiling.queries} rows of {o} by {groups} with wgmma "
        f"({stated.attention.kind}), scores, weights and results in registers",
        f"{q} in shared memory; {k} and {v} in blocks of {tiling.keys} keys through shared memory, "
        f"{tiling.stages} stages, swizzled, by tensor copies of another warp group",
        f"softmax in one pass over {stated.key}",
    ]
    if tiling.ahead:
        words.append(f"products with {v} go on while the next scores become weights")
    if tiling.turns:
        words.append("warp groups begin products in turn")
    if tiling.together > 1:
        words.append(f"{tiling.together} heads together for L2, longest rows first")
    if tiling.packed:
        words.append("queries of all heads that share keys in one tile")
    if tiling.splits > 1:
        words.append(f"keys split into {tiling.splits} parts, which another kernel joins")
    if stated.attention.map is not None:
        words.append("scores mapped in registers")
    if tiling.persistent:
        words.append("persistent blocks")
    return words
