"""What a kernel says and does wrong, in the words of the CUDA text that it was compiled from."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called

from warploom import ptx
from warploom.errors import DeadlockError, DeviceError, KernelError, LimitError
from warploom.ptx.emulate import schedule
from warploom.ptx.findings import race_fault

FOLDER = Path(__file__).parent / "said"
LINE = "thread 3 of 32:  2.50 hello 1099511627776 z%\n"


@pytest.fixture(autouse=True)
def _beside_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)


def launch(n: int, **options: Any) -> ptx.Report:
    module = ptx.load((FOLDER / "demo.ptx").read_text(), "demo.ptx")
    return module.kernel("demo").launch(1, 32, [np.zeros(64, np.int32), n], **options)


def test_what_a_kernel_prints() -> None:
    assert launch(0).output == [LINE]


@pytest.mark.parametrize(
    ("n", "message", "line"),
    [(1, r"assertion `i < 10` failed at demo.cu:7: void demo\(int \*, int\); block", 7),
     (2, "out-of-bounds access", 3), (5, "trap was reached", 11)],
)  # fmt: skip
def test_faults_are_shown_where_they_were_written(n: int, message: str, line: int) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        launch(n)
    assert caught.value.span is not None
    assert (caught.value.span.source.name, caught.value.span.line) == ("demo.cu", line)
    assert "in demo.ptx, line" in caught.value.advice
    assert caught.value.output == (LINE,)
    if n == 2:
        assert "demo.cu:3, inlined at demo.cu:8" in caught.value.advice


def test_without_the_source_its_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / "demo.ptx").read_text().replace('"demo.cu"', '"elsewhere/demo.cu"')
    with pytest.raises(DeviceError, match=r"\(from demo.cu:11\)") as caught:
        ptx.load(text, "demo.ptx").kernel("demo").launch(1, 32, [np.zeros(64, np.int32), 5])
    assert caught.value.span is not None
    assert caught.value.span.source.name == "demo.ptx"


def test_a_hang_says_who_is_where() -> None:
    with pytest.raises(
        DeadlockError, match=r"block \(0,0,0\), thread \(0,0,0\) and 31 others"
    ) as caught:
        launch(3)
    assert caught.value.span is not None
    assert caught.value.span.line == 9


def call(n: int, *more: str) -> tuple[int, str]:
    words = ["ptx", "run", "demo.ptx", "--arg", "i32[64]=zeros", "--arg", f"i32={n}", *more]
    result = called(words)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("n", "status", "kind", "line"),
    [
        (0, 0, "", 0),
        (1, 1, "fault", 7),
        (2, 1, "fault", 3),
        (3, 1, "deadlock", 9),
        (4, 1, "race", 10),
    ],
)
def test_statuses_and_findings(n: int, status: int, kind: str, line: int, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    code, text = call(n, "--races", "--seconds", "60", "--json", str(out))
    assert code == status, text
    (record,) = json.loads(out.read_text())
    assert record["status"] == status
    found = [(each["kind"], each["line"]) for each in record["findings"]]
    assert found == ([(kind, line)] if kind else [])
    assert LINE in text


def test_bad_input_is_no_finding() -> None:
    assert call(0, "--kernel", "nobody")[0] == 2
    assert call(0, "--arg", "i32=1")[0] == 2


@pytest.mark.parametrize("file", ["/dev/zero", "/dev/stdin", "/", "a\0b", "x" * 5000])
def test_what_ptx_names_and_is_no_source(file: str) -> None:
    """A device has no end, and may wait for ever."""
    text = f""".version 8.0
