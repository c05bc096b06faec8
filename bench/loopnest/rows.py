"""What `explore_device.py` searches: computations, what an expert would fix of them, references.

The decisions here say what kind of kernel is meant (tiles in shared memory that all threads copy,
blocks of results in registers); sizes, stages, padding, unrolling, widths and mappings stay open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from warploom.kernel.ir import TensorKind
from warploom.kernel.tensor import DEPTH
from warploom.loopnest import kernels
from warploom.loopnest.ir import Program

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    program: Callable[[], Program]
    fixes: Sequence[str] = ()


@dataclass(frozen=True)
class Row:
    """`meaning` is in double precision; `reference(torch, arrays, numbers)` is what is called in
    comparison; `wanted` is how many times faster than that we want to be (0: only reported)."""

    name: str
    variants: Sequence[Variant]
    output: str
    what: str
    wanted: float
    meaning: Callable[[Any, Arrays, dict[str, float]], Any]
    reference: Callable[[Any, Arrays, dict[str, float]], Callable[[], object]]
    # Products by tensor cores, factors of as many bits as these look at.
    tensor: TensorKind | None = None


# -- products --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """The names in a product of A[rows, inner] and B[inner, columns]."""

    a: str = "A_1"
    b: str = "B_1"
    rows: str = "m"
    columns: str = "n"
    inner: str = "k"
    store: str = "store_C_1"

    def fixes(self, levels: tuple[int, int], inner_levels: int = 1) -> list[str]:
        """With 2 levels of tiles (of rows, of columns) threads have neighbours; with 3 they have
        several groups of these, apart from each other."""
        k = [f"{self.inner}{at + 1}" for at in range(inner_levels)]
        fixes = ["lowered=TRUE", f"dim_kind({self.inner}0)=LOOP"]
        fixes += [f"dim_kind({axis}0)=BLOCK" for axis in (self.rows, self.columns)]
        fixes += [f"cache({load})=CACHE_SHARED" for load in (self.a, self.b)]
        for load, axis, count in zip(
            (self.a, self.b), (self.rows, self.columns), levels, strict=True
        ):
            thread, near = count - 1, count
            own = [f"{axis}{at + 1}" for at in range(count)]
            put, get = f"{load}>sum_1.put", f"{load}>sum_1.get"
            fixes.append(f"dim_kind({load}.{own[0]})=DEAL")
            ranked = [*k, *own]
            fixes += [f"layout({put}.{t})={len(ranked) - 1 - at}" for at, t in enumerate(ranked)]
            fixes += [f"order({get}.{t},sum_1.{t})=MERGED" for t in k]
            for tile in own:
                if tile.endswith(str(thread)):
                    fixes += [f"dim_kind({x}.{tile})=THREAD" for x in ("sum_1", get, self.store)]
                else:
                    kinds = "UNROLL|VECTOR" if tile.endswith(str(near)) else "UNROLL"
                    fixes.append(f"dim_kind(sum_1.{tile})=UNROLL")
                    fixes += [f"dim_kind({get}.{tile})={kinds}",
                              f"order({get}.{tile},sum_1.{tile})=BEFORE"]  # fmt: skip
        fixes += [f"dim_kind(sum_1.{t})=UNROLL|LOOP" for t in k]
        return fixes + self._chain(levels)

    def _chain(self, levels: tuple[int, int]) -> list[str]:
        """Unrolled loops in one order: another one is the same text, otherwise sorted."""
        both = zip((self.rows, self.columns), levels, strict=True)
        free = [f"{axis}{at + 1}" for axis, n in both for at in range(n) if at + 1 != n - 1]
        pairs = list(pairwise(free))
        found = [f"order(sum_1.{a},sum_1.{b})=OUTER" for a, b in pairs]
        found += [f"order({self.store}.{a},{self.store}.{b})=OUTER" for a, b in pairs]
        last = f"{self.columns}{levels[1]}"
        found.append(f"dim_kind({self.store}.{last})=VECTOR|UNROLL")
        found += [f"dim_kind({self.store}.{t})=UNROLL" for t in free if t != last]
        return found


INNER = ((4, 8, 16, 32),)
FLAT = ((4, 8, 16, 32), (2, 4, 8))
# Two groups of four neighbours for a thread, or one: as wide as an access is.
GROUPS, NEAR = ((2,), (4, 8, 16, 32), (4,)), ((4, 8, 16, 32), (4,))
# Few rows and many columns, where reading the first matrix costs most.
COLUMNS = ((2,), (8, 16, 32, 64), (4,))
WIDE = ["stages=2|3|4", "cache(store_C_1)=CACHE_SHARED"]


def near_fixes(levels: tuple[int, int]) -> list[str]:
    """Accesses of 16 bytes throughout, copies ahead of their use."""
    m, n = (f"{axis}{count}" for axis, count in zip("mn", levels, strict=True))
    return [*Product().fixes(levels), *WIDE, f"dim_kind(A_1>sum_1.get.{m})=VECTOR",
            f"dim_kind(B_1>sum_1.get.{n})=VECTOR", f"dim_kind(store_C_1.{n})=VECTOR"]  # fmt: skip


def matmul(name: str, m: int, n: int, k: int, wanted: float, stride: int = 1) -> Row:
    make = partial(kernels.matmul, m, n, k, stride=stride)
    flat = Variant(partial(make, tiles=(FLAT, FLAT, INNER)), Product().fixes((2, 2)))
    variants = [flat]
    if m * n > 1 << 16:
        tiles = [(GROUPS, GROUPS), (GROUPS, NEAR), (NEAR, GROUPS), (NEAR, NEAR)]
        if stride > 1:
            tiles += [(GROUPS, COLUMNS), (NEAR, COLUMNS)]
        for rows, columns in tiles:
            fixes = near_fixes((len(rows), len(columns)))
            variants.append(Variant(partial(make, tiles=(rows, columns, INNER)), fixes))
    return Row(
        name,
        variants,
        "C",
        "torch.mm (cuBLAS), float32" + ("" if stride == 1 else ", A without its stride"),
        wanted,
        lambda torch, a, _: torch.mm(a["A"], a["B"]),
        lambda torch, a, _: partial(torch.mm, a["A"].contiguous(), a["B"], out=a["C"]),
    )


def tensor_fixes(columns: int) -> list[str]:
    """Tiles of tensor cores: fragments of rows lie beside each other in memory, and so do columns,
    which are in two levels of tiles or in three."""
    rows_, columns_ = ("m1", "m2"), tuple(f"n{at + 1}" for at in range(columns))
    thread = {"m": "m2", "n": columns_[-2]}
    fixes = ["lowered=TRUE", "dim_kind(k0)=LOOP", "dim_kind(m0)=BLOCK", "dim_kind(n0)=BLOCK",
             "dim_kind(sum_1.k2)=TENSOR", "dim_kind(sum_1.k1)=UNROLL|LOOP",
             "order(sum_1.k1,sum_1.k2)=OUTER", "stages=2|3|4",
             "dim_kind(A_1.m1)=DEAL", "dim_kind(B_1.n1)=DEAL",
             "cache(A_1)=CACHE_SHARED", "cache(B_1)=CACHE_SHARED"]  # fmt: skip
    ranked: dict[str, tuple[str, ...]] = {"A_1": ("k2", "m2", "k1", "m1")}
    ranked["B_1"] = ("n2", "n1", "k2", "k1") if columns == 2 else ("n3", "n2", "k2", "k1", "n1")
    for load, tiles in ranked.items():
        fixes += [f"layout({load}>sum_1.put.{t})={at}" for at, t in enumerate(tiles)]
    for load, tiles, axis in (("A_1", rows_, "m"), ("B_1", columns_, "n")):
        get = f"{load}>sum_1.get"
        fixes.append(f"order({get}.k1,sum_1.k1)=MERGED")
        for tile in tiles:
            if tile == thread[axis]:
                users = ("sum_1", get, "store_C_1")
                fixes += [f"dim_kind({user}.{tile})=THREAD" for user in users]
            else:
                fixes += [
                    f"dim_kind(sum_1.{tile})=UNROLL",
                    f"order({get}.{tile},sum_1.{tile})=BEFORE",
                ]
                wide = "VECTOR|UNROLL" if tile == columns_[-1] else "UNROLL"
                fixes.append(f"dim_kind(store_C_1.{tile})={wide}")
    free = ["m1", *(tile for tile in columns_ if tile != thread["n"])]
    for user in ("sum_1", "store_C_1"):
        fixes += [f"order({user}.{a},{user}.{b})=OUTER" for a, b in pairwise(free)]
    return fixes


def tensor_matmul(name: str, size: int, kind: TensorKind = "tf32") -> Row:
    """Of single precision, by tensor cores on both sides; with bf16 cuBLAS has half the bytes."""
    make = partial(kernels.matmul, size, size, size)
    rows, inner = ((2, 4, 8), (8, 16, 32, 64)), ((2, 4), (DEPTH[kind],))
    tiles = {2: ((4,), (2, 4, 8, 16)), 3: ((2, 4, 8), (4,), (2, 4))}
    # Fragments without conflicts of banks: rows of 8 and 4 more; columns 2 apart, or as they lie.
    apart = {
        2: ["padding(B_1>sum_1.array)=2"],
        3: ["padding(B_1>sum_1.array)=0", "size(n3)=2"],
    }
    plain = ["padding(A_1>sum_1.array)=4", "swizzle=PLAIN", "fill=COPY", "size(m1)=4|8",
             "dim_kind(sum_1.k1)=UNROLL", "size(m2)=16|32|64"]  # fmt: skip
    variants = []
    for levels, columns in tiles.items():
        program = partial(make, tiles=(rows, columns, inner))
        fixes = tensor_fixes(levels)
        free = [*fixes, *plain, *apart[levels]]
        variants += [Variant(program, free), Variant(program, fixes)]

    def reference(torch: Any, a: Arrays, _: dict[str, float]) -> Callable[[], object]:
        if kind == "bf16":
            left, right = a["A"].to(torch.bfloat16), a["B"].to(torch.bfloat16)
            return partial(torch.mm, left, right)

        def by_tensor_cores() -> None:
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.mm(a["A"], a["B"], out=a["C"])
            torch.backends.cuda.matmul.allow_tf32 = False

        return by_tensor_cores

    return Row(
        name,
        variants,
        "C",
        "torch.mm (cuBLAS) with tf32 allowed" if kind == "tf32" else "torch.mm (cuBLAS) of bf16",
        0.0,
        lambda torch, a, _: torch.mm(a["A"], a["B"]),
        reference,
        tensor=kind,
    )


def batched() -> Row:
    make = partial(kernels.batched_matmul, 512, 32, 32, 64, batch_tiles=())
    tiles = ((4, 8, 16), (2, 4, 8))
    fixes = [*Product().fixes((2, 2), 2), "dim_kind(b0)=BLOCK"]
    return Row(
        "batched",
        [Variant(partial(make, tiles=tiles), fixes)],
        "C",
        "torch.bmm (cuBLAS), float32",
        1.0,
        lambda torch, a, _: torch.bmm(a["A"], a["B"]),
        lambda torch, a, _: partial(torch.bmm, a["A"], a["B"], out=a["C"]),
    )


def doitgen() -> Row:
    tiles, inner = ((4, 8, 16, 32), (2, 4, 8)), ((4, 8, 16, 32),)
    names = Product("A_1", "C4_1", "q", "p", "s", "store_B_1")
    return Row(
        "doitgen",
        [
            Variant(
                partial(kernels.doitgen, 128, 128, 128, tiles=tiles, inner=inner),
                [*names.fixes((2, 2)), "dim_kind(r0)=BLOCK"],
            )
        ],
        "B",
        "torch.matmul (cuBLAS), float32",
        0.0,
        lambda torch, a, _: torch.matmul(a["A"], a["C4"]),
        lambda torch, a, _: partial(torch.matmul, a["A"], a["C4"], out=a["B"]),
    )


# -- what memory bounds ----------------------------------------------------------------------------


def row_fixes(uses: Sequence[tuple[str, str]]) -> list[str]:
    """Rows in parts: lanes of a warp beside each other, four elements each, several rows a thread.
    `uses` are (load, who uses it)."""
    fixes = ["dim_kind(m0)=BLOCK", "dim_kind(n0)=LOOP", "padding=0", "stages=1"]
    for load, user in (("x_1", "sum_1"), *uses):
        fixes += [f"lowered({load}>{user}.array)=FALSE", f"dim_kind({load}.lane1)=THREAD",
                  f"dim_kind({load}.wide1)=VECTOR"]  # fmt: skip
    fixes += ["lowered(sum_1>sum_2.array)=FALSE", "lowered(sum_2>sum_3.array)=TRUE"]
    fixes += [f"dim_kind(sum_1.{t})=UNROLL" for t in ("n1", "m2", "wide1")]
    fixes += [f"dim_kind({each}.lane1)=THREAD" for each in ("sum_1", "sum_2")]
    fixes += [f"dim_kind({each}.m1)=THREAD" for each in ("sum_1", "sum_2", "sum_3")]
    fixes += [f"dim_kind(sum_2.{t})=UNROLL" for t in ("m2", "wide1")]
    fixes += ["dim_kind(sum_3.m2)=UNROLL", "dim_kind(sum_3.lane1)=UNROLL"]
    fixes += ["thread_mapping(sum_1.m1,sum_3.m1)=MAPPED", "cache(x_1)=CACHE_SHARED"]
    return [*fixes, "thread_mapping(sum_1.m1,sum_1.lane1)=MAPPED_OUT"]


def matvec() -> Row:
    make = partial(
        kernels.matvec, 8192, 8192, tiles=((4, 8, 16), (2, 4)), inner=((2, 4, 8, 16),), parts=128
    )
    return Row(
        "matvec",
        [Variant(make, row_fixes([("A_1", "sum_1")]))],
        "y",
        "torch.mv (cuBLAS), float32",
        1.3,
        lambda torch, a, _: torch.mv(a["A"], a["x"]),
        lambda torch, a, _: partial(torch.mv, a["A"], a["x"], out=a["y"]),
    )


def gesummv() -> Row:
    make = partial(
        kernels.gesummv, 8192, 8192, tiles=((4, 8, 16), (2, 4)), inner=((2, 4, 8),), parts=128
    )
    uses = [("A_1", "sum_1.add_1"), ("B_1", "sum_1.multiply_1")]

    def reference(torch: Any, a: Arrays, n: dict[str, float]) -> Callable[[], object]:
        def twice() -> None:
            torch.mv(a["B"], a["x"], out=a["y"])
            torch.addmv(a["y"], a["A"], a["x"], beta=n["beta"], alpha=n["alpha"], out=a["y"])

        return twice

    return Row(
        "gesummv",
        [Variant(make, row_fixes(uses))],
        "y",
        "two torch.mv (cuBLAS), float32",
        1.3,
        lambda _, a, n: n["alpha"] * a["A"].mv(a["x"]) + n["beta"] * a["B"].mv(a["x"]),
        reference,
    )


def axpy() -> Row:
    def reference(torch: Any, a: Arrays, n: dict[str, float]) -> Callable[[], object]:
        return partial(torch.add, a["y"], a["x"], alpha=n["alpha"], out=a["z"])

    return Row(
        "axpy",
        [Variant(partial(kernels.axpy, 1 << 26), ["dim_kind(n0)=BLOCK"])],
        "z",
        "torch.add with alpha: as many bytes as cublasSaxpy, which also writes one of three",
        1.0,
        lambda _, a, n: n["alpha"] * a["x"] + a["y"],
        reference,
    )


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        matmul("matmul-1024", 1024, 1024, 1024, 0.95),
        matmul("matmul-256", 256, 256, 32, 3.3),
        matmul("matmul-512", 512, 512, 512, 1.1),
        matvec(),
        axpy(),
        matmul("matmul-2048", 2048, 2048, 2048, 0.92),
        gesummv(),
        batched(),
        matmul("matmul-strided", 1024, 1024, 1024, 0.0, stride=32),
        doitgen(),
        tensor_matmul("tensor-1024", 1024),
        tensor_matmul("tensor-2048", 2048),
        tensor_matmul("tensor-4096", 4096),
        tensor_matmul("bf16-1024", 1024, "bf16"),
        tensor_matmul("bf16-2048", 2048, "bf16"),
    )
}
