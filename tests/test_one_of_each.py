"""One of everything: what must have one home, has one."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src" / "warploom"

# The words that search/ defines for everyone.
WORDS = {
    "Verdict": "search/outcome.py",
    "Outcome": "search/outcome.py",
    "Candidates": "search/candidate.py",
    "Decision": "search/candidate.py",
    "Domain": "search/candidate.py",
}
# Other meanings of these words that still wait for another name. The list only gets shorter.
WAITING = {
    ("Verdict", "ptx/symbolic/distance.py"),
    ("Outcome", "ptx/symbolic/distance.py"),
    ("Candidates", "sketch/holes/common.py"),
    ("Candidates", "sketch/simt/space.py"),
    ("Candidates", "sketch/synth/expand.py"),
    ("Domain", "sketch/synth/domain.py"),
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
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*.py"))
        if package in imported(ast.parse(path.read_text()))
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


def defined(tree: ast.Module) -> set[str]:
    """Classes and names that a module defines at its top level."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def test_the_words_of_search_are_defined_once() -> None:
    homes = {
        (word, str(path.relative_to(ROOT)))
        for path in sorted(ROOT.rglob("*.py"))
        for word in defined(ast.parse(path.read_text())) & set(WORDS)
    }
    assert set(WORDS.items()) <= homes
    assert homes - set(WORDS.items()) <= WAITING


def test_definitions_of_all_kinds_are_noticed() -> None:
    tree = ast.parse("class Verdict: ...\nOutcome = int\nDomain: TypeAlias = str\nx.Decision = 1")
    assert defined(tree) & set(WORDS) == {"Verdict", "Outcome", "Domain"}