.target sm_90
.address_size 64
.file 1 "{file}"
.visible .entry k() {{ .reg .b64 %l;
.loc 1 5 1
mov.u64 %l, 16; st.global.u32 [%l], 1; ret; }}
"""
    with pytest.raises(DeviceError, match=r"k\.ptx:7"):
        ptx.load(text, "k.ptx").kernel("k").launch(1, 1, [])


AT = """.version 8.0
.target sm_90
.address_size 64
.file 1 "demo.cu"
.visible .entry k() { .reg .b32 %r<2>;
.loc 1 7 3
mov.u32 %r1, 0;
LOC
trap; ret; }
"""


@pytest.mark.parametrize(
    ("location", "file", "line"),
    [
        (".loc 1 8 3", "demo.cu", 8),
        (".loc 1 0 0", "demo.cu", 7),  # no line of its own: the one before
        (".loc 1 0 0, function_name $f, inlined_at 1 9 1", "demo.cu", 9),
        (".loc 1 99999 1", "k.ptx", 9),  # the file is another one by now
        (".loc 1 8 500", "demo.cu", 8),
    ],
)
def test_places_that_are_not_in_the_file(location: str, file: str, line: int) -> None:
    with pytest.raises(KernelError, match="trap was reached") as caught:
        ptx.load(AT.replace("LOC", location), "k.ptx").kernel("k").launch(1, 1, [])
    span = caught.value.span
    assert span is not None
    assert (span.source.name, span.line) == (file, line)
    assert 1 <= span.column <= len(span.source.line(line)) + 1


def test_printf_of_nothing_says_so() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);
.visible .entry k(.param .u64 out) {
.reg .b32 %r; .reg .b64 %l; .param .b32 r; .param .b64 f; .param .b64 v;
st.param.b64 [f], 0; st.param.b64 [v], 0; call (r), vprintf, (f, v); ld.param.b32 %r, [r];
ld.param.u64 %l, [out]; st.global.u32 [%l], %r; ret; }
"""
    out = np.zeros(1, np.int32)
    assert ptx.load(text).kernel("k").launch(1, 1, [out]).output == []
    assert out.tolist() == [-1]


def test_the_limit_is_looked_at_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of instructions may stand in a row, with no branch between them."""
    rows = "".join(f"add.u32 %r1, %r1, {n};\n" for n in range(100))
    text = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k() {{ .reg .b32 %r<2>; mov.u32 %r1, 0;
{rows}ret; }}
"""
    calls = iter(range(1000))
    now = time.monotonic()
    late = SimpleNamespace(monotonic=lambda: now if next(calls) < 50 else now + 1e9)
    monkeypatch.setattr(schedule, "time", late)
    with pytest.raises(LimitError) as found:
        ptx.load(text, "k.ptx").kernel("k").launch(1, 1, [], seconds=1000, engine="numpy")
    assert found.value.span is not None
    assert 40 < found.value.span.line < 60


LIBRARY = """.version 8.0
.target sm_90
.address_size 64
.file 1 "demo.cu"
.file 2 "HEADER"
.visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
.loc 2 2 1, function_name $f, inlined_at 2 3 1
.loc 2 3 1, function_name $g, inlined_at 1 8 3
.loc 2 2 1, function_name $f, inlined_at 2 3 1
st.global.u32 [%rd1+OFFSET], %r1;
ret; }
"""


@pytest.mark.parametrize(
    "folder", ["site-packages/triton/language", "cuda-13/targets/x86_64-linux/include/cccl"]
)
def test_the_headline_is_the_users_line(folder: str, tmp_path: Path) -> None:
    """Not that of the library that it was inlined from, which is named beside it."""
    header = tmp_path / folder / "standard.py"
    header.parent.mkdir(parents=True)
    header.write_text("one\ntwo\nthree\n")
    text = LIBRARY.replace("HEADER", str(header))
    with pytest.raises(KernelError, match="out-of-bounds") as caught:
        ptx.load(text.replace("OFFSET", "4096"), "k.ptx").kernel("k").launch(
            1, 4, [np.zeros(4, np.int32)]
        )
    assert caught.value.span is not None
    assert (caught.value.span.source.name, caught.value.span.line) == ("demo.cu", 8)
    assert "(in standard.py:2, inlined at standard.py:3)" in caught.value.advice
    module = ptx.load(text.replace("OFFSET", "0"), "k.ptx")
    report = module.kernel("k").launch(1, 4, [np.zeros(4, np.int32)], races="all")
    error = race_fault(module, report.races[0])
    assert error.span is not None
    assert (error.span.source.name, error.span.line) == ("demo.cu", 8)
    inner = "(in standard.py:2, inlined at standard.py:3)"
    assert f"this write {inner} by block" in error.message
    assert f"at demo.cu:8 {inner} by block" in error.message


def test_the_file_of_the_kernel_is_the_users_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "site-packages" / "mine" / "kernels.py"
    own.parent.mkdir(parents=True)
    own.write_text("\n".join("abcdefghij"))
    text = LIBRARY.replace("demo.cu", str(own)).replace("HEADER", str(own))
    with pytest.raises(KernelError, match="out-of-bounds") as caught:
        ptx.load(text.replace("OFFSET", "4096"), "k.ptx").kernel("k").launch(
            1, 4, [np.zeros(4, np.int32)]
        )
    assert caught.value.span is not None
    assert caught.value.span.line == 2
