"""The C of the fast engine lives in files: each compiles alone, without a warning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.tools import is_here

import warploom
from warploom.machine.c_source import whole_text
from warploom.machine.value.text import HEADERS
from warploom.native import require_c

FILES = sorted((Path(warploom.__file__).parent / "ptx" / "fast" / "c").iterdir())
NOTHING = ()
RACES = ("-DWATCHED=0", "-DCOUNTS=0", "-DRACES=1", "-DUPDATED=0", "-DUNIT=4", "-DSITES={4,0,0,1,1}")
ALL = ("-DWATCHED=1", "-DCOUNTS=1", "-DRACES=1", "-DUPDATED=1", "-DUNIT=2", "-DSITES={4,0,0,1,1}")
# Headers hold functions for whoever wants them; functions that note have one signature.
QUIET = ("-Wno-unused-function", "-Wno-unused-parameter")
pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")


def warnings(text: str, *options: str) -> list[str]:
    command = [require_c(), "-x", "c", "-std=gnu11", "-Wall", "-Wextra", *QUIET, *options]
    done = subprocess.run(
        [*command, "-fsyntax-only", "-"], input=text, capture_output=True, text=True, check=False
    )
    return done.stderr.splitlines()


@pytest.mark.parametrize("options", [NOTHING, ALL, RACES], ids=["none", "all", "races"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_file_compiles_alone_without_a_warning(file: Path, options: tuple[str, ...]) -> None:
    assert warnings(whole_text(file, [HEADERS]), *options) == []


def test_a_warning_would_be_seen() -> None:
    assert warnings("static int f(int x) { int y; return x; }")


def test_a_header_stands_once(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#pragma once\nint a;\n")
    (tmp_path / "b.h").write_text('#pragma once\n#include "a.h"\nint b;\n')
    (tmp_path / "c.c").write_text('#include "b.h"\n#include "a.h"\nint c;\n')
    assert whole_text(tmp_path / "c.c") == "int a;\nint b;\nint c;\n"
