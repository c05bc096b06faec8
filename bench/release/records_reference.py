"""The reference of records, docs/reference/records.md, from the schemas that are installed.

`python -m bench.release.records_reference` writes it; `make docs` does so first. Each record has a
section with its fields as a list, since lines of a list wrap on a narrow page; fields of a field
stand below it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "records.md"
HEAD = """# Reference of records

<!-- Written by `python -m bench.release.records_reference` from the schemas; do not edit. -->

`--json FILE` writes a list of records, one for each input. This page lists the fields of each kind
of record. It is made from `schemas.json`, the JSON Schemas that are installed with the package
([records and statuses](../records.md)).

A field that is marked *always* is in every record of its kind. The other fields depend on the
options of the command and on the answer. Later versions may add fields. An *object of integers*
has keys of its own, such as the names of holes, and an integer for each.
"""
INDENT = "    "


def page() -> str:
    return "\n".join([HEAD, *_sections()]).rstrip() + "\n"


def schemas() -> dict[str, Any]:
    text = files("warploom").joinpath("schemas.json").read_text()
    return dict(json.loads(text)["records"])


def _sections() -> Iterator[str]:
    for kind, schema in schemas().items():
        yield f"## {kind}\n"
        yield f"{schema['description']}\n"
        yield from _fields(schema, "")
        yield ""


def _fields(schema: dict[str, Any], indent: str) -> Iterator[str]:
    """The fields of an object, each with those of what it holds below it."""
    always = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        kind = f"{type_of(each)}, always" if name in always else type_of(each)
        said = f": {each['description']}" if "description" in each else ""
        yield f"{indent}- `{name}` (*{kind}*){said}"
        yield from _fields(_inside(each), indent + INDENT)


def _inside(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the objects that a field holds: itself, or the items of lists and tables."""
    while "properties" not in schema:
        below = schema.get("items") or schema.get("additionalProperties")
        if not isinstance(below, dict):
            return {}
        schema = below
    return schema


def type_of(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    named = schema.get("type", [])
    every = [named] if isinstance(named, str) else named
    return " or ".join(_one(each, schema) for each in every) or "anything"


def _one(kind: str, schema: dict[str, Any]) -> str:
    held = schema.get({"array": "items", "object": "additionalProperties"}.get(kind, ""))
    if not held or (kind == "object" and "properties" in schema):
        return kind
    return f"{kind} of {' or '.join(_several(each) for each in type_of(held).split(' or '))}"


def _several(kind: str) -> str:
    """`array of integers` of one array is `arrays of integers` of several."""
    first, *rest = kind.split(" ", 1)
    uncounted = first in ("null", "anything") or first.startswith("`")
    return " ".join([first if uncounted else f"{first}s", *rest])


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
