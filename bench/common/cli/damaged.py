"""Stores that were damaged, and questions asked of them: no answer may differ from a fresh search.

A store is filled by asking every question once; those answers are the fresh ones. Then one byte of
the file is changed, or one row by SQL, and every question is asked again.
"""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from bench.harness import attempted

from warploom.cli.app import application
from warploom.cli.remembered import Answer, kept_command, remembering
from warploom.cli.start import COMMANDS as EVERY
from warploom.search.budget import Budget
from warploom.search.outcome import Found
from warploom.search.storage.row import seal
from warploom.search.storage.store import Forgiving, Key, Store
from warploom.search.storage.tune import Task, tune
from warploom.sketch.explain import reason
from warploom.sketch.front import load_text
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting

SUMS = """x: [12] = range(0, 12)
regs: [4,3] = load_rep(x)
s: [4,3] = ?row_xforms(regs)
t: [4,3] = ?col_xforms(s)
sum: [4] = + identity{fold_len=3}(t)
goal: [4] trove_sum{n=3}
"""
NONE = """x: [6] = range(0, 6)
y: [2,3] = load_rep(x)
z: [2,3] = ?row_rots(y)
goal: [2,3] = [[0, 1, 2], [3, 4, 5]]
"""
app = application(*EVERY)
REASONS = 600.0  # seconds for why there is no fill
IMPOSSIBLE = "synth none.swflow --json JSON"
COMMANDS = (
    "synth sums.swflow --emit cuda -o OUT --certificate PROOF --json JSON",
    "synth sums.swflow --all --stats",
    IMPOSSIBLE,
    "layout solve transpose:8x8:f32 --class xor --emit cuda -o OUT --certificate PROOF",
    "layout convert --from (32,2):(2,1) --to (32,2):(1,32) --emit cuda -o OUT --json JSON",
    "map dot --size n=8 --first --emit c -o OUT --json JSON",
    "explore axpy --size n=6 --model --evaluations 2 --emit c -o OUT",
)
# What differs between two runs of the same search: times and memory.
_TIMES = re.compile(r'CPU s: .*|\d+\.\d+ s\b|"(\w*seconds|peak_mb|phases)": (\{[^}]*\}|[^,\n]*)')
AGAIN = "--no-store searches again)\n"


class Said(NamedTuple):
    """An answer: what was printed and written, and how the command ended."""

    status: int
    out: str
    files: dict[str, str]
    err: str = ""

    @property
    def given(self) -> bool:
        """Whether it came from the store."""
        return self.err.endswith(AGAIN)

    def timeless(self) -> tuple[int, str, dict[str, str]]:
        files = {name: _TIMES.sub("", text) for name, text in self.files.items()}
        if "PROOF" in files:
            files["PROOF"] = json.dumps(_undated(json.loads(files["PROOF"])))
        return self.status, _TIMES.sub("", self.out), files


def _undated(value: Any) -> Any:
    """A certificate without its date, and without the digest over it."""
    if isinstance(value, dict):
        return {k: _undated(each) for k, each in value.items() if k not in ("digest", "made")}
    if isinstance(value, list):
        return [_undated(each) for each in value]
    return value


class NotAskedError(Exception):
    """The store did not answer, and nobody wanted a search."""


@dataclass
class Place:
    """A folder with the inputs, to which all commands write."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "sums.swflow").write_text(SUMS)
        (self.folder / "none.swflow").write_text(NONE)

    def ask(self, command: str, store: Path, search: bool = True) -> Said:
        """As the executable does it."""
        named = {name: self.folder / name for name in ("OUT", "PROOF", "JSON")}
        named |= {name: self.folder / name for name in ("sums.swflow", "none.swflow")}
        words = [str(named.get(word, word)) for word in command.split()]
        words += ["--store", str(store)]
        name = kept_command(words)
        assert name is not None

        def run(answer: Answer) -> None:
            if not search:
                raise NotAskedError
            app(words, obj=answer)

        out, err = io.StringIO(), io.StringIO()
        status: Any = None
        # Reasons have a little time of the wall: on a busy machine two searches may differ in them.
        patient = patch.object(reason, "SECONDS", REASONS)
        with redirect_stdout(out), redirect_stderr(err), patient:
            try:
                remembering(name, words[len(name.split()) :], run)
            except SystemExit as left:
                status = left.code
        files = {}
        for file in (named["OUT"], named["PROOF"], named["JSON"]):
            if file.exists():
                files[file.name] = file.read_text()
                file.unlink()
        return Said(int(status or 0), out.getvalue(), files, err.getvalue())

    def others(self, known: set[str]) -> set[str]:
        """Files that nobody asked for."""
        return {str(each) for each in self.folder.rglob("*")} - known


class Here(Executor):
    """Everything is done at once, in this thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **more))
        return done


