"""The same command answers from the store; whatever is wrong with that, the answer is printed."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

from warploom.cli.remembered import Answer, outputs_of, question_of, remembering
from warploom.search.storage.row import COLUMNS, seal
from warploom.search.storage.store import Key, Store, users_store

SUMS = str(Path(__file__).parents[2] / "examples" / "sketches" / "sums.swflow")


class Search:
    """Stands for a command: how often it ran, what it prints, and how it ends."""

    def __init__(self, whole: bool = True, status: int = 0, file: Path | None = None) -> None:
        self.ran, self.whole, self.status, self.file = 0, whole, status, file

    def __call__(self, answer: Answer) -> None:
        self.ran += 1
        print("found, 1 fill")
        print("a remark", file=sys.stderr)
        if self.file is not None:
            self.file.write_text("kernel")
            answer.note(self.file, "kernel")
        answer.whole = self.whole
        raise SystemExit(self.status)


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`ask(search, *words)` runs it with the store of the test, as the executable does."""

    def asking(search: Search, *words: str, store: str = "") -> tuple[int, str, str]:
        place = store or str(tmp_path / "store.sqlite")
        with pytest.raises(SystemExit) as left:
            remembering("synth", [*words, "--store", place], search)
        return (int(left.value.code or 0), *capsys.readouterr())

    return asking


Ask = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("status", [0, 1])
def test_the_second_time_nothing_is_searched(ask: Ask, tmp_path: Path, status: int) -> None:
    out = tmp_path / "k.cu"
    search = Search(status=status, file=out)
    first = ask(search, SUMS, "-o", str(out))
    out.unlink()
    again = ask(search, SUMS, "-o", str(out))
    assert (search.ran, out.read_text()) == (1, "kernel")
    assert first == (status, "found, 1 fill\n", "a remark\n")
    assert again[:2] == first[:2]
    assert again[2].startswith("a remark\n(from the store '")


@pytest.mark.parametrize(
    "search", [Search(whole=False), Search(status=2), Search(status=3), Search(status=130)]
)
def test_what_is_not_whole_is_not_kept(ask: Ask, search: Search) -> None:
    for _ in range(2):
        assert ask(search, SUMS)[0] == search.status
    assert search.ran == 2


