"""Modules beside FILE.py are found; those of the standard library stay what they are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from warploom.cli.inputs import python_value


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    path, known, finders = list(sys.path), set(sys.modules), list(sys.meta_path)
    yield
    assert sys.path == path
    assert len(sys.meta_path) <= len(finders) + 1  # the one that comes last
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        place = folder / f"{name.replace('__in__', '/')}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    return folder


def value(file: Path | str, name: str = "made") -> object:
    return python_value(f"{file}::{name}", {}, (object,))


def test_a_module_a_package_and_relative_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(
        tmp_path / "kernels",
        mine="import helper\nfrom parts import one\nfrom parts.two import both\nimport loose.bit\n"
        "made = (helper.x, one.x, both, loose.bit.x)\n",
        helper="x = 1",
        parts__in____init__="",
        parts__in__one="x = 2",
        parts__in__two="from . import one\nfrom .one import x\nboth = (one.x, x)",
        loose__in__bit="x = 5",  # a folder without __init__.py
    )
    assert value(folder / "mine.py") == (1, 2, (2, 2), 5)
    monkeypatch.chdir(folder)
    assert value("mine.py") == (1, 2, (2, 2), 5)
    monkeypatch.chdir(tmp_path)
    assert value("kernels/mine.py") == (1, 2, (2, 2), 5)
    assert value("kernels/../kernels/mine.py") == (1, 2, (2, 2), 5)


def test_what_a_function_imports_when_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(
        tmp_path / "a",
        lazy="def made():\n    import helper_a\n    return helper_a.x\n"
        "def later():\n    def inner():\n        import helper_b\n        return helper_b.x\n"
        "    return [inner]\n",
        helper_a="x = 7",
        helper_b="x = 8",
    )
    assert value(folder / "lazy.py") == 7
    inner = value(folder / "lazy.py", "later")
    monkeypatch.chdir("/")
    assert isinstance(inner, list)
    assert inner[0]() == 8  # when the file is long done


def test_each_file_has_the_modules_beside_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, mine="import helper\nmade = helper.x", helper=f"x = '{name}'")
    assert [value(tmp_path / name / "mine.py") for name in "aba"] == ["a", "b", "a"]


def test_a_sibling_comes_before_what_is_installed(tmp_path: Path) -> None:
    """As with `python FILE.py`; afterwards the installed one is found again."""
    folder = write(tmp_path / "a", mine="import iniconfig\nmade = iniconfig.x", iniconfig="x = 3")
    before = sys.modules.pop("iniconfig", None)
    try:
        assert value(folder / "mine.py") == 3
    finally:
        sys.modules.pop("iniconfig", None)
        if before is not None:
            sys.modules["iniconfig"] = before


SHADOW = """
import sys
for name in [n for n in sys.modules if n.partition(".")[0] in ("json", "colorsys")]:
    del sys.modules[name]
from warploom.cli.inputs import python_value
made = python_value("mine.py::made", {}, (object,))
import colorsys, json
assert made is True and json.loads("[1]") == [1], json.__file__
assert "lib" in colorsys.__file__, colorsys.__file__
"""


def test_the_standard_library_is_not_replaced(tmp_path: Path) -> None:
    """Neither for the file, nor for what we import later; nor is it by a file of such a name."""
    bad = "raise SystemExit('ran')"
    write(tmp_path, mine="import json\nmade = json.loads('true')", json=bad, colorsys=bad)
    ran = subprocess.run(
        [sys.executable, "-P", "-c", SHADOW],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    write(tmp_path, json="made = 4")
    assert value(tmp_path / "json.py") == 4
    assert sys.modules["json"] is json


def test_a_sibling_that_is_wrong_is_an_error_at_the_line(tmp_path: Path, cli: Cli) -> None:
    folder = write(tmp_path / "a", mine="import helper_c\n", helper_c="1 / 0\n")
    ran = cli("check", f"{folder / 'mine.py'}::made")
    assert ran.status == 2
    assert "mine.py:1:1: ZeroDivisionError" in ran.err
