"""The one registry of pictures: which function draws which kind of record.

Kinds and functions are named, not imported: who looks at a fill need not load what draws PTX.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from warploom.errors import UnsupportedError, located
from warploom.report.page import notebook
from warploom.report.picture import Picture

PICTURES = {
    "warploom.array.code.program.Compiled": "warploom.report.mapping:picture",
    "warploom.catalogue.loaded.Loaded": "warploom.pipeline.picture:loaded",
    "warploom.layout.wavefronts.picture.Compared": "warploom.report.request:picture",
    "warploom.pipeline.compiled.Compiled": "warploom.pipeline.picture:compiled",
    "warploom.pipeline.converted.ConvertedResult": "warploom.pipeline.picture:converted",
    "warploom.pipeline.layouts.LayoutResult": "warploom.pipeline.picture:layout",
    "warploom.pipeline.mapping.MappedResult": "warploom.pipeline.picture:mapped",
    "warploom.pipeline.nest.Explored": "warploom.pipeline.picture:explored",
    "warploom.pipeline.runnable.Runnable": "warploom.pipeline.pictures:of_result",
    "warploom.pipeline.tiles.TilesResult": "warploom.pipeline.tiles:tiles_picture",
    "warploom.pipeline.warp_result.WarpResult": "warploom.pipeline.picture:warp_result",
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
    known = ", ".join(sorted({name.rpartition(".")[2] for name in PICTURES}))
    raise UnsupportedError(
        f"there is no picture of a {type(record).__name__}", advice=f"there are of {known}"
    )


@located
def picture(record: object, **options: Any) -> Picture:
    """The picture of what a public call returned: a page, figures, a few lines of text.

    `.save("page.html")` writes one page that opens anywhere, `.save("figure.svg")` its figures. A
    notebook shows the page. Options are those of the kind of record, and `brief`, which all have.

    >>> import warploom
    >>> s = warploom.Sketch.from_text("x: [2] = range(0, 2)\\ngoal: [2] = [0, 1]", "as it is")
    >>> page = warploom.show(warploom.synthesize(s))
    >>> page.title, page.html.startswith("<!doctype html>")
    ('as it is', True)
    """
    return drawer(record)(record, **options)


def of_result(found: Any, **options: Any) -> Picture:
    """A function has the picture of what it was compiled from."""
    return picture(found.result, **options)


def inline(record: object) -> str:
    """For a notebook: the figures, without scripts, and without what takes long to make."""
    drawn = picture(record, brief=True)
    return notebook([(figure.svg, figure.caption) for figure in drawn.figures], drawn.lines)
