"""What tools take: files of one folder, values that fit their schema."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.agents import hostile

from warploom.agents.kept import Kept
from warploom.agents.paths import Folder, RefusedError
from warploom.agents.tools import TOOLS_BY_NAME, call_of, with_files
from warploom.cli.app import command_named
from warploom.cli.declare import Command
from warploom.cli.parse import parsed

JUDGE: dict[str, Any] = {
    "kernel": "twice.ptx", "reference": "refs.py::twice", "args": ["x=f32[n]", "y=f32[n]=out"],
    "shape": {"n": [32, 64]}, "seed": 7, "counterexample": True,
}  # fmt: skip
CALLS: dict[str, dict[str, Any]] = {
    "judge": JUDGE,
    "sanitize": {"kernel": "twice.ptx", "args": ["@x.npy", "@x.npz:y"], "tools": ["memcheck"]},
    "report": {"kernel": "twice.ptx", "grid": "1", "block": "32", "machine": "h200"},
    "solve_layout": {"pattern": "transpose:32x32:f32", "class": "xor", "emit": "cute"},
    "synth": {"sketch": "sums.swflow", "best": True, "emit": "cuda", "certificate": True},
    "explore": {"kernel": "axpy", "size": {"n": 1024}, "fix": ["dim_kind(n0)=LOOP"]},
    "emit": {"kernel": "aos-to-soa", "set": {"fields": 5}, "emit": "cuda", "check": False},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    for name in (
        "twice.ptx",
        "refs.py",
        "sums.swflow",
        "x.npy",
        "x.npz",
        "-odd.ptx",
        "inner/a.ptx",
    ):
        (root / name).write_text(hostile.TWICE)
    (tmp_path / "secret.ptx").write_text(hostile.TWICE)
    return Folder(root)


@pytest.mark.parametrize("name", list(CALLS))
def test_a_call_is_one_of_the_command(folder: Folder, name: str) -> None:
    """The command reads the words, and takes each of them as what was meant."""
    call = call_of(name, {**CALLS[name], "seconds": 10}, folder, 60.0)
    words = with_files(call, Path("/scratch"))
    command = command_named(words.pop(0))
    while not isinstance(command, Command):
        command = next(each for each in command.commands if each.name == words[0])
        words.pop(0)
    options, given = parsed(command, words)
    assert len(given) >= len(CALLS[name])
    assert str(options.json_file) == "/scratch/record.json"
    if call.tool.is_timed:
        assert options.seconds == 8
    if name == "judge":
        assert options.shape == ["n=32,64"]
        assert str(options.counterexample) == "/scratch/counterexample.npz"


def test_a_candidate_of_a_problem_is_not_run_as_a_script(folder: Folder) -> None:
    given = {"kernel": "refs.py", "problem": "problem.py", "shape": {"n": 5}}
    (folder.root / "problem.py").write_text("")
    call = call_of("judge", given, folder, 60.0)
    assert call.words[:4] == ["judge", "refs.py", "--problem=problem.py", "--shape=n=5"]
    assert call.says_more
    for more in ({"reference": "refs.py::twice"}, {"problem": None}, {"problem": "../x.py"}):
        with pytest.raises(RefusedError):
            call_of("judge", {**given, **more}, folder, 60.0)


@pytest.mark.parametrize("name", list(TOOLS_BY_NAME))
def test_every_field_has_a_schema_and_is_said(name: str) -> None:
    schema = TOOLS_BY_NAME[name].schema(60.0)
    assert set(schema["required"]) <= set(schema["properties"])
    assert all(each["description"].endswith(".") for each in schema["properties"].values())


@pytest.mark.parametrize(
    "path",
    ["../secret.ptx", "inner/../../secret.ptx", "/etc/passwd", "", ".", "inner", "missing.ptx",
     "/secret.ptx", "linked.ptx", "behind/secret.ptx", "pipe.ptx", "a\0.ptx", "refs.py", "-",
     "twice.ptx/..", "../root/twice.ptx"],
)  # fmt: skip
def test_paths_that_are_refused(folder: Folder, path: str) -> None:
    (folder.root / "linked.ptx").symlink_to("../secret.ptx")
    (folder.root / "behind").symlink_to("..")
    os.mkfifo(folder.root / "pipe.ptx")
    with pytest.raises(RefusedError):
        call_of("report", {"kernel": path}, folder, 60.0)


def test_paths_that_are_taken(folder: Folder) -> None:
    for path, word in (
        ("twice.ptx", "twice.ptx"), ("./inner/a.ptx", "inner/a.ptx"), ("-odd.ptx", "./-odd.ptx"),
        (str(folder.root / "twice.ptx"), "twice.ptx"),
    ):  # fmt: skip
        assert call_of("report", {"kernel": path}, folder, 60.0).words[2] == word


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("judge", {"reference": "../refs.py::f"}), ("judge", {"reference": "refs.py"}),
        ("judge", {"reference": "refs.py::f()"}), ("judge", {"shape": {"n": "x; y"}}),
        ("judge", {"shape": {"--json": 3}}), ("judge", {"shape": [1]}), ("judge", {"seed": -1}),
        ("judge", {"seed": True}), ("judge", {"args": "x"}), ("judge", {"args": [3]}),
        ("judge", {"args": ["x"] * 65}), ("judge", {"grid": "1" * 3000}), ("judge", {"json": "x"}),
        ("judge", {"counterexample": "/tmp/x"}), ("judge", {"launch": "/etc/passwd"}),
        ("judge", {"kernel": None}), ("judge", {"seconds": 61}), ("judge", {"seconds": 0}),
        ("judge", {"seconds": True}), ("judge", {"shape": {"n": 10**5000}}),
        ("judge", {"seconds": float("nan")}), ("sanitize", {"args": ["@../x.npy"]}),
        ("sanitize", {"args": ["f32[3]=@/etc/passwd"]}), ("sanitize", {"args": ["@x.pt"]}),
        ("sanitize", {"tools": ["rm"]}), ("report", {"machine": "mine.toml"}),
        ("solve_layout", {"pattern": "--store"}), ("solve_layout", {"pattern": "/etc/passwd"}),
        ("solve_layout", {"emit": "python"}), ("synth", {"sketch": "-"}),
        ("explore", {"kernel": "nest.json"}), ("emit", {"set": {"fields": "../x"}}),
    ],
)  # fmt: skip
def test_values_that_are_refused(folder: Folder, name: str, changed: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        call_of(name, {**CALLS[name], **changed}, folder, 60.0)


def test_a_name_is_not_taken_for_a_file_behind_a_link(folder: Folder) -> None:
    (folder.root / "gaussian").symlink_to("../secret.ptx")
    with pytest.raises(RefusedError):
        call_of("synth", {"sketch": "gaussian"}, folder, 60.0)
    (folder.root / "gaussian").unlink()
    assert call_of("synth", {"sketch": "gaussian"}, folder, 60.0).words[1] == "gaussian"


@pytest.mark.parametrize(
    ("name", "given", "more"),
    [
        ("report", {"kernel": "twice.ptx"}, False), ("report", {"kernel": "twice.cu"}, True),
        ("judge", JUDGE, True), ("sanitize", {"kernel": "refs.py"}, True),
        ("sanitize", {"kernel": "twice.ptx", "launch": "x.npz"}, True),
        ("synth", {"sketch": "refs.py::f"}, True), ("synth", {"sketch": "sums.swflow"}, False),
    ],
)  # fmt: skip
def test_what_runs_or_names_other_files(
    folder: Folder, name: str, given: dict[str, Any], more: bool
) -> None:
    (folder.root / "twice.cu").write_text("")
    assert call_of(name, given, folder, 60.0).says_more is more


def test_links_are_not_kept(tmp_path: Path) -> None:
    """A file that a call was to write may be a link where nothing confined it."""
    (tmp_path / "secret").write_text("secret")
    kept = Kept(tmp_path / "kept")
    place = kept.place()
    (place / "scratch").mkdir(parents=True)
    (place / "scratch" / "record.json").symlink_to(tmp_path / "secret")
    (place / "out").write_text("said")
    (place / "err").write_text("")
    links = kept.keep(place)
    assert [each.name for each in links] == ["output.txt"]
    assert kept.read(links[0].address) == ("text/plain", b"said")
    assert not place.exists()
    for address in ("warploom://calls/1/record.json", "warploom://calls/1/../../secret", "x"):
        with pytest.raises(RefusedError):
            kept.read(address)


def test_the_oldest_make_room(tmp_path: Path) -> None:
    kept, addresses = Kept(tmp_path), []
    for _ in range(65):
        place = kept.place()
        place.mkdir()
        (place / "out").write_text("said")
        addresses.append(kept.keep(place)[0].address)
    with pytest.raises(RefusedError):
        kept.read(addresses[0])
    assert kept.read(addresses[1])[1] == b"said"
    assert len(list(kept.links())) == 64
