"""Which computations are products of matrices that tensor cores take as they lie in memory.

    c[m, n] = f(Σ_k a[m, k]·b[n, k])    a, b: f16, bf16, e4m3, e5m2, i8, u8, tf32, each dense

Each has an axis along which neighbours lie side by side. Factors are converted where they are
multiplied and the sum is f32 (i32 of integers), so nothing is rounded that the computation does not
round. Of tf32 they are of single precision, of which the computation takes the leading bits alone:
tensor cores see no others. What comes after the sum may load more elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, Number, Operation, TensorKind, Value, operands, walk_value
from warploom.kernel.warpgroup import Major
from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Folded, Kept, Loaded, Stored
from warploom.loopnest.strategies.form import NotMeantError

KINDS: dict[DType, TensorKind] = {
    DType.BF16: "bf16", DType.F16: "f16", DType.E4M3: "e4m3", DType.E5M2: "e5m2",
    DType.I8: "i8", DType.U8: "u8",
}  # fmt: skip
UNIT = 16  # bytes: what rows of a tensor map begin at a multiple of


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A matrix in an array: how far apart its lines (rows of the first, columns of the second), the
    terms of a sum, and batches lie; one of the first two is 1."""

    array: ir.Array
    offset: int
    line: int
    deep: int
    batch: int

    @property
    def dense(self) -> Major:
        return "k" if self.deep == 1 else "mn"


@dataclass(frozen=True, slots=True, eq=False)
class MatrixProduct:
    """`store` has f of the `fold`, along `rows`, and `columns`, whose neighbours lie side by side,
    and perhaps along a batch. What of the sum does not differ along it `scales` all of it."""

    program: ir.Program
    source: Computation
    fold: Folded
    store: Stored
    a: Factor
    b: Factor
    rows: ir.Axis
    columns: ir.Axis
    over: ir.Axis
    batch: ir.Axis | None
    kind: TensorKind
    scales: tuple[Value, ...] = ()

    @property
    def batches(self) -> int:
        return 1 if self.batch is None else self.batch.size

    @property
    def is_turned(self) -> bool:
        """Whether neighbours in the result are rows of tiles."""
        return self.step(self.columns) != 1

    @property
    def out(self) -> ir.Array:
        return self.store.access.array

    def step(self, axis: ir.Axis | None) -> int:
        """How far apart results lie along an axis."""
        return self.store.access.place.factors.get(axis, 0) if axis is not None else 0


def matrix_product(program: ir.Program, turned: bool = False) -> MatrixProduct:
    """The product that a program is, or why it is none. Neighbours in the result are columns, or
    rows where it is `turned`: then few rows of the result become few columns of a tile."""
    source = Computation.of(program)
    folds = [each for each in source.leaves if isinstance(each, Folded)]
    if len(folds) != 1 or len(source.stores) != 1:
        raise NotMeantError("it is no single sum of products, stored once")
    (fold,), (store,) = folds, source.stores
    if len(fold.over) != 1:
        raise NotMeantError("the sum is over more than one axis")
    (over,) = fold.over
    inside, scales = parted(source, fold, over)
    kind, first, second = _factors(fold, inside)
    near = [axis for axis, step in store.access.place.factors.items() if step == 1]
    if len(near) != 1 or store.access.where is not None or not store.access.is_linear:
        raise NotMeantError("results do not lie side by side along an axis")
    if (near[0] in first.access.axes) is not turned:
        first, second = second, first
    rows = [axis for axis in first.access.axes if axis not in second.access.axes]
    columns = [axis for axis in second.access.axes if axis not in first.access.axes]
    if (rows if turned else columns) != near or len(rows) != 1 or len(columns) != 1:
        raise NotMeantError("factors have no rows and columns, one axis of each")
    others = [axis for axis in source.axes if axis not in (rows[0], columns[0], over)]
    if len(others) > 1 or source.free(fold) != {rows[0], columns[0], *others}:
        raise NotMeantError("it has more than rows, columns, a sum and one batch")
    batch = others[0] if others else None
    made = MatrixProduct(
        program, source, fold, store,
        _factor(first, rows[0], over, batch), _factor(second, columns[0], over, batch),
        rows[0], columns[0], over, batch, kind, tuple(scales),
    )  # fmt: skip
    axes = {made.rows, made.columns, *([batch] if batch is not None else [])}
    for each in (store.value, *scales):
        check_after(each, fold, axes)
    return made


