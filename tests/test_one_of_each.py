"""One of everything: what must have one home, has one."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.sources import outline, parsed, text_of

ROOT = Path(__file__).resolve().parents[1] / "src" / "warploom"

# The words that search/ and machine/ define for everyone.
WORDS = {
    "Verdict": "search/outcome.py",
    "Outcome": "search/outcome.py",
    "Candidates": "search/branching/candidate.py",
    "Decision": "search/branching/candidate.py",
    "Domain": "search/branching/candidate.py",
    "Counters": "machine/counters.py",
    "Machine": "machine/record.py",
    "Memory": "machine/memory.py",
    "Race": "machine/race.py",
    "RaceDetector": "machine/race.py",
    "Report": "machine/report.py",
}


def imported(tree: ast.AST) -> set[str]:
    """The top-level packages that a module imports, by statement or by name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.split(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.split(".")[0])
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                found.add(module.split(".")[0])
    return found


def importers(package: str, root: Path = ROOT) -> list[str]:
    texts = {path: text_of(path) for path in sorted(root.rglob("*.py"))}
    return [
        str(path.relative_to(root))
        for path, text in texts.items()
        if package in text and package in imported(parsed(text))
    ]


def test_one_module_imports_z3() -> None:
    assert importers("z3") == ["index/smt.py"]


def test_every_way_to_import_is_noticed(tmp_path: Path) -> None:
    called = "import_module('z3')"
    texts = ["import z3", "from z3 import Int", called, f"importlib.{called}"]
    for number, text in enumerate(texts):
        (tmp_path / f"m{number}.py").write_text(text)
    (tmp_path / "none.py").write_text("from warploom.index.smt import load_z3")
    assert importers("z3", tmp_path) == [f"m{number}.py" for number in range(len(texts))]


def test_the_words_are_defined_once() -> None:
    homes = {
        (word, str(path.relative_to(ROOT)))
        for path in ROOT.rglob("*.py")
        for word in outline(text_of(path)).defined & set(WORDS)
    }
    assert homes == set(WORDS.items())


def test_definitions_of_all_kinds_are_noticed() -> None:
    text = "class Verdict: ...\nOutcome = int\nDomain: TypeAlias = str\nx.Decision = 1"
    assert outline(text).defined & set(WORDS) == {"Verdict", "Outcome", "Domain"}


# -- copies ------------------------------------------------------------------------------------

COPY = 8  # so many equal lines are one too many


def is_table(node: ast.expr | None) -> bool:
    """Literals, names and what holds them: nothing is computed, so there is nothing to share."""
    match node:
        case ast.Constant() | ast.Name() | ast.Attribute():
            return True
        case ast.UnaryOp(operand=operand) | ast.Starred(value=operand):
            return is_table(operand)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(map(is_table, parts))
        case ast.Dict(keys=keys, values=values):
            return all(key is None or is_table(key) for key in keys) and all(map(is_table, values))
    return False


def uncounted(text: str) -> set[int]:
    """The numbers of lines that may be alike: imports and tables."""
    seen = outline(text)
    alike: list[ast.stmt] = [*seen.imports, *(n for n in seen.literals if is_table(n.value))]
    return {line for n in alike for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)}


def copies(root: Path = ROOT, length: int = COPY) -> list[str]:
    """Where `length` lines were met before, as `file:line is file:line`; spaces do not count."""
    first: dict[tuple[str, ...], tuple[Path, int]] = {}
    found = []
    for path in sorted(root.rglob("*.py")):
        text = text_of(path)
        left_out = uncounted(text)
        numbered = [(n, "".join(line.split())) for n, line in enumerate(text.splitlines(), 1)]
        lines = [(n, line) for n, line in numbered if line and n not in left_out]
        here = path.relative_to(root)
        windows = zip(*([line for _, line in lines[n:]] for n in range(length)), strict=False)
        for (number, _), window in zip(lines, windows, strict=False):
            before = first.setdefault(window, (here, number))
            if before != (here, number):
                found.append(f"{here}:{number} is {before[0]}:{before[1]}")
    return found


def test_no_eight_lines_are_written_twice() -> None:
    assert copies() == []


LINES = "".join(f"def f{n}(x: int) -> int:\n    return x + {n}\n\n\n" for n in range(4))


def test_a_copy_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(f"import ast\n\nA = 1\n{LINES}B = f1(2)\n")
    assert copies(tmp_path) == []
    copied = LINES.replace("\n\n", "\n").replace("    return", "  return")
    (tmp_path / "two.py").write_text(f"import os\nif os.sep:\n  pass\n{copied}C = f2(3)\n")
    assert copies(tmp_path) == ["two.py:4 is one.py:4"]
    (tmp_path / "two.py").write_text(LINES.replace("x + 2", "x - 2"))
    assert copies(tmp_path) == []
    (tmp_path / "two.py").unlink()
    (tmp_path / "one.py").write_text(LINES + "\n\n" + LINES)  # also within one file
    assert copies(tmp_path) == ["one.py:19 is one.py:1"]


def test_imports_and_tables_may_be_alike(tmp_path: Path) -> None:
    rows = "".join(f'    "{n}": ({n}, -{n}, A.b),\n' for n in range(9))
    names = "".join(f"    n{n},\n" for n in range(9))
    for name in ("one", "two"):
        text = f"from os import (\n{names})\n\nTABLE = {{\n{rows}}}\n"
        (tmp_path / f"{name}.py").write_text(text)
    assert copies(tmp_path) == []
    calls = rows.replace("(", "f(")
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"TABLE = {{\n{calls}}}\n")
    assert copies(tmp_path) != []


# -- classes -----------------------------------------------------------------------------------

# Folders that are one language, or one room: a class name means one thing in each.
ROOMS = (
    "index", "machine", "search", "layout", "kernel", "schedule", "loopnest", "array", "ptx",
    "emit", "runtime", "trust", "catalogue", "report", "without_gpu", "verdict", "problems",
    "bench", "pipeline", "agents", "cli", "sketch/term", "sketch/holes", "sketch/synth",
    "sketch/explain", "sketch/code", "sketch/simt",
)  # fmt: skip


def repeated(room: Path) -> dict[str, list[str]]:
    """Class names that a folder defines more than once, with where."""
    places: dict[str, list[str]] = {}
    for path in sorted(room.rglob("*.py")):
        for name, line in outline(text_of(path)).classes:
            places.setdefault(name, []).append(f"{path.relative_to(room)}:{line}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_every_folder_is_a_room() -> None:
    packages = {str(path.parent.relative_to(ROOT)) for path in ROOT.rglob("__init__.py")}
    outside = {p for p in packages if not any(p == r or p.startswith(f"{r}/") for r in ROOMS)}
    assert outside == {".", "sketch"}
    assert all((ROOT / room / "__init__.py").exists() for room in ROOMS)


def test_no_two_classes_of_a_room_share_a_name() -> None:
    assert {room: found for room in ROOMS if (found := repeated(ROOT / room))} == {}


def test_a_repeated_class_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.py").write_text("class A: ...\nclass B: ...\n")
    (tmp_path / "deep" / "two.py").write_text("def f():\n    class A: ...\n")
    assert repeated(tmp_path) == {"A": ["deep/two.py:2", "one.py:1"]}