def tuned(store: Store) -> Any:
    """Settings that are measured: made-up times, which are the same in every run."""
    task: Task[int, int] = Task(
        "made up", 0, "none", [30, 20, 10, 40], str, int, lambda each, n: [each * 1e-6] * n
    )
    found = tune(task, store=store, pool=Here())
    assert isinstance(found, Found)
    trials = [(each.text, each.seconds, each.error) for each in found.answer.trials]
    return found.answer.best.text, trials


def fills(store: Store | None, stop_after: int | None = None) -> Any:
    """A search in pieces, which is stopped after some of them."""
    budget, done = Budget(), 0

    def count(_piece: object) -> None:
        nonlocal done
        done += 1
        budget._interrupt.on = done == stop_after

    parting = Parting(store, patience=0.0, on_piece=count)
    result = synthesize(load_text(SUMS), budget=budget, parting=parting)
    return result.verdict, result.complete, result.fills.count, result.fills.choices.tolist()


@dataclass
class Filled:
    """A store with answers, samples and pieces, and what is right for each question."""

    place: Place
    path: Path
    fresh: dict[str, Said] = field(default_factory=dict)
    tuned: Any = None
    fills: Any = None

    @classmethod
    def of(cls, folder: Path) -> Filled:
        made = cls(Place(folder), folder / "filled.sqlite")
        store = Store(made.path)
        for number in range(6):  # leaves free pages behind
            store.put(Key("old", number, "", "x" * 300), "y" * 900)
        for command in COMMANDS:
            made.fresh[command] = made.place.ask(command, made.path)
        made.tuned, made.fills = tuned(store), fills(None)
        fills(store, stop_after=6)
        store.drop([Key("old", number, "") for number in range(6)])
        return made

    def asked(self, damage: Callable[[Path], object]) -> Tally:
        """Every question of a copy that was damaged. Of the answers that the store did not give one
        is searched for, in turn."""
        path = self.place.folder / "damaged.sqlite"
        for each in self.place.folder.glob("damaged.sqlite*"):
            each.unlink()
        shutil.copy(self.path, path)
        damage(path)
        found = Tally()
        known = {str(each) for each in self.place.folder.rglob("*")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for command in COMMANDS:
                found.note(command, lambda c=command: self._answered(c, path, found))  # type: ignore[misc]
            told: list[Any] = []
            found.note("tune", lambda: tuned(Forgiving(path, told.append)) == self.tuned)
            found.note("pieces", lambda: fills(Forgiving(path, told.append)) == self.fills)
        found.told += len(told)
        others = {each for each in self.place.others(known) if "damaged.sqlite" not in each}
        found.wrong += [f"wrote {each}" for each in others]
        return found

    def _answered(self, command: str, path: Path, tally: Tally) -> bool:
        try:
            said = self.place.ask(command, path, search=not tally.searched)
        except NotAskedError:
            tally.absent += 1
            return True
        fresh = self.fresh[command]
        tally.told += said.err.count("warning: ")
        if said.given:
            tally.given += 1
            return said[:3] == fresh[:3]
        tally.searched += 1
        return said.timeless() == fresh.timeless()


@dataclass
class Tally:
    """What came of one store: answers that it gave, that were searched for again, that it lacks."""

    given: int = 0
    searched: int = 0
    absent: int = 0
    told: int = 0  # warnings
    wrong: list[str] = field(default_factory=list)

    def note(self, what: str, is_right: Callable[[], bool]) -> None:
        right, failed = attempted(is_right)  # whatever a user would see as a traceback
        if not right:
            self.wrong.append(f"{what}: {failed or 'another answer'}")


# -- one byte --------------------------------------------------------------------------------------


def change_byte(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    before = data[at]
    data[at] ^= 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(1, 256)
    path.write_bytes(data)
    return f"byte {at}: {before} to {data[at]}"


# -- one row ---------------------------------------------------------------------------------------

_KEY = ("kind", "content", "device", "sources")
_ALL = (*_KEY, "label", "value", "written", "digest")


def alter_row(path: Path, chance: random.Random) -> str:
    """Another content of a row, its digest as it was."""
    rows = _rows(path)
    row, other = dict(chance.choice(rows)), chance.choice(rows)
    how = chance.choice(
        ("value", "value", "value", "cut", "blob", "number", "copy", "swap", "column")
    )
    changed = dict(row)
    match how:
        case "value":
            changed["value"] = _edited(row["value"], chance)
        case "cut":
            changed["value"] = row["value"][: chance.randrange(len(row["value"]))]
        case "blob":
            changed[chance.choice(_ALL)] = row["value"].encode()
        case "number":
            changed[chance.choice(_ALL)] = chance.choice((0, -1.5, 2**62))
        case "copy":  # of another row, under this key
            changed = {**other, **{name: row[name] for name in _KEY}}
        case "swap":
            changed["value"], changed["digest"] = other["value"], other["digest"]
        case _:
            column = chance.choice((*_KEY, "label", "digest"))
            changed[column] = _edited(str(row[column]) or "H200", chance)
    _replace(path, row, changed)
    return f"{how} of {row['kind']}"


def _edited(text: str, chance: random.Random) -> str:
    """One character of a text is another; a digit is another digit, so that it may be read."""
    digits = [at for at, each in enumerate(text) if each.isdigit()]
    at = chance.choice(digits) if digits and chance.random() < 0.7 else chance.randrange(len(text))
    new = chance.choice("0123456789" if text[at].isdigit() else 'abcxyz{}[]",: \x00é')
    return text[:at] + (new if new != text[at] else "7") + text[at + 1 :]


def malform_row(path: Path, chance: random.Random) -> str:
    """A value of another shape, with a digest that matches."""
    row = dict(chance.choice(_rows(path)))
    value = chance.choice(list(_malformed(json.loads(row["value"]), chance)))
    changed = {**row, "value": value if isinstance(value, str) else json.dumps(value)}
    changed["digest"] = seal([changed[name] for name in _ALL[:-1]])
    _replace(path, row, changed)
    return f"{row['kind']}: {changed['value'][:60]}"


def _malformed(value: Any, chance: random.Random) -> Iterator[Any]:
    """Values; texts are JSON as it stands."""
    yield from ([], {}, 17, True, [value], {"value": value}, "[" * 100_000, "NaN", "9" * 5000, "{")
    if not isinstance(value, dict):
        return
    name = chance.choice(list(value))
    yield {each: value[each] for each in value if each != name}
    yield {**value, "more": 1}
    wrongs: tuple[Any, ...]
    wrongs = (None, -1, 7.5, "x", True, [[]], {"a": [1]}, 10**30, [1, [2]], [[10**30]])
    for wrong in wrongs:
        if wrong != value[name] and not _may_be(name, wrong):
            yield {**value, name: wrong}
    yield json.dumps({**value, name: 0}).replace(f'"{name}": 0', f'"{name}": NaN')
    if "files" in value:
        for file in ("../evil", "/dev/null/evil", "--store", "evil", ""):
            yield {**value, "files": {file: "gotcha"}}


def _may_be(name: str, value: Any) -> bool:
    """A value that a reader cannot know to be wrong."""
    return (name, value) in (
        ("out", "x"), ("err", "x"), ("cheap", None), ("seconds", 7.5), ("seconds", 10**30),
        ("error", "x"), ("status", 1),
    )  # fmt: skip


def _rows(path: Path) -> Sequence[dict[str, Any]]:
    connection = sqlite3.connect(path)
    found = connection.execute(f"SELECT {', '.join(_ALL)} FROM results").fetchall()
    connection.close()
    return [dict(zip(_ALL, row, strict=True)) for row in found]


def _replace(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    connection = sqlite3.connect(path)
    with connection:
        where = " AND ".join(f"{name}=?" for name in _KEY)
        connection.execute(f"DELETE FROM results WHERE {where}", [old[name] for name in _KEY])
        marks = ", ".join("?" for _ in _ALL)
        connection.execute(
            f"INSERT OR REPLACE INTO results ({', '.join(_ALL)}) VALUES ({marks})",
            [new[name] for name in _ALL],
        )
    connection.close()


WAYS: dict[str, Callable[[Path, random.Random], str]] = {
    "byte": change_byte,
    "row": alter_row,
    "malformed": malform_row,
}


def run_one(filled: Filled, way: str, seed: int) -> tuple[str, Tally]:
    """What was done to the store, and what came of it."""
    done = ""

    def damage(path: Path) -> None:
        nonlocal done
        done = WAYS[way](path, random.Random(f"{way} {seed}"))

    tally = filled.asked(damage)
    return done, tally
