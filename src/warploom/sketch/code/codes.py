"""Kernels of sketches whose arrays hold numbers of sixteen or eight bits: computed in `f32` and
rounded when they are stored, or, where nothing is computed, moved as bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from warploom.kernel.dtype import DType, f32, from_numpy
from warploom.kernel.stored import computes, retyped, stored_as
from warploom.sketch.code.tiling import Tiled


def with_codes(make: Callable[[DType], Tiled], dtype: DType) -> Tiled:
    """What `make` gives for a type, also for one in which nothing is computed."""
    if not isinstance(dtype, DType) or not dtype.is_code:
        return make(dtype)
    wide = make(f32)
    if computes(wide.kernel):
        return replace(wide, kernel=stored_as(wide.kernel, dtype), dtype=dtype)
    bits = from_numpy(dtype.storage)
    moved = make(bits)
    return replace(moved, kernel=retyped(moved.kernel, bits, dtype), dtype=dtype)
