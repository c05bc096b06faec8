"""`warploom ci`, and the steps of action.yml as a script without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.cli.conftest import Cli

from warploom.cli.start import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
ACTION, HOOKS = ROOT / "action.yml", ROOT / ".pre-commit-hooks.yaml"
JUDGE = """
[[check]]
tool = "judge"
kernel = "k/softmax.ptx"
name = "{name}"
reference = "k/references.py::softmax"
args = ["x=f32[rows,n]", "y=f32[rows,n]=out", "n=i32=n"]
grid = "rows"
shape = {{ rows = 3, n = 37 }}
"""
RACE = """
[[check]]
tool = "sanitize"
kernel = "k/race.ptx"
block = "64"
args = ["f32[64]=range", "f32[64]=zeros"]
files = ["k/*.cuh"]
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k").mkdir()
    for name in ("judge/softmax.ptx", "judge/references.py", "ptx/race.ptx"):
        shutil.copy(ROOT / "examples" / name, "k")
    Path("warploom.toml").write_text(JUDGE.format(name="softmax_short") + RACE)
    return tmp_path


# What SARIF 2.1.0 asks of the properties that are written here, and no others: a check of our own,
# stricter than the published schema, which is not kept here.
_TEXT: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "keys": {"text": {"type": "string"}},
}
_REGION = {
    "startLine": {"type": "integer", "least": True},
    "startColumn": {"type": "integer", "least": True},
}
_URI = {"type": "string", "pattern": r"(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+"}
_LOCATION: dict[str, Any] = {
    "type": "object", "required": ["physicalLocation"], "keys": {
        "message": _TEXT,
        "physicalLocation": {
            "type": "object", "required": ["artifactLocation", "region"], "keys": {
                "artifactLocation": {"type": "object", "required": ["uri"], "keys": {"uri": _URI}},
                "region": {"type": "object", "keys": _REGION},
            },
        },
    },
}  # fmt: skip
_RESULT = {
    "ruleId": {"type": "string"}, "level": {"enum": ["none", "note", "warning", "error"]},
    "message": _TEXT, "locations": {"type": "array", "of": _LOCATION},
    "relatedLocations": {"type": "array", "of": _LOCATION, "unique": True},
}  # fmt: skip
_RULE = {"id": {"type": "string"}, "shortDescription": _TEXT}
_DRIVER = {
    "name": {"type": "string"}, "version": {"type": "string"},
    "rules": {
        "type": "array", "of": {"type": "object", "required": ["id"], "keys": _RULE},
        "unique": True,
    },
}  # fmt: skip
_RUN = {
    "tool": {"type": "object", "required": ["driver"], "keys": {
        "driver": {"type": "object", "required": ["name"], "keys": _DRIVER}}},
    "invocations": {"type": "array", "of": {
        "type": "object", "required": ["executionSuccessful"],
        "keys": {"executionSuccessful": {"type": "boolean"}}}},
    "results": {
        "type": "array", "of": {"type": "object", "required": ["message"], "keys": _RESULT}},
}  # fmt: skip
SARIF: dict[str, Any] = {
    "type": "object", "required": ["version", "runs"], "keys": {
        "$schema": {"type": "string"}, "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "of": {"type": "object", "required": ["tool"], "keys": _RUN}},
    },
}  # fmt: skip
_KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def wrong(value: Any, schema: dict[str, Any], at: str = "") -> list[str]:
    """What a text has that SARIF does not, or lacks."""
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at}: {value!r}"]
    kind = type(value)
    if kind is not _KINDS[schema["type"]] or ("least" in schema and value < 1):
        return [f"{at}: {value!r:.40} is no {schema['type']}"]
    found = [f"{at}: no {key}" for key in schema.get("required", ()) if key not in value]
    if isinstance(value, dict):
        for key, each in value.items():
            known = key in schema["keys"]
            found += wrong(each, schema["keys"][key], f"{at}.{key}") if known else [f"{at}: {key}"]
    elif isinstance(value, str) and not re.fullmatch(
        schema.get("pattern", ".*"), value, re.DOTALL | re.ASCII
    ):
        found.append(f"{at}: {value!r} is no URI")
    elif isinstance(value, list):
        if schema.get("unique") and len(set(map(repr, value))) < len(value):
            found.append(f"{at}: twice the same")
        found += [said for each in value for said in wrong(each, schema["of"], f"{at}[]")]
    return found


