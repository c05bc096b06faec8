"""Every command of the table ends with its status, and writes records that its schema allows."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from bench.common.cli.commands import COMMANDS, Command
from bench.common.cli.tile import FILE
from bench.harness import ROOT
from tests.cli.conftest import Cli

from warploom.cli.start import COMMANDS as NAMES

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_KNOWN = {"type", "enum", "properties", "required", "items", "additionalProperties", "description"}


@cache
def schemas() -> dict[str, Any]:
    text = files("warploom").joinpath("schemas.json").read_text()
    return dict(json.loads(text)["records"])


def wrong(value: Any, schema: dict[str, Any], at: str = "") -> list[str]:
    """What a schema does not allow, by place; of JSON Schema only what our schemas use."""
    assert not set(schema) - _KNOWN, f"not understood here: {set(schema) - _KNOWN}"
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {value!r} is none of {schema['enum']}"]
    if "type" in schema:
        named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        right = tuple(each for name in named for each in _TYPES[name])
        if not isinstance(value, right) or (isinstance(value, bool) and bool not in right):
            return [f"{at}: {value!r:.40} is not of type {schema['type']}"]
    found: list[str] = []
    if isinstance(value, dict):
        own = schema.get("properties", {})
        found += [
            f"{at}: '{key}' is missing" for key in schema.get("required", ()) if key not in value
        ]
        for key, each in value.items():
            found += wrong(
                each, own.get(key, schema.get("additionalProperties", {})), f"{at}.{key}"
            )
    if isinstance(value, list):
        for number, each in enumerate(value):
            found += wrong(each, schema.get("items", {}), f"{at}[{number}]")
    return found


# Vectors of two that begin at odd places: no padding puts them at even ones.
TORN = """shape = [64, 8]
element = "f32"
[[access]]
width = 2
index = "lane * 2 + 1"
"""


TILES = """[[tile]]
name = "A"
shape = [16, 32]
element = "f16"
[[tile.access]]
use = "rows"
kind = "cp.async"
[[tile.access]]
use = "ldmatrix"
"""


CHECKS = """[[check]]
tool = "sanitize"
kernel = "saxpy.ptx"
args = ["f32[32]=range", "f32[32]=ones", "f32=2", "i32=32"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    Path("torn.toml").write_text(TORN)
    Path("tiles.toml").write_text(TILES)
    Path("checks.toml").write_text(CHECKS)
    copy(ROOT / "examples" / "ptx" / "saxpy.ptx", ".")


def prepared(command: Command, cli: Cli) -> None:
    if command.needs:
        assert cli(*command.needs).status == 0
    if "changed.json" in command.words:
        proof = json.loads(Path("fill.json").read_text())
        proof[0]["goal"]["values"][0][1] = 7
        Path("changed.json").write_text(json.dumps(proof))


def _id(command: Command) -> str:
    return " ".join(word.rsplit("/", 1)[-1] for word in command.words[:3]) + f" {command.status}"


@pytest.mark.parametrize("command", COMMANDS, ids=_id)
def test_status_and_records(command: Command, cli: Cli) -> None:
    prepared(command, cli)
    more = ["--json", "records.json"] if command.schema else []
    ran = cli(*command.words, *more)
    assert ran.status == command.status, ran.err
    assert "Traceback" not in ran.err
    if command.schema:
        schema = schemas()[command.schema]
        for record in json.loads(Path("records.json").read_text()):
            assert wrong(record, schema) == []
    kinds = {"fill.json": "a fill", "layout.json": "a layout", "tiles.json": "tiles"}
    for file, kind in kinds.items():
        if Path(file).exists():
            for record in json.loads(Path(file).read_text()):
                assert wrong(record, schemas()[f"certificate of {kind}"]) == []


def test_every_command_is_in_the_table_with_bad_input_and_a_schema() -> None:
    for name in set(NAMES) - {"mcp"}:  # it has answers of its own (tests/agents)
        statuses = {each.status for each in COMMANDS if each.words[0] == name}
        assert {0} <= statuses
        assert name == "machines" or 2 in statuses
    asked = {each.schema for each in COMMANDS if each.schema}
    others = {"certificate of a fill", "certificate of a layout", "interrupted"}  # test_stops.py
    others |= {"certificate of a schedule", "certificate of impossibility"}  # test_ptx.py, below
    others |= {"certificate of tiles"}  # above
    others |= {"certificate of a kernel"}  # trust/test_kernel_certificates.py
    assert set(schemas()) == asked | others


def test_a_certificate_of_impossibility_is_as_its_schema_says(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sketch = str(ROOT / "examples" / "sketches" / "impossible.swflow")
    assert cli("synth", sketch, "--certificate", "none.json", "--no-store").status == 1
    (record,) = json.loads(Path("none.json").read_text())
    assert wrong(record, schemas()["certificate of impossibility"]) == []


def test_a_schema_refuses_what_it_does_not_say() -> None:
    schema = schemas()["synth"]
    assert wrong({"outcome": "perhaps"}, schema)[-1] == (
        ".outcome: 'perhaps' is none of ['found', 'impossible', 'undecided']"
    )
    assert "'solutions' is missing" in str(wrong({"outcome": "found"}, schema))
    assert wrong({"fills": [{"s": 1}]}, {"properties": schema["properties"]}) == [
        ".fills[0].s: 1 is not of type string"
    ]
    assert wrong(True, {"type": "integer"})


def test_the_page_of_records_names_every_schema() -> None:
    page = (ROOT / "docs" / "records.md").read_text()
    for name, schema in schemas().items():
        link = f"[{name}](reference/records.md#{name.replace(' ', '-')})"
        assert f"| {link} | {schema['description']} |" in page
