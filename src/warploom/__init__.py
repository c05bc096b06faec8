"""Warploom: finds the index arithmetic of GPU and SIMD kernels by search, and proves it."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names and where they live; looked up on first use, so that `import warploom` stays cheap.
_PUBLIC = {
    "Sketch": ("warploom.sketch.build", "Sketch"),
    "spec": ("warploom.sketch.term.spec", None),
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'warploom' has no attribute '{name}'")
    module, attribute = _PUBLIC[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)
