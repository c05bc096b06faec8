"""Textures and surfaces of `warploom.ptx` as CuPy makes them on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom import ptx

LINEAR = "a texture in linear memory"  # as tex1Dfetch needs it
LAYERED, STORED, GATHERED = 1, 2, 8  # flags of an array in the CUDA runtime
MODES = ("wrap", "clamp", "mirror", "border")  # in the order of its numbers


def image_on_device(made: ptx.Surface, uses: set[str]) -> tuple[Any, Callable[[], Any]]:
    """An object that CuPy passes as its handle, and how its array is fetched afterwards.

    `uses` has opcodes of the kernel, or `LINEAR`.
    """
    import cupy

    runtime, texture = cupy.cuda.runtime, cupy.cuda.texture
    array, channels = made.array, made.channels or 1
    rows = array.reshape(*array.shape[:-2], -1) if made.channels else array
    kinds = {"u": "Unsigned", "i": "Signed", "f": "Float"}
    kind = getattr(runtime, f"cudaChannelFormatKind{kinds[array.dtype.kind]}")
    bits = [8 * array.itemsize] * channels + [0] * (4 - channels)
    form = texture.ChannelFormatDescriptor(*bits, kind)
    if LINEAR in uses and isinstance(made, ptx.Texture):
        flat = cupy.asarray(rows.reshape(-1))
        resource = texture.ResourceDescriptor(
            runtime.cudaResourceTypeLinear, arr=flat, chDesc=form, sizeInBytes=array.nbytes
        )
        return _texture(texture, resource, made), lambda: array
    sides = [*made.sides, 0, 0][:3]
    if made.layered:
        sides[2] = made.layers
    flags = LAYERED * made.layered + GATHERED * ("tld4" in uses)
    flags += STORED * (not isinstance(made, ptx.Texture))
    there = texture.CUDAarray(form, *sides, flags)
    there.copy_from(rows)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=there)
    if isinstance(made, ptx.Texture):
        return _texture(texture, resource, made), lambda: array

    def back() -> Any:
        found = np.empty_like(rows)
        there.copy_to(found)
        runtime.deviceSynchronize()
        return found.reshape(array.shape)

    return texture.SurfaceObject(resource), back


def _texture(texture: Any, resource: Any, made: ptx.Texture) -> Any:
    # Of an axis that is not there a border would count: the texel beside it is outside.
    modes = ([made.address] * len(made.sides) + ["clamp"] * 3)[:3]
    return texture.TextureObject(
        resource,
        texture.TextureDescriptor(
            [MODES.index(mode) for mode in modes], int(made.filter == "linear"),
            int(made.read == "normalized"), normalizedCoords=int(made.normalized),
        ),
    )  # fmt: skip
