"""Warploom: finds the index arithmetic of GPU and SIMD kernels by search, and proves it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import warploom.began  # noqa: F401 - before any other: it takes the time
from warploom.pictured import Pictured

if TYPE_CHECKING:
    from warploom.catalogue import entries
    from warploom.catalogue.loaded import load as load
    from warploom.errors import WarploomError as WarploomError
    from warploom.pipeline.certificate import certificate as certificate
    from warploom.pipeline.compiled import compiled
    from warploom.pipeline.header import device_function as device_function
    from warploom.pipeline.pictures import picture
    from warploom.ptx.shuffle import rewrite
    from warploom.search.budget import Budget as Budget
    from warploom.sketch.build import Sketch as Sketch
    from warploom.sketch.front import load_file as load_file
    from warploom.sketch.front import load_text as load_text
    from warploom.sketch.given import text_of, verified
    from warploom.sketch.simt.code import to_kernel as to_kernel
    from warploom.sketch.simt.function import sketch
    from warploom.sketch.simt.solve import reinstantiate as reinstantiate
    from warploom.sketch.simt.solve import solve as solve
    from warploom.sketch.synth.show import show_fill as show_fill
    from warploom.sketch.synth.solve import synthesize as synthesize
    from warploom.sketch.synth.transfer import transfer as transfer
    from warploom.sketch.term import spec as spec
    from warploom.without_gpu.front import emulate as emulate

    # Public by another name than at home.
    compile = compiled
    insert_shuffles = rewrite
    kernels = entries
    show = picture
    to_swflow = text_of
    verify = verified
    warp_sketch = sketch

__version__ = "0.1.0"

# Public names and where they live; looked up on first use, so that `import warploom` stays cheap.
_PUBLIC = {
    "Budget": ("warploom.search.budget", "Budget"),
    "Sketch": ("warploom.sketch.build", "Sketch"),
    "WarploomError": ("warploom.errors", "WarploomError"),
    "certificate": ("warploom.pipeline.certificate", "certificate"),
    "compile": ("warploom.pipeline.compiled", "compiled"),
    "emulate": ("warploom.without_gpu.front", "emulate"),
    "insert_shuffles": ("warploom.ptx.shuffle", "rewrite"),
    "kernels": ("warploom.catalogue", "entries"),
    "device_function": ("warploom.pipeline.header", "device_function"),
    "load": ("warploom.catalogue.loaded", "load"),
    "load_file": ("warploom.sketch.front", "load_file"),
    "load_text": ("warploom.sketch.front", "load_text"),
    "reinstantiate": ("warploom.sketch.simt.solve", "reinstantiate"),
    "show": ("warploom.pipeline.pictures", "picture"),
    "show_fill": ("warploom.sketch.synth.show", "show_fill"),
    "solve": ("warploom.sketch.simt.solve", "solve"),
    "spec": ("warploom.sketch.term.spec", None),
    "synthesize": ("warploom.sketch.synth.solve", "synthesize"),
    "to_kernel": ("warploom.sketch.simt.code", "to_kernel"),
    "to_swflow": ("warploom.sketch.given", "text_of"),
    "transfer": ("warploom.sketch.synth.transfer", "transfer"),
    "verify": ("warploom.sketch.given", "verified"),
    "warp_sketch": ("warploom.sketch.simt.function", "sketch"),
}

__all__ = ["__version__", *_PUBLIC]  # the table above is the one list


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'warploom' has no attribute '{name}'")
    module, attribute = _PUBLIC[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)


def _inline(record: object) -> str:
    drawn: str = import_module("warploom.pipeline.pictures").inline(record)
    return drawn


Pictured.inline = _inline


def __dir__() -> list[str]:
    return sorted(__all__)
