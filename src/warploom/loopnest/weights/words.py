"""How a product of packed weights is cut up, in words."""

from __future__ import annotations

from warploom.loopnest.weights.product import WeightProduct
from warploom.loopnest.weights.tiling import WeightTiling


def tiling_words(product: WeightProduct, tiling: WeightTiling) -> list[str]:
    weights, span = product.weights, tiling.span(product.deep)
    a, b = product.a.name, weights.array.name
    sign = "" if weights.signed else "unsigned "
    words = [
        f"tiles of {tiling.rows}×{tiling.columns} of {product.out.name} by warps with mma.sync "
        f"({product.kind}), {tiling.beside} beside each other and {tiling.parts} along "
        f"{product.over}",
        f"{b} straight from global memory, {sign}integers of {weights.bits} bits unpacked in "
        f"registers; {a} through shared memory, {span} of {product.over} at once",
    ]
    if product.scales is not None:
        words.append(f"{product.scales.array.name} scales sums of {product.deep}")
    if tiling.cluster > 1:
        words.append(f"clusters of {tiling.cluster} blocks have parts of {product.over}, and send "
                     "each other what they add up")  # fmt: skip
    return words
