"""The page of the records' fields is what the schemas say now, and docs/records.md leads to it."""

from __future__ import annotations

import re
from pathlib import Path

from bench.release import records_reference

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    again = "run python -m bench.release.records_reference"
    assert records_reference.PAGE.read_text() == records_reference.page(), again


def test_every_kind_has_a_section_and_a_link_to_it() -> None:
    kinds = [*records_reference.schemas()]
    assert re.findall(r"^## (.+)$", records_reference.page(), re.MULTILINE) == kinds
    linked = re.findall(
        r"^\| \[(.+)\]\(reference/records\.md#(.+?)\)",
        (DOCS / "records.md").read_text(),
        re.MULTILINE,
    )
    assert sorted(linked) == sorted((kind, kind.replace(" ", "-")) for kind in kinds)


def test_every_field_has_a_line_with_its_type() -> None:
    text = records_reference.page()
    for kind, schema in records_reference.schemas().items():
        section = text.split(f"\n## {kind}\n")[1].split("\n## ")[0]
        listed = re.findall(r"^- `(\w+)` \(\*(.+?)\*\)", section, re.MULTILINE)
        assert [name for name, _ in listed] == [*schema["properties"]], kind
        for name, said in listed:
            assert said.endswith(", always") is (name in schema["required"]), (kind, name)


def test_what_types_are_called() -> None:
    call = records_reference.type_of
    assert call({}) == "anything"
    assert call({"type": ["string", "null"]}) == "string or null"
    assert call({"type": "array", "items": {"type": ["integer", "null"]}}) == (
        "array of integers or null"
    )
    assert call({"type": "object", "additionalProperties": {"enum": ["a", "b"]}}) == (
        'object of `"a"` or `"b"`'
    )
    inner = {"type": "array", "items": {"type": "integer"}}
    assert call({"type": "array", "items": inner}) == "array of arrays of integers"
