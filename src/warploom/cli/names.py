"""The catalogue's table of names, printed, and as records."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import typer

from warploom.catalogue import Entry, function_entries, names
from warploom.catalogue.meaning import MEANINGS


def sketch_names() -> list[str]:
    """The names that have a sketch."""
    return [name for name, each in names().items() if each.has_sketch]


def sketch_lines() -> str:
    """The same for the help of a command."""
    return "\n       ".join(wrap(", ".join(sketch_names()), 88, break_on_hyphens=False))


def list_names() -> list[dict[str, Any]]:
    """The one table of names: kernels, then what `warploom synth` alone can do something with."""
    known = {**names(), **function_entries()}
    width = max(map(len, known))
    records = []
    for name, each in known.items():
        is_function = name in function_entries()
        has_kernel = isinstance(each, Entry) and not is_function
        kind = " (a device function)" if is_function else " (a sketch, no kernel)"
        typer.echo(f"{name:<{width}}  {each.doc}{'' if has_kernel else kind}")
        parameters = " ".join(f"{key}={value}" for key, value in each.parameters.items())
        typer.echo(f"{'':<{width}}  {parameters}")
        records.append(
            {
                "name": name,
                "doc": each.doc,
                "parameters": dict(each.parameters),
                "meaning": {key: MEANINGS[key] for key in each.parameters},
                "kernel": has_kernel,
                "sketch": each.has_sketch,
                "function": is_function,
            }
        )
    typer.echo("\nparameters")
    used = dict.fromkeys(key for each in known.values() for key in each.parameters)
    longest = max(map(len, used))
    for key in used:
        typer.echo(f"  {key:<{longest}}  {MEANINGS[key]}")
    return records
