"""Every command of README.md and docs/ runs, and prints what the page shows.

A block marked ```sh is run line by line in a folder that has `examples/` in it; the same block on
two pages is run once. A block without a language that follows it is what its last command prints;
`…` stands for what is left out there, and times may differ. A line whose comment says that it needs
a GPU must say so itself where there is none; one whose comment says `exit status 1` must end so.
`make` is asked whether it knows the target, and pip's extras must be there. Commands within a
sentence must name options that exist.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import Cli

from warploom.cli.start import COMMANDS
from warploom.errors import WarploomError

ROOT = Path(__file__).resolve().parents[2]
# What extending.md does needs a copy of the package that is changed: tests/test_extending.py.
PAGES = [
    ROOT / "README.md",
    *sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "extending.md"}),
]
NEEDS_GPU = "needs a GPU"
STATUS_1 = "exit status 1"
PROJECT = (ROOT / "pyproject.toml").read_text()
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
    return ((line, block) for line, block, _ in shown_blocks(page))


def shown_blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """Each ```sh block with the number of its line, and what stands in the block after it."""
    text = page.read_text()
    both = r"^```sh\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?"
    for found in re.finditer(both, text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, found[1], found[2] or ""


def commands(block: str) -> list[Command]:
    lines = block.replace("\\\n", " ").splitlines()
    split = [re.split(r"(?:^|\s)#\s", line, maxsplit=1) for line in lines]
    return [Command(first.strip(), "".join(rest)) for first, *rest in split if first.strip()]


def parts() -> Iterator[object]:
    seen = set()
    for page in PAGES:
        for line, block, shown in shown_blocks(page):
            all_of_it = commands(block)
            for slow in (False, True):
                some = [each for each in all_of_it if each.slow is slow]
                marks = [pytest.mark.slow] if slow else []
                said = shown if some and some[-1] is all_of_it[-1] else ""
                if some and (block, shown, slow) not in seen:
                    name = f"{page.stem}:{line}{'s' * slow}"
                    yield pytest.param(some, said, marks=marks, id=name)
                seen.add((block, shown, slow))


def same(shown: str, *said: str) -> bool:
    """Whether a page shows one of these texts, less what it leaves out and how long it took."""

    def timeless(text: str) -> str:
        return re.sub(r"\d+\.\d+ s\)", "s)", text.strip())

    wanted = ".*?".join(re.escape(each) for each in timeless(shown).split("…"))
    return any(re.fullmatch(wanted, timeless(each), re.DOTALL) for each in said)


def test_what_is_left_out_is_found() -> None:
    assert same("a (0.01 s)\n…\nd", "else", "a (1.50 s)\nb\nc\nd\n")
    assert not same("a\n…\nd", "a\nb\nc\nd\ne")


@pytest.mark.parametrize(("some", "shown"), list(parts()))
def test_the_commands_of_a_block_run(
    some: list[Command],
    shown: str,
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
                expected = 1 if STATUS_1 in command.comment else expected
                assert ran.status == expected, f"{command.text}\n{ran.err}"
                if shown and command is some[-1]:
                    said = ran.out + ran.err
                    assert same(shown, ran.out, ran.err), f"{command.text}\n{said}"
            case "pip":
                extras = re.findall(r"\[(\w+)\]", command.text)
                assert words[:2] == ["pip", "install"]
                assert all(re.search(rf"^{each} = \[", PROJECT, re.MULTILINE) for each in extras)
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


def test_the_sketch_of_the_first_screen_is_the_file() -> None:
    readme = (ROOT / "README.md").read_text()
    (sketch,) = (each for each in readme.split("```\n") if each.startswith("x: [12]"))

    def bare(lines: str) -> list[str]:
        stripped = (re.split(r"\s*#", line)[0].strip() for line in lines.splitlines())
        return [line for line in stripped if line]

    assert bare(sketch) == bare((ROOT / "examples/sketches/sums.swflow").read_text())


def test_python_of_the_readme_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text()
    both = r"^```python\n(.*?)^```\n\n```\n(.*?)^```$"
    pairs = re.findall(both, readme, re.MULTILINE | re.DOTALL)
    assert len(pairs) == readme.count("```python") >= 2
    names: dict[str, object] = {}
    for program, shown in pairs:
        try:
            exec(program, names)  # our own page
            said = capsys.readouterr().out
        except WarploomError as error:
            said = str(error)
        assert same(shown, said), said


# Of extending.md tests/test_extending.py runs the blocks, with the files that it shows.
RUN = [each for each in sorted((ROOT / "docs").glob("*.md")) if each.name != "extending.md"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_python_of_a_page_runs_from_top_to_bottom(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block after those before it; an error that one raises is shown on the page."""
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    names: dict[str, object] = {"__name__": page.stem}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        code = compile(block[1], str(page), "exec")
        said = ""
        try:
            exec(code, names)  # our own page
        except WarploomError as error:
            said = error.message.split(",")[0]
        assert said in text[block.end() :]


def test_the_picture_shows_what_the_readme_shows() -> None:
    """The lines of the finding, which the commands above are held to, and of the kernel."""
    picture = unescape((ROOT / "docs" / "assets" / "race.svg").read_text())
    drawn = " ".join(re.findall(r">([^<>]*(?:<float[^<>]*)?)</text>", picture))
    readme = (ROOT / "README.md").read_text()
    finding = readme.split("…tma_pipeline.cu")[1].split("```")[0]
    assert " ".join(f"tma_pipeline.cu{finding}".split()) in " ".join(drawn.split())
    kernel = (ROOT / "examples" / "ptx" / "tma_pipeline.cu").read_text().splitlines()
    for number, text in re.findall(r">\s*(\d+) \| +(.*)</text>", picture):
        assert kernel[int(number) - 1].strip() == text


def test_the_front_page_of_the_site_has_the_jobs_of_the_readme() -> None:
    readme, index = ((ROOT / name).read_text() for name in ("README.md", "docs/index.md"))
    jobs = re.findall(r"^## (\d\. .+)$", readme, re.MULTILINE)
    assert len(jobs) == 4
    assert re.findall(r"^## (\d\. .+)$", index, re.MULTILINE) == jobs
    assert "assets/race.svg" in index
    fences = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert {*fences.findall(index)} <= {*fences.findall(readme)}
    assert len(readme.splitlines()) <= 180