def parted(source: Computation, fold: Folded, over: ir.Axis) -> tuple[list[Value], list[Value]]:
    """What is multiplied in a sum: what differs along it, and what may as well scale the sum."""
    if fold.op != "+" or not isinstance(fold.start, Number) or fold.start.value != 0:
        raise NotMeantError("it is no sum from zero on")
    inside: list[Value] = []
    outside: list[Value] = []
    pending = [fold.value]
    while pending:
        match pending.pop(0):
            case Operation("*", parts):
                pending = [*parts, *pending]
            case each:
                (inside if over in source.axes_of(each) else outside).append(each)
    return inside, outside


def _factors(fold: Folded, inside: list[Value]) -> tuple[TensorKind, Loaded, Loaded]:
    match inside:
        case Operation("tf32", (Loaded() as a,)), Operation("tf32", (Loaded() as b,)):
            if a.dtype is b.dtype is DType.F32 and a is not b:
                return "tf32", a, b
        case Cast(_, Loaded() as a), Cast(_, Loaded() as b) if a is not b:
            sums = DType.F32 if a.dtype.is_code else DType.I32
            if a.dtype is b.dtype and a.dtype in KINDS and fold.dtype is sums:
                return KINDS[a.dtype], a, b
    known = ", ".join(map(repr, KINDS))
    raise NotMeantError(
        f"it is no sum of products of two converted loads of one type of {known}, nor of tf32"
    )


def _factor(loaded: Loaded, line: ir.Axis, over: ir.Axis, batch: ir.Axis | None) -> Factor:
    access = loaded.access
    if access.where is not None or not access.is_linear:
        raise NotMeantError(f"'{access.array}' is loaded where a condition holds, or out of line")
    steps, bytes_ = access.place.factors, access.array.dtype.bytes
    made = Factor(
        access.array, access.place.offset, steps.get(line, 0), steps.get(over, 0),
        steps.get(batch, 0) if batch is not None else 0,
    )  # fmt: skip
    known = {line, over, *([batch] if batch is not None else [])}
    if 1 not in (made.line, made.deep) or set(steps) - known or min(made.line, made.deep) < 1:
        raise NotMeantError(f"neighbours in '{access.array}' are not side by side")
    if made.dense == "mn" and bytes_ != 2:
        raise NotMeantError(f"tensor cores take {access.array.dtype!r} side by side along the sum")
    far = made.line if made.dense == "k" else made.deep
    if made.offset:
        raise NotMeantError(f"'{access.array}' is not used from its beginning on")
    if any(each * bytes_ % UNIT for each in (far, made.batch)):
        raise NotMeantError(f"rows of '{access.array}' do not begin at multiples of {UNIT} bytes")
    return made


def check_after(value: Value, fold: Folded, axes: set[ir.Axis]) -> None:
    """What comes after the sum is along its axes, and loads where nothing else decides."""
    for each in leaves_after(value, fold):
        match each:
            case Loaded(access=access):
                if access.where is not None or not access.is_linear or set(access.axes) - axes:
                    raise NotMeantError(f"'{access.array}' is loaded otherwise than along results")
            case ir.Parameter() | Number():
                pass
            case _:
                raise NotMeantError("what comes after the sum is of indices")


def leaves_after(value: Value, fold: Folded) -> Iterator[Value]:
    """Leaves of a value other than the sum."""
    for each in walk_value(value):
        if isinstance(each, Kept):
            yield from leaves_after(each.value, fold)
        elif isinstance(each, Loaded | ir.Parameter | Number | Folded):
            if each is not fold:
                yield each
        elif not operands(each):
            yield each
