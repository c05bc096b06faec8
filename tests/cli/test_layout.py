"""`warploom layout` and `warploom verify`: what they print, write and return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.cli.conftest import Cli

from warploom.catalogue.conversion_tuning import ReadyWay
from warploom.cli import layout, layout_convert
from warploom.errors import DeviceError
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.named import FIFTY
from warploom.layout.solver import choose
from warploom.runtime.compile import can_compile


def test_an_answer_with_its_code_and_proof(cli: Cli, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    ran = cli(
        "layout", "solve", "transpose:32x32:f32", "--emit", "cuda", "--certificate", str(proof)
    )
    assert ran.status == 0
    assert "no layout of any kind takes fewer: proved" in ran.err + ran.out
    assert "int place_transpose_32x32_f32(int row, int column)" in ran.out
    checked = cli("verify", str(proof))
    assert checked.status == 0
    assert "the layout costs 64 (all wavefronts)" in checked.out
    assert "no layout whatever costs less than 64" in checked.out


def test_impossible_is_proved(cli: Cli, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    ran = cli("layout", "solve", "but-two:4x32", "--class", "xor", "--certificate", str(proof))
    assert ran.status == 1
    assert "impossible: no linear layout meets the bound" in ran.out
    assert cli("verify", str(proof)).status == 0
    record = json.loads(proof.read_text())
    del record[0]["problem"]["accesses"][2]
    proof.write_text(json.dumps(record))
    refused = cli("verify", str(proof))
    assert refused.status == 1
    assert "does not hold" in refused.err


def test_nothing_to_gain(cli: Cli) -> None:
    ran = cli("layout", "solve", "aos:32x3:f32")
    assert ran.status == 0
    assert "keep yours, nothing to gain" in ran.out


def test_records(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    ran = cli("layout", "solve", "ldmatrix:64x48:f16", "blocks:32x32", "--json", str(file))
    assert ran.status == 0
    first, second = json.loads(file.read_text())
    assert first["classes"]["mixed"]["wavefronts"] == first["bound"] == [4, 4]
    assert first["front"][0]["wasted_bytes"] == 0
    assert second["classes"]["pad"]["proved"]
    assert second["outcome"] == "found"
    only = cli("layout", "solve", "aos:32x2:f32", "--json", "-")
    assert json.loads(only.out)[0]["name"] == "aos:32x2:f32"


@pytest.mark.slow
def test_all_fifty(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    started = time.process_time()
    ran = cli("layout", "solve", "--pattern", "all", "--json", str(file))
    assert time.process_time() - started < 60
    assert ran.status == 0
    records = json.loads(file.read_text())
    assert [record["name"] for record in records] == list(FIFTY)
    assert all(record["classes"]["mixed"]["proved"] for record in records)


def test_a_file_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'shape = [128, 48]\nelement = "f16"\n[[access]]\nname = "store"\nkind = "st"\nsteps = 24\n'
        'bytes = 16\nindex = "(step * 32 + lane) * 8"\n[[access]]\nname = "load"\n'
        'kind = "ldmatrix"\nsteps = 24\nbytes = 16\nindex = ["step // 3 * 16 + lane % 16", '
        '"step % 3 * 16 + lane // 16 * 8"]\n'
    )
    ran = cli("layout", "solve", str(file), "--emit", "c", "-o", str(tmp_path / "place.h"))
    assert ran.status == 0
    assert "static inline int place" in (tmp_path / "place.h").read_text()
    assert "found: S<1,3,3> o (128,48):(48,1)" in ran.out
    good = cli("layout", "check", "S<1,3,3> o (128,48):(48,1)", str(file))
    assert good.status == 0
    bad = cli("layout", "check", "(128,48):(48,1)", str(file))
    assert bad.status == 1
    assert "8 wavefronts per request" in bad.out


def test_layouts_that_are_wrong(cli: Cli) -> None:
    ran = cli("layout", "check", "(32,32):(31,1)", "transpose:32x32:f32")
    assert ran.status == 1
    assert "have one place" in ran.out
    torn = cli("layout", "check", "(32,32):(33,1)", "transpose:32x32:f32:store=16")
    assert torn.status == 1
    assert "vectors of store rows are not whole" in torn.out
    other = cli("layout", "check", "(32,16):(16,1)", "transpose:32x32:f32")
    assert other.status == 2


SHOWN = ("--pattern", "transpose:32x32:f32")


def test_a_picture_of_collisions(cli: Cli) -> None:
    ran = cli(
        "layout", "show", "(32,32):(32,1)", "--pattern", "transpose:32x32:f32", "--access", "1"
    )
    assert ran.status == 0
    assert "bank 0: lane 0 word 0 (element 0,0); lane 1 word 32 (element 1,0)" in ran.out
    clean = cli("layout", "show", "(32,32):(33,1)", *SHOWN)
    assert "bank" not in clean.out.split("\n", 3)[3]


BAD = [
    (("layout", "solve"), "no pattern was given"),
    (("layout", "solve", "transpos:32x32"), "did you mean transpose"),
    (("layout", "solve", "transpose:32x32", "--class", "best"), "no class of layouts"),
    (("layout", "solve", "transpose:32x32", "--machine", "gtx"), "'gtx'"),
    (("layout", "solve", "transpose:32x32", "--emit", "rust"), "there is no format"),
    (("layout", "solve", "transpose:32x32", "--emit", "c", "--name", "int"), "cannot be a name"),
    (("layout", "show", "(4,4):(4,1)", "--emit", "c", "--name", "é"), "cannot be a name"),
    (("layout", "show", "(32,32):(32,1)", "--pattern", "all"), "stands for 50 patterns"),
    (("layout", "check", "(32,32):(32,1)", "all"), "stands for 50 patterns"),
    (
        ("layout", "show", "(32,32):(32,1)", "--pattern", "transpose:32x32", "-o", "tile.png"),
        "figures are SVG",
    ),
    (("layout", "show", "():()"), "<layout>:1:1: a shape has at least one size"),
    (("layout", "show", "(4,4):(4,1)", "--element", "f3"), "no element type"),
    (("layout", "solve", "aos:32x3", "--class", "xor"), "power of two"),
    (("layout", "solve", "all", "--emit", "c"), "take one pattern"),
    (("layout", "show", "S<3,3,2> o 64:1"), "moves bits onto themselves"),
    (("layout", "show", "(4,8):(8,1)", "--pattern", "transpose:32x32"), "4×8"),
    (
        ("layout", "show", "(32,32):(32,1)", "--pattern", "transpose:32x32", "--access", "7"),
        "access",
    ),
    (("layout", "show", "(32,32):(32,1)", "--pattern", "transpose:32x32", "--step", "99"), "step"),
    (("layout", "check", "F2[1,2] o 8:1", "transpose:32x32"), "reaches 7"),
    (("verify", "nowhere.json"), "cannot read"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_error(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    ran = cli(*arguments)
    assert ran.status == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_certificates_that_are_none(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    for text, message in (("{", "not JSON"), ("[]", "no certificate"), ("[{}]", "of the kind")):
        file.write_text(text)
        ran = cli("verify", str(file))
        assert ran.status == 2
        assert message in ran.err
    file.write_text('[{"kind": "layout", "version": 1}]')
    assert cli("verify", str(file)).status == 1


def test_a_budget_ends_the_search(cli: Cli) -> None:
    ran = cli("layout", "solve", "stencil:34x34:f32:points=9", "--no-waste", "--seconds", "0.2")
    assert ran.status in (0, 1, 3)
    if ran.status == 3:
        assert "undecided: time budget spent" in ran.out


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_so_far() -> None:
    """As a user presses it, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "warploom.cli",
        "layout",
        "solve",
        "every-bits:32x32",
        "--class",
    ]
    process = subprocess.Popen([*command, "xor"], stdout=subprocess.PIPE, text=True)
    time.sleep(20)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in out


