"""Import order is the folder order of docs/map.md: a folder imports only from folders above it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.sources import outline, parsed, text_of

ROOT = Path(__file__).resolve().parents[1] / "src" / "warploom"

ORDER = (
    "began", "choices", "errors", "node", "private", "options", "process", "native", "pictured",
    "index", "machine", "search", "layout", "kernel",
    "sketch.term", "sketch.holes", "sketch.front", "sketch.build", "sketch.given", "sketch.synth",
    "sketch.explain", "sketch.code", "sketch.simt",
    "schedule",
    "loopnest", "array", "ptx",
    "emit", "runtime", "trust", "catalogue", "report", "without_gpu", "verdict", "problems",
    "bench", "pipeline", "__init__", "pytest_plugin", "agents", "cli", "__main__",
)  # fmt: skip


_NAMED = re.compile(r"(warploom(?:\.\w+)+)(?::\w+)?")
_MAY_NAME = re.compile(r"""["'}]warploom\b""")


def part_of(module: str) -> str:
    """`warploom.sketch.term.ir` -> `sketch.term`; `warploom` itself -> `__init__`."""
    names = module.split(".")[1:]
    if not names:
        return "__init__"
    return ".".join(names[:2]) if names[0] == "sketch" and len(names) > 1 else names[0]


def imports(path: Path) -> list[str]:
    text = text_of(path)
    found = []
    for node in outline(text).imports:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{path}: relative imports hide the order"
            found.append(node.module or "")
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    found += named(text)
    return [name for name in found if name == "warploom" or name.startswith("warploom.")]


def named(text: str) -> list[str]:
    """Modules of ours that a text names in strings, to be imported later."""
    if not _MAY_NAME.search(text):  # most files: to look at every expression takes seconds
        return []
    strings = [n.value for n in ast.walk(parsed(text)) if isinstance(n, ast.Constant)]
    found = [_NAMED.fullmatch(each) for each in strings if isinstance(each, str)]
    return [match[1] for match in found if match]


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def upward(path: Path) -> list[str]:
    here = part_of(module_of(path))
    if here == "sketch":  # the package file of the folder that holds the four rooms
        return []
    return [
        f"{path.name} ({here}) imports {name}"
        for name in imports(path)
        if part_of(name) in ORDER and ORDER.index(part_of(name)) > ORDER.index(here)
        and not (part_of(name) == "__init__" and name != "warploom")
    ]  # fmt: skip


def test_a_folder_imports_only_from_folders_above_it() -> None:
    files = sorted(ROOT.rglob("*.py"))
    assert len(files) >= 8
    for path in files:
        part = part_of(module_of(path))
        assert part in ORDER or part == "sketch", f"{path}: add its folder to ORDER and docs/map.md"
    assert [line for path in files for line in upward(path)] == []


def test_an_upward_import_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "warploom" / "index" / "bad.py"
    planted.parent.mkdir(parents=True)
    monkeypatch.setitem(globals(), "ROOT", planted.parents[1])
    for text in ("from warploom.emit import cuda\n", 'LATER = "warploom.emit.cuda:text"\n'):
        planted.write_text(text)
        assert upward(planted) != []


def missing(path: Path, text: str) -> list[str]:
    """Names that a module takes from others of ours, where they are not."""
    found = []
    for node in outline(text).imports:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("warploom."):
            continue
        there = ROOT.parent / (node.module or "").replace(".", "/")
        file = there / "__init__.py" if there.is_dir() else there.with_suffix(".py")
        theirs = outline(text_of(file)) if file.is_file() else None
        if theirs is None or "__getattr__" in text_of(file):
            continue
        bound = {a.asname or a.name for each in theirs.imports for a in each.names}
        known = theirs.defined | bound | {each.stem for each in there.glob("*") if there.is_dir()}
        found += [f"{path}: {node.module} has no {a.name}" for a in node.names
                  if a.name not in known and not _is_bound(text_of(file), a.name)]  # fmt: skip
    return found


def _is_bound(text: str, name: str) -> bool:
    """Functions and the like, which the outline leaves out."""
    bound = rf"^ *(?:(?:async def|def|class) {name}\b|(?:\w+, )*{name}(?:, \w+)* *[=:,)])"
    return re.search(bound, text, re.MULTILINE) is not None


def test_what_is_imported_is_there() -> None:
    """Also of modules that no quick test imports, which a merge may leave behind."""
    files = sorted(ROOT.rglob("*.py"))
    assert [line for path in files for line in missing(path, text_of(path))] == []
    planted = "from warploom.machine.race import NoSuchRace\n"
    assert len(missing(files[0], planted)) == 1


# Within ptx: what an instruction means, then the engines, then who chooses between them.
ENGINES = ("meaning", "emulate", "fast", "launch")


def test_no_engine_imports_a_later_one() -> None:
    for number, name in enumerate(ENGINES):
        for path in (ROOT / "ptx" / name).rglob("*.py"):
            later = {f"warploom.ptx.{each}" for each in ENGINES[number + 1 :]}
            found = [each for each in imports(path) if ".".join(each.split(".")[:3]) in later]
            assert found == [], path
