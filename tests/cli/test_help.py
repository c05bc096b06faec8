"""Help is there at once: no command imports anything large for it. The page of all commands says
what each of them takes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from bench.cli.startup import helps

from warploom.choices import FARTHEST, LANGUAGES, SKETCHES, VARIED
from warploom.cli.names import sketch_names
from warploom.cli.reference import all_commands, commands_page
from warploom.cli.start import STATUSES
from warploom.cli.usage import WIDEST, help_text
from warploom.emit import BACKENDS
from warploom.layout.patterns.ways import DECISIONS
from warploom.machine.record import CUDA

LOADED = """
import sys
from warploom.cli.start import main
try:
    main()
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
SMALL = {"began", "choices", "cli", "errors", "options", "pictured", "private"}


def test_no_help_imports_anything_large() -> None:
    """Each in a process of its own, all at once: they take a tenth of a second."""
    asked = list(helps())
    assert len(asked) >= 24
    for words in asked:
        ran = subprocess.run(
            [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True
        )
        assert ran.stdout.startswith(" ".join(("Usage: warploom", *words[:-1])))
        found = ran.stderr.split()
        assert {"numpy", "rich", "typer", "sqlite3"}.isdisjoint(found), words
        ours = {name.split(".")[1] for name in found if name.startswith("warploom.")}
        assert ours <= SMALL, words


def test_lists_are_those_of_the_parts() -> None:
    assert tuple(sketch_names()) == SKETCHES
    assert tuple(BACKENDS) == LANGUAGES
    assert tuple(DECISIONS) == VARIED
    assert CUDA.lanes - 1 == FARTHEST


# -- the page --------------------------------------------------------------------------------------


def test_the_page_has_every_command_and_every_option() -> None:
    lines = "\n".join(commands_page()).splitlines()
    for prog, command in all_commands():
        at = next(n for n, line in enumerate(lines) if line.lstrip("#") == f" `{prog}`")
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("#")), len(lines))
        section = "\n".join(lines[at:end])
        assert f"\n{prog} [OPTIONS]" in section
        for each in command.parameters:
            assert all(f"{flag}" in section for flag in (each.flags or (each.declared.metavar,)))
            assert all(choice in section for choice in each.choices)
    assert f"```text\n{STATUSES}\n```" in "\n".join(lines)


def test_verify_names_every_command_that_writes_a_certificate() -> None:
    every = dict(all_commands())
    said = " ".join(help_text("warploom verify", every["warploom verify"]).split())
    writers = [
        prog for prog, command in every.items()
        if any("--certificate" in each.flags for each in command.parameters)
    ]  # fmt: skip
    assert len(writers) >= 4
    assert all(f"'{prog} " in said for prog in writers), writers


def test_what_is_not_proved_has_a_status() -> None:
    assert "3    not proved" in help_text(
        "warploom ptx run", dict(all_commands())["warploom ptx run"]
    )


def test_the_page_has_no_line_that_is_cut() -> None:
    """Text wraps by itself; what is in a block of code does not."""
    inside = False
    for line in "\n".join(commands_page()).splitlines():
        inside ^= line.startswith("```")
        assert not inside or len(line) <= WIDEST, line


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_help_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for prog, command in all_commands():
        text = help_text(prog, command)
        words = " ".join(text.split())
        for each in command.parameters:
            assert " ".join(each.declared.help.split()) in words
            assert all(flag in text for flag in each.flags)
        options = text.split("\nOptions:\n")[1].splitlines()
        widest = min(max(columns, 52), WIDEST)
        assert all(len(line) <= widest for line in options if "|" not in line), prog
