"""`warploom store`: what is kept, listed, shown, written out, thrown away."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from warploom.cli.commands.store import ExportOptions, ListOptions, PruneOptions, ShowResultOptions
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.remembered import warn
from warploom.cli.say import echo
from warploom.errors import CheckError, ParseError
from warploom.search.storage.store import Kept, Store, users_store


def list_(asked: ListOptions, _context: Context) -> None:
    def action() -> Status:
        with kept_free(asked.json_file):
            store = _store(asked.place)
            kept = store.all()
            for each in kept:
                echo(_line(each))
            echo(_total(kept, store))
        write_records(asked.json_file, [_record(each) for each in kept])
        return Status.FOUND

    run(action)


def show(asked: ShowResultOptions, _context: Context) -> None:
    def action() -> Status:
        with kept_free(asked.json_file):
            kept = _found(_store(asked.place), asked.number)
            echo(_line(kept))
            value = kept.value
            said = value.get("out") or value.get("err") if isinstance(value, dict) else None
            echo(said or json.dumps(value, indent=1), nl=not said)
        write_records(asked.json_file, [_record(kept) | {"value": kept.value}])
        return Status.FOUND

    run(action)


def export(asked: ExportOptions, _context: Context) -> None:
    def action() -> Status:
        with kept_free(None, asked.out):
            records = [_record(each) | {"value": each.value} for each in _store(asked.place).all()]
        write(asked.out, json.dumps(records, indent=1, ensure_ascii=False) + "\n")
        return Status.FOUND

    run(action)


def prune(asked: PruneOptions, _context: Context) -> None:
    def action() -> Status:
        if asked.all_ and asked.days is not None:
            raise ParseError("--all and --days exclude each other")
        with kept_free(asked.json_file):
            store = _store(asked.place)
            before = None if asked.days is None else time.time() - 86400 * asked.days
            count = store.forget(outdated=not asked.all_ and before is None, before=before)
            echo(f"{count} removed from '{store.path}', {len(store.all())} left")
        write_records(asked.json_file, [{"removed": count}])
        return Status.FOUND

    run(action)


def _store(place: Path | None) -> Store:
    found = Store(place) if place is not None else users_store()
    if found is None:
        raise ParseError("there is no store: WARPLOOM_STORE is empty", advice="name one by --store")
    return Store(found.path, told=warn)


def _found(store: Store, number: str) -> Kept:
    kept = [each for each in store.all() if number and each.number.startswith(number)]
    if len(kept) != 1:
        what = "no result has" if not kept else f"{len(kept)} results have"
        raise CheckError(f"{what} the number '{number[:40]}'", advice="`warploom store list`")
    return kept[0]


def _line(kept: Kept) -> str:
    old = "" if kept.current else "  (outdated)"
    device = f"  on {kept.device}" if kept.device else ""
    return f"{kept.number[:10]}  {_age(kept.written):>8}  {kept.kind:<7} {kept.label}{device}{old}"


def _age(written: float) -> str:
    seconds = max(0, int(time.time() - written))
    for length, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {name}"
    return f"{seconds} s"


def _total(kept: list[Kept], store: Store) -> str:
    outdated = sum(not each.current for each in kept)
    more = f", {outdated} of them outdated" if outdated else ""
    return f"{len(kept)} results{more} in '{store.path}'"


def _record(kept: Kept) -> dict[str, Any]:
    return {
        "number": kept.number,
        "kind": kept.kind,
        "label": kept.label,
        "device": kept.device,
        "written": kept.written,
        "current": kept.current,
    }
