"""Files that a call names: inside of one folder, plain, and reached by no link."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from warploom.errors import WarploomError

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class RefusedError(WarploomError):
    """A call asks for what it may not have."""


class Folder:
    """The folder whose files may be named; `links` may be followed where who asks is its owner."""

    def __init__(self, root: Path, links: bool = False) -> None:
        self.root, self.links = root, links
        self.real = Path(os.path.realpath(root))
        if not self.real.is_dir():
            raise RefusedError(f"'{root}' is no folder", advice="--root names one")

    def file(self, text: str, endings: tuple[str, ...]) -> str:
        """A file as a word of a command line, relative to the folder."""
        path = self._below(text)
        if path.suffix not in endings:
            raise RefusedError(f"'{text[:200]}' is none of {', '.join(endings)}")
        here = self.real
        for part in path.parts:
            here = here / part
            found = self._looked_at(here, text)
            if not self.links and stat.S_ISLNK(found.st_mode):
                raise RefusedError(
                    f"'{text[:200]}' is a link or lies behind one", advice="copy the file"
                )
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError(f"'{text[:200]}' is no plain file")
        word = str(path)
        return f"./{word}" if word.startswith("-") else word

    def function(self, text: str) -> str:
        """FILE.py::NAME."""
        file, colons, name = text.partition("::")
        if not colons or not _NAME.fullmatch(name):
            raise RefusedError(f"'{text[:200]}' names no function", advice="write FILE.py::NAME")
        return f"{self.file(file, ('.py',))}::{name}"

    def holds(self, text: str) -> bool:
        """Whether something of this name lies in the folder, so that no known name is meant."""
        return os.path.lexists(os.path.join(self.real, text))

    def _below(self, text: str) -> Path:
        path = Path(text)
        for root in (self.root, self.real):
            if path.is_absolute() and path.is_relative_to(root):
                path = path.relative_to(root)
        if not text or "\0" in text or path.is_absolute() or ".." in path.parts or not path.parts:
            raise RefusedError(
                f"'{text[:200]}' is not in the folder of this server",
                advice="name a file below it, without '..'",
            )
        return path

    def _looked_at(self, path: Path, text: str) -> os.stat_result:
        try:
            return os.stat(path) if self.links else os.lstat(path)
        except OSError as error:
            raise RefusedError(f"cannot read '{text[:200]}': {error.strerror}") from None
