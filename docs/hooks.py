"""Pages that are written from the code when the site is built, so that they cannot grow old."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from warploom.catalogue import entries
from warploom.cli.reference import commands_page
from warploom.sketch.holes.about import ABOUT


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    pages = {
        "catalogue": catalogue(),
        "holes": holes(),
        "reference/commands": commands_page(),
    }
    for name, lines in pages.items():
        files.append(File.generated(config, f"{name}.md", content="\n".join(lines) + "\n"))
    return files


def catalogue() -> Iterator[str]:
    yield "# Catalogue\n"
    yield "`warploom kernel NAME` writes and checks a kernel; `warploom synth NAME` shows the"
    yield "sketch behind it. Parameters with what they are if nothing is said:\n"
    for entry in entries().values():
        yield f"## `{entry.name}`\n"
        yield f"{inspect.cleandoc(entry.doc)}\n"
        yield "| parameter | |\n|---|---|"
        yield from (f"| `{name}` | `{value}` |" for name, value in entry.parameters.items())
        yield ""


def holes() -> Iterator[str]:
    yield "# What may fill a hole\n"
    yield "`warploom holes NAME` shows the choices of one at a small shape.\n"
    for title, wanted in (("Holes", True), ("Single gathers", False)):
        yield f"## {title}\n"
        for each in ABOUT:
            if each.is_hole is wanted:
                yield f"### {', '.join(f'`{name}`' for name in each.names)}\n"
                yield f"{each.what}\n"
                rows = {**each.options, **each.letters}
                yield from (f"- `{name}`: {what}" for name, what in rows.items())
                yield ""
