"""C that lives in files beside the code: a file with what it includes of ours → one text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_OWN = re.compile(r'^#include "([a-z_]+\.h)"\n', re.MULTILINE)


def whole_text(file: Path, folders: Sequence[Path] = ()) -> str:
    """The text of a file, where each header of ours stands once, before what first needs it.

    Headers are looked for beside the file and then in the folders, as a compiler would. In one text
    they need no `#pragma once`, which a compiler warns of in the file that it is given.
    """
    seen: set[str] = set()
    around = (file.parent, *folders)

    def put(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        found = next(folder / name for folder in around if (folder / name).exists())
        text = found.read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _OWN.sub(lambda each: put(each[1]), text)

    return put(file.name)
