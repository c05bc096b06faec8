"""The fundamental types of PTX: how wide they are, which NumPy type holds them, which of them an
instruction names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
DType = np.dtype[Any]

BOOL = np.dtype(np.bool_)
U8, U16, U32, U64 = (np.dtype(f"u{n}") for n in (1, 2, 4, 8))
S8, S16, S32, S64 = (np.dtype(f"i{n}") for n in (1, 2, 4, 8))
F16, F32, F64 = (np.dtype(f"f{n}") for n in (2, 4, 8))
B128 = np.dtype("V16")

UNSIGNED: dict[int, DType] = {1: U8, 2: U16, 4: U32, 8: U64, 16: B128}
SIGNED: dict[int, DType] = {1: S8, 2: S16, 4: S32, 8: S64}

# bf16 and the packed pairs have no NumPy type: they are held as bits.
DTYPES: dict[str, DType] = {
    "pred": BOOL,
    **{f"{kind}{8 * size}": dtype for size, dtype in UNSIGNED.items() for kind in "bu"},
    **{f"s{8 * size}": dtype for size, dtype in SIGNED.items()},
    "f16": F16, "f32": F32, "f64": F64,
    "bf16": U16, "f16x2": U32, "bf16x2": U32, "tf32": U32,
    "e2m1x2": U8, "e4m3x2": U16, "e5m2x2": U16, "e2m3x2": U16, "e3m2x2": U16, "ue8m0x2": U16,
    "e2m1x4": U16, "e4m3x4": U32, "e5m2x4": U32, "e2m3x4": U32, "e3m2x4": U32,
    "u16x2": U32, "s16x2": U32, "f32x2": U64,
}  # fmt: skip


def size_of(kind: str) -> int:
    """Bytes of one value; 0 for a type that is not known."""
    dtype = DTYPES.get(kind)
    return 0 if dtype is None else dtype.itemsize


def is_float(kind: str) -> bool:
    return kind[0] in "fe" or kind.startswith(("bf", "ue")) or kind == "tf32"


def is_signed(kind: str) -> bool:
    return kind[0] == "s"


def bits_of(value: Array) -> Array:
    """The same bits as an unsigned array."""
    dtype = UNSIGNED[value.dtype.itemsize]
    return value if value.dtype == dtype else value.view(dtype)


def scalar(value: int, dtype: DType) -> Array:
    """One integer, wrapped to the type, as an array of one element (a uniform value)."""
    size = dtype.itemsize
    raw = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return np.frombuffer(raw, dtype=dtype).copy()


def types_of(ins: Instruction) -> list[str]:
    """The types among the modifiers."""
    return [m for m in ins.modifiers if m in DTYPES]


def type_of(ins: Instruction, place: int = -1) -> str:
    """The type among the modifiers (the last one, or counted from the front)."""
    kinds = types_of(ins)
    return kinds[place] if kinds else ""


def rounding_of(ins: Instruction, default: str = "rn") -> str:
    for mode in ("rn", "rz", "rm", "rp", "rna"):
        if mode in ins.modifiers:
            return mode
    return default
