"""What puts splits of keys together: another kernel.

    out[r] = Σ_s e^(l[s, r] − m) · parts[s, r] / Σ_s e^(l[s, r] − m)      m = max_s l[s, r]

Parts are results over some keys, l the logarithms of their sums: the monoid of `laws.py` once more,
with the greatest score and the sum as one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import e as base
from math import inf, log, log2

from warploom.kernel.build import Builder, cast, choose, exp2_ftz, fma, log2_ftz, rsqrt
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Kernel, Number, Store
from warploom.kernel.names import renamed
from warploom.loopnest.attention.kernel import LOGS, PARTS
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.tiling import AttentionTiling

EACH = 4  # numbers of a thread
BLOCK = 128


def merge_of(
    attention: Attention,
    tiling: AttentionTiling,
    names: Mapping[str, str] | None = None,
    order: Sequence[str] = ("o", "lse"),
    title: str = "merge",
) -> Kernel:
    """Results are dense: splits are of packed tiles alone."""
    a, splits = attention, tiling.splits
    rows = tiling.rows(a)  # that have keys in common
    whole = tiling.heads(a) * rows
    k = Builder(title, block=BLOCK)
    arrays = {}
    for name in order:
        if name == "o" or (name == "lse" and a.sums):
            size, dtype = (whole * a.head, a.dtype) if name == "o" else (whole, f32)
            arrays[name] = k.array(name, dtype, size)
    parts = k.array(PARTS, f32, whole * splits * a.head, const=True)
    logs = k.array(LOGS, f32, whole * splits, const=True)
    units = a.head // EACH
    k.grid(-(-whole * units // BLOCK))
    unit = k.let("unit", k.block_x * BLOCK + k.thread)
    with k.when(unit.lt(whole * units)):
        row = k.let("row", unit // units)
        first = k.let("first", row // rows * (splits * rows) + row % rows)
        most, own = k.register("most", f32, -inf), k.register("own", f32)
        with k.loop("s", splits, unroll=False) as s:
            k.set(own, logs[first + s * rows])
            k.set(most, most.max(own))
        less, total = k.register("less", f32), k.register("total", f32, 0.0)
        # A row that has seen no key: any number will do.
        k.set(less, choose(most.eq(-inf), Number(0.0, f32), most))
        sums, part = k.registers("sums", f32, EACH, 0.0), k.registers("part", f32, EACH)
        weight = k.register("weight", f32)
        with k.loop("s", splits, unroll=False) as s:
            k.set(own, logs[first + s * rows])
            k.set(part[0], parts.at((first + s * rows) * a.head + unit % units * EACH, width=EACH))
            k.set(weight, exp2_ftz((own - less) * log2(base)))
            k.set(total, total + weight)
            with k.loop("e", EACH) as e:
                sums[e] = fma(weight, part[e], sums[e])
        root = k.register("root", f32)
        k.set(root, rsqrt(total.max(0.5)))
        result = k.registers("result", a.dtype, EACH)
        with k.loop("e", EACH) as e:
            result[e] = cast(a.dtype, sums[e] * (root * root))
        k.add(Store("o", row * a.head + unit % units * EACH, result[0], None, EACH))
        if a.sums:
            value = fma(log2_ftz(total), log(2), most)
            arrays["lse"].put(row, value, when=(unit % units).eq(0))
    return renamed(k.done(), {o: n for o, n in (names or {}).items() if o != n and o in arrays})