def test_an_interrupt_is_for_all_problems(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is being solved says what it has; no other is begun; nothing is lost."""
    file, solved = tmp_path / "t.json", list[str]()

    def best_way(problem: Problem, *args: Any, **more: Any) -> Any:
        solved.append(problem.name)
        if len(solved) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return choose.best_way(problem, *args, **more)

    monkeypatch.setattr(layout, "best_way", best_way)
    three = ("transpose:32x32:f32", "rcd:32x32", "blocks:32x32")
    ran = cli("layout", "solve", *three, "--no-store", "--json", str(file))
    assert ran.status == 130
    assert solved == [*three[:2]]
    assert "interrupted: 1 were not begun" in ran.out
    assert [each["name"] for each in json.loads(file.read_text())] == solved


def test_a_conversion_that_was_stopped_says_so(cli: Cli) -> None:
    both = ("--from", "(32,40):(40,1)", "--to", "(32,40):(1,32)", "--no-store")
    ran = cli("layout", "convert", *both, "--seconds", "0")
    assert ran.status == 3
    assert "stopped: a layout of shared memory may take fewer" in ran.out
    ran = cli("layout", "convert", *both)
    assert ran.status == 0
    assert "stopped" not in ran.out
    ran = cli("layout", "convert", "--from", "(32,4):(4,1)", "--to", "(32,4):(4,1)", "--no-store",
              "--seconds", "0")  # fmt: skip
    assert ran.status == 0  # there is nothing to search


def test_conversions(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    ran = cli(
        "layout", "convert", "--from", "(32,5):(1,32)", "--to", "(32,5):(5,1)", "--emit", "cuda",
        "--way", "shuffles", "--json", str(file),
    )  # fmt: skip
    assert ran.status == 0
    assert "5 rounds, 15 selects; fewer are impossible: lane 1 must receive 5" in ran.err
    assert ran.out.count("__shfl_sync") == 5
    (record,) = json.loads(file.read_text())
    assert record["shuffles"]["rounds"] == record["shuffles"]["bound"] == 5
    assert (record["chosen"], record["way"]) == ("shared", "shuffles")


@pytest.mark.parametrize(
    "text",
    [
        "SwizzledSharedLayout(8, 1, 8)",
        "NVMMASharedLayout(128)",
        "Sw<3,4,3> o 0 o (64,128):(128,1)",
        "Sw<3,4,3> o smem_ptr[16b](unset) o (_64,_64):(_64,_1)",
        "S<3,3,3> o 0 o (64,64):(64,1)",
    ],
)
def test_the_pattern_says_what_a_text_does_not(cli: Cli, text: str) -> None:
    ran = cli("layout", "check", text, "ldmatrix:64x64:f16")
    assert ran.status == 0
    assert ran.out.startswith("S<3,3,3> o (64,64):(64,1)\n")
    shown = cli("layout", "show", text, "--pattern", "ldmatrix:64x64:f16", "--access", "1")
    assert (shown.status, shown.out.splitlines()[0]) == (0, "S<3,3,3> o (64,64):(64,1)")


def test_without_a_pattern_a_text_must_say_it_all(cli: Cli) -> None:
    ran = cli("layout", "show", "SwizzledSharedLayout(8, 1, 8)")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("<layout>:1:1: SwizzledSharedLayout does not say the shape")
    assert ran.err.endswith("  give --shape 64x64\n")


TUNED = "--from", "blocked([1,1],[1,32],[1,1],[1,0])", "--to", "blocked([1,4],[4,8],[1,1],[1,0])"


class Told:
    """A GPU that takes as long as it is told; shared memory gives a wrong result there."""

    device, arch = "told sm_90", "sm_90"
    seconds: ClassVar = {"shuffles": 2e-8, "matrices": 3e-8}

    def __init__(self, _: object) -> None:
        pass

    def measure(self, ready: ReadyWay, samples: int) -> list[float]:
        if ready.name not in self.seconds:
            raise DeviceError("it gives a wrong result")
        return [self.seconds[ready.name]] * samples


@pytest.mark.slow
@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_conversions_are_measured_and_remembered(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout_convert, "check_gpu", lambda: None)
    monkeypatch.setattr(layout_convert, "GpuWayBench", Told)
    store, file = str(tmp_path / "store.sqlite"), tmp_path / "c.json"
    asked = (
        "layout", "convert", *TUNED, "--shape", "4x32", "--tune", "--store", store,
        "--json", str(file), "--emit", "cuda",
    )  # fmt: skip
    ran = cli(*asked)
    assert ran.status == 0
    assert "chosen by rule: matrices" in ran.err
    assert "chosen on told sm_90: shuffles" in ran.err
    assert "__shfl_sync" in ran.out
    (record,) = json.loads(file.read_text())
    assert (record["chosen"], record["way"]) == ("matrices", "shuffles")
    assert record["tune"]["best"] == "shuffles"
    assert "1.50 times as fast as by rule" in ran.err
    assert "20.0 ns  shuffles" in ran.err
    again = cli(*asked)
    assert "0 samples just now" in again.err
    assert "chosen on told sm_90: shuffles" in again.err


def test_a_layout_of_one_language_in_another(cli: Cli) -> None:
    ran = cli(
        "layout", "show", "swizzled(8,1,8)", "--shape", "8x64", "--element", "f16", "--emit", "cute"
    )  # fmt: skip
    assert ran.status == 0
    assert "S<3,3,3> o (8,64):(64,1)\n  512 elements" in ran.err
    type_of = "using place_S_3_3_3_o_8_64_64_1 = cute::"
    assert f"// tilelang:       Sw<3,4,3> o 0 o (8,128):(128,1)\n{type_of}" in ran.out
    ran = cli("layout", "solve", "transpose:32x32:f32", "--emit", "triton")
    assert ran.status == 0
    assert json.loads(ran.out)["offset"][5:] == [[1, 1], [2, 2], [4, 4], [8, 8], [16, 16]]


def test_conversions_are_not_measured_without_a_gpu(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise DeviceError("there is no CUDA driver on this machine")

    monkeypatch.setattr(layout_convert, "open_driver", none)
    ran = cli("layout", "convert", *TUNED, "--shape", "4x32", "--tune", "--no-store")
    assert (ran.status, ran.out) == (2, "")
    assert "there is no GPU to measure on\n  without --tune" in ran.err


FIVE_HALVES = ("--from", "(32,5):(5,1)", "--to", "(32,5):(1,32)", "--element", "f16")


def test_a_check_says_what_was_taken_and_whether_it_ran(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler nothing was run of matrices, nothing was said, and all was well."""
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    monkeypatch.setenv("PATH", "")
    given = ("layout", "convert", "--from", "(32,4):(4,1)", "--to", "(32,4):(1,32)", "--check")
    ran = cli(*given)
    assert ran.status == 3
    assert "not run" in ran.out
    ran = cli(*given, "--way", "shuffles")
    assert ran.status == 0
    assert "taken, as was asked: shuffles\n  simulator: right\n  ptx: left out: " in ran.out


CLUSTER = "BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TUNED, "--shape", "4x32", "--tune", "--way", "shared"), "exclude each other"),
        ((*TUNED, "--shape", "4x32", "--no-store", "--store", "x"), "exclude each"),
        (("--from", "mma_c()", "--to", "mma_a(2)"), "does not say the shape"),
        (("--from", "mma_c()", "--to", "mma_a(2)", "--shape", "0x3"), "a tensor of 0 elements"),
        (
            ("--from", "(32,4):(4,1)", "--to", "(32,4):(1,32)", "--element", "f24"),
            "no element type",
        ),
        (
            ("--from", "(32,4):(4,1)", "--to", "(32,4):(1,32)", "--element", "u4"),
            "elements of 4 bits in a conversion",
        ),
        (
            (
                "--from",
                f"{CLUSTER[:-1]}, cga_layout=[[0, 1]])",
                "--to",
                f"{CLUSTER[:-1]}, cga_layout=[[1, 0]])",
                "--shape",
                "32x64",
            ),
            "blocks of the cluster share the tensor in another way",
        ),
        (("--from", "(32,4):(4,1)", "--to", "(32,4):(1,32)", "--way", "post"), "no way is called"),
        ((*FIVE_HALVES, "--way", "matrices"), "do not fit"),
        ((*FIVE_HALVES, "--way", "renames", "--check"), "threads do not hold what they want"),
        (("--from", "(32,2):(2,1)", "--to", "(32,2):(2,1)", "--way", "shared"), "holds what it"),
        (("--from", "(64,2):(2,1)", "--to", "(64,2):(1,64)", "--way", "shuffles"), "another holds"),
        (("--from", "(512,32):(32,1)", "--to", "(512,32):(1,512)"), "it takes 65536 bytes"),
    ],
)
def test_conversions_refused(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    ran = cli("layout", "convert", *arguments)
    assert ran.status == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_the_best_that_cute_can_spell_is_written(cli: Cli, tmp_path: Path) -> None:
    """No type of CuTe is the best layout here; a swizzle is next."""
    out = tmp_path / "place.h"
    ran = cli("layout", "solve", "but-two:4x32", "--class", "xor", "--emit", "cute",
              "-o", str(out))  # fmt: skip
    assert ran.status == 1
    assert "CuTe has no words for F2[" in ran.out
    assert "that it has words for: S<2,2,3> o (4,32):(32,1), cost 52 instead of 28" in ran.out
    assert "cute::Swizzle<2,2,3>" in out.read_text()
    assert out.read_text().startswith("// CuTe has no words for F2[")


def test_the_objective_and_what_was_not_tried_are_told(cli: Cli) -> None:
    for seconds in ("0", "0.1", "0.3", "1"):  # on a busy machine even the first layout takes some
        ran = cli("layout", "solve", "stencil:34x34:f32", "--seconds", seconds, "--no-store")
        assert ran.status == 3
        if "nothing was tried" not in ran.out:
            break
    assert "objective: the fewest wavefronts, added up" in ran.out
    assert "not tried: pad, swizzle, mixed" in ran.out
    assert "\n  pad " not in ran.out
    assert "best so far" in ran.out


def test_a_header_has_an_include_guard_and_its_name(cli: Cli, tmp_path: Path) -> None:
    words = ("layout", "solve", "transpose:16x16:f32", "--emit", "cuda", "--name", "tile_a")
    assert cli(*words, "-o", str(tmp_path / "a.cuh"), "--no-store").status == 0
    assert cli(*words, "-o", str(tmp_path / "a.cu"), "--no-store").status == 0
    header, text = (tmp_path / "a.cuh").read_text(), (tmp_path / "a.cu").read_text()
    assert header.startswith("#ifndef WARPLOOM_TILE_A_")
    assert " int tile_a(int row, int column) {" in text
    assert text in header
    assert "#ifndef" not in text


def test_the_answer_says_which_row_of_the_table_it_is(cli: Cli) -> None:
    ran = cli("layout", "solve", "transpose:32x32:f32", "--no-store")
    assert "accesses: store rows / load columns" in ran.out
    assert "found: S<5,0,5> o (32,32):(32,1) (class swizzle)" in ran.out