def test_all_checks_and_one_answer(cli: Cli) -> None:
    ran = cli("ci", "--sarif", "o.sarif", "--summary", "o.md", "--json", "o.json")
    assert ran.status == 1, ran.err
    assert "k/softmax.ptx: judge: different" in ran.out
    assert "k/race.ptx: sanitize: something was found: data race" in ran.out
    found = json.loads(Path("o.sarif").read_text())
    assert wrong(found, SARIF) == []
    (run,) = found["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert {each["artifactLocation"]["uri"] for each in places} == {"k/softmax.ptx", "k/race.ptx"}
    assert {each["ruleId"] for each in run["results"]} == {"judge", "racecheck"}
    assert len(Path("o.md").read_text().splitlines()) == 4
    assert [each["meaning"] for each in json.loads(Path("o.json").read_text())] == [
        "different", "something was found",
    ]  # fmt: skip


def test_what_is_no_sarif_is_seen() -> None:
    whole = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{}]}]}
    assert wrong(whole, SARIF) == [".runs[].results[]: no message"]
    place = {"artifactLocation": {"uri": "a b"}, "region": {"startLine": 0}}
    twice = [{"physicalLocation": place}] * 2
    whole["runs"][0]["results"] = [{"message": {"text": "x"}, "relatedLocations": twice}]  # type: ignore[index]
    kinds = {each.partition(": ")[2] for each in wrong(whole, SARIF)}
    assert kinds == {"twice the same", "'a b' is no URI", "0 is no integer"}


@pytest.mark.parametrize(
    ("changed", "ran"),
    [
        (["k/race.ptx"], ["k/race.ptx"]), (["k/common.cuh"], ["k/race.ptx"]), (["other.py"], []),
        (["warploom.toml"], ["k/softmax.ptx", "k/race.ptx"]), (["./k/race.ptx"], ["k/race.ptx"]),
    ],
)  # fmt: skip
def test_a_check_runs_if_what_it_names_was_changed(
    cli: Cli, changed: list[str], ran: list[str]
) -> None:
    Path("warploom.toml").write_text(JUDGE.format(name="softmax") + RACE)
    done = cli("ci", *changed, "--json", "o.json")
    assert [each["source"] for each in json.loads(Path("o.json").read_text())] == ran
    assert done.status == (1 if "k/race.ptx" in ran else 0)
    Path("list.txt").write_text("\n".join(changed))
    if not ran:
        assert "no check has to run" in cli("ci", "--changed", "list.txt").out


def test_a_reference_that_was_changed_counts(cli: Cli) -> None:
    Path("warploom.toml").write_text(JUDGE.format(name="softmax"))
    assert "equal" in cli("ci", "k/references.py").out


def test_what_is_wrong_with_a_kernel_is_a_finding(cli: Cli) -> None:
    Path("k/race.ptx").write_text("no PTX")
    ran = cli("ci", "k/race.ptx", "--sarif", "o.sarif")
    assert ran.status == 2
    found = json.loads(Path("o.sarif").read_text())
    assert wrong(found, SARIF) == []
    assert found["runs"][0]["invocations"] == [{"executionSuccessful": False}]
    assert len(found["runs"][0]["results"]) == 1


