"""`warploom mcp` says what is missing before it serves anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli


def test_without_the_package_its_extra_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "anyio", None)
    monkeypatch.delitem(sys.modules, "warploom.agents.server", raising=False)
    ran = cli("mcp")
    assert ran.status == 2
    assert "is not installed\n  in the source folder: pip install '.[mcp]'" in ran.err


def test_the_folder_has_to_be_there(cli: Cli, tmp_path: Path) -> None:
    ran = cli("mcp", "--root", str(tmp_path / "nowhere"))
    assert ran.status == 2
    assert "nowhere' is no folder" in ran.err
