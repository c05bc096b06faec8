"""Patterns of operands of matrix units, by parameters: whole matrices, fragments, blocks."""

from __future__ import annotations

from warploom.errors import CheckError, InternalError
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import Access, AccessKind
from warploom.layout.patterns.usual import Accesses, Tensor

CHUNK_BYTES = 16  # of a row of a matrix for ldmatrix and stmatrix; the widest access of a lane


def ldmatrix(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored in order, matrices loaded by ldmatrix."""
    return _matrices(t, "st", "ldmatrix")


def ldmatrix_copied(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored by cp.async, matrices loaded by ldmatrix."""
    return _matrices(t, "cp.async", "ldmatrix")


def ldmatrix_trans(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored by cp.async, matrices loaded by ldmatrix.trans."""
    return _matrices(t, "cp.async", "ldmatrix.trans")


def ldmatrix_tensor(t: Tensor) -> Accesses:
    """Matrices loaded by ldmatrix from what tensor copies stored: only the loads are of lanes."""
    width = t.within(CHUNK_BYTES, "elements in 16 bytes")
    return [_rows_of_matrices(t, "load", "ldmatrix", width)]


def _matrices(t: Tensor, store: AccessKind, load: AccessKind) -> Accesses:
    width = t.within(CHUNK_BYTES, "elements in 16 bytes")
    return [t.linear("store", store, width), _rows_of_matrices(t, "load", load, width)]


def _rows_of_matrices(t: Tensor, name: str, kind: AccessKind, width: int) -> Access:
    """Rows of 16 bytes of up to four matrices of 8 rows: two below two where that goes up."""
    across = t.divided(t.columns, width, "whole rows of 16 bytes")
    if t.rows % 16 == 0 and across % 2 == 0:
        pairs = across // 2

        def square(s: Numbers, lane: Numbers) -> Numbers:
            row = s // pairs * 16 + lane % 16
            return row * t.columns + (s % pairs * 2 + lane // 16) * width

        return t.access(name, kind, t.rows // 16 * pairs, square, width)
    beside = next(count for count in (4, 3, 2, 1) if across % count == 0)
    parts = across // beside

    def flat(s: Numbers, lane: Numbers) -> Numbers:
        row = s // parts * 8 + lane % 8
        return row * t.columns + (s % parts * beside + lane // 8) * width

    steps = t.divided(t.rows, 8, "rows of whole matrices") * parts
    return t.access(name, kind, steps, flat, width, lambda lane: lane < 8 * beside)


def stmatrix(t: Tensor) -> Accesses:
    """Matrices stored by stmatrix, rows loaded as vectors of 16 bytes."""
    width = t.within(CHUNK_BYTES, "elements in 16 bytes")
    return [_rows_of_matrices(t, "store", "stmatrix", width), t.linear("load", "ld", width)]


def mma_a(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored, operand A of mma loaded word by word."""
    width = t.within(4, "elements in a word")
    vector = t.within(CHUNK_BYTES, "elements in 16 bytes")
    return [t.linear("store", "st", vector), _fragment(t, "load A", "ld", width, width)]


def mma_b(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored, operand B of mma (n × k, k along rows) loaded word by word."""
    vector = t.within(CHUNK_BYTES, "elements in 16 bytes")
    width = t.within(4, "elements in a word")
    return [t.linear("store", "st", vector), _fragment(t, "load B", "ld", width, width)]


def wgmma_copied(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored by cp.async; wgmma reads the tile by descriptors."""
    return [t.linear("store", "cp.async", t.within(CHUNK_BYTES, "elements in 16 bytes"))]


def wgmma_tensor(_: Tensor) -> Accesses:
    """Filled by tensor copies, read by wgmma: no lane touches it."""
    return []


def wgmma_c(t: Tensor) -> Accesses:
    """The result of wgmma stored by stmatrix; tensor copies take it from there."""
    width = t.within(CHUNK_BYTES, "elements in 16 bytes")
    t.divided(t.rows, 64, "rows of four warps")
    return [_rows_of_matrices(t, "store", "stmatrix", width)]


def mma_c(t: Tensor) -> Accesses:
    """The result of mma stored, two columns at a time; rows loaded as vectors of 16 bytes."""
    vector = t.within(CHUNK_BYTES, "elements in 16 bytes")
    return [_fragment(t, "store C", "st", 2, 2), t.linear("load", "ld", vector)]


def _fragment(t: Tensor, name: str, kind: AccessKind, width: int, apart: int) -> Access:
    """Lane l has row l/4, and the row eight further; columns from apart · (l mod 4)."""
    wide, rows = 4 * apart, t.divided(t.rows, 8, "rows of a fragment")
    steps = rows * t.divided(t.columns, wide, "columns of a fragment")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = lane // 4 + 8 * (s % rows)
        return row * t.columns + s // rows * wide + lane % 4 * apart

    return t.access(name, kind, steps, index, width)


def mfma(t: Tensor) -> Accesses:
    """Vectors written in order; each lane reads `load` bytes of one of 16 rows."""
    read = _rows_of_lanes(t)
    return [t.linear("write", "st", t.vector("store", read.width * t.bytes // t.packed)), read]


def _rows_of_lanes(t: Tensor) -> Access:
    width = t.vector("load", CHUNK_BYTES)
    groups = t.divided(t.lanes, 16, "lanes that read 16 rows")
    across = t.divided(t.columns, groups * width, "columns for each step")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s // across * 16 + lane % 16
        return row * t.columns + (s % across * groups + lane // 16) * width

    steps = t.divided(t.rows, 16, "rows of an operand") * across
    return t.access("read", "ld", steps, index, width)


def _results_of_lanes(t: Tensor, name: str, kind: AccessKind) -> Access:
    """A lane has four results of a column of 16×16, one below another: lane l those of column
    l mod 16 from row 4 · (l / 16) on. Doubles are four rows apart."""
    down, across = (t.divided(n, 16, "blocks of 16×16") for n in (t.rows, t.columns))
    apart, further = (4, 1) if t.bytes == 8 else (1, 4)

    def index(s: Numbers, lane: Numbers) -> Numbers:
        block, row = s // 4, s % 4 * apart + lane // 16 * further
        return (block // across * 16 + row) * t.columns + block % across * 16 + lane % 16

    return t.access(name, kind, 4 * down * across, index, 1)


def blocked(t: Tensor) -> Accesses:
    """A blocked layout of registers, 2×2 elements of a lane and 8×4 lanes, stored; rows loaded."""
    down, across = (
        t.divided(t.rows, 16, "blocks of 16×8"),
        t.divided(t.columns, 8, "blocks of 16×8"),
    )

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s // (2 * across) * 16 + s // across % 2 + lane // 4 * 2
        return row * t.columns + s % across * 8 + lane % 4 * 2

    stored = t.access("store blocks", "st", 2 * down * across, index, 2)
    return [stored, t.linear("load rows", "ld", 1)]


# -- one access by its name, for files of patterns -------------------------------------------------


def named_access(t: Tensor, use: str, kind: AccessKind | None = None) -> Access:
    """How one warp moves a whole tile, by the instruction that it is moved for.

    >>> named_access(Tensor(16, 64, 2), "mma.c").steps
    16
    """
    name, parameter = use.removesuffix(".trans"), use.endswith(".trans")
    words = 4 * t.packed // t.bytes if t.bytes <= 4 else 1
    if use not in NAMED:
        raise CheckError(
            f"no access is called '{use[:20]}'", advice=f"known are {', '.join(NAMED)}"
        )
    unit = name.partition(".")[0]
    if t.lanes != LANES_OF.get(unit, t.lanes):
        raise CheckError(
            f"{unit} is of warps of {LANES_OF[unit]} lanes, and the machine's have {t.lanes}",
            advice='name another machine in the file: machine = "gfx942" has mfma, "h200" has mma',
        )
    match name:
        case "rows":
            vector = t.within(CHUNK_BYTES, "elements in 16 bytes")
            return t.linear(use, kind or "st", vector)
        case "ldmatrix" | "stmatrix":
            width = t.within(CHUNK_BYTES, "elements in 16 bytes")
            own: AccessKind = "ldmatrix" if name == "ldmatrix" else "stmatrix"
            turned: AccessKind = "ldmatrix.trans" if own == "ldmatrix" else "stmatrix.trans"
            return _rows_of_matrices(t, use, turned if parameter else own, width)
        case "mma.a" | "mma.b" | "wgmma.a":
            _whole_warps(t, name)
            return _fragment(t, use, kind or "ld", words, words)
        case "mma.c" | "wgmma.c":
            _whole_warps(t, name)
            return _fragment(t, use, kind or "st", 2, 2)
        case "mfma.a" | "mfma.b":
            return _rows_of_lanes(t)
        case "mfma.c":
            return _results_of_lanes(t, use, kind or "st")
    raise InternalError(f"{use} is known, and nothing of it")


NAMED = (
    "rows", "ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans", "mma.a", "mma.b", "mma.c",
    "wgmma.a", "wgmma.c", "mfma.a", "mfma.b", "mfma.c",
)  # fmt: skip
LANES_OF = {"mma": 32, "wgmma": 32, "mfma": 64}


def _whole_warps(t: Tensor, name: str) -> None:
    """Four warps of wgmma have 16 rows each."""
    if name.startswith("wgmma"):
        t.divided(t.rows, 64, "rows of four warps")
