"""The catalogue's table of names, printed, and as records."""

from __future__ import annotations

from typing import Any

from warploom.catalogue import Entry, function_entries, names
from warploom.catalogue.meaning import MEANINGS
from warploom.cli.say import echo


def sketch_names() -> list[str]:
    """The names that have a sketch."""
    return [name for name, each in names().items() if each.has_sketch]


# What a name or a value may be beside a sketch: by the folder that it comes from, the command that
# takes it, and what `warploom show --as` calls it.
_KINDS = {
    "loopnest": ("a loop nest", "explore", "nest"),
    "array": ("an array expression", "map", "map"),
}


def other_command(name: str) -> str:
    """Advice for a name that another command knows; none if none does."""
    # Here, not at the top: only who has mistaken a name waits for it.
    from warploom.loopnest.kernels import KERNELS
    from warploom.pipeline.named_program import NAMES

    known = {"loopnest": KERNELS, "array": NAMES, "kernel": names()}
    kinds = [kind for kind, listed in known.items() if name in listed]
    return "; ".join(
        _pointed(kind, name) if kind in _KINDS else f"it is a kernel: 'warploom kernel {name}'"
        for kind in kinds
    )


def other_kind(value: object) -> str:
    """Advice for a value of FILE.py that another command takes; none if none does."""
    parts = type(value).__module__.split(".")
    known = parts[0] == "warploom" and len(parts) > 1 and parts[1] in _KINDS
    return _pointed(parts[1], "FILE.py::NAME") if known else ""


def _pointed(kind: str, name: str) -> str:
    what, command, shown = _KINDS[kind]
    return f"it is {what}: 'warploom {command} {name}', or 'warploom show {name} --as {shown}'"


def list_names() -> list[dict[str, Any]]:
    """The one table of names: kernels, then what `warploom synth` alone can do something with."""
    known = {**names(), **function_entries()}
    width = max(map(len, known))
    records = []
    for name, each in known.items():
        is_function = name in function_entries()
        has_kernel = isinstance(each, Entry) and not is_function
        kind = " (a device function)" if is_function else " (a sketch, no kernel)"
        echo(f"{name:<{width}}  {each.doc}{'' if has_kernel else kind}")
        parameters = " ".join(f"{key}={value}" for key, value in each.parameters.items())
        echo(f"{'':<{width}}  {parameters}")
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
    echo("\nparameters")
    used = dict.fromkeys(key for each in known.values() for key in each.parameters)
    longest = max(map(len, used))
    for key in used:
        echo(f"  {key:<{longest}}  {MEANINGS[key]}")
    return records
