"""`warploom store`: what is kept, listed, shown, written out, thrown away."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer

from warploom.cli.files import STDOUT
from warploom.cli.guard import Status, run
from warploom.cli.output import JSON, kept_free, write, write_records
from warploom.cli.remembered import warn
from warploom.errors import CheckError, ParseError
from warploom.search.storage.store import Kept, Store, users_store

HELP = """What is kept: whole answers of synth, explore, map, layout solve and layout
convert, pieces of searches that were stopped, and what --tune measured.

One SQLite file in the data folder of the user, or the one after --store. A result is found again by
its content (sketch, options, sizes), the device it was measured on and a digest of our sources:
after a change of Warploom it is outdated, and is computed again. Every row carries a digest over
all of it: one that does not match is damaged, a warning names it, and it is computed again. Checks,
tests and benchmarks never read the store.

\b
list     every result, the latest first: number, age, kind, what it is of
show     one of them, by its number: what it answered
export   all of them as JSON
prune    remove outdated and damaged ones; --days N: those older; --all: everything

\b
Examples:
  $ warploom store list
  $ warploom store export -o results.json
  $ warploom store prune --days 30

Exit status: 0, or 2 if there is no such result, or the file is no store of ours."""

PLACE: Any = typer.Option(None, "--store", metavar="FILE", help="Default: the user's own.")


def add(app: typer.Typer) -> None:
    own = typer.Typer(help=HELP, rich_markup_mode=None, no_args_is_help=True)
    own.command("list", help="Every result, the latest first.")(list_)
    own.command("show", help="One result, by the number that list gives it.")(show)
    own.command("export", help="All results as JSON.")(export)
    own.command("prune", help="Remove results that are outdated, or old, or all.")(prune)
    app.add_typer(own, name="store")


def list_(place: Path = PLACE, json_file: Path = JSON) -> None:
    def action() -> Status:
        with kept_free(json_file):
            store = _store(place)
            kept = store.all()
            for each in kept:
                typer.echo(_line(each))
            typer.echo(_total(kept, store))
        write_records(json_file, [_record(each) for each in kept])
        return Status.FOUND

    run(action)


def show(
    number: str = typer.Argument(metavar="NUMBER", show_default=False),
    place: Path = PLACE,
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        with kept_free(json_file):
            kept = _found(_store(place), number)
            typer.echo(_line(kept))
            value = kept.value
            said = value.get("out") or value.get("err") if isinstance(value, dict) else None
            typer.echo(said or json.dumps(value, indent=1), nl=not said)
        write_records(json_file, [_record(kept) | {"value": kept.value}])
        return Status.FOUND

    run(action)


def export(
    out: Path = typer.Option(STDOUT, "-o", metavar="FILE", help="Where to; - is standard output."),
    place: Path = PLACE,
) -> None:
    def action() -> Status:
        with kept_free(None, out):
            records = [_record(each) | {"value": each.value} for each in _store(place).all()]
        write(out, json.dumps(records, indent=1, ensure_ascii=False) + "\n")
        return Status.FOUND

    run(action)


def prune(
    days: float = typer.Option(None, min=0, help="Those that are older than so many days."),
    all_: bool = typer.Option(False, "--all", help="All of them."),
    place: Path = PLACE,
    json_file: Path = JSON,
) -> None:
    def action() -> Status:
        if all_ and days is not None:
            raise ParseError("--all and --days exclude each other")
        with kept_free(json_file):
            store = _store(place)
            before = None if days is None else time.time() - 86400 * days
            count = store.forget(outdated=not all_ and before is None, before=before)
            typer.echo(f"{count} removed from '{store.path}', {len(store.all())} left")
        write_records(json_file, [{"removed": count}])
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
