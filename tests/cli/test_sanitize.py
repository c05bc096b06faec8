"""`warploom sanitize`: each tool tells its own findings, in every form, with the exit status."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called

from warploom.choices import TOOLS

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{ .reg .pred %p<3>; .reg .b32 %t, %r<4>; .reg .b64 %l<4>; .shared .align 4 .b8 tile[256];
ld.param.u64 %l1, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %l2, %t, 4; add.s64 %l3, %l1, %l2;
mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 4, %r1; setp.eq.u32 %p1, %t, 0;
"""
BODIES = {
    "memcheck": "ld.global.u32 %r3, [%l3+512];",
    "racecheck": "st.shared.u32 [tile], %t; ld.shared.u32 %r3, [tile]; st.global.u32 [%l3], %r3;",
    "synccheck": "@%p1 bra OUT;\nbar.sync 0, 64;\nOUT:",
    "initcheck": "ld.shared.u32 %r3, [%r2]; st.global.u32 [%l3], %r3;",
}
CLEAN = "st.global.u32 [%l3], %t;"
Called = tuple[int, str, dict[str, Any]]


def kernel(folder: Path, body: str) -> Path:
    path = folder / "k.ptx"
    path.write_text(f"{HEAD}{body}\nret; }}\n")
    return path


def sanitized(file: Path, *words: str) -> Called:
    record = file.with_suffix(".json")
    ran = called(["sanitize", str(file), *words, "--json", str(record)])
    assert "Traceback" not in ran.output
    return ran.exit_code, ran.output, json.loads(record.read_text())[0]


LAUNCH = ("--block", "32", "--arg", "u32[32]=zeros")


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_tells_its_own(tool: str, tmp_path: Path) -> None:
    path = kernel(tmp_path, BODIES[tool])
    status, text, record = sanitized(path, *LAUNCH)
    assert (status, record["launches"]) == (1, 1), text
    assert {each["tool"] for each in record["findings"]} == {tool}
    assert record["findings"][0]["line"] >= 8
    status, text, record = sanitized(path, *LAUNCH, "--tool", tool)
    assert (status, {each["tool"] for each in record["findings"]}) == (1, {tool})


@pytest.mark.parametrize(("tool", "status"), list(zip(TOOLS, (3, 0, 3, 0), strict=True)))
def test_what_was_not_asked_for(tool: str, status: int, tmp_path: Path) -> None:
    """Races and uninitialised values are not looked for; what ends a launch leaves it undecided."""
    others = ",".join(each for each in TOOLS if each != tool)
    got, text, record = sanitized(kernel(tmp_path, BODIES[tool]), *LAUNCH, "--tool", others)
    assert got == status, text
    assert [each["kind"] for each in record["findings"]] == ["stopped"] * (status == 3)
    assert ("did not see the rest" in text) == (status == 3)


def test_clean_and_bad_words(tmp_path: Path) -> None:
    path = kernel(tmp_path, CLEAN)
    status, text, record = sanitized(path, *LAUNCH)
    assert (status, record["findings"]) == (0, [])
    assert text.endswith("nothing found in 1 launch\n")
    status, text, _ = sanitized(path, *LAUNCH, "--tool", "memchek")
    assert (status, "did you mean memcheck?" in text) == (2, True)
    assert sanitized(path, *LAUNCH, "--run")[0] == 2


def test_the_form_of_compute_sanitizer(tmp_path: Path) -> None:
    heads = {
        "memcheck": "Invalid __global__ read of size 4 bytes",
        "racecheck": "Error: Race reported between Write access at k.ptx:8",
        "synccheck": "Barrier error detected.",
        "initcheck": "Uninitialized __shared__ memory read of size 4 bytes",
    }
    for tool, head in heads.items():
        path = kernel(tmp_path, BODIES[tool])
        _, text, _ = sanitized(path, *LAUNCH, "--format", "sanitizer")
        lines = text.splitlines()
        assert all(line.startswith("=========") for line in lines)
        assert lines[:2] == ["========= COMPUTE-SANITIZER", f"========= {head}"]
        assert lines[-1].startswith("========= ERROR SUMMARY: ")
    assert "by thread (0,0,0) in block (0,0,0)" in text


