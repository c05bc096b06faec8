"""Modules beside a user's FILE.py, found as `python FILE.py` finds them, with one difference: the
standard library comes first, so that a `json.py` there is not what our own code imports later.

They come before installed packages while code of that file runs. Afterwards they come last, for
what its functions import when they are called, and take the place of nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


class _Beside(MetaPathFinder):
    """Finds the modules of one folder, and notes their names. A folder without `__init__.py` is a
    package only where nothing else has its name, as in Python: so `last` alone finds such."""

    def __init__(self, folder: str, found: set[str], last: bool) -> None:
        self.folder, self.found, self.last = folder, found, last

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or _is_ours(name):  # a package finds its own modules
            return None
        spec = PathFinder.find_spec(name, [self.folder], target)
        if spec is None or (spec.origin is None and not self.last):
            return None
        self.found.add(name)
        return spec

    def holds(self, module: ModuleType | None) -> bool:
        spec = getattr(module, "__spec__", None)
        places = [getattr(spec, "origin", None), *(getattr(module, "__path__", None) or ())]
        inside = Path(self.folder)
        return any(inside in Path(each).parents for each in places if isinstance(each, str))


_LAST: list[_Beside] = []  # one at most: of the file whose code ran last


def _is_ours(name: str) -> bool:
    return name in sys.stdlib_module_names or name == "warploom"


def module_name(file: Path) -> str:
    """What the module of a file is called: as the file, unless that is another's name."""
    spec = None if _is_ours(file.stem) else PathFinder.find_spec(file.stem)
    known = _is_ours(file.stem) or (spec is not None and spec.origin != str(file.resolve()))
    return f"{file.stem}_py" if known else file.stem


@contextmanager
def modules_beside(file: Path) -> Iterator[None]:
    """While code of this file runs."""
    folder = str(file.resolve().parent)
    if not _LAST or _LAST[0].folder != folder:
        _forget()
        _LAST.append(_Beside(folder, {module_name(file)}, last=True))
        sys.meta_path.append(_LAST[0])
    first = _Beside(folder, _LAST[0].found, last=False)
    sys.meta_path.insert(0, first)
    try:
        yield
    finally:
        sys.meta_path.remove(first)


def _forget() -> None:
    """Two files in two folders may each have a `helper.py` beside them."""
    while _LAST:
        other = _LAST.pop()
        sys.meta_path.remove(other)
        for name in list(sys.modules):
            if name.partition(".")[0] in other.found and other.holds(sys.modules[name]):
                del sys.modules[name]
