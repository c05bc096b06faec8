"""`warploom machines`: the machines we know, and the record of one of them, or of a user's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from warploom.cli.commands.machines import Machines
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.cli.output import kept_free, write_records
from warploom.cli.say import echo
from warploom.machine.record import KNOWN, SHARED, TABLES, Machine, machine_named
from warploom.machine.serving import Serving

_LIMITS = {
    "lanes": "lanes", "block_threads": "threads", "shared_bytes": "shared",
    "shared_bytes_most": "at most", "thread_registers": "registers", "sector_bytes": "sector",
    "banks": "banks",
}  # fmt: skip
_CYCLES = ("shuffle_wait", "edge_wait", "cached_wait", "shared_wait", "global_wait")


def machines(asked: Machines, _context: Context) -> None:
    def action() -> Status:
        with kept_free(asked.json_file):
            found = [machine_named(each) for each in ([asked.machine] if asked.machine else KNOWN)]
            if asked.machine:
                echo("\n".join(_toml(found[0])))
            else:
                _show(found)
        write_records(asked.json_file, [record_of(each) for each in found])
        return Status.FOUND

    run(action)


def _show(found: list[Machine]) -> None:
    echo("limits    " + "".join(f"{title:>10}" for title in _LIMITS.values()) + "  tables")
    for machine in found:
        have = ", ".join(each for each in TABLES if each in vars(machine))
        echo(f"{machine.name:10}{_row(machine, _LIMITS)}  {have}".rstrip())
    titles = (name.removesuffix("_wait") for name in _CYCLES)
    echo("\nwaits     " + "".join(f"{title:>10}" for title in titles) + "  times of")
    for machine in found:
        if "times" in vars(machine):
            echo(f"{machine.name:10}{_row(machine.times, _CYCLES)}  {machine.times.name}")


def _row(record: object, names: Mapping[str, str] | tuple[str, ...]) -> str:
    values = [getattr(record, name, None) for name in names]
    return "".join(f"{'-' if value is None else format(value, 'g'):>10}" for value in values)


def record_of(machine: Machine) -> dict[str, Any]:
    """The fields that the machine has, each once: tables without what is the record's own."""
    given = vars(machine).items()
    return {name: _plain(value) for name, value in given if name != "file"}


def _plain(value: Any) -> Any:
    match value:
        case Serving():
            groups = {f"{kind}{width}": g for (kind, width), g in value.groups.items() if width > 2}
            return {name: _plain(group) for name, group in groups.items()}
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case _ if is_dataclass(value):
            given = {each.name: getattr(value, each.name) for each in fields(value)}
            kept = {key: each for key, each in given.items() if each is not None}
            return {key: _plain(each) for key, each in kept.items() if key not in SHARED}
    return value


def _toml(machine: Machine) -> Iterator[str]:
    """The record as TOML, and what it lacks as a comment."""
    yield from _lines(record_of(machine))
    if machine.missing:
        yield f"\n# not known: {', '.join(machine.missing)}"


def _lines(table: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Values first, then tables."""
    for name, value in table.items():
        if place or not isinstance(value, dict):
            yield f"{_key(name)} = {_value(value)}"
    for name, value in table.items():
        if not place and isinstance(value, dict):
            yield f"\n[{name}]"
            yield from _lines(value, name)


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else f'"{name}"'


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case dict():
            return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
        case tuple():
            return f"[{', '.join(map(str, value))}]"
    return repr(value)
