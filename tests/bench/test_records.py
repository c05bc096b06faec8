"""Every record of `bench/results` has a command that names a script, every script its record, and
every page that quotes a script's figures names the record that they come from."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources import outline

from warploom.bench.script import scripts

ROOT = Path(__file__).resolve().parents[2]
BENCH, RESULTS = ROOT / "bench", ROOT / "bench" / "results"
RECORDS = {path.stem: path for path in sorted(RESULTS.glob("*.json"))}
LISTED = dict(
    re.findall(
        r"^\| `(\w+)\.json` \| `(.+)` \|$", (RESULTS / "README.md").read_text(), re.MULTILINE
    )
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FILES = {f"bench/{name.replace('.', '/')}.py": name for name in scripts()}


def script_of(command: str) -> str:
    """`python -m bench.ptx.speed 1024` → `ptx.speed`; nothing for other commands."""
    found = re.match(r"python -m bench\.([\w.]+)", command)
    return found[1] if found else ""


def commands(record: Any) -> Iterator[str]:
    """What a record says that it was made by, also in parts of it."""
    parts = record.values() if isinstance(record, dict) else record
    if isinstance(record, dict) and isinstance(record.get("command"), str):
        yield record["command"]
    for part in parts if isinstance(record, dict | list) else ():
        if isinstance(part, dict | list):
            yield from commands(part)


def text_of(name: str) -> str:
    """A script with the modules beside it that it imports."""
    path = BENCH / f"{name.replace('.', '/')}.py"
    folder = name.partition(".")[0]
    beside = re.findall(rf"from bench\.{folder}\.(\w+) import", path.read_text())
    return "".join([path.read_text(), *((path.parent / f"{b}.py").read_text() for b in beside)])


def test_every_record_is_listed_with_its_command() -> None:
    assert sorted(LISTED) == list(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_the_command_of_a_record_names_a_script_that_names_the_record(name: str) -> None:
    command = LISTED[name]
    if script := script_of(command):
        assert script in scripts()
        assert f"{name}.json" in command or f"{name}.json" in text_of(script)
    elif command.startswith("warploom bench"):
        assert f"--json bench/results/{name}.json" in command
        assert command.removeprefix("warploom ") in (ROOT / "Makefile").read_text()
    else:
        file = command.split()[-1]
        assert f"{name}.json" in (ROOT / file).read_text()


@pytest.mark.parametrize("name", RECORDS)
def test_what_a_record_says_of_itself_is_what_is_listed(name: str) -> None:
    for said in commands(json.loads(RECORDS[name].read_text())):
        if said.startswith(("python -m bench", "bench/")):
            assert script_of(said) == script_of(LISTED[name])


def paragraphs() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for number, text in enumerate(re.split(r"\n\s*\n", page.read_text())):
            yield f"{page.name}, paragraph {number}", text


def test_pages_name_records_that_are_there() -> None:
    for where, text in paragraphs():
        for name in re.findall(r"bench/results/(\w+)\.json", text):
            assert name in RECORDS, where
        for file in re.findall(r"bench/[a-z]\w*/\w+\.py", text):
            assert (ROOT / file).is_file(), (where, file)


def test_a_paragraph_with_figures_of_a_script_names_its_record() -> None:
    made = {
        script: [n for n, c in LISTED.items() if script_of(c) == script] for script in scripts()
    }
    missing = [
        (where, name, made[name])
        for where, text in paragraphs()
        for file, name in FILES.items()
        if file in text and made[name] and re.search(r"\d", text.replace(file, ""))
        if not any(f"{record}.json" in text for record in made[name])
    ]
    assert missing == []


# -- how scripts are written -----------------------------------------------------------------------

SOURCES = sorted(BENCH.rglob("*.py"))


def test_no_script_changes_the_path_or_imports_tests() -> None:
    for path in SOURCES:
        text = path.read_text()
        for node in outline(text).imports:
            modules = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import)
                else [node.module or ""]
            )  # fmt: skip
            assert not any(m.split(".")[0] == "tests" for m in modules), path
        assert not re.search(r"sys\.path(\.insert|\.append|\[.*\] *=| *\+?= )", text), path
        assert "noqa" not in text, path


def test_every_script_has_the_options_of_the_harness() -> None:
    for name, path in scripts().items():
        # One runs where the package is not installed, the others write a page.
        if name not in ("release.floors", "release.api_reference", "release.records_reference"):
            # Several scripts have the rows, and the `main` of another one.
            assert re.search(r"(arguments|main)\(\s*__doc__", path.read_text()), name
            assert "arguments(" in text_of(name), name
