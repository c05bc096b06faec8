"""The one registry of pictures: which function draws which kind of record.

Kinds and functions are named, not imported: who looks at a fill need not load what draws PTX.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from warploom.errors import UnsupportedError
from warploom.report.page import notebook
from warploom.report.picture import Picture

PICTURES = {
    "warploom.array.code.program.Compiled": "warploom.report.mapping:picture",
    "warploom.layout.wavefronts.picture.Compared": "warploom.report.request:picture",
    "warploom.pipeline.nest.Explored": "warploom.pipeline.picture:explored",
    "warploom.report.kernel.Simulated": "warploom.report.kernel:picture",
    "warploom.report.ptx.Observed": "warploom.report.ptx:picture",
    "warploom.search.history.History": "warploom.report.search:picture",
    "warploom.sketch.simt.solve.Filled": "warploom.pipeline.picture:filled",
    "warploom.sketch.synth.result.Result": "warploom.report.sketch:picture",
}


def drawer(record: object) -> Callable[..., Picture]:
    """The function that draws a record: of its kind, or of the nearest that it is one of."""
    for kind in type(record).__mro__:
        found = PICTURES.get(f"{kind.__module__}.{kind.__qualname__}")
        if found is not None:
            module, _, name = found.partition(":")
            function: Callable[..., Picture] = getattr(import_module(module), name)
            return function
    known = ", ".join(sorted(name.rpartition(".")[2] for name in PICTURES))
    raise UnsupportedError(
        f"there is no picture of a {type(record).__name__}", advice=f"there are of {known}"
    )


def picture(record: object, **options: Any) -> Picture:
    """The picture of a record; options are those of its kind, and `brief`, which all have."""
    return drawer(record)(record, **options)


def inline(record: object) -> str:
    """For a notebook: the figures, without scripts, and without what takes long to make."""
    drawn = picture(record, brief=True)
    return notebook([(figure.svg, figure.caption) for figure in drawn.figures], drawn.lines)
