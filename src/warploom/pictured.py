"""The base of records that have a picture: a notebook shows it where a record is the last word.

Which picture that is, `report/registry.py` says, by kind of record. It is asked when a notebook
asks, so that records need nothing of what draws them.
"""

from __future__ import annotations

from importlib import import_module

_REGISTRY = "warploom.report.registry"


class Pictured:
    """A record with a picture."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Figures with their captions, without scripts; `warploom.show` gives the whole page."""
        inline: str = import_module(_REGISTRY).inline(self)
        return inline
