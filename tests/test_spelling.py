"""Errors name arguments as they are written where they were given: options have dashes only for
somebody at a command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.cli.calls import called

import warploom
from warploom.errors import WarploomError

SOURCE = Path(warploom.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
# Where other programs are called, whose options these are; styles have variables with dashes.
OTHERS = ("agents", "cli", "ptx/ptxas.py", "runtime/compile.py", "native.py", "report",
          "search/workers", "without_gpu/cuda_kernel.py")  # fmt: skip
# What one types whole, wherever one is.
COMMAND = re.compile(r"['`](?:warploom|dask) [^'`]*['`]")


def written(tree: ast.AST) -> list[str]:
    """The texts of a module, but for docstrings and what only a command line is told."""
    aside = {id(part) for node in ast.walk(tree) for part in _aside(node)}
    texts = [_text(node) for node in ast.walk(tree) if id(node) not in aside]
    return [each for each in texts if each]


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _aside(node: ast.AST) -> Iterable[ast.AST]:
    match node:
        case ast.Expr(ast.Constant()):
            return [node.value]
        case ast.JoinedStr(parts):
            return [each for each in parts if isinstance(each, ast.Constant)]
        case ast.Call(ast.Name("spelled"), [command, *_]):
            return ast.walk(command)
    return ()


def options_in(text: str) -> list[str]:
    if not OPTION.search(text):  # most have none, and parsing all takes seconds
        return []
    return [each for each in written(ast.parse(text)) if OPTION.search(COMMAND.sub("", each))]


def test_what_is_looked_for_is_found() -> None:
    assert options_in('raise E(f"write --size {n}")') == ["write --size …"]
    assert options_in('"""A docstring: --size."""\nspelled("--size", "size=")') == []
    assert options_in('spelled("--size", "--size=")') == ["--size="]
    assert options_in('advice = "`warploom synth … --suggest` tries others"') == []


def test_no_text_of_the_library_has_an_option_of_the_command_line() -> None:
    found = {
        str(file.relative_to(SOURCE)): options
        for file in SOURCE.rglob("*.py")
        if not str(file.relative_to(SOURCE)).startswith(OTHERS)
        and (options := options_in(file.read_text()))
    }
    del found["catalogue/sketches.py"]  # what `warploom kernel` is to be given, in its own list
    assert not found


@pytest.mark.parametrize(
    ("call", "words", "python", "command"),
    [
        (
            lambda: warploom.explore("axpy"),
            ("explore", "axpy"),
            'write size={"n": 1024}',
            "write --size n=1024",
        ),
        (
            lambda: warploom.convert_layout("blocked([1],[32],[1],[0])", "mma_c()"),
            ("layout", "convert", "--from", "blocked([1],[32],[1],[0])", "--to", "mma_c()"),
            "give shape=(32, 32)",
            "give --shape 32x32",
        ),
        (
            lambda: warploom.map_array("matvec", {"m": 64, "n": 32}, layer="conv4_2"),
            ("map", "matvec", "--size", "m=64,n=32", "--layer", "conv4_2"),
            "layer is for conv",
            "--layer is for conv",
        ),
    ],
)
def test_both_fronts(
    call: Callable[[], object], words: tuple[str, ...], python: str, command: str
) -> None:
    with pytest.raises(WarploomError) as caught:
        call()
    assert caught.value.advice == python
    told = called(list(words))
    assert told.exit_code == 2
    assert f"\n  {command}\n" in told.output + "\n"
    with pytest.raises(WarploomError) as caught:  # what a command said is over with it
        call()
    assert caught.value.advice == python
