"""`warploom ptx`: contract of statuses, files and records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.calls import called

KERNELGEN = Path(__file__).parents[1] / "ptx" / "kernelgen" / "kernelgen.ptx"

SAXPY = """.version 7.0
.target sm_70
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p ret;
  mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f3;
  ret;
}
"""


def call(*words: str) -> tuple[int, str]:
    result = called(["ptx", *words])
    return result.exit_code, result.output


@pytest.fixture
def saxpy(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.ptx"
    path.write_text(SAXPY)
    return path


def test_run_writes_arrays_and_a_record(saxpy: Path, tmp_path: Path) -> None:
    arrays, record = tmp_path / "out.npz", tmp_path / "run.json"
    status, text = call(
        "run", str(saxpy), "--grid", "4", "--block", "256", "--arg", "f32[1000]=range",
        "--arg", "f32[1000]=ones", "--arg", "f32=2", "--arg", "u32=1000", "--races", "--counters",
        "--save", str(arrays), "--json", str(record),
    )  # fmt: skip
    assert status == 0, text
    np.testing.assert_array_equal(np.load(arrays)["arg1"], 2 * np.arange(1000) + 1)
    (entry,) = json.loads(record.read_text())
    assert entry["global_store_sectors"] == 125
    assert entry["mix"]["fma"] == 1000


def test_prove_says_for_what_a_run_stands(saxpy: Path, tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    launch = ("--grid", "1", "--block", "32", "--arg", "f32[32]=range", "--arg", "f32[32]=ones",
              "--arg", "f32=2", "--arg", "u32=32", "--prove", "--json", str(record))  # fmt: skip
    by_data = "setp.gt.f32 %q, %f2, 0f00000000;\n  @%q st.global.f32 [%rd5], %f3;"
    by_time = "mov.u32 %r0, %clock; setp.gt.u32 %q, %r0, 0;\n  @%q st.global.f32 [%rd5], %f3;"
    store = "st.global.f32 [%rd5], %f3;"
    for text, status, reach, failed in (
        (SAXPY, 0, "all schedules and all data", []),
        (SAXPY.replace(store, by_data), 0, "all schedules with this data", ["data"]),
        (SAXPY.replace(store, by_time), 3, "this schedule only", ["order"]),
    ):
        saxpy.write_text(text.replace(".reg .pred %p;", ".reg .pred %p, %q;"))
        found, shown = call("run", str(saxpy), *launch)
        assert found == status, shown
        (entry,) = json.loads(record.read_text())
        assert entry["status"] == status
        assert entry["proof"]["reach"] == reach
        assert [each["condition"] for each in entry["proof"]["failed"]] == failed
        assert "proof: " in shown
        assert ("saxpy.ptx" in shown or "line" in shown) == bool(failed)


def test_a_proof_leaves_a_certificate_that_verify_checks(saxpy: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    launch = ("run", str(saxpy), "--grid", "2", "--block", "32", "--arg", "f32[64]=range",
              "--arg", "f32[64]=ones", "--arg", "f32=2", "--arg", "u32=64",
              "--certificate", str(proof))  # fmt: skip
    assert call(*launch)[0] == 2
    assert call(*launch, "--prove")[0] == 0
    result = called(["verify", str(proof)])
    assert result.exit_code == 0
    assert "64 threads are the same in every schedule" in result.output
    (record,) = json.loads(proof.read_text())
    proof.write_text(json.dumps([record | {"reach": "all schedules with this data"}]))
    assert called(["verify", str(proof)]).exit_code == 1


def test_prove_leaves_a_race_what_it_is(saxpy: Path) -> None:
    saxpy.write_text(SAXPY.replace("mul.wide.u32 %rd3, %r5, 4", "mul.wide.u32 %rd3, %r5, 0"))
    status, shown = call(
        "run", str(saxpy), "--grid", "1", "--block", "32", "--arg", "f32[32]=range",
        "--arg", "f32[32]=ones", "--arg", "f32=2", "--arg", "u32=32", "--prove",
    )  # fmt: skip
    assert status == 1
    assert "data race" in shown


def test_a_fault_of_the_kernel_is_one_located_error(saxpy: Path) -> None:
    status, text = call(
        "run", str(saxpy), "--block", "64", "--arg", "f32[10]=range", "--arg", "f32[10]=ones",
        "--arg", "f32=2", "--arg", "u32=64",
    )  # fmt: skip
    assert status == 1
    assert "saxpy.ptx:13:" in text
    assert "thread" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "bad", ["f32[0]=ones", "f99=1", "f32[4]=what", "i8=1000", "x", "f32[4]=@no"]
)
def test_bad_arguments(saxpy: Path, bad: str) -> None:
    status, text = call("run", str(saxpy), "--arg", bad)
    assert status == 2
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--block", "2000"], "2000 threads in a block"),
        (["--kernel", "none"], "no kernel 'none'"),
        (["--shared", "999999999"], "a block has at most 232448"),
        (["--shared", "232449"], "a block has at most 232448"),
        (["--shared", "-1"], "negative"),
        (["--seed", "-1"], "the seed -1 is negative"),
        (["--grid", "2147483648"], "at most (2147483647, 65535, 65535)"),
        (["--grid", "4,x"], "not a shape"),
        (["--arg", "f32=1"], "takes 4 arguments, 5 are given"),
        (["--arg", "f99=1"], "not an argument"),
        (["--save", "no/folder/o.npz"], "cannot write 'no/folder/o.npz'"),
    ],
)
@pytest.mark.parametrize("command", ["run", "report"])
def test_bad_input_leaves_a_record(
    saxpy: Path, tmp_path: Path, command: str, words: list[str], message: str
) -> None:
    if command == "report" and "--save" in words:
        return
    record = tmp_path / "out.json"
    launch = ["--arg", "f32[32]=ones", "--arg", "f32[32]=ones", "--arg", "f32=2", "--arg", "u32=32"]
    status, text = call(command, str(saxpy), *launch, *words, "--json", str(record))
    assert (status, message in text) == (2, True), text
    (entry,) = json.loads(record.read_text())
    assert (entry["kind"], entry["status"]) == (f"ptx {command}", 2)
    assert message in entry["findings"][-1]["message"]


def test_the_largest_grid_ends_at_its_limit(saxpy: Path, tmp_path: Path) -> None:
    record = tmp_path / "out.json"
    status, text = call(
        "run", str(saxpy), "--grid", "2147483647", "--arg", "f32[32]=ones", "--arg", "f32[32]=ones",
        "--arg", "f32=2", "--arg", "u32=32", "--seconds", "0.2", "--json", str(record),
    )  # fmt: skip
    assert status == 3, text
    assert json.loads(record.read_text())[0]["findings"][0]["kind"] == "limit"


def test_a_file_that_is_not_there_leaves_a_record(tmp_path: Path) -> None:
    record = tmp_path / "out.json"
    assert call("run", str(tmp_path / "none.ptx"), "--json", str(record))[0] == 2
    assert json.loads(record.read_text())[0]["findings"][0]["kind"] == "input"
    status, text = call("run", str(tmp_path / "none.ptx"), "--json", str(tmp_path / "no" / "o"))
    assert (status, text.count("cannot write"), text.count("cannot read")) == (2, 1, 0)


def test_shuffle_counts_checks_and_keeps_its_input(tmp_path: Path) -> None:
    before = KERNELGEN.read_bytes()
    out, record = tmp_path / "out.ptx", tmp_path / "shuffle.json"
    status, text = call(
        "shuffle", str(KERNELGEN), "-o", str(out), "--select", "all", "--json", str(record)
    )
    assert status == 0, text
    rows = {row["name"]: row for row in json.loads(record.read_text())}
    assert (rows["jacobi"]["shuffles"], rows["jacobi"]["loads"]) == (6, 9)
    assert rows["jacobi"]["deltas"] == {"-1": 3, "1": 3}
    assert KERNELGEN.read_bytes() == before
    assert out.read_text() != before.decode()


def test_what_does_not_pay_stays_byte_for_byte(saxpy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ptx"
    status, text = call("shuffle", str(saxpy), "-o", str(out), "--why", "--check")
    assert status == 0, text
    assert "no gain, kept" in text
    assert out.read_bytes() == saxpy.read_bytes()


def test_the_input_is_never_overwritten(saxpy: Path) -> None:
    status, text = call("shuffle", str(saxpy), "-o", str(saxpy))
    assert status == 2
    assert "not overwritten" in text
    assert saxpy.read_text() == SAXPY


@pytest.mark.parametrize(
    "junk", [b"", b"\x00\xff\x13junk", b"{" * 100_000, b".version 7.0\n.target"]
)
def test_junk_is_one_located_error(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "junk.ptx"
    path.write_bytes(junk)
    status, text = call("shuffle", str(path))
    assert status in (0, 2)  # an empty file has no kernel, which is no error
    assert "Traceback" not in text


def test_a_check_that_ran_nothing_is_undecided(saxpy: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "odd.ptx", tmp_path / "out.ptx"
    odd = SAXPY.replace("saxpy", "odd").partition(".visible")[2]
    odd = ".visible" + odd.replace("{", "{ wmma.magic.f16 %r1;", 1)
    for text in (SAXPY + odd, SAXPY.partition(".visible")[0]):
        path.write_text(text)
        status, said = call("shuffle", str(path), "-o", str(out), "--check")
        assert status == 3, said
    path.write_text(SAXPY + odd)
    assert "odd: no launch of the original ran through" in call("shuffle", str(path), "--check")[1]


PLACED = """.version 8.0
.target sm_90
.address_size 64
.file 1 "{file}"
.visible .entry k(.param .u64 p) {{
.reg .u64 %a; .reg .u32 %r;
.loc 1 2 1
ld.param.u64 %a, [p];
mov.u32 %r, %tid.x;
st.global.u32 [%a], %r;
ret;
}}
"""


@pytest.mark.parametrize("words", [["run", "--races"], ["report"]])
def test_no_line_is_shown_of_a_file_that_nobody_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """`.file "/etc/passwd"` in PTX put lines of that file into reports."""
    monkeypatch.chdir(tmp_path)
    Path("own.cu").write_text("first\nmy own line\n")
    second = Path("/etc/passwd").read_text().splitlines()[1]
    for file, line, shown in (("/etc/passwd", second, False), ("own.cu", "my own line", True)):
        Path("k.ptx").write_text(PLACED.format(file=file))
        said = called(["ptx", words[0], "k.ptx", "--arg", "u32[4]=zeros", *words[1:]])
        assert f"{Path(file).name}:2" in said.output
        assert (line in said.output) == shown
