"""What `explore`, `map` and `layout` answered is given again, whole, and only where it is that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, app
from tests.cli.test_map import OWN as MAPS

from warploom.cli import remembered
from warploom.cli.remembered import Answer, kept_command, question_of, remembering
from warploom.machine.rates import rates_record
from warploom.machine.record import H200

Ask = Callable[..., Ran]
AGAIN = "--no-store searches again)\n"


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """`ask("map", "dot", …)` runs it as the executable does, with the store of the test."""

    def asking(*words: str) -> Ran:
        asked = [*words, "--store", str(tmp_path / "store.sqlite")]
        name = kept_command(asked)
        assert name is not None

        def command(answer: Answer) -> None:
            app(args=asked, prog_name="warploom", obj=answer)

        with pytest.raises(SystemExit) as left:
            remembering(name, asked[len(name.split()) :], command)
        return Ran(int(left.value.code or 0), *capsys.readouterr())

    return asking


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "CUDA_LIBRARIES", ())
    monkeypatch.setattr("warploom.pipeline.exploring.gpu_name", lambda: None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "explore axpy --size n=6 --evaluations 2 --emit c -o OUT --json JSON"),
        (0, "explore axpy --size n=6 --explain"),
        (0, "map dot --size n=8 --count --json JSON"),
        (0, "map dot --size n=8 --first --emit c -o OUT --json JSON"),
        (0, "map dot --size n=8 --sample 2 --emit c"),
        (0, "layout solve transpose:8x8:f32 --emit cuda -o OUT --certificate PROOF --json JSON"),
        (1, "layout solve transpose:32x32:f32 --class none --json -"),
        (0, "layout convert --from (32,2):(2,1) --to (32,2):(1,32) --emit cuda -o OUT --json JSON"),
    ],
)
def test_the_same_again(ask: Ask, tmp_path: Path, status: int, words: str) -> None:
    places = {name: tmp_path / name for name in ("OUT", "JSON", "PROOF")}
    asked = [str(places.get(word, word)) for word in words.split()]
    first = ask(*asked)
    files = {file: file.read_bytes() for file in places.values() if file.exists()}
    assert len(files) == sum(word in places for word in words.split())
    for file in files:
        file.unlink()
    again = ask(*asked)
    assert (first.status, AGAIN in first.err) == (status, False), first.err
    assert again[:2] == first[:2]
    assert again.err.startswith(first.err)
    assert again.err.endswith(AGAIN)
    assert {file: file.read_bytes() for file in files} == files
    assert AGAIN not in ask(*asked, "--no-store").err


@pytest.mark.parametrize(
    "words",
    [
        "layout solve ldmatrix:64x96:f16 --class xor --seconds 0",
        "map matvec --size m=8,n=8 --seconds 0",
        "explore axpy --size n=6 --seconds 0",
        "layout solve nothing:8x8:f32",
    ],
)
def test_what_was_cut_short_or_is_wrong_is_not_kept(ask: Ask, words: str) -> None:
    for _ in range(2):
        ran = ask(*words.split())
        assert ran.status in (2, 3)
        assert AGAIN not in ran.err


def test_a_changed_file_machine_or_option_is_another_question(ask: Ask, tmp_path: Path) -> None:
    machine, pattern = tmp_path / "mine.json", tmp_path / "mine.toml"
    words = ("explore", "axpy", "--size", "n=6", "--explain", f"--machine={machine}")
    for clock in (1.0, 2.0):
        machine.write_text(json.dumps(rates_record(H200.rates) | {"clock": clock}))
        assert AGAIN not in ask(*words).err
    assert AGAIN in ask(*words).err
    text = 'shape = [8, 8]\nelement = "f32"\n[[access]]\nname = "a"\nkind = "ld"\nbytes = 4\n'
    for index in ("lane", "lane * 2"):
        pattern.write_text(f'{text}steps = 1\nindex = "{index}"\n')
        ran = ask("layout", "solve", str(pattern))
        assert (ran.status, AGAIN in ran.err) == (0, False), ran.err
    assert AGAIN not in ask("layout", "solve", str(pattern), "--worst").err
    assert AGAIN in ask("layout", "solve", str(pattern)).err


OWN = """
from pathlib import Path
from warploom.array import build as al
from warploom.array.types import array
from warploom.kernel.dtype import f32
from warploom.loopnest.build import LoopNest

factor = float((Path(__file__).parent / "factor.txt").read_text())
print("the file runs")
scaled = al.program(
    "scaled", lambda x: al.map_(lambda v: v * factor, x), x=array(f32, al.sizes("n")[0])
)


