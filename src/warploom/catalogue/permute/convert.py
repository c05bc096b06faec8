"""What becomes of elements on their way: numbers of another type, times a factor, and a shift.

    y[…] = target(x[…] · scale + shift)

Numbers are converted as kernels do it: integers wrap, floats are cut off to the nearest integer
there is, and codes of 16 bits come from `f32`. One factor may hold for all elements, or each step
of an axis has its own; such tables are passed by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Expr, whole_number
from warploom.kernel.build import Builder, cast, fma
from warploom.kernel.dtype import DType, f32, f64, from_numpy
from warploom.kernel.ir import Cell, Value, dtype_of

TABLES = (4, 16, 64, 256)  # of how many factors there are kernels
MOST_BYTES = 1024  # of a table

Factors = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """From one type to another. `scaled`: by one factor, with one shift; `several`: by tables of so
    many, a power of two."""

    source: DType
    target: DType
    scaled: bool = False
    several: int = 0

    @property
    def computed(self) -> DType:
        return f64 if f64 in (self.source, self.target) else f32

    @property
    def name(self) -> str:
        how = f"_by{self.several}" if self.several else "_scaled" if self.scaled else ""
        return f"_{self.source!r}_{self.target!r}{how}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A conversion as a call wants it: the factors and shifts, and the axis of x whose steps have
    one each."""

    to: Conversion
    scale: Factors = ()
    shift: Factors = ()
    along: int | None = None

    @property
    def numbers(self) -> dict[str, Factors]:
        if self.to.several:
            return {"scales": self.scale, "shifts": self.shift}
        return {"scale": self.scale, "shift": self.shift} if self.to.scaled else {}


class Converter:
    """The conversion in a kernel, with what it is passed for it."""

    def __init__(self, k: Builder, to: Conversion) -> None:
        self.to, count = to, to.several
        self.tables = [
            k.constant(each, to.computed, count) for each in ("scales", "shifts") if count
        ]
        self.numbers = [
            k.number(each, to.computed) for each in ("scale", "shift") if to.scaled and not count
        ]

    def value(self, given: Value, number: Expr | None = None) -> Value:
        """A number of the source as one of the target; `number` says by which factor."""
        to = self.to
        if not self.tables and not self.numbers:
            codes = to.source.is_code or to.target.is_code
            middle = f32 if codes else to.target
            return _as(to.target, _as(middle, given, to.source), middle)
        scale, shift = self._factors(number)
        known = _as(f32, given, to.source) if to.source.is_code else given
        made = fma(_as(to.computed, known, dtype_of(known)), scale, shift)
        if to.target.is_code:
            return cast(to.target, _as(f32, made, to.computed))
        return _as(to.target, made, to.computed)

    def _factors(self, number: Expr | None) -> tuple[Cell, Cell]:
        if number is None or not self.tables:
            scale, shift = self.numbers
            return scale, shift
        at = number & (self.to.several - 1)
        scales, shifts = self.tables
        return scales[at], shifts[at]


def _as(dtype: DType, value: Value, source: DType) -> Value:
    return value if dtype is source else cast(dtype, value)


# -- what a call asks for --------------------------------------------------------------------------


def asked(
    source: DType, shape: Sequence[int], dtype: Any, scale: Any, shift: Any, along: int | None
) -> Asked | None:
    """What a call wants of elements of this type, in tensors of this shape; None if they stay."""
    target = source if dtype is None else type_named(dtype)
    if scale is None and shift is None:
        if along is not None:
            raise CheckError("'along' is the axis of factors, but there are none")
        return None if target is source else Asked(Conversion(source, target))
    factors, shifts = (_numbers(each, name) for each, name in ((scale, "scale"), (shift, "shift")))
    count = max(len(factors or ()), len(shifts or ()))
    if along is None:
        if count > 1:
            raise CheckError(
                f"{count} factors, but not along which axis",
                advice="write along=, the axis of x whose steps have one each",
            )
        return Asked(Conversion(source, target, True), factors or (1.0,), shifts or (0.0,))
    number = whole_number(along)
    if number is None:
        raise CheckError(f"'along' is the number of an axis, not {along!r:.40}")
    axis = number + len(shape) * (number < 0)
    if not 0 <= axis < len(shape):
        raise CheckError(f"the tensor has no axis {along}", advice=f"it has {len(shape)}")
    steps = shape[axis]
    made = Conversion(source, target, True)
    table = next((each for each in TABLES if each >= steps), 0)
    if not table or table * made.computed.bytes > MOST_BYTES:
        raise CheckError(
            f"{steps} factors along an axis",
            advice=f"at most {min(TABLES[-1], MOST_BYTES // made.computed.bytes)}; "
            "multiply before or after",
        )
    several = Conversion(source, target, True, table)
    beyond = (0.0,) * (table - steps)
    scales, offsets = _each(factors, steps, 1.0), _each(shifts, steps, 0.0)
    return Asked(several, scales + beyond, offsets + beyond, axis)


def _each(given: Factors | None, steps: int, usual: float) -> Factors:
    if given is None or len(given) == 1:
        return (given or (usual,)) * steps
    if len(given) != steps:
        raise CheckError(f"{len(given)} factors for an axis of {steps}", advice="one for each step")
    return given


def _numbers(given: Any, name: str) -> Factors | None:
    """One number or several, as Python or an array in host memory has them."""
    if given is None:
        return None
    try:
        numbers = np.asarray(given, np.float64)
        right = numbers.size > 0 and numbers.ndim < 2 and np.asarray(given).dtype.kind in "biuf"
    except (TypeError, ValueError, RuntimeError, OverflowError):
        right = False
    if not right:
        raise CheckError(
            f"'{name}' is a number, or several in a row, not {given!r:.40}",
            advice="as a float, a tuple, or an array in host memory",
        )
    return tuple(float(each) for each in numbers.reshape(-1))


def type_named(dtype: Any) -> DType:
    """The type of elements by its name, or as NumPy, CuPy and PyTorch have it."""
    if isinstance(dtype, DType):
        return dtype
    name = str(dtype)
    if isinstance(dtype, str) or name.startswith("torch."):
        return from_numpy(name.rpartition(".")[2])
    try:
        return from_numpy(np.dtype(dtype))
    except TypeError:
        raise DeviceError(
            f"{dtype!r:.40} is no type of elements", advice='as in dtype="float16"'
        ) from None
