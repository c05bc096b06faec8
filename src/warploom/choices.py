"""Lists that options of the command line choose from, where they cost nothing to import: the parts
that give each name its meaning import it from here, so that it is the only list."""

from __future__ import annotations

from typing import Literal

# Languages in which kernels are written: `emit/language.py`.
LANGUAGES = ("cuda", "hip", "opencl", "c")
# Other words for layouts: `layout/formats/export.py`.
SPELLINGS = ("cute", "triton", "ttgir", "gluon", "tilelang")
# Devices where a run takes the time that it takes: `runtime/`.
TIMED: tuple[Literal["cuda", "opencl", "c"], ...] = ("cuda", "opencl", "c")
CONVERSIONS = ("nothing", "renames", "shuffles", "shared", "matrices")  # ways: `layout/conversion/`
VARIED = ("width", "matrices", "order")  # of accesses: `layout/patterns/ways.py`
# What a sanitizer looks for, by the names of compute-sanitizer's tools: `ptx/findings.py`.
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
# By which rules memory is judged: what breaks on GPUs, or all that the manual of PTX forbids.
MODELS = ("practice", "ptx")
FARTHEST = 31  # lanes that a shuffle reaches, in a warp of 32: `ptx/shuffle/`

# Names of the catalogue that have a sketch, as `catalogue/` has them; a test compares.
SKETCHES = (
    "stencil-1d", "convolution-1d", "convolution-2d", "product-registers", "product-shared",
    "aos-to-soa", "soa-to-aos", "aos-sum", "transposition", "transposition-rcr", "sums", "stencil",
    "convolution", "stencil-2d", "product", "gaussian",
)  # fmt: skip

# Up to what terms of sketches are equal: `sketch/term/laws.py`. Right programs that differ by what
# is not known are not recognized.
ALWAYS = "terms are equal up to the order of items"
FLATTENED = "nested folds of one operator being one, and a fold of one item being the item"
NOT_KNOWN = (
    "idempotence (max(x, x) = x), inverses (x ^ x = 0), constants as neutral elements (x + 0 = x) "
    "and distributivity are not among them"
)
# What an expert fixes of a loop nest (loopnest/strategies/).
STRATEGIES = {
    "fused-attention": "softmax of products, times values: both products by wgmma, one pass",
    "split-attention": "the same of few queries: keys split over blocks, parts joined by a kernel",
    "warp-group-tile": "products of converted numbers: wgmma, tensor copies into a ring of stages",
    "packed-weights": "few rows times integers of four or eight bits: mma, unpacked in registers",
    "warp-tile": "the same without wgmma: mma.sync, asynchronous copies, ldmatrix",
    "block-tile": "a sum of products: results in registers, factors through shared memory",
    "split-k": "few long sums of products: the threads of a block fold parts of each",
    "split-over-blocks": "few long folds: blocks fold parts of each, a second kernel these",
    "warp-per-row": "lanes fold parts of a row with vector loads, and then across lanes",
    "row-per-block": "softmax, norms: threads hold a row and fold it as often as need be",
    "threads-per-column": "threads along columns; groups of them fold parts of each",
    "one-pass": "no fold: blocks, threads along neighbours, vectors",
    "thread-per-result": "folds that no other strategy is meant for: a thread folds all of its own",
}