def test_another_sketch_option_or_source_is_another_question(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, file = Search(), tmp_path / "mine.swflow"
    for text in ("x: [4]", "x: [5]"):
        file.write_text(text)
        ask(search, str(file))
    ask(search, str(file), "--best")
    assert search.ran == 3
    monkeypatch.setattr("warploom.search.storage.store.sources_digest", lambda: "changed")
    ask(search, str(file))
    assert search.ran == 4
    monkeypatch.setenv("NO_COLOR", "1")
    ask(search, str(file))
    assert search.ran == 5


@pytest.mark.parametrize("word", ["sketches.py::planes", "-"])
def test_what_a_text_does_not_say_is_never_kept(ask: Ask, word: str) -> None:
    search = Search()
    for _ in range(2):
        ask(search, word)
    assert search.ran == 2


def test_what_comes_through_a_pipe_is_another_question_every_time(tmp_path: Path) -> None:
    """`synth <(cat FILE)` and `synth /dev/stdin`: the name is the same, what comes is not."""
    pipe = tmp_path / "63"
    os.mkfifo(pipe)
    assert question_of("synth", [str(pipe)]) is None
    assert question_of("explore", ["axpy", f"--machine={pipe}"]) is None
    pipe.unlink()
    pipe.write_text("x: [4]")
    assert question_of("synth", [str(pipe)]) is not None


def test_a_name_that_is_no_text_is_kept_like_others(ask: Ask, tmp_path: Path) -> None:
    search, file = Search(), tmp_path / "\udcff.swflow"
    file.write_text("x: [4]")
    assert [ask(search, str(file))[0] for _ in range(2)] == [0, 0]
    assert search.ran == 1


def test_where_it_goes_is_no_part_of_the_question() -> None:
    assert question_of("synth", [SUMS, "-o", "-"]) is not None
    assert question_of("synth", [SUMS, "--json=-"]) is not None
    assert question_of("synth", ["x" * 5000]) is None  # no name of a file, nor of anything else


def test_no_store_and_help_touch_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "store.sqlite"
    monkeypatch.setenv("WARPLOOM_STORE", str(place))
    search = Search()
    for words in ([SUMS, "--no-store"], [SUMS, "--no-store"], ["--help"]):
        with pytest.raises(SystemExit):
            remembering("synth", words, search)
    assert search.ran == 3
    assert not place.exists()
    monkeypatch.setenv("WARPLOOM_STORE", "")
    assert users_store() is None
    with pytest.raises(SystemExit):
        remembering("synth", [SUMS], search)
    assert search.ran == 4


def damaged(path: Path) -> None:
    store = Store(path)
    store.put(Key("synth", {}, ""), 1)
    path.write_bytes(path.read_bytes()[:1000] + b"\xff" * 9000)


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def text(path: Path) -> None:
    path.write_text("not a database at all")


@pytest.mark.parametrize("spoil", [damaged, foreign, text], ids=lambda each: each.__name__)
def test_a_store_that_is_none_is_a_warning(
    ask: Ask, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    place = tmp_path / "bad.sqlite"
    spoil(place)
    before, search = place.read_bytes(), Search()
    status, out, err = ask(search, SUMS, store=str(place))
    assert (status, out, search.ran) == (0, "found, 1 fill\n", 1)
    assert err.startswith(("warning: the store", "a remark\nwarning: the store"))
    assert "the answer is not kept" in err
    assert place.read_bytes() == before


def test_a_place_that_cannot_be_written_is_a_warning(ask: Ask) -> None:
    search = Search()
    status, out, err = ask(search, SUMS, store="/dev/null/store.sqlite")
    assert (status, out) == (0, "found, 1 fill\n")
    assert "warning: the store '/dev/null/store.sqlite' cannot be" in err


def test_a_store_that_is_only_to_be_read(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, connect = tmp_path / "store.sqlite", sqlite3.connect
    Store(place).put(Key("other", {}, ""), 1)
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **more: connect(f"file:{path}?mode=ro", uri=True, **more)
    )
    status, out, err = ask(Search(), SUMS)
    assert (status, out) == (0, "found, 1 fill\n")
    assert "readonly database; the answer is not kept" in err


def test_a_full_disk_is_a_warning(tmp_path: Path) -> None:
    """No file may grow beyond four kilobytes in that process: less than a store needs."""
    program = (
        "from tests.cli.test_remembered import Search\n"
        "from warploom.cli.remembered import remembering\n"
        f"remembering('synth', ['--store', {str(tmp_path / 'store.sqlite')!r}], Search())\n"
    )
    limit = (4096, 4096)
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "src:.", "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert (ran.returncode, ran.stdout) == (0, "found, 1 fill\n"), ran.stderr
    assert "the answer is not kept" in ran.stderr


def test_the_executable_answers_again_and_lists_what_it_keeps(tmp_path: Path, cli: Cli) -> None:
    place = tmp_path / "store.sqlite"
    words = [sys.executable, "-m", "warploom.cli", "synth", SUMS, "--emit", "c"]
    ran = [
        subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "WARPLOOM_STORE": str(place)},
        )
        for _ in range(2)
    ]
    assert ran[0].stdout == ran[1].stdout
    assert "void sums(" in ran[0].stdout
    assert ran[1].stderr.startswith(ran[0].stderr)
    assert ran[1].stderr.endswith("--no-store searches again)\n")

    listed = cli("store", "list", "--store", str(place))
    assert listed.status == 0
    number = listed.out.split()[0]
    assert "synth " in listed.out
    assert f"1 results in '{place}'" in listed.out
    assert "void sums(" in cli("store", "show", number, "--store", str(place)).out
    exported = cli("store", "export", "--store", str(place))
    assert '"kind": "synth"' in exported.out
    assert cli("store", "show", "zz", "--store", str(place)).status == 2
    assert "0 removed" in cli("store", "prune", "--store", str(place)).out
    assert "0 removed" in cli("store", "prune", "--days", "1", "--store", str(place)).out
    assert "1 removed" in cli("store", "prune", "--all", "--store", str(place)).out
    assert cli("store", "prune", "--all", "--days", "1", "--store", str(place)).status == 2
    text(place)
    refused = cli("store", "list", "--store", str(place))
    assert (refused.status, "is no store of ours" in refused.err) == (2, True)


# -- rows that are not what was kept ---------------------------------------------------------------


def test_the_store_is_no_part_of_the_question(ask: Ask, tmp_path: Path) -> None:
    """The same question in another file has the same key, so that files can be copied and moved."""
    asked: tuple[list[str], ...]
    asked = (["--store", "a"], ["--store=b"], [], ["--store", "c", "--processes", "2"])
    keys = {question_of("synth", [SUMS, *words, "--best"]).key.digest for words in asked}  # type: ignore[union-attr]
    assert len(keys) == 1
    assert question_of("synth", [SUMS]).key.digest not in keys  # type: ignore[union-attr]
    search = Search()
    ask(search, SUMS, store=str(tmp_path / "one.sqlite"))
    (tmp_path / "one.sqlite").rename(tmp_path / "two.sqlite")
    ask(search, SUMS, store=str(tmp_path / "two.sqlite"))
    assert search.ran == 1


