"""docs/extending.md: what it says is done in a copy of the package, and its commands show it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()


@dataclass(frozen=True)
class Block:
    """A piece of code on the page: its language, the file that it is, and its lines."""

    language: str
    title: str
    text: str


def blocks(section: str) -> list[Block]:
    """Those below a heading, in order."""
    body = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r'^```(\w+)(?: title="(\S+)")?\n(.*?)^```$', body, re.MULTILINE | re.DOTALL)
    return [Block(*each) for each in found]


def changed(text: str, hunk: list[str]) -> str:
    """A text after lines of a diff, which say by themselves where they belong."""
    before = "".join(f"{line[1:]}\n" for line in hunk if line[:1] != "+")
    after = "".join(f"{line[1:]}\n" for line in hunk if line[:1] != "-")
    assert text.count(before) == 1, f"not once in the file: {before}"
    return text.replace(before, after)


def apply(diff: str, folder: Path) -> None:
    for part in re.split(r"^\+\+\+ ", diff, flags=re.MULTILINE)[1:]:
        name, _, lines = part.partition("\n")
        text = (folder / name).read_text()
        for hunk in lines.split("@@\n"):
            text = changed(text, hunk.splitlines())
        (folder / name).write_text(text)


DRIVER = """
import sys
from warploom.cli import main
def command(number, words):
    print(f"\\n== command {number}", flush=True)
    sys.argv = ["warploom", *words]
    try:
        main()
    except SystemExit as left:
        print("== status", left.code, flush=True)
"""
MARK = "\n== command "


@dataclass(frozen=True)
class Copy:
    """The package with what a section adds, and the files that a user writes."""

    folder: Path

    def ran(self, text: str) -> str:
        """What a text of Python prints, in a process of its own."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{ROOT}",
            "WARPLOOM_STORE": "",
        }
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=self.folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def shows(self, console: str, then: str = "", statuses: str = "") -> None:
        """What stands below each command on the page is in its output; `then` does not fail.

        All in one process: the start of the command line takes longer than the commands.
        """
        asked = [each.splitlines() for each in console.split("$ warploom ")[1:]]
        calls = [f"command({n}, {shlex.split(words)!r})" for n, (words, *_) in enumerate(asked)]
        said = self.ran("\n".join((DRIVER, *calls, f"print('{MARK.strip()}')", then)))
        outputs = said.split(MARK)[1:]
        for (_, *lines), output in zip(asked, outputs, strict=False):
            assert [line for line in lines if line not in output] == [], output
        assert "".join(re.findall(r"^== status (\d+)", said, re.MULTILINE)) == statuses, said


def made(section: str, folder: Path) -> tuple[Copy, list[Block]]:
    """What the page says is written; what is left is to be run."""
    found = blocks(section)
    # Compiled files come along: their sources keep their times.
    shutil.copytree(ROOT / "src" / "warploom", folder / "src" / "warploom")
    for block in found:
        if block.title:
            (folder / block.title).write_text(block.text)
        elif block.language == "diff":
            apply(block.text, folder)
    return Copy(folder), [each for each in found if not each.title and each.language != "diff"]


def test_a_family_of_holes(tmp_path: Path) -> None:
    copy, (console,) = made("A family of holes (a hole library)", tmp_path)
    copy.shows(console.text, FAMILY)


FAMILY = """
from warploom.index.evaluate import evaluate
from warploom.sketch.holes import build, choice_from_json, choice_to_json
some = build("mirrors", {"axis": 0}, ((6, 2),), (6, 2))
assert [some.describe(n) for n in range(len(some))] == [f"mirror[group={g}]" for g in (1, 2, 3, 6)]
for n, table in enumerate(some.tables):
    cells = [{"x0": i, "x1": j} for i in range(6) for j in (0, 1)]
    rows = [evaluate(some.expression(n).offset, each) for each in cells]
    assert rows == table.tolist()
    assert choice_from_json(some, choice_to_json(some, n)) == n
"""


def test_a_ptx_instruction(tmp_path: Path) -> None:
    """One place: the evaluator, the engine in C, the symbolic emulator and Z3 compute alike."""
    copy, (python,) = made("An elementwise PTX instruction", tmp_path)
    touched = [
        block for block in blocks("An elementwise PTX instruction") if block.language == "diff"
    ]
    assert sum(block.text.count("+++ ") for block in touched) == 1
    copy.ran(python.text + SYMBOLS)


SYMBOLS = """
from itertools import product
from warploom import ptx
from tests.machine.value.plain import evaluate
from warploom.ptx.meaning.table import meaning_of
from warploom.ptx.symbolic.walk import read
text = open("med3.ptx").read()
module = ptx.parse(text)
(ins,) = (each for each in module.functions[0].flat() if getattr(each, "opcode", "") == "med3")
(result,) = meaning_of(ins).results
for given in product((-3, 0, 5), repeat=3):
    assert evaluate(result.value, given) == sorted(given)[1]
# Of constants that are known while nothing runs the symbolic emulator computes the middle one.
known = ptx.parse(text.replace("%r2, %r3, %r4;\\nst", "7, -1, 3;\\nst"))
reading = read(known, known.functions[0])
form = reading.made_at["%r5"][1]
assert form.is_constant and form.constant == 3, form
try:
    import z3
except ImportError:
    raise SystemExit
from warploom.machine.value.smt import term
a, b, c = z3.BitVecs("a b c", 32)
made = term(z3, result.value, [a, b, c], lambda x, y: x * y, None)
between = z3.Or(z3.And(a <= b, b <= c), z3.And(c <= b, b <= a))
solver = z3.Solver()
solver.add(between, made != b)
assert solver.check() == z3.unsat
"""


def test_a_machine(tmp_path: Path) -> None:
    """A user's file alone: nothing of the package changes."""
    copy, (console,) = made("A machine", tmp_path)
    copy.shows(console.text, statuses="2")
    shutil.copy(tmp_path / "small.toml", tmp_path / "src" / "warploom" / "machine")
    found = (
        "from warploom.machine.record import machine_named as m; print(m('small').multiprocessors)"
    )
    assert copy.ran(found) == "8\n"


def test_a_language(tmp_path: Path) -> None:
    copy, (console,) = made("A language to write kernels in (a backend)", tmp_path)
    refused = "$ warploom kernel transposition --emit musb\n'hip', 'musa', 'opencl'\n"
    copy.shows(console.text + refused, statuses="2")


def test_an_operation_of_loop_nests(tmp_path: Path) -> None:
    copy, (console,) = made("An operation of loop nests", tmp_path)
    copy.shows(console.text, WAVE)
    assert "sinhf(" in (tmp_path / "wave.c").read_text()


WAVE = """
import numpy as np
from wave import wave
from warploom.loopnest.evaluate import evaluate
x = np.linspace(-3, 3, 50, dtype=np.float32)
np.testing.assert_allclose(evaluate(wave(50).done(), {"x": x})["y"], np.sinh(x), rtol=1e-6)
"""


def test_lines_that_are_not_there_are_noticed() -> None:
    assert changed("a\nb\n", [" a", "-b", "+c"]) == "a\nc\n"
    with pytest.raises(AssertionError, match="not once"):
        changed("a\nb\n", [" c", "+d"])
