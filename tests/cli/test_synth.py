from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from tests.cli.conftest import Cli

from warploom.bench.published import published_sketch
from warploom.catalogue import names
from warploom.catalogue.texts import gaussian_hvx
from warploom.cli import synth as command
from warploom.cli import why
from warploom.index.evaluate import evaluate
from warploom.index.parse import parse
from warploom.search.budget import Budget, BudgetSpentError, resident_megabytes
from warploom.search.outcome import Reason
from warploom.sketch.explain import reason, suggest
from warploom.sketch.front import load_text
from warploom.sketch.holes import choice_from_json
from warploom.sketch.synth import solve
from warploom.sketch.term.ir import Apply
from warploom.sketch.term.verify import verify

Write = Callable[..., str]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons and suggestions have seconds of the clock: enough of them, whoever else works."""
    monkeypatch.setattr(reason, "SECONDS", 600.0)
    monkeypatch.setattr(suggest, "SECONDS", 600.0)
    monkeypatch.setattr(suggest, "_EACH", 60.0)


SUMS = """x: [12] = range(0, 12)
regs: [4,3] = load_rep(x)
s: [4,3] = ?row_xforms(regs)
t: [4,3] = ?col_xforms(s)
sum: [4] = + identity{fold_len=3}(t)
goal: [4] trove_sum{n=3}
"""
IMPOSSIBLE = """x: [4] = range(0, 4)
y: [4] = ?rots{main=0,second=0,out=0}(x)
goal: [4] = [0, 0, 1, 2]
"""
CONTRACT = {
    "outcome": str,
    "complete": bool,
    "solutions": int,
    "fills": list,
    "choices": list,
    "seconds": float,
    "cpu_seconds": float,
    "states": int,
    "peak_mb": float,
    "oracle": int,
    "factor": float,
    "pruned": dict,
    "phases": dict,
    "verdict": str,
    "sizes": list,
    "engine": str,
}

BAD = {
    "unknown hole": "x: [4] = range(0, 4)\ny: [4] = ?no_such_hole(x)\ngoal: [4] id\n",
    "wrong shape": "x: [4] = range(0, 4)\ny: [5] = identity(x)\ngoal: [5] id\n",
    "unbound name": "x: [4] = range(0, 4)\ny: [4] = identity(z)\ngoal: [4] id\n",
    "definitions of different shapes": "define f([4]) -> [4] = [0, 1, 2, 3]\n"
    "define f([2]) -> [2] = [0, 1]\nx: [3] = range(0, 3)\ny: [3] = f(x)\ngoal: [3] id\n",
    "goal of the wrong shape": "x: [4] = range(0, 4)\ny: [4] = identity(x)\ngoal: [2,2] id\n",
    "huge array": "x: [1000000000] = range(0, 1000000000)\ngoal: [1000000000] id\n",
    "huge shape": "x: [100000,10000] = range(0, 1000000000)\ngoal: [4] id\n",
    "empty": "",
    "only a comment": "# nothing here\n",
    "deep arrays": "x: [4] = " + "[" * 100_000 + "\n",
    "deep blocks": "x: [1] = {\n" * 50_000,
    "deep folds": "x: [1] = " + "fold " * 100_000 + "[1]\ngoal: [1] id\n",
    "no goal": "x: [4] = range(0, 4)\n",
}

# Impossible, and a reason or a suggestion takes far longer than the search.
NEVER_TRANSPOSED = """x: [992] = range(0, 992)
s0: [32,31] = load_rep(x)
s1: [32,31] = ?row_rots(s0)
s2: [32,31] = ?col_rots(s1)
s3: [32,31] = ?row_rots(s2)
goal: [32,31] trove
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str | bytes, name: str = "s.swflow") -> str:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return to_file


def test_a_found_fill_is_shown_with_its_verdict(cli: Cli, write: Write) -> None:
    ran = cli("synth", write(SUMS), "--stats")
    assert ran.status == 0
    assert "found" in ran.out
    assert "1 fill (all there are), proved on symbols and on random numbers" in ran.out
    assert "t  xform[cf=-1,cr=1,dr=3]  s.flat[(x1 - x0) % 4 * 3 + x1]" in ran.out
    assert "168 possible fills" in ran.out
    assert ran.err == ""