@pytest.mark.slow
def test_undecided_is_allowed_if_asked(cli: Cli) -> None:
    text = JUDGE.format(name="softmax").replace("37", "100000")
    Path("warploom.toml").write_text(text)
    assert cli("ci", "--seconds", "1").status == 3
    assert cli("ci", "--seconds", "1", "--allow-undecided").status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lists no checks"), ("[[check]]\ntool = 3", "check 1 of"), ("x = ", "cannot read"),
        (RACE.replace("k/race.ptx", "../race.ptx"), "is not in the folder"),
        (RACE.replace("sanitize", "synth"), "a check needs a tool"),
        (RACE.replace("block", "bloc"), "takes no 'bloc'"), (RACE + "files = 3", "cannot read"),
        (RACE.replace('["k/*.cuh"]', "3"), "list of patterns"),
    ],
)  # fmt: skip
def test_lists_that_are_none(cli: Cli, text: str, said: str) -> None:
    Path("warploom.toml").write_text(text)
    ran = cli("ci")
    assert ran.status == 2
    assert said in ran.err


# -- the action and the hook -----------------------------------------------------------------------


def step(name: str) -> str:
    """The script of a step of action.yml."""
    text = ACTION.read_text().partition(f"- name: {name}\n")[2]
    return dedent(re.split(r"\n    - ", text.partition("run: |\n")[2])[0])


def git(*words: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    names = {
        f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {"PATH": os.environ["PATH"], **own, **names}
    ran = subprocess.run(
        ["git", *words], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def alone() -> list[str]:
    """What begins a command that has no network but its own loopback, where that can be had."""
    words = ["unshare", "--user", "--map-root-user", "--net"]
    if (
        shutil.which("unshare")
        and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    ):
        return words
    return []


@pytest.fixture
def programs(project: Path) -> Path:
    """A folder with a program `warploom`, as the action has it after its step `Install`."""
    folder = project.parent / "programs"
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join(each for each in sys.path if each)
    (folder / "warploom").write_text(
        f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -P -m warploom "$@"\n'
    )
    (folder / "warploom").chmod(0o755)
    return folder


def checked(programs: Path, base: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The step `Check` of the action, in this folder."""
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "CHECKS": "warploom.toml",
        "SECONDS_OF_A_CHECK": "60", "ALLOW_UNDECIDED": "false", "BASE": base,
        "GITHUB_STEP_SUMMARY": str(Path("summary.md").resolve()), "HOME": str(programs), **more,
    }  # fmt: skip
    words = [*alone(), "bash", "-e", "-o", "pipefail", "-c", step("Check")]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)


def committed(message: str) -> str:
    git("add", ".")
    git("commit", "--quiet", "-m", message)
    return git("rev-parse", "HEAD")


needs_git = pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("bash")), reason="no git or no bash"
)


@needs_git
def test_the_steps_of_the_action(programs: Path) -> None:
    git("init", "--quiet", "-b", "main")
    base = committed("before")
    with Path("k/race.ptx").open("a") as file:
        file.write("// changed\n")
    committed("changed")
    ran = checked(programs, base)
    assert ran.returncode == 1, ran.stderr
    stop, first, *_, end = ran.stdout.splitlines()
    assert first.startswith("k/race.ptx: sanitize: something was found")
    token = stop.removeprefix("::stop-commands::")
    assert (len(token), end) == (32, f"::{token}::")
    assert "softmax" not in ran.stdout  # neither it nor its reference was changed
    assert "| `k/race.ptx` | sanitize |" in Path("summary.md").read_text()
    assert wrong(json.loads(Path("warploom.sarif").read_text()), SARIF) == []


def test_the_hook_and_the_action_call_what_there_is() -> None:
    for text in (HOOKS.read_text(), step("Check")):
        asked = re.findall(r"^(?:  entry: )?warploom (\w+)", text, re.MULTILINE)
        assert asked
        assert set(asked) <= set(COMMANDS)
    install = ACTION.read_text().partition("- name: Install")[2]
    assert '"$GITHUB_ACTION_PATH[nvrtc]"' in install


def test_the_example_list_passes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ran = cli("ci", "--checks", "examples/ci/warploom.toml")
    assert ran.status == 0, ran.out
