"""The base of records that have a picture: a notebook shows it where a record is the last word."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Pictured:
    """A record with a picture.

    Which picture that is, is known above all records (`pipeline/pictures.py`); the package's front
    says who is asked, when a notebook asks.
    """

    __slots__ = ()
    inline: ClassVar[Callable[[object], str]]

    def _repr_html_(self) -> str:
        """Figures with their captions, without scripts; `warploom.show` gives the whole page."""
        return Pictured.inline(self)
