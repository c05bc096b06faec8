"""How tests look at modules: each is parsed once, and what several tests ask of it is kept."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Assigned = ast.Assign | ast.AnnAssign
Literal = ast.Tuple | ast.List | ast.Set | ast.Dict


@dataclass(frozen=True, slots=True)
class Outline:
    """What is kept of a module, however deep it stands; whole trees would take 200 MB."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    classes: tuple[tuple[str, int], ...]  # names, and lines
    assertions: tuple[ast.Assert, ...]
    literals: tuple[Assigned, ...]  # what is assigned is a tuple, a list, a set or a dictionary
    defined: frozenset[str]  # classes and names at the top level
    docstrings: tuple[tuple[int, str], ...]  # lines, and texts as they are written


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """All statements of a module, however deep; expressions, which are most of a tree, are not
    looked into."""
    found: list[ast.AST] = [tree]
    while found:
        node = found.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):  # that of a lambda or a condition is an expression
                found += inner


def parsed(text: str) -> ast.Module:
    """A tree is never garbage while it grows: to look for some takes two thirds of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def outline(text: str) -> Outline:
    tree = parsed(text)
    found = list(statements(tree))
    documented = [tree, *(each for each in found if isinstance(each, Documented))]
    said = [(each, ast.get_docstring(each, clean=False)) for each in documented]
    return Outline(
        imports=tuple(each for each in found if isinstance(each, ast.Import | ast.ImportFrom)),
        classes=tuple((each.name, each.lineno) for each in found if isinstance(each, ast.ClassDef)),
        assertions=tuple(each for each in found if isinstance(each, ast.Assert)),
        literals=tuple(
            each for each in found if isinstance(each, Assigned) and isinstance(each.value, Literal)
        ),
        defined=frozenset(_defined(tree)),
        docstrings=tuple((e.body[0].lineno, each) for e, each in said if each is not None),
    )


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
