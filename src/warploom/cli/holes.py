"""`warploom holes`: what may fill a hole, and what else a sketch may call."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from warploom.cli.commands.holes import HolesOptions
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.cli.output import kept_free, write_records
from warploom.cli.say import echo
from warploom.sketch.holes.about import ABOUT, About, about
from warploom.sketch.synth.show import show_index
from warploom.sketch.term.limits import show_shape

_WIDTH = 88


def holes(asked: HolesOptions, _context: Context) -> None:
    def action() -> Status:
        with kept_free(asked.json_file):
            name = asked.name
            listed = ABOUT if name is None else [about(name)]
            for line in _overview() if name is None else _explained(listed[0], name, asked.limit):
                echo(line)
        write_records(asked.json_file, [_record(each) for each in listed])
        return Status.FOUND

    run(action)


def _overview() -> Iterator[str]:
    for title, wanted in (("single gathers", False), ("holes", True)):
        yield title
        for each in ABOUT:
            if each.is_hole is wanted:
                yield f"  {', '.join(each.names)}"
                yield from _indented(each.what, 6)
                if each.options:
                    yield f"      options: {', '.join(each.options)}"
    yield "'warploom holes NAME' explains one, with its choices at a small shape"


def _explained(found: About, name: str, limit: int) -> Iterator[str]:
    own = found.names[name]
    yield f"{name}{f' ({own})' if own else ''}"
    yield from _indented(found.what, 2)
    others = [each for each in found.names if each != name]
    if others:
        yield f"  likewise: {', '.join(others)}"
    yield from _table("options", found.options)
    yield from _table("in the names of choices", found.letters)
    yield from _choices(found, name, limit)


def _choices(found: About, name: str, limit: int) -> Iterator[str]:
    gathers = found.shown(name)
    shapes = ", ".join(show_shape(shape) for shape in found.example.arguments)
    count = f"{len(gathers)} choice{'' if len(gathers) == 1 else 's'}"
    yield f"  {shapes} -> {show_shape(found.example.out)}: {count}"
    letters = ["x", "y", "z"][: len(found.example.arguments)]
    shown = range(min(limit, len(gathers)))
    width = max((len(gathers.describe(choice)) for choice in shown), default=0)
    for choice in shown:
        index = show_index(gathers.expression(choice), letters)
        yield f"    {gathers.describe(choice):<{width}}  {index}"
    if len(gathers) > limit:
        yield f"    … {len(gathers) - limit} more (--limit N shows more)"


def _table(title: str, rows: Any) -> Iterator[str]:
    if rows:
        yield f"  {title}:"
        width = max(map(len, rows))
        yield from (f"    {key:<{width}}  {text}" for key, text in rows.items())


def _indented(text: str, by: int) -> Iterator[str]:
    return (" " * by + line for line in wrap(text, _WIDTH))


def _record(found: About) -> dict[str, Any]:
    return {
        "names": dict(found.names),
        "what": found.what,
        "hole": found.is_hole,
        "options": dict(found.options),
        "letters": dict(found.letters),
    }