def test_sarif_and_junit_have_every_finding(tmp_path: Path) -> None:
    sarif, junit = tmp_path / "o.sarif", tmp_path / "o.xml"
    for tool in TOOLS:
        path = kernel(tmp_path, BODIES[tool])
        _, _, record = sanitized(path, *LAUNCH, "--sarif", str(sarif), "--junit", str(junit))
        (run,) = json.loads(sarif.read_text())["runs"]
        known = {each["id"] for each in run["tool"]["driver"]["rules"]}
        assert [each["ruleId"] for each in run["results"]] == [tool] * len(record["findings"])
        assert tool in known
        place = run["results"][0]["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] == record["findings"][0]["line"]
        cases = {each.get("name"): each for each in ET.parse(junit).getroot().iter("testcase")}
        assert set(cases) == {*TOOLS, "launch"}
        assert [name for name, each in cases.items() if len(each)] == [tool]
    # Bad input and a launch without an end are errors, not failures.
    assert sanitized(path, "--sarif", str(sarif), "--junit", str(junit))[0] == 2
    (run,) = json.loads(sarif.read_text())["runs"]
    assert run["invocations"] == [{"executionSuccessful": False}]
    assert ET.parse(junit).getroot().find("./testsuite").get("errors") == "1"  # type: ignore[union-attr]


def test_arrays_of_files(tmp_path: Path) -> None:
    values = np.arange(32, dtype=np.uint32)
    np.save(tmp_path / "x.npy", values.reshape(4, 8))
    np.savez(tmp_path / "one.npz", w=values)
    np.savez(tmp_path / "two.npz", w=values, v=values[:4])
    path = kernel(tmp_path, CLEAN)
    for good in ("@x.npy", "@one.npz", "@two.npz:w", "u32[32]=@two.npz:w", "u32[32]=@x.npy"):
        given = good.replace("@", f"@{tmp_path}/")
        assert sanitized(path, "--block", "32", "--arg", given)[0] == 0, good
    for bad, said in (
        ("@two.npz", "2 arrays"), ("@two.npz:x", "no array 'x'"), ("@x.txt", "no file of arrays"),
        ("@none.npz", "cannot read"), ("u32[8]=@one.npz", "32 elements, not 8"),
        ("@k.ptx.npz", "cannot read"),
    ):  # fmt: skip
        given = bad.replace("@", f"@{tmp_path}/")
        status, text, _ = sanitized(path, "--block", "32", "--arg", given)
        assert (status, said in text) == (2, True), text
    status, _, _ = sanitized(path, "--block", "32", "--arg", f"@{tmp_path}/two.npz:v")
    assert status == 1  # four elements, and thirty-two threads


def test_a_damaged_archive_is_one_error(tmp_path: Path) -> None:
    good = tmp_path / "x.npz"
    np.savez_compressed(good, w=np.arange(32, dtype=np.uint32))
    path, data = kernel(tmp_path, CLEAN), good.read_bytes()
    for at in range(0, len(data), 7):
        bad = bytearray(data)
        bad[at] ^= 0x5A
        good.write_bytes(bytes(bad))
        ran = called(["sanitize", str(path), "--block", "32", "--arg", f"@{good}"])
        assert ran.exit_code in (0, 1, 2), at
        assert "internal error" not in ran.output, ran.output


# -- scripts ---------------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import warploom

x = np.zeros(32, np.uint32)
for name in ({names}):
    report = warploom.emulate(name)[1, 32](x)
    print("after", name, len(sys.argv))
{more}
"""


def script(folder: Path, *tools: str, more: str = "") -> Path:
    files = []
    for tool in tools:
        file = folder / f"{tool}.ptx"
        file.write_text(f"{HEAD}{BODIES.get(tool, CLEAN)}\nret; }}\n")
        files.append(file)
    path = folder / "script.py"
    names = "".join(f"{str(file)!r}," for file in files)
    path.write_text(SCRIPT.format(names=names, more=more))
    return path


def test_a_script_is_run_only_if_that_is_said(tmp_path: Path) -> None:
    path = script(tmp_path, "clean", more=f"np.save({str(tmp_path / 'ran.npy')!r}, x)")
    status, text, _ = sanitized(path)
    assert (status, "add --run" in text, (tmp_path / "ran.npy").exists()) == (2, True, False)
    status, text, record = sanitized(path, "--run")
    assert (status, record["launches"], (tmp_path / "ran.npy").exists()) == (0, 1, True), text
    assert "after" in text
    assert text.count(" 1\n") == 1
    status, text, _ = sanitized(path, "--run", "--block", "32")
    assert (status, "--block means nothing for a script" in text) == (2, True)


def test_launches_of_a_script(tmp_path: Path) -> None:
    """After a race the script goes on; what ends a launch is raised in it."""
    status, text, record = sanitized(script(tmp_path, "racecheck", "memcheck", "clean"), "--run")
    assert (status, record["launches"], text.count("after")) == (1, 2, 1)
    assert [each["tool"] for each in record["findings"]] == ["racecheck", "racecheck", "memcheck"]
    path = script(tmp_path, "racecheck", "initcheck")
    status, text, record = sanitized(path, "--run", "--tool", "memcheck")
    assert (status, record["launches"]) == (0, 2), text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("assert report.kernel == 'other'", "the script ended with AssertionError"),
        ("sys.exit(4)", "exit status 4"),
        ("sys.exit(0)", ""),
    ],
)
def test_a_script_that_fails(more: str, said: str, tmp_path: Path) -> None:
    status, text, record = sanitized(script(tmp_path, "clean", more=more), "--run")
    assert (status, said in text) == (2 if said else 0, True), text
    assert [each["kind"] for each in record["findings"]] == ["script"] * bool(said)


def test_a_script_without_launches(tmp_path: Path) -> None:
    status, text, _ = sanitized(script(tmp_path), "--run")
    assert (status, "launched no kernel" in text) == (2, True)
    status, text, _ = sanitized(tmp_path / "none.py", "--run")
    assert (status, "no such file" in text) == (2, True)