def test_impossible_is_status_1_and_a_spent_budget_3(cli: Cli, write: Write) -> None:
    ran = cli("synth", write(IMPOSSIBLE))
    assert (ran.status, "no fill exists" in ran.out) == (1, True)
    ran = cli("synth", "--seconds", "0", "transposition")
    assert (ran.status, "time budget spent" in ran.out) == (3, True)
    # Of several inputs the worst counts: bad, undecided, impossible, found.
    assert cli("synth", write(SUMS), write(IMPOSSIBLE, "b")).status == 1
    assert cli("synth", "--seconds", "0", write(IMPOSSIBLE), "transposition").status == 3
    assert cli("synth", write(IMPOSSIBLE), write("x", "bad")).status == 2


@pytest.mark.usefixtures("patient")
def test_impossible_says_why(cli: Cli, write: Write, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    idle = "u: [4] = ?rots{main=0,second=0,out=0}(x)\n"
    text = IMPOSSIBLE.replace("y: [4]", idle + "y: [4]")
    ran = cli("synth", write(text), "--suggest", "--json", str(file))
    assert ran.status == 1
    assert "  ruled out: all 25 fills of 'u' (rots, 5 choices on [4])" in ran.out
    assert "  no single fill gets goal cell (0) and goal cell (3) both right" in ran.out
    assert "  blocked by 'y' (" in ran.out
    assert "suggestion: " in ran.out
    assert "s.swflow:2:1: warning: the goal does not depend on hole 'u'" in ran.err
    (record,) = json.loads(file.read_text())
    assert [cell["cell"] for cell in record["why"]["cells"]] == [[0], [3]]
    assert [hole["name"] for hole in record["why"]["blocked_by"]["holes"]] == ["y"]
    assert record["why"]["blocked_by"]["kind"] == "one"
    assert record["warnings"][0]["place"].endswith("s.swflow:2:1")
    assert isinstance(record["suggestions"], list)


def test_a_symbol_that_no_input_holds_is_an_error(cli: Cli, write: Write) -> None:
    ran = cli("synth", write(IMPOSSIBLE.replace("0, 1, 2]", "0, 1, 7]")))
    assert ran.status == 2
    assert "s.swflow:3:7: goal cell (3) asks for symbol 7, which no input holds" in ran.err


def test_the_json_contract(cli: Cli, write: Write, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    ran = cli("synth", write(SUMS), write(IMPOSSIBLE, "b"), "trove-8x3", "--json", str(file))
    assert ran.status == 1
    records = json.loads(file.read_text())
    assert [r["outcome"] for r in records] == ["found", "impossible", "found"]
    assert [r["solutions"] for r in records] == [1, 0, 2]
    assert all(r["complete"] for r in records)
    for record in records:
        for key, kind in CONTRACT.items():
            assert isinstance(record[key], kind), key
    assert records[0]["fills"] == [{"s": "xform[cf=0,cr=-1,dr=4]", "t": "xform[cf=-1,cr=1,dr=3]"}]
    assert records[0]["verdict"] == "proved"
    assert 0 < records[0]["cpu_seconds"] < 5
    assert records[0]["phases"]["sets"] > 0  # gather sets are part of the time


def test_the_json_holds_the_choices_themselves(cli: Cli, write: Write, tmp_path: Path) -> None:
    """Family, parameters, text and index expressions: enough to build the fill again and run it."""
    file = tmp_path / "out.json"
    cli("synth", write(SUMS), "trove-8x3", "gaussian", "--json", str(file))
    for record, program in zip(
        json.loads(file.read_text()),
        [load_text(SUMS), load_text(published_sketch("trove-8x3")), load_text(gaussian_hvx())],
        strict=True,
    ):
        assert len(record["choices"]) == len(record["fills"]) > 0
        steps = {step.name: n for n, step in enumerate(program.steps)}
        for texts, choices in zip(record["fills"], record["choices"], strict=True):
            assert {hole: choice["text"] for hole, choice in choices.items()} == texts
            fill = {}
            for hole, choice in choices.items():
                step = program.steps[steps[hole]]
                assert isinstance(step, Apply)
                fill[steps[hole]] = choice_from_json(step.gathers, choice)
                axes = np.indices(step.gathers.out_shape).reshape(len(step.gathers.out_shape), -1)
                env = {f"x{axis}": values for axis, values in enumerate(axes)}
                assert choice["argument"] == "0"
                offset = np.broadcast_to(evaluate(parse(choice["offset"]), env), axes.shape[1])
                assert (offset == step.gathers.table(fill[steps[hole]])).all()
            assert verify(program, program.goals[0], fill)


def test_the_json_of_other_sizes_holds_the_choices_too(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    ran = cli("synth", "gaussian", "--transfer", "lanes=16", "--json", str(file))
    assert ran.status == 0
    small, large = json.loads(file.read_text())[0]["sizes"]
    for each in (small, large):
        assert each["choices"][0].keys() == each["fills"][0].keys()
        assert each["choices"][0]["o1"]["family"] == "hvx"


def test_standard_input_with_and_without_a_dash(cli: Cli) -> None:
    for args in ([], ["-"]):
        ran = cli("synth", *args, stdin=SUMS.encode())
        assert (ran.status, ran.out.startswith("<stdin>: found")) == (0, True)
    ran = cli("synth", stdin=b"x: [4] = \xff")
    assert (ran.status, ran.err.splitlines()[0]) == (2, "<stdin>:1:10: byte 0xFF is not UTF-8")


def test_engines_and_modes(cli: Cli) -> None:
    for engine in ("default", "pairs", "smt"):
        assert "2 fills (all there are)" in cli("synth", "trove-8x3", "--engine", engine).out
    assert "1 fill (asked for one)" in cli("synth", "trove-8x3", "--first").out
    best = cli("synth", "trove-8x3", "--best").out
    assert "s1  xform[cf=-1,cr=1,dr=8]" in best  # the other fill has two rotations more
    assert cli("synth", "trove-8x3", "--best", "--first").status == 2


def test_goals_are_separate_records(cli: Cli, write: Write, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    text = write(SUMS + "goal: [4] = fold [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 10]]\n")
    assert cli("synth", text, "--json", str(file)).status == 1
    assert [(r["goal"], r["outcome"]) for r in json.loads(file.read_text())] == [
        (1, "found"),
        (2, "impossible"),
    ]
    assert cli("synth", text, "--goal", "1").status == 0
    assert cli("synth", text, "--goal", "3").status == 2


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad_text_is_one_located_error(cli: Cli, write: Write, text: str) -> None:
    started = time.process_time()
    ran = cli("synth", write(text), stdin=b"")
    assert time.process_time() - started < 20
    assert ran.status == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err
    places = [line for line in ran.err.splitlines() if re.match(r"\S*s\.swflow:\d+:\d+: \S", line)]
    assert len(places) == 1
    assert len(ran.err) < 2000


def test_binary_junk_is_one_located_error(cli: Cli, write: Write) -> None:
    for junk in (bytes(range(256)) * 400, b"\x7fELF\x02\x01\x01" + b"\0" * 5000, b"\0" * 100_000):
        ran = cli("synth", write(junk, "junk"))
        assert ran.status == 2
        assert re.match(r"\S*junk:\d+:\d+: ", ran.err)
        assert len(ran.err.splitlines()) <= 4


def test_one_bad_input_does_not_stop_the_others(cli: Cli, write: Write) -> None:
    ran = cli("synth", "nowhere.swflow", write(BAD["unbound name"], "bad"), write(SUMS))
    assert ran.status == 2
    assert "no file and no known sketch is called 'nowhere.swflow'" in ran.err
    assert "unknown name 'z'" in ran.err
    assert "found" in ran.out


def test_names_are_suggested(cli: Cli) -> None:
    assert "did you mean transposition?" in cli("synth", "transpositon").err
    assert "swinv_like/l3/trove-crc-5: found" in cli("synth", "swinv_like/l3/trove-crc-5").out


PYTHON = """
from warploom import Sketch

def stencil(lanes=4, taps=3):
    s = Sketch("stencil")
    x = s.input("x", lanes + taps - 1)
    loaded = s.apply("load_trunc", x, shape=(lanes, 2))
    sent = s.hole("reg_select", loaded, shape=(lanes, taps))
    received = s.hole("col_xforms", sent)
    s.sum("identity", received)
    s.goal(lambda x: [sum(x[i + j] for j in range(taps)) for i in range(lanes)])
    return s

ready = stencil()
program = ready.program()
number = 3

def wrong():
    return stencil(lanes=0)

def broken():
    return 1 // 0

def leaves():
    raise SystemExit(7)
"""


def test_python_files(cli: Cli, write: Write) -> None:
    file = write(PYTHON, "mine.py")
    for name in ("stencil", "ready", "program"):
        assert cli("synth", f"{file}::{name}").status == 0
    ran = cli("synth", f"{file}::stencil", "--size", "lanes=8", "--transfer", "lanes=32")
    assert ran.status == 0
    assert "carried over to lanes=32: proved" in ran.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("number", "is a int"),
        ("stencl", "did you mean stencil?"),
        ("broken", "ZeroDivisionError"),
        ("leaves", "SystemExit: 7"),
        ("wrong", "at least 1"),
    ],
)
def test_python_files_that_fail(cli: Cli, write: Write, name: str, message: str) -> None:
    ran = cli("synth", f"{write(PYTHON, 'mine.py')}::{name}")
    assert ran.status == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    if name in ("broken", "leaves", "wrong"):
        assert re.match(r"\S*mine\.py:\d+:\d+: ", ran.err)


def test_python_files_that_cannot_be_read(cli: Cli, write: Write) -> None:
    assert cli("synth", "nowhere.py::x").status == 2
    ran = cli("synth", f"{write('def f(:', 'bad.py')}::f")
    assert (ran.status, bool(re.match(r"\S*bad\.py:1:\d+: ", ran.err))) == (2, True)


def test_sizes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    ran = cli("synth", "gaussian", "--transfer", "lanes=16", "--json", str(file))
    assert ran.status == 0
    (record,) = json.loads(file.read_text())
    assert [(s["size"], s["verdict"]) for s in record["sizes"]] == [
        ({}, "proved"),
        ({"lanes": 16}, "proved"),
    ]
    for bad in ("lanes", "lanes=x", "rows=4", "lanes=99999"):
        assert cli("synth", "gaussian", "--size", bad).status == 2
    assert "has no sizes" in cli("synth", "-", "--size", "n=3", stdin=SUMS.encode()).err


def test_unexpected_exceptions_are_one_message(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("surprise")

    monkeypatch.setattr(command, "synthesize", broken)
    ran = cli("synth", "trove-8x3")
    assert ran.status == 70
    assert "internal error: ValueError: surprise (test_synth.py:" in ran.err
    assert "Traceback" not in ran.err


def test_ctrl_c_keeps_what_was_found(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pressed(_: Budget) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Budget, "check", pressed)
    file = tmp_path / "out.json"
    ran = cli("synth", "trove-8x3", "transposition", "--json", str(file))
    assert ran.status == 130
    records = json.loads(file.read_text())
    assert [r["stopped"] for r in records] == [Reason.INTERRUPTED.value]


@pytest.mark.slow
def test_a_real_interrupt_ends_the_process_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warploom.cli", "synth", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        time.sleep(3)  # it waits for its standard input by now
        os.kill(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"Traceback" not in err


def test_an_unwritable_json_file_is_an_error(cli: Cli, tmp_path: Path) -> None:
    ran = cli("synth", "trove-8x3", "--json", str(tmp_path / "no" / "out.json"))
    assert (ran.status, "cannot write" in ran.err) == (2, True)


def test_help_teaches_with_an_example_that_runs(cli: Cli, write: Write) -> None:
    text = cli("synth", "--help").out
    example = [line[4:] for line in text.splitlines() if re.match(r"    (\w+: \[|goal)", line)]
    assert cli("synth", write("\n".join(example))).status == 0
    assert cli("--version").out.startswith("warploom ")
    assert cli("bogus").status == 2


# -- operators and laws ----------------------------------------------------------------------------

NESTED = """x: [2,2] = range(0, 4)
s: [2] = + identity{fold_len=2}(x)
y: [1] = + reshape{fold_len=2}(s)
goal: [1] = + [[0, 1, 2, 3]]
"""


def test_another_operator_is_refused_with_both_places(cli: Cli, write: Write) -> None:
    path = write(SUMS.replace("= +", "= *"), "product.swflow")
    ran = cli("synth", str(path))
    assert ran.status == 2
    assert f"{path}:5:1: 'sum' multiplies (*), but the goal ({path}:6:7) adds (+)" in ran.err
    ran = cli("synth", str(path), "--published")
    assert (ran.status, "proved" in ran.out) == (0, True)
    assert "not covered: what 'fold' computes" in ran.out


def test_laws_are_chosen_and_named(cli: Cli, write: Write, tmp_path: Path) -> None:
    path, record = write(NESTED, "nested.swflow"), tmp_path / "out.json"
    assert cli("synth", str(path)).status == 1
    ran = cli("synth", str(path), "--laws", "flatten", "--json", str(record))
    assert ran.status == 0
    assert "  reassociated: + (in floating point the result may round differently)\n" in ran.out
    (found,) = json.loads(record.read_text())
    assert found["laws"] == ["reassociated: + (in floating point the result may round differently)"]
    assert found["not_covered"] == ["rounding and overflow"]
    assert found["covers"] == ["symbols", "numbers, by the goal's terms"]
    assert cli("synth", str(path), "--laws", "none").status == 1
    assert cli("synth", str(path), "--laws", "some").status == 2


def test_a_refuted_fill_is_no_success(cli: Cli, write: Write) -> None:
    text = """
from warploom import Sketch

def two_faced(x):
    on_symbols = type(x[0]).__name__ == "Sym"
    return [x[0] + x[1]] if on_symbols else [x[0] - x[1]]

def sketch():
    s = Sketch("sums")
    s.sum("reshape", s.input("x", 2), shape=(1, 2))
    s.goal(two_faced)
    return s
"""
    ran = cli("synth", f"{write(text, 'faces.py')}::sketch")
    assert ran.status == 1
    assert "refuted: cell (0) holds" in ran.out


def test_on_a_terminal_it_lists_the_names(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(name in cli("synth", "--help").out for name in ("gaussian", "aos-to-soa"))
    monkeypatch.setattr(command, "_on_terminal", lambda: True)
    ran = cli("synth")
    assert ran.status == 0
    assert all(name in ran.out for name in names())


def test_a_transfer_and_the_reason_share_the_budget_of_their_sketch(cli: Cli, write: Write) -> None:
    # Each of these took several times its seconds, or gigabytes, with a budget of its own. The
    # seconds are many times what the search needs, as the machine may be busy.
    memory = resident_megabytes()
    limits = ("--seconds", "16", "--memory", str(memory + 150))
    ran = cli("synth", "gaussian", *limits, "--transfer", "lanes=1024", "--transfer", "lanes=512")
    assert ran.status == 0
    assert ran.out.count("not carried over to lanes=") == 2
    assert "budget spent" in ran.out
    limits = ("--seconds", "3", "--memory", str(memory + 150))
    ran = cli("synth", write(NEVER_TRANSPOSED), *limits, "--suggest")
    assert (ran.status, "the budget was spent before every family" in ran.out) == (1, True)
    assert resident_megabytes() < memory + 250


def test_the_reason_is_given_what_is_left_of_time_and_memory(cli: Cli, write: Write) -> None:
    result = solve.synthesize(load_text(NEVER_TRANSPOSED))
    given: list[Budget] = []

    def spy(*_args: object, budget: Budget, **_options: object) -> NoReturn:
        given.append(budget)
        raise BudgetSpentError(Reason.MEMORY)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(why, "explain", spy)
        said, _ = why.remarks(result, 0, Budget(5.0, 4000), suggesting=False)
    assert said["why"] is None
    assert (given[0].megabytes, given[0].seconds) == (4000, 3.0)


def test_memory_that_is_not_finite_is_one_error(cli: Cli, write: Write) -> None:
    ran = cli("synth", write(SUMS), "--memory", "inf")
    assert (ran.status, "--memory must be finite" in ran.err) == (2, True)
    assert Budget(None, math.inf).at_once(7, 1.0) == 7


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_cannot_be_written_is_one_error(write: Write) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "warploom.cli", "synth", write(SUMS)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr == "cannot write the output: No space left on device\n"


def test_sets_that_would_not_fit_say_what_they_need(cli: Cli, write: Write) -> None:
    large = """x: [8192] = range(0, 8192)
a: [1024,8] = load_rep(x)
b: [1024,8] = ?col_xforms(a)
goal: [1024,8] trove
"""
    ran = cli("synth", write(large), "--memory", f"{resident_megabytes() + 50}")
    assert ran.status == 3
    assert re.search(r"undecided, its sets would not fit: needs about \d+ MB", ran.out)
    assert "spent" not in ran.out
