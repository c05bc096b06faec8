"""PTX: read, run without a GPU, and written back."""

from warploom.ptx.emulate.nested import Nested, pointers, structure
from warploom.ptx.emulate.tensor import TensorMap, tensor_map
from warploom.ptx.emulate.texture import Surface, Texture, surface, texture
from warploom.ptx.launch import Kernel, LoadedModule, Report, load
from warploom.ptx.parse import parse
from warploom.ptx.show import show

__all__ = [
    "Kernel",
    "LoadedModule",
    "Nested",
    "Report",
    "Surface",
    "TensorMap",
    "Texture",
    "load",
    "parse",
    "pointers",
    "show",
    "structure",
    "surface",
    "tensor_map",
    "texture",
]
