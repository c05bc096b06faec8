"""Every command of README.md and docs/ runs; what the first screen shows is what one gets.

A block marked ```sh is run line by line in a folder that has `examples/` in it. A line whose
comment says that it needs a GPU must say so itself where there is none. `make` is asked whether it
knows the target. Commands within a sentence must name options that exist.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import Cli

from warploom.cli.start import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
# What extending.md does needs a copy of the package that is changed: tests/test_extending.py.
PAGES = [
    ROOT / "README.md",
    *sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "extending.md"}),
]
NEEDS_GPU = "needs a GPU"
NO_GPU = ("there is no GPU", "PyTorch or CuPy")  # what commands say where there is none
# Tables and whole spaces take minutes, and a mutation check draws a few mutants of the many.
SLOW = ("warploom bench", "warploom explore")
SHORTENED = {"--mutate": ["--most", "4"]}


class Command(NamedTuple):
    text: str
    comment: str

    @property
    def slow(self) -> bool:
        return self.text.startswith(SLOW)


def blocks(page: Path) -> Iterator[tuple[int, str]]:
    """Each ```sh block with the number of its line."""
    text = page.read_text()
    for found in re.finditer(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def commands(block: str) -> list[Command]:
    lines = block.replace("\\\n", " ").splitlines()
    split = [re.split(r"(?:^|\s)#\s", line, maxsplit=1) for line in lines]
    return [Command(first.strip(), "".join(rest)) for first, *rest in split if first.strip()]


def parts() -> Iterator[object]:
    for page in PAGES:
        for line, block in blocks(page):
            all_of_it = commands(block)
            for slow in (False, True):
                some = [each for each in all_of_it if each.slow is slow]
                marks = [pytest.mark.slow] if slow else []
                if some:
                    yield pytest.param(some, marks=marks, id=f"{page.stem}:{line}{'s' * slow}")


@pytest.mark.parametrize("some", list(parts()))
def test_the_commands_of_a_block_run(
    some: list[Command],
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPLOOM_STORE", str(tmp_path / "store.sqlite"))
    for name in ("examples", "Makefile", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for command in some:
        words = shlex.split(command.text)
        match words[0]:
            case "warploom":
                more = [extra for word in words for extra in SHORTENED.get(word, ())]
                ran = cli(*words[1:], *more)
                without = any(each in ran.err for each in NO_GPU)
                expected = 2 if NEEDS_GPU in command.comment and without else 0
                assert ran.status == expected, f"{command.text}\n{ran.err}"
            case "make":
                subprocess.run(["make", "-n", *words[1:]], check=True, capture_output=True)
            case _:
                pytest.fail(f"how is this run? {command.text}")


def test_there_are_commands_and_blocks_of_commands_are_marked() -> None:
    assert sum(len(commands(block)) for page in PAGES for _, block in blocks(page)) >= 15
    for page in PAGES:
        text = page.read_text()
        marked = {line for _, block in blocks(page) for line in block.splitlines()}
        for line in text.splitlines():
            assert line in marked or not is_command(line), f"{page.name}: {line}"
        # A block in a list, or of another shell, would not be found.
        opened = [each.strip() for each in re.findall(r"^\s*```\S+", text, re.MULTILINE)]
        assert opened.count("```sh") == len(list(blocks(page))), page.name
        assert not {
            f"```{kind}" for kind in ("bash", "console", "shell", "shell-session", "zsh")
        } & {*opened}, page.name


def is_command(line: str) -> bool:
    """Whether a line by itself is something to type, whatever stands before the command."""
    said = re.sub(r"^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:uv run |python3? -m |\S*/)?", "", line)
    words = said.split()
    if len(words) < 2 or words[0] not in ("warploom", "make", "pip", "uv", "nvcc", "pytest"):
        return line.lstrip().startswith("$ ")
    if words[0] == "make":  # also a word of every day
        return words[1] in TARGETS
    return words[0] != "warploom" or words[1] in COMMANDS


TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    ["warploom synth x", "  $ ls", ".venv/bin/warploom synth x", "python -m warploom kernel y",
     "WARPLOOM_STORE= warploom store list", "make demo", "  make test"],
)  # fmt: skip
def test_a_command_is_found_whatever_stands_before_it(line: str) -> None:
    assert is_command(line)
    assert not is_command("warploom is a word, and make use of it")


def mentioned() -> list[str]:
    """`warploom synth … --emit` within a sentence."""
    return sorted(
        {
            " ".join(found.split())  # it may go on in the next line
            for page in PAGES
            for found in re.findall(r"(?<!`)`(warploom\s[^`]+)`(?!`)", page.read_text())
        }
    )


@pytest.mark.parametrize("text", mentioned())
def test_a_command_within_a_sentence_has_these_options(
    text: str,
    cli: Cli,
) -> None:
    words = shlex.split(text)[1:]
    assert words[0] in COMMANDS
    sub = [word.split("|")[0] for word in words[1:2] if re.fullmatch("[a-z|]+", word)]
    sub = sub if words[0] in GROUPS else []
    said = cli(words[0], *sub, "--help").out
    for word in words:
        if word.startswith("-"):
            assert re.search(rf"(?:^|[\s,]){re.escape(word)}\b", said), f"{text}: {word}"


GROUPS = ("layout", "ptx", "store")


def test_the_first_screen_shows_what_one_gets(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    screen = (ROOT / "README.md").read_text().split("## Set-up")[0]
    sketch, command, shown, text = (block.split("\n", 1)[1] for block in screen.split("```")[1::2])

    def bare(lines: str) -> list[str]:
        stripped = (re.split(r"\s*(?:#|//)", line)[0].strip() for line in lines.splitlines())
        return [line for line in stripped if line]

    assert bare(sketch) == bare((ROOT / "examples/sketches/sums.swflow").read_text())
    ran = cli(*shlex.split(command)[1:])
    assert ran.status == 0

    def timeless(said: str) -> str:
        return re.sub(r"\d+\.\d+ s\)", "s)", said)

    assert timeless(ran.out) == timeless(shown)
    written = bare((tmp_path / "sums.cu").read_text())
    assert all(line in written for line in bare(text))