def line(n):
    nest = LoopNest("line")
    i = nest.axis("n", n)
    x, y = nest.array("x", i), nest.array("y", i)
    y[i] = x[i] * factor
    return nest
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["map scaled --first", "explore line --evaluations 1"])
def test_a_python_file_is_known_by_what_it_makes(ask: Ask, tmp_path: Path, name: str) -> None:
    """It reads another one: its own text does not say what it makes."""
    (tmp_path / "own.py").write_text(OWN)
    command, what, *more = name.split()
    words = (command, f"{tmp_path / 'own.py'}::{what}", "--size", "n=6", *more, "--emit", "c")
    texts = []
    for factor in ("2.5", "3.5"):
        (tmp_path / "factor.txt").write_text(factor)
        first, again = ask(*words), ask(*words)
        assert (first.status, AGAIN in first.err) == (0, False), first.err
        assert again.err == first.err + again.err.splitlines()[-1] + "\n"
        assert again.out == first.out
        assert again.err.count("the file runs") + again.out.count("the file runs") == 1
        assert again.err.endswith(AGAIN)
        texts.append(first.out)
    assert ("2.5" in texts[0], "3.5" in texts[1]) == (True, True)
    (tmp_path / "own.py").write_text(OWN + "# said otherwise\n")
    assert ask(*words).err.endswith(AGAIN)


def test_impossible_is_an_answer_too(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "maps.py").write_text(MAPS)
    words = (f"{tmp_path / 'maps.py'}::twice_summed", "--size", "n=12", "--memory", "0")
    first, again = ask("map", *words), ask("map", *words)
    assert (first.status, again.status, again.out) == (1, 1, first.out)
    assert again.err.endswith(AGAIN)


def test_a_file_that_cannot_be_written_is_said_by_the_command(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "factor.txt").write_text("2")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "k.c"
    words = ("map", f"{tmp_path / 'own.py'}::scaled", "--size", "n=6", "--first", "--emit", "c")
    assert ask(*words, "-o", str(target)).status == 0
    target.unlink()
    (tmp_path / "out").rmdir()
    ran = ask(*words, "-o", str(target))
    assert (ran.status, "there is no folder" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "words", "is_kept"),
    [
        ("explore", "axpy --size n=6", False),
        ("explore", "axpy --size n=6 --model", True),
        ("explore", "axpy --size n=6 --engine exact", True),
        ("explore", "axpy --size n=6 --engine=exact", True),
        ("explore", "axpy --size n=6 --engine random", False),
        ("explore", "axpy --size n=6 --model --keep found.json", False),
        ("explore", "axpy --size n=6 --estimate --cluster tcp://127.0.0.1:1", True),
        ("map", "dot --size n=6 --cluster tcp://127.0.0.1:1", True),
        ("map", "dot --size n=6 --tune", False),
        ("layout convert", "--from a --to b --check", False),
        ("layout convert", "--from a --to b --tune", False),
        ("layout convert", "--from cute::Layout --to b", True),
    ],
)
def test_what_is_measured_or_checked_is_no_answer_to_keep(
    monkeypatch: pytest.MonkeyPatch, name: str, words: str, is_kept: bool
) -> None:
    """On a machine that may have a GPU; without one, `explore` goes by the bound."""
    monkeypatch.setattr(remembered, "_has_driver", lambda: True)
    found = question_of(name, words.split())
    assert (found is not None and not found.is_open) == is_kept
    monkeypatch.setattr(remembered, "_has_driver", lambda: False)
    assert (question_of("explore", ["axpy"]) is None) is False
    assert question_of("explore", ["axpy", "--cluster", "tcp://127.0.0.1:1"]) is None


def test_with_another_solver_it_is_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was open without one may be decided with it."""
    words = ["--pattern", "but-two:128", "--class", "any"]
    monkeypatch.setattr(remembered, "find_spec", lambda _: None)
    without = question_of("layout solve", words)
    monkeypatch.setattr(remembered, "find_spec", lambda name: name)
    found = question_of("layout solve", words)
    assert without is not None
    assert found is not None
    assert without.key.digest != found.key.digest


def test_other_commands_are_not_kept() -> None:
    for words in (["layout", "show"], ["layout"], ["verify", "x"], ["kernel", "a"], ["check"]):
        assert kept_command(words) is None


def test_two_outputs_that_became_one_file_are_refused(ask: Ask, tmp_path: Path) -> None:
    text, records = tmp_path / "text", tmp_path / "records"
    words = "layout", "solve", "transpose:8x8:f32", "--emit", "c"
    asked = *words, "-o", str(text), "--json", str(records)
    assert ask(*asked).status == 0
    before = text.read_bytes()
    records.unlink()
    records.symlink_to(text)
    again = ask(*asked)
    assert again.status == 2
    assert "two outputs" in again.err
    assert text.read_bytes() == before


def test_an_output_does_not_replace_the_store(ask: Ask, tmp_path: Path) -> None:
    words = "layout", "solve", "transpose:8x8:f32", "--emit", "c"
    assert ask(*words).status == 0
    store = tmp_path / "store.sqlite"
    before = store.read_bytes()
    ran = ask(*words, "-o", str(store))
    assert (ran.status, "would write over the store" in ran.err) == (2, True)
    assert store.read_bytes() == before
