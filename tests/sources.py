"""How tests look at the modules of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(text: str) -> Iterator[ast.stmt]:
    """All statements of a module, however deep; expressions, which are most of a tree, are not
    looked into."""
    found: list[ast.AST] = [ast.parse(text)]
    while found:
        node = found.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):  # that of a lambda or a condition is an expression
                found += inner
