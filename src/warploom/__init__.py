"""Warploom checks, finds, proves and runs the index arithmetic of GPU and SIMD kernels.

Check a kernel, without a GPU:
  emulate          run a Triton, Numba, CuPy, CUDA or PTX kernel with every access and race checked
  judge            is a kernel equal to its reference for all inputs of a shape; inputs if it is not
  insert_shuffles  replace loads in PTX by warp shuffles, where that is proved right

Layouts of shared memory and registers:
  solve_layout     the layout with the fewest bank conflicts, with a proof
  convert_layout   from one register layout to another, with the fewest shuffles

Fill the holes of a sketch:
  Sketch           a kernel with holes, written line by line or read from a text
  warp_sketch      a kernel with holes, written lane by lane
  spec             sums, products and extrema for goals
  synthesize       every correct fill of a sketch, or a proof that there is none
  solve            the best fill of a warp sketch, or why there is none
  verify           is a sketch equal to its goal?

Search a schedule:
  LoopNest         scalar instructions over dimensions
  explore          the best of all implementations of a loop nest
  arrays           array expressions: map, reduce, split, slide, transpose
  map_array        an array expression mapped to blocks, threads and memories

Run and write kernels:
  compile          a function on arrays, of whatever the calls above return
  load             a kernel of the catalogue as a function on arrays
  permute          a tensor with its axes in another order, moved by a kernel
  moves            other movements of tensors: rows by number, frames, parts, windows
  kernels          the names of the catalogue
  device_function  a function of a warp, to include in a kernel of your own
  show             the picture of a result: a page, figures, a few lines

And beside them:
  Budget           how long, and with how much memory, a search may go on
  WarploomError    the base of all errors: what is wrong, where, and what to do

What a search returns (of a layout, a sketch or a schedule) prints as a short text, shows its
picture in a notebook, and has `.text("cuda")` and `.save(path)`, where the path ends in .json,
.html, .svg, .cu, .cuh, .hip, .cl or .c. All but layouts have `.kernel`, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import warploom.began  # noqa: F401 - before any other: it takes the time
from warploom.pictured import Pictured, PublicResult

if TYPE_CHECKING:
    from warploom.array import build
    from warploom.catalogue import entries
    from warploom.catalogue import moves as moves
    from warploom.catalogue.permute.call import permute as permute
    from warploom.errors import WarploomError as WarploomError
    from warploom.loopnest.build import LoopNest as LoopNest
    from warploom.pipeline.compiled import compiled
    from warploom.pipeline.converted import layout_converted
    from warploom.pipeline.exploring import explored
    from warploom.pipeline.header import device_function as device_function
    from warploom.pipeline.layouts import layout_solved
    from warploom.pipeline.mapping import mapped
    from warploom.pipeline.pictures import picture
    from warploom.pipeline.rows.loading import load as load
    from warploom.pipeline.warp_result import solved
    from warploom.ptx.shuffle import rewrite
    from warploom.search.budget import Budget as Budget
    from warploom.sketch.build import Sketch as Sketch
    from warploom.sketch.given import verified
    from warploom.sketch.simt.function import sketch
    from warploom.sketch.synth.solve import synthesize as synthesize
    from warploom.sketch.term import spec as spec
    from warploom.verdict.judged import judge as judge
    from warploom.without_gpu.front import emulate as emulate

    # Public by another name than at home.
    arrays = build
    compile = compiled
    convert_layout = layout_converted
    explore = explored
    insert_shuffles = rewrite
    kernels = entries
    map_array = mapped
    show = picture
    solve = solved
    solve_layout = layout_solved
    verify = verified
    warp_sketch = sketch

__version__ = "0.1.0"

# Public names and where they live; looked up on first use, so that `import warploom` stays cheap.
# None of them is the name of a module here: an import of that would take its place.
_PUBLIC = {
    "Budget": ("warploom.search.budget", "Budget"),
    "LoopNest": ("warploom.loopnest.build", "LoopNest"),
    "Sketch": ("warploom.sketch.build", "Sketch"),
    "WarploomError": ("warploom.errors", "WarploomError"),
    "arrays": ("warploom.array.build", None),
    "compile": ("warploom.pipeline.compiled", "compiled"),
    "convert_layout": ("warploom.pipeline.converted", "layout_converted"),
    "device_function": ("warploom.pipeline.header", "device_function"),
    "emulate": ("warploom.without_gpu.front", "emulate"),
    "explore": ("warploom.pipeline.exploring", "explored"),
    "insert_shuffles": ("warploom.ptx.shuffle", "rewrite"),
    "judge": ("warploom.verdict.judged", "judge"),
    "kernels": ("warploom.catalogue", "entries"),
    "load": ("warploom.pipeline.rows.loading", "load"),
    "map_array": ("warploom.pipeline.mapping", "mapped"),
    "moves": ("warploom.catalogue.moves", None),
    "permute": ("warploom.catalogue.permute.call", "permute"),
    "show": ("warploom.pipeline.pictures", "picture"),
    "solve": ("warploom.pipeline.warp_result", "solved"),
    "solve_layout": ("warploom.pipeline.layouts", "layout_solved"),
    "spec": ("warploom.sketch.term.spec", None),
    "synthesize": ("warploom.sketch.synth.solve", "synthesize"),
    "verify": ("warploom.sketch.given", "verified"),
    "warp_sketch": ("warploom.sketch.simt.function", "sketch"),
}

__all__ = ["__version__", *_PUBLIC]  # the table above is the one list


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'warploom' has no attribute '{name}'")
    module, attribute = _PUBLIC[name]
    found = import_module(module)
    found = found if attribute is None else getattr(found, attribute)
    globals()[name] = found  # the next time it is there: a search costs as much as half a launch
    return found


def _inline(record: object) -> str:
    drawn: str = import_module("warploom.pipeline.pictures").inline(record)
    return drawn


def _above(name: str) -> Any:
    return getattr(import_module("warploom.pipeline.results"), name)


Pictured.inline = _inline
PublicResult.above = _above


def __dir__() -> list[str]:
    return sorted(__all__)