def forge(place: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the only answer of a store, and gives it a digest that matches."""
    connection = sqlite3.connect(place)
    (row,) = connection.execute(f"SELECT {COLUMNS} FROM results").fetchall()
    value = change(json.loads(row[5]))
    changed = [*row[:5], value if isinstance(value, str) else json.dumps(value), row[6]]
    with connection:
        where = "UPDATE results SET value = ?, digest = ?"
        connection.execute(where, (changed[5], seal(changed)))
    connection.close()


MALFORMED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list": lambda _: [],
    "a number": lambda _: 17,
    "empty": lambda _: {},
    "no status": lambda kept: {name: kept[name] for name in kept if name != "status"},
    "more": lambda kept: {**kept, "more": 1},
    "status 3": lambda kept: {**kept, "status": 3},
    "status true": lambda kept: {**kept, "status": True},
    "status text": lambda kept: {**kept, "status": "0"},
    "status huge": lambda kept: {**kept, "status": 10**40},
    "no text": lambda kept: {**kept, "out": None},
    "lines": lambda kept: {**kept, "err": ["a"]},
    "files as a list": lambda kept: {**kept, "files": ["k.cu"]},
    "a file of bytes": lambda kept: {**kept, "files": {"-o": [1]}},
    "NaN": lambda kept: json.dumps({**kept, "status": float("nan")}),
    "deep": lambda _: "[" * 100_000,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_answer_is_a_warning_and_searched_again(
    ask: Ask, tmp_path: Path, name: str
) -> None:
    search, out = Search(file=tmp_path / "k.cu"), tmp_path / "k.cu"
    first = ask(search, SUMS, "-o", str(out))
    forge(tmp_path / "store.sqlite", MALFORMED[name])
    again = ask(search, SUMS, "-o", str(out))
    assert (search.ran, again[:2]) == (2, first[:2])
    assert again[2].startswith("warning: row ")
    assert again[2].count("\n") == 2  # one line, and the remark of the command
    assert ask(search, SUMS, "-o", str(out))[2].endswith("--no-store searches again)\n")
    assert search.ran == 2


@pytest.mark.parametrize("place", ["../evil", "/ABSOLUTE/evil", "--certificate", "-o evil", ""])
def test_a_row_cannot_say_which_file_is_written(ask: Ask, tmp_path: Path, place: str) -> None:
    evil, out = tmp_path / "evil", tmp_path / "sub" / "k.cu"
    out.parent.mkdir()
    search = Search(file=out)
    ask(search, SUMS, "-o", str(out))
    named = place.replace("/ABSOLUTE", str(tmp_path))
    forge(tmp_path / "store.sqlite", lambda kept: {**kept, "files": {named: "gotcha"}})
    before = sorted(tmp_path.rglob("*"))
    _, _, err = ask(search, SUMS, "-o", str(out))
    assert (search.ran, evil.exists(), out.read_text()) == (2, False, "kernel")
    assert "is an answer with other files than are asked for" in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("glued", ["-o{}", "-o {}", "-o x -o {}"])
def test_files_go_where_this_command_says(ask: Ask, tmp_path: Path, glued: str) -> None:
    out = tmp_path / "k.cu"
    search = Search(file=out)
    words = [SUMS, *glued.format(out).split()]
    for _ in range(2):
        ask(search, *words)
        assert out.read_text() == "kernel"
        out.unlink()
    assert search.ran == 1
    assert outputs_of(["--json=-", "-o", "--certificate", "--certificate=p"]) == {
        "-o": Path("--certificate"),
        "--certificate": Path("p"),
    }


def test_what_was_changed_while_it_was_read_is_not_kept(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "mine.swflow"
    file.write_text("x: [4]")

    class Edited(Search):
        def __call__(self, answer: Answer) -> None:
            file.write_text("x: [5]")
            super().__call__(answer)

    search = Edited()
    ask(search, str(file))
    file.write_text("x: [4]")
    ask(search, str(file))
    assert search.ran == 2
    ask(search, str(file))  # the same text before and after
    ask(search, str(file))
    assert search.ran == 3


def test_a_file_that_no_option_names_is_not_kept(ask: Ask, tmp_path: Path) -> None:
    search = Search(file=tmp_path / "elsewhere.cu")
    for _ in range(2):
        ask(search, SUMS)
    assert search.ran == 2


def test_damaged_rows_are_told_by_the_listing(tmp_path: Path, ask: Ask, cli: Cli) -> None:
    place = tmp_path / "store.sqlite"
    ask(Search(), SUMS)
    ask(Search(), SUMS, "--best")
    connection = sqlite3.connect(place)
    with connection:
        connection.execute("UPDATE results SET value = '{}' WHERE label LIKE '%--best%'")
    connection.close()
    for words in (["list"], ["export"]):
        ran = cli("store", *words, "--store", str(place))
        assert ran.status == 0
        assert ran.err.startswith("warning: row ")
        assert ran.err.count("\n") == 1
    assert "1 results in" in cli("store", "list", "--store", str(place)).out
    assert "1 removed" in cli("store", "prune", "--store", str(place)).out
    assert cli("store", "list", "--store", str(place)).err == ""
