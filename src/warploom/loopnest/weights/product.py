"""Which computations are products of a matrix and packed weights.

    c[m, n] = f(Σ_k a[m, k] · (field k of w[n, k // some] - zero) · scale[n, k // group])

a: bf16 or f16, w: integers of four bits in words or bytes, or of eight; scales are optional, of one
group along k or of several. Nothing is rounded that the computation does not round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.index.evaluate import evaluate
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    Cast,
    FromIndex,
    TensorKind,
    Value,
    dtype_of,
    walk_value,
)
from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Folded, Loaded, Stored
from warploom.loopnest.matrix.product import KINDS, check_after, parted
from warploom.loopnest.strategies.form import NotMeantError
from warploom.loopnest.weights.field import Field, field_of

EIGHT = 8  # neighbours along k that come together, of the first factor
ACCESS = 16  # bytes of the widest access
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """`bits` of an integer, less `zero`; `line` elements of the array from one column of the
    product to the next, each with `each` integers."""

    array: ir.Array
    line: int
    bits: int
    zero: int
    signed: bool
    each: int


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """`group` neighbours along k have one scale, `step` elements from the next."""

    array: ir.Array
    line: int
    group: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class WeightProduct:
    """What of the sum does not differ along it, the `others`, scales all of it."""

    program: ir.Program
    source: Computation
    fold: Folded
    store: Stored
    a: ir.Array
    a_line: int
    weights: Weights
    scales: Scales | None
    rows: ir.Axis
    columns: ir.Axis
    over: ir.Axis
    kind: TensorKind
    others: tuple[Value, ...] = ()

    @property
    def out(self) -> ir.Array:
        return self.store.access.array

    @property
    def eights(self) -> int:
        """How many times eight neighbours along k a lane loads of a column at once: as many as one
        access has, and one group of the scales."""
        weights = self.weights
        most = ACCESS // weights.bits
        column = weights.line * weights.array.dtype.bytes
        sizes = [self.over.size // EIGHT, column // weights.bits]
        if self.scales is not None and self.scales.step:
            sizes.append(self.scales.group // (4 * EIGHT))
        while most > 1 and any(size % most for size in sizes):
            most //= 2
        return most

    @property
    def held(self) -> int:
        """Elements of the array of weights that a lane loads at once."""
        return EIGHT * self.eights // self.weights.each

    @property
    def deep(self) -> int:
        """Terms of a sum that a warp takes at once."""
        return 4 * EIGHT * self.eights


def weight_product(program: ir.Program) -> WeightProduct:
    """The product that a program is, or why it is none."""
    source = Computation.of(program)
    folds = [each for each in source.leaves if isinstance(each, Folded)]
    if len(folds) != 1 or len(source.stores) != 1:
        raise NotMeantError("it is no single sum of products, stored once")
    (fold,), (store,) = folds, source.stores
    if len(fold.over) != 1 or fold.dtype is not DType.F32:
        raise NotMeantError("it is no sum in f32 over one axis")
    (over,) = fold.over
    inside, others = parted(source, fold, over)
    first, word, value, scale = _factors(inside)
    rows = [axis for axis in first.access.axes if axis is not over]
    columns = [axis for axis in word.access.axes if axis is not over]
    if len(rows) != 1 or len(columns) != 1 or rows == columns:
        raise NotMeantError("factors have no rows and columns, one axis of each")
    axes = {rows[0], columns[0], over}
    if set(source.axes) != axes or source.free(fold) != axes - {over}:
        raise NotMeantError("it has more than rows, columns and a sum")
    if store.access.where is not None or not store.access.is_linear:
        raise NotMeantError("results are stored out of line")
    line = _first_line(first, rows[0], over)
    weights = _weights(word, value, columns[0], over)
    scales = None if scale is None else _scales(scale, columns[0], over)
    if over.size % EIGHT:
        raise NotMeantError(f"sums of {over.size} terms are not of eights")
    kind = KINDS[first.dtype]
    made = WeightProduct(
        program, source, fold, store, first.access.array, line, weights, scales, rows[0],
        columns[0], over, kind, tuple(others),
    )  # fmt: skip
    for each in (store.value, *others):
        check_after(each, fold, {rows[0], columns[0]})
    return made


def _factors(inside: list[Value]) -> tuple[Loaded, Loaded, Value, Loaded | None]:
    """The first factor; the words, and the value of a weight; the scale."""
    first: list[Loaded] = []
    weights: list[tuple[Loaded, Value]] = []
    for each in inside:
        leaves = [part for part in walk_value(each) if isinstance(part, Loaded)]
        words = [part for part in leaves if not part.dtype.is_real]
        match each:
            case Loaded() | Cast(DType.F32, Loaded()) if leaves and leaves[0].dtype.is_real:
                first.append(leaves[0])
            case _ if len(leaves) == 1 and words:
                weights.append((words[0], each))
            case _:
                raise NotMeantError("a factor is neither a converted load nor a weight of integers")
    scales = [each for each in first if each.dtype is DType.F32]
    if len(weights) != 1 or not 1 <= len(first) <= 2 or dtype_of(weights[0][1]) is not DType.F32:
        raise NotMeantError("it is no sum of a number times a weight of integers, and a scale")
    word, weight = weights[0]
    own = set(word.access.axes)
    scales = [each for each in first if set(each.access.axes) <= own]
    others = [each for each in first if each not in scales]
    if len(others) != 1 or len(scales) > 1:
        raise NotMeantError("factors have no rows and columns, one axis of each")
    if others[0].dtype not in (DType.BF16, DType.F16):
        raise NotMeantError(f"'{others[0].access.array}' is of {others[0].dtype!r}: "
                            "weights are multiplied by bf16 or f16")  # fmt: skip
    return others[0], word, weight, scales[0] if scales else None


def _first_line(first: Loaded, rows: ir.Axis, over: ir.Axis) -> int:
    access = first.access
    steps = access.place.factors
    if access.where is not None or not access.is_linear or access.place.offset:
        raise NotMeantError(f"'{access.array}' is loaded where a condition holds, or out of line")
    if steps.get(over) != 1 or steps.get(rows, 0) % EIGHT:
        raise NotMeantError(
            f"rows of '{access.array}' do not begin at multiples of {ACCESS} bytes, side by side"
        )
    return steps[rows] if rows.size > 1 else steps.get(rows, 0)


def _along(loaded: Loaded, columns: ir.Axis, over: ir.Axis) -> tuple[int, Ints]:
    """How far apart columns lie, and where each term of a sum lies in its column."""
    access = loaded.access
    if access.where is not None or access.named:
        raise NotMeantError(f"'{access.array}' is loaded where data or a condition decide")
    line, at = 0, np.zeros(over.size, np.int64)
    for each, stride in zip(access.subscripts, access.array.strides, strict=True):
        match each:
            case ir.Affine():
                if set(each.factors) - {columns, over}:
                    raise NotMeantError(f"'{access.array}' has more than columns and a sum")
                line += stride * each.factors.get(columns, 0)
                at += stride * (each.offset + each.factors.get(over, 0) * np.arange(over.size))
            case ir.Crooked(expr, axes) if axes == (over,):
                found = evaluate(expr, {over.name: np.arange(over.size)})
                at += stride * np.asarray(found, np.int64)
            case _:
                raise NotMeantError(f"'{access.array}' is loaded out of line")
    return line, at


def _weights(word: Loaded, value: Value, columns: ir.Axis, over: ir.Axis) -> Weights:
    array = word.access.array
    line, at = _along(word, columns, over)
    each = int((at == at[0]).sum())
    if at[0] or (at != np.arange(over.size) // each).any():
        raise NotMeantError(f"neighbours along the sum are not side by side in '{array}'")
    bits = 8 * word.dtype.bytes // each
    if bits not in (4, 8) or word.dtype.bytes not in (1, 4):
        raise NotMeantError(f"'{array}' holds {each} weights in a number of {word.dtype!r}")
    found = [_field(value, word, over, each, index) for index in range(each)]
    first = found[0]
    for index, field in enumerate(found):
        same = (field.bits, field.signed, field.more) == (bits, first.signed, first.more)
        if not same or field.up or field.low != index * bits:
            raise NotMeantError(f"weights of '{array}' are not {bits} bits each, the lowest first")
    half = 1 << (bits - 1)
    if not (-half if first.signed else 0) <= -first.more < (half if first.signed else 2 * half):
        raise NotMeantError(f"weights of '{array}' have a zero of {-first.more}")
    if line < 1 or line * word.dtype.bytes % (EIGHT * bits // 8):
        raise NotMeantError(f"columns of '{array}' do not begin at whole words")
    return Weights(array, line, bits, -first.more, first.signed, each)


def _field(value: Value, word: Loaded, over: ir.Axis, each: int, index: int) -> Field:
    """The field of all terms that are `index` of those in their element."""
    terms = np.arange(index, over.size, each)

    def at(given: FromIndex) -> int:
        numbers = np.broadcast_to(evaluate(given.expr, {over.name: terms}), terms.shape)
        if (numbers != numbers[0]).any():
            raise NotMeantError(f"a weight depends on '{over}' otherwise than by its place")
        return int(numbers[0])

    return field_of(value, word, at)


def _scales(scale: Loaded, columns: ir.Axis, over: ir.Axis) -> Scales:
    array = scale.access.array
    line, at = _along(scale, columns, over)
    changes = np.flatnonzero(np.diff(at))
    group = int(changes[0]) + 1 if changes.size else over.size
    step = int(at[group]) - int(at[0]) if changes.size else 0
    if at[0] or (at != np.arange(over.size) // group * step).any():
        raise NotMeantError(f"scales of '{array}' are not of groups along the sum")
    if changes.size and group % (4 * EIGHT):
        raise NotMeantError(f"groups of {group} have one scale, not of a multiple of {4 * EIGHT}")
    return Scales(array, line, group, step)
