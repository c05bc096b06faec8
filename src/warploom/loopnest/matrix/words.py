"""How a product of matrices is cut up, in words."""

from __future__ import annotations

from warploom.loopnest.matrix.product import MatrixProduct
from warploom.loopnest.matrix.tiling import OUT, Tiling
from warploom.loopnest.matrix.warp_tiling import WarpTiling


def tiling_words(product: MatrixProduct, tiling: Tiling) -> list[str]:
    groups = "a warp group" if tiling.consumers == 1 else f"{tiling.consumers} warp groups"
    a, b = product.a.array.name, product.b.array.name
    words = [
        f"tiles of {tiling.rows}×{tiling.columns} of {product.out.name} by {groups} with wgmma "
        f"({product.kind}), sums in registers",
        f"{product.over} in steps of {tiling.deep}: {a} and {b} through shared memory, "
        f"{tiling.stages} stages, swizzled, by tensor copies of another warp group",
    ]
    if tiling.ping_pong:
        words.append("ping-pong: each warp group has tiles of its own")
    if tiling.cluster > 1:
        words.append(f"clusters of {tiling.cluster} blocks share {a if tiling.beside else b}")
    if tiling.split > 1:
        words.append(
            f"{product.over} split among {tiling.split} blocks of a cluster, which add through "
            "distributed shared memory and store a part of the tile each"
        )
    if tiling.band > 1:
        words.append(f"bands of {tiling.band} tiles for L2")
    if tiling.boxes:
        sides = "rows" if product.is_turned else "columns"
        words.append(f"results leave in boxes of {OUT} {sides} by tensor copies, "
                     f"{tiling.boxes} at a time")  # fmt: skip
    return words


def warp_words(product: MatrixProduct, tiling: WarpTiling) -> list[str]:
    a, b = product.a.array.name, product.b.array.name
    words = [
        f"tiles of {tiling.rows}×{tiling.columns} of {product.out.name} by "
        f"{tiling.high * tiling.wide} warps with mma.sync ({product.kind}), sums in registers",
        f"{product.over} in steps of {tiling.deep}: {a} and {b} through shared memory, "
        f"{tiling.stages} stages, swizzled, by asynchronous copies, loaded by ldmatrix",
    ]
    if tiling.band > 1:
        words.append(f"bands of {tiling.band} tiles for L2")
    return words
