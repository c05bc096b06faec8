"""What a search for fills gave, as a picture: a fill, why there is none, or how far it came."""

from __future__ import annotations

from warploom.report import fill, impossible
from warploom.report.picture import Picture
from warploom.search.outcome import Impossible
from warploom.sketch.synth.result import Result


def picture(
    result: Result, number: int = 0, code: bool | None = None, brief: bool = False
) -> Picture:
    """The picture of fill `number`; `code`: with a kernel, without, or (None) if that is quick."""
    if isinstance(result.outcome, Impossible):
        return impossible.picture(result)
    return fill.picture(result, number, False if brief else code)
