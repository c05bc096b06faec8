"""`warploom ci` and its action on odd repositories: names of files, and bases that are none."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.cli.conftest import Cli
from tests.cli.test_ci import (
    ACTION,
    RACE,
    SARIF,
    checked,
    committed,
    git,
    needs_git,
    programs,  # noqa: F401  # a fixture
    project,  # noqa: F401  # likewise
    wrong,
)

ODD = (
    "k/a b.ptx", "k/ä.ptx", "k/a=b.ptx", "k/a@b.ptx", 'k/a"b.ptx', "k/-x.ptx", "k/$(id).ptx",
    "k/a\tb.ptx", "k/a`|<b>![x](y).ptx", "::add-mask::k.ptx",
)  # fmt: skip


def listed(*names: str) -> str:
    """A check of each file, as TOML."""
    texts = []
    for name in names:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        texts.append(RACE.replace("k/race.ptx", quoted))
    return "".join(texts)


@needs_git
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("how", [["-z"], []])
def test_a_file_of_any_name_is_seen_to_be_changed(cli: Cli, name: str, how: list[str]) -> None:
    git("init", "--quiet", "-b", "main")
    Path("warploom.toml").write_text(listed(name, "k/race.ptx"))
    committed("before")
    shutil.copy("k/race.ptx", name)
    committed("changed")
    Path("changed").write_text(git("diff", "--name-only", *how, "HEAD~", "HEAD"))
    ran = cli("ci", "--changed", "changed", "--summary", "o.md", "--sarif", "o.sarif")
    assert ran.status == 1, ran.err
    (line,) = ran.out.splitlines()
    assert line.startswith(name.replace("\t", " ") + ": sanitize: something was found")
    found = json.loads(Path("o.sarif").read_text())
    assert wrong(found, SARIF) == []
    for each in found["runs"][0]["results"]:
        uri = each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote(uri).removeprefix("./") == name
    *_, row = Path("o.md").read_text().splitlines()
    assert re.fullmatch(
        r"\| (`+) ?[^\n]*\1 \| sanitize \| something was found \| `+ ?data race.*", row
    )
    assert len(re.findall(r"(?<!\\)\|", row)) == 6


def test_names_that_are_no_utf8_and_thousands_of_them(cli: Cli) -> None:
    names = [b"k/\xff\xfe.ptx", *(b"other/%d.py" % number for number in range(5000))]
    Path("changed").write_bytes(b"\0".join(names) + b"\0")
    assert "no check has to run" in cli("ci", "--changed", "changed").out
    Path("changed").write_bytes(b"\n".join([*names, b"k/x.cuh"]))
    Path("warploom.toml").write_text(RACE)
    assert cli("ci", "--changed", "changed").status == 1


def test_what_a_message_holds_is_text(cli: Cli) -> None:
    """A kernel says what it likes in its messages."""
    hostile = "\x1b[2J`|`<img src=x>![x](http://x)\r::warning::x"
    text = Path("k/race.ptx").read_text()
    Path("k/race.ptx").write_text(text.replace(".version", f"{hostile} .version"))
    Path("warploom.toml").write_text(RACE)
    ran = cli("ci", "--summary", "o.md", "--sarif", "o.sarif")
    assert ran.status == 2
    assert all(each.isprintable() for each in ran.out.rstrip("\n"))
    *_, row = Path("o.md").read_text().splitlines()
    assert all(each.isprintable() for each in row)
    assert len(re.findall(r"(?<!\\)\|", row)) == 6


@needs_git
@pytest.mark.parametrize(
    ("base", "status", "said"),
    [
        ("0" * 40, 1, "so all checks run"), ("nowhere", 1, "so all checks run"),
        ("--output=x", 2, ""), ("$(touch made)", 2, ""), ("a; touch made", 2, ""),
        ("HEAD", 0, "no check has to run"), ("", 1, "sanitize"),
    ],
)  # fmt: skip
def test_bases_that_are_none(programs: Path, base: str, status: int, said: str) -> None:  # noqa: F811
    git("init", "--quiet", "-b", "main")
    Path("warploom.toml").write_text(RACE)
    committed("before")
    ran = checked(programs, base)
    assert ran.returncode == status, ran.stderr
    assert said in ran.stdout
    assert not {"made", "x"} & set(os.listdir())


def test_inputs_reach_scripts_as_variables_alone() -> None:
    """An input in the text of a script would be part of its program."""
    scripts = re.findall(r"run: (?:\|\n((?:        .*\n|\n)+)|(.*))", ACTION.read_text())
    assert len(scripts) == 2
    assert not any("${{" in each for pair in scripts for each in pair)
