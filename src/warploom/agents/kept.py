"""Records and texts of calls, kept for who asks for them by their address.

Comes in: what a call left in its folder. Goes out: links. The folder is the server's own and goes
with it; the oldest calls make room for the newest.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from warploom.agents.paths import RefusedError
from warploom.agents.tools import FILES

SCHEME = "warploom://calls/"
OUT, ERR = "output.txt", "messages.txt"
_TEXTS = {OUT: "text/plain", ERR: "text/plain"}
_TYPES = {**FILES, **_TEXTS}
_MOST_CALLS, _MOST_BYTES = 64, 256 << 20


class Link(NamedTuple):
    """Where a file of a call is, and what it is."""

    address: str
    name: str
    type: str
    size: int


class Kept:
    """The calls of one server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._count = 0

    def place(self) -> Path:
        """A new folder for a call."""
        self._count += 1
        return self.folder / str(self._count)

    def keep(self, place: Path) -> list[Link]:
        """Keeps the files that a call was to write, and what it said; the rest goes."""
        kept = self.folder / f"{place.name}.kept"
        kept.mkdir()
        sources = {OUT: place / "out", ERR: place / "err"}
        sources |= {name: place / "scratch" / name for name in FILES}
        for name, source in sources.items():
            if is_plain(source) and source.stat().st_size:
                os.replace(source, kept / name)
        shutil.rmtree(place, ignore_errors=True)
        found = list(self._links(place.name))
        self._sizes[place.name] = sum(each.size for each in found)
        self._make_room()
        return found

    def read(self, address: str) -> tuple[str, bytes]:
        """The type and the bytes of a file that is kept."""
        number, _, name = address.removeprefix(SCHEME).partition("/")
        if number not in self._sizes or name not in _TYPES:
            raise RefusedError(f"nothing is kept at '{address[:80]}'", advice="call the tool again")
        try:
            return _TYPES[name], (self.folder / f"{number}.kept" / name).read_bytes()
        except OSError:
            raise RefusedError(f"nothing is kept at '{address[:80]}'") from None

    def links(self) -> Iterator[Link]:
        """All that is kept, the newest first."""
        for number in reversed(self._sizes):
            yield from self._links(number)

    def _links(self, number: str) -> Iterator[Link]:
        for name, kind in _TYPES.items():
            path = self.folder / f"{number}.kept" / name
            if path.exists():
                yield Link(f"{SCHEME}{number}/{name}", name, kind, path.stat().st_size)

    def _make_room(self) -> None:
        while len(self._sizes) > _MOST_CALLS or (
            len(self._sizes) > 1 and sum(self._sizes.values()) > _MOST_BYTES
        ):
            oldest, _ = self._sizes.popitem(last=False)
            shutil.rmtree(self.folder / f"{oldest}.kept", ignore_errors=True)


def is_plain(path: Path) -> bool:
    """A file, and neither a link nor a pipe that somebody put in its place."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
