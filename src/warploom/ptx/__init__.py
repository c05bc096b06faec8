"""PTX: read, run without a GPU, and written back."""

from warploom.ptx.emulate.launch import Kernel, LoadedModule, Report, load
from warploom.ptx.emulate.tensor import TensorMap, tensor_map
from warploom.ptx.parse import parse
from warploom.ptx.show import show

__all__ = ["Kernel", "LoadedModule", "Report", "TensorMap", "load", "parse", "show", "tensor_map"]
