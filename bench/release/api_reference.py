"""The Python reference, docs/reference/python.md, from the docstrings of the public names.

`python -m bench.release.api_reference` writes it; `make docs` does so first. The groups are those
of the package's docstring. Of what calls return, the public attributes and methods are listed.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import warploom
from warploom.kernel.dtype import DType
from warploom.pictured import PublicResult

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
HEAD = """# Python reference

<!-- Written by `python -m bench.release.api_reference` from the docstrings; do not edit. -->

Everything here comes with `import warploom`. Other modules may change between versions.
Every example on this page is run by the tests.
"""
# What calls return: the class, and who returns it.
RESULTS = {
    "warploom.sketch.synth.result.Result": "synthesize",
    "warploom.pipeline.warp_result.WarpResult": "solve",
    "warploom.pipeline.nest.Explored": "explore",
    "warploom.pipeline.mapping.MappedResult": "map_array",
    "warploom.pipeline.layouts.LayoutResult": "solve_layout",
    "warploom.pipeline.converted.ConvertedResult": "convert_layout",
    "warploom.catalogue.loaded.Loaded": "load",
    "warploom.catalogue.attention.call.Attending": "load",
    "warploom.pipeline.compiled.Compiled": "compile",
    "warploom.report.picture.Picture": "show",
}
WIDEST = 88  # characters of a signature on one line
COMMON = ("kernel", "text", "record", "save")  # of every result


def page() -> str:
    return "\n".join([HEAD, *_table(), *_names(), *_results()]).rstrip() + "\n"


def groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """The groups of names with a line for each, as the package's docstring has them."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in (warploom.__doc__ or "").splitlines():
        if line.endswith(":") and not line.startswith(" "):
            found.append((line.removesuffix(":"), []))
        elif name := re.fullmatch(r"  (\w+) +(\S.*)", line):
            found[-1][1].append((name[1], name[2]))
    return found


def _table() -> Iterator[str]:
    for title, names in groups():
        yield f"**{title}**\n"
        yield from (f"- [`{name}`](#{name.lower()}): {said}" for name, said in names)
        yield ""


def _names() -> Iterator[str]:
    for _, names in groups():
        for name, _ in names:
            found = getattr(warploom, name)
            yield f"## `{name}`\n"
            if not isinstance(found, ModuleType):
                yield f"```python\n{name}{_signature(found)}\n```\n"
            yield _prose(found)
            if isinstance(found, ModuleType):
                yield from _functions(found)
            elif inspect.isclass(found) and not issubclass(found, Exception):
                yield from _members(found)


def _results() -> Iterator[str]:
    yield "## What calls return\n"
    yield "Every result prints as a short text and shows its picture in a notebook. It has:\n"
    yield from (_member(name, getattr(PublicResult, name)) for name in COMMON)
    yield ""
    for path, call in RESULTS.items():
        module, _, name = path.rpartition(".")
        found = getattr(import_module(module), name)
        yield f"### `{name}`: what `{call}` returns\n"
        yield _prose(found)
        yield from _members(found)


def _members(kind: type) -> Iterator[str]:
    """Public attributes and methods with a docstring; of a result not those that all have."""
    left_out = COMMON if issubclass(kind, PublicResult) else ()
    found = {
        name: each
        for name, each in vars(kind).items()
        if not name.startswith("_") and name not in left_out
    }
    lines = [_member(name, each) for name, each in found.items() if _documented(each)]
    yield from lines
    if lines:
        yield ""


def _documented(found: Any) -> bool:
    kinds = (property, cached_property, classmethod, staticmethod)
    return (inspect.isfunction(found) or isinstance(found, kinds)) and bool(found.__doc__)


def _functions(module: ModuleType) -> Iterator[str]:
    """The functions that a public module defines."""
    own = [
        (name, each)
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__
        and not name.startswith("_") and each.__doc__
    ]  # fmt: skip
    yield from (_member(name, each) for name, each in own)
    yield ""


def _member(name: str, found: Any) -> str:
    """One line: how it is called, and the first sentence of what it says of itself."""
    function = getattr(found, "__func__", found)
    called = _signature(function) if inspect.isfunction(function) else ""
    called = re.sub(r"\((self|cls)(, )?", "(", " ".join(called.split()))
    called = called.replace("( self, ", "(").replace("( cls, ", "(").replace(", )", ")")
    return f"- `{name}{called}`: {_first(found.__doc__)}"


def _first(doc: str) -> str:
    """The first paragraph without its examples, on one line."""
    text = inspect.cleandoc(doc).split("\n\n")[0].split("\n>>>")[0]
    return " ".join(text.split())


def _signature(found: Any) -> str:
    """Without the names of modules, which nobody imports; a line for each parameter if it is
    long."""
    try:
        signature = inspect.signature(found)
    except ValueError:
        return "(…)"
    parts, star = list[str](), False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        parts.append(_parameter(each))
    given = signature.return_annotation
    returned = "" if given is signature.empty else f" -> {_type(given)}"
    short = f"({', '.join(parts)}){returned}"
    if len(short) <= WIDEST:
        return short
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def _parameter(each: inspect.Parameter) -> str:
    stars = "*" * (each.kind is each.VAR_POSITIONAL) + "**" * (each.kind is each.VAR_KEYWORD)
    typed = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
    if each.default is each.empty:
        return f"{stars}{each.name}{typed}"
    default = each.default.value if isinstance(each.default, DType) else each.default
    equals = f" = {default!r}" if typed else f"={default!r}"
    return f"{stars}{each.name}{typed}{equals}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text).replace("'", "")


def _prose(found: Any) -> str:
    """A docstring as Markdown: its examples become blocks of code."""
    lines, blocks = inspect.cleandoc(found.__doc__ or "").splitlines(), list[str]()
    inside = False
    for line in lines:
        begins, ends = not inside and line.lstrip().startswith(">>>"), inside and not line.strip()
        if begins:
            blocks.append("```pycon")
        if ends:
            blocks.append("```")
        inside = (inside or begins) and not ends
        blocks.append(line.removeprefix("    ") if inside and line.startswith("    >>>") else line)
    return "\n".join([*blocks, *(["```"] if inside else [])]) + "\n"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
