"""`warploom explore`: what it prints, writes and returns; the page that explains it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from warploom.cli.explore import find_program

PAGE = (Path(__file__).parents[2] / "docs" / "loopnests.md").read_text()
BLOCKS = [text.split("\n", 1) for text in PAGE.split("```")[1::2]]
SMALL = ("explore", "axpy", "--size", "n=6", "--evaluations", "8")


@pytest.mark.slow
def test_all_commands_of_the_page_run(cli: Cli) -> None:
    for line in next(t for k, t in BLOCKS if k == "sh").strip().splitlines():
        assert cli(*shlex.split(line)[1:]).status == 0


def test_a_program_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(next(text for kind, text in BLOCKS if kind == "python"))
    ran = cli("explore", f"{file}::scaled_sums", "--size", "m=2,n=3", "--evaluations", "2")
    assert ran.status == 0, ran.err
    assert "it equals the reference evaluator on the simulator" in ran.out
    wrong = cli("explore", f"{file}::scaled_sums", "--size", "q=5")
    assert (wrong.status, "its sizes: m, n" in wrong.err) == (2, True)
    other = cli("explore", f"{file}::LoopNest", "--size", "name=5")
    assert other.status == 2


def test_what_is_written(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "records.json"
    ran = cli(*SMALL, "--emit", "cuda", "--json", str(file))
    assert ran.status == 0
    assert ran.out.lstrip().startswith("//")
    assert "__global__" in ran.out
    assert "which is a model: not measured" in ran.err
    (record,) = json.loads(file.read_text())
    assert record["outcome"] == "found"
    assert record["best"]["nanoseconds"] >= record["bound"] > 0
    assert {"seconds", "evaluated", "pruned"} <= record.keys()


def test_it_says_why_no_more_were_looked_at(cli: Cli, tmp_path: Path) -> None:
    """Fewer than were asked for, or as many; `show` has the same number."""
    file = tmp_path / "kept.json"
    ran = cli("explore", "axpy", "--size", "n=2", "--evaluations", "500", "--keep", str(file))
    record = json.loads(file.read_text())
    count = record["evaluated"]
    assert count < 500
    why = "at most 500 were asked for, but no other that may be faster was found"
    assert record["ended"] == why
    assert re.search(rf"\b{count} implementations? looked at \({why}\); pruned: ", ran.out)
    assert f"  {count} looked at, {record['states']} states visited;" in cli("show", str(file)).out
    few = cli("explore", "axpy", "--size", "n=2", "--evaluations", "1")
    assert "1 implementation looked at (as many as asked for); pruned" in few.out
    again = cli("explore", "axpy", "--size", "n=2", "--evaluations", "500", "--keep", str(file))
    assert " in this run: at most 500 were asked for" in again.out


def test_limits_have_the_words_of_an_engineer(cli: Cli) -> None:
    ran = cli("explore", "axpy", "--size", "n=8", "--explain", "--space", "paper")
    assert "L2 reads: " in ran.out
    assert "assumes waves of blocks when not all fit" in ran.out
    assert not re.search(r"  (l2_read|l2_store|alu|issue|access|lines|dram): ", ran.out)


def test_another_name_of_a_kernel(cli: Cli) -> None:
    assert "did you mean matmul?" in cli("explore", "gemm").err


def test_estimates_are_records_too(cli: Cli) -> None:
    ran = cli("explore", "axpy", "--size", "n=8", "--estimate", "--walks", "4", "--json", "-")
    (record,) = json.loads(ran.out)
    assert record["space"] > 10
    assert 0 <= record["dead_ends"] < 1
    assert record["nodes"][0][0] == 1


def test_it_goes_on_from_what_was_kept(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    assert cli(*SMALL, "--keep", str(file)).status == 0
    first = json.loads(file.read_text())
    assert cli(*SMALL, "--keep", str(file)).status == 0
    second = json.loads(file.read_text())
    assert second["runs"] == 2
    assert second["evaluated"] >= first["evaluated"]
    assert second["best"]["nanoseconds"] <= first["best"]["nanoseconds"]
    other = cli("explore", "axpy", "--size", "n=5", "--keep", str(file))
    assert (other.status, "another program" in other.err) == (2, True)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--size", "n=0"), "a size of 0"),
        (("--size", "n=2147483648"), "sizes are from 1 to 2**31 - 1"),
        (("--size", "q=4"), "axpy has no 'q'"),
        ((), "axpy needs n"),
        (("--size", "n=fast"), "not a whole number"),
        (("--size", "n=6", "--fix", "size(n1)"), "is not a decision"),
        (("--size", "n=6", "--fix", "sise(n1)=4"), "did you mean size?"),
        (("--size", "n=6", "--fix", "size(n7)=4"), "did you mean"),
        (("--size", "n=6", "--fix", "size(n1)=5"), "is not a value"),
        (("--size", "n=6", "--machine", "abacus"), "abacus"),
        (("--size", "n=6", "--machine", "k4000", "--space", "tensor"), "has no tensor cores"),
        (("--size", "n=6", "--machine", "k4000", "--space", "tensor-bf16"), "has no tensor cores"),
        (
            ("--size", "n=6", "--fix", "dim_kind(n0)=BLOCK", "--fix", "dim_kind(n0)=LOOP"),
            "dim_kind(n0)=BLOCK and dim_kind(n0)=LOOP contradict each other",
        ),
        (("--size", "n=6", "--fix", "dim_kind(n0)=THREAD"), "no implementation has"),
        (("--size", "n=6", "--cut", "1"), "--cut means nothing without --estimate"),
        (("--size", "n=6", "--explain", "--emit", "cuda"), "--emit means nothing with --explain"),
        (("--size", "n=6", "--engine", "exact", "--seed", "1"), "--seed means nothing to branch"),
        (("--size", "n=6", "--seed", "-1"), "Invalid value for '--seed'"),
    ],
)
def test_mistakes_are_named(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = cli("explore", "axpy", *arguments)
    assert ran.status == 2
    assert said in ran.err


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", ["1", "7", "2147483647"])
def test_any_size_has_a_kernel(cli: Cli, size: str) -> None:
    ran = cli("explore", "axpy", "--size", f"n={size}", "--evaluations", "2")
    assert ran.status == 0, ran.err
    assert "it equals the reference" in ran.out


NAMES = {
    "axpy": "n",
    "matvec": "mn",
    "gesummv": "mn",
    "matmul": "mnk",
    "batched-matmul": ("batch", "m", "n", "k"),
    "two-matmuls": "mnkp",
    "doitgen": "rqs",
    "add-parts": ("splits", "m", "n"),
}


def sizes(kernel: str, size: int) -> str:
    return ",".join(f"{name}={size}" for name in NAMES[kernel])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("size", [1, 7, 127])
def test_every_kernel_has_an_implementation_of_any_size(cli: Cli, kernel: str, size: int) -> None:
    """Of one element, and of primes, which no tile divides."""
    ran = cli("explore", kernel, "--size", sizes(kernel, size), "--evaluations", "1")
    assert ran.status == 0, ran.err
    assert "it equals the reference" in ran.out


@pytest.mark.parametrize("kernel", [name for name in NAMES if name != "axpy"])
def test_sizes_that_are_none_or_too_large_are_refused(cli: Cli, kernel: str) -> None:
    for size, said in ((0, "a size of 0"), (2**31, "a size of"), (2**31 - 1, "32 bits")):
        ran = cli("explore", kernel, "--size", sizes(kernel, size))
        assert (ran.status, said in ran.err) == (2, True)


def test_decisions_that_no_implementation_has_are_named(cli: Cli) -> None:
    """Tiles of 32 × 4 are more than there is; that the loop is none of blocks is beside it."""
    fixes = ("size(n1)=32", "dim_kind(n0)=LOOP", "size(n2)=4")
    words = [word for each in fixes for word in ("--fix", each)]
    ran = cli("explore", "axpy", "--size", "n=64", *words)
    assert ran.status == 2
    assert "size(n1)=32 and size(n2)=4 contradict each other" in ran.err


def test_a_product_of_bf16_stated_by_the_page(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "layer.py"
    file.write_text(next(text for kind, text in BLOCKS if kind == "python" and "layer" in text))
    ran = cli("explore", f"{file}::layer", "--size", "m=72,n=72,k=72", "--evaluations", "2")
    assert ran.status == 0, ran.err
    assert "wgmma (bf16)" in ran.out
    assert "it equals the reference evaluator on the simulator" in ran.out
    typed = cli("explore", f"{file}::layer", "--size", "m=72,n=72,k=72", "--type", "bf16")
    assert (typed.status, "says its types itself" in typed.err) == (2, True)


PRODUCT = ("explore", "matmul", "--size", "m=72,n=72,k=80,transposed=B,activation=relu")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("of_type", "stored"),
    [
        ("f32", "f32"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("e4m3", "bf16"),
        ("e5m2", "bf16"),
        ("i8", "i32"),
    ],
)
def test_products_have_factors_of_a_type(cli: Cli, of_type: str, stored: str) -> None:
    ran = cli(*PRODUCT, "--type", of_type, "--evaluations", "1")
    assert ran.status == 0, ran.err
    assert "it equals the reference" in ran.out
    assert ("wgmma" in ran.out) is (of_type != "f32")
    typed = find_program("matmul", ["m=8,n=8,k=8"], "default", of_type)
    assert [repr(each.dtype) for each in typed.arrays] == [of_type, of_type, stored]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("axpy", "--type", "bf16", "--size", "n=8"), "batched-matmul and attention have one"),
        (("matmul", "--type", "f64", "--size", "m=8,n=8,k=8"), "Invalid value for '--type'"),
        (
            ("matmul", "--type", "i8", "--size", "m=8,n=8,k=8,activation=sigmoid"),
            "a sigmoid of i32",
        ),
        ((*PRODUCT[1:], "--strategy", "warp-group-tile"), "no sum of products of two converted"),
    ],
)
def test_types_that_are_not_there_are_named(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    ran = cli("explore", *arguments)
    assert (ran.status, said in ran.err) == (2, True)


def test_decisions_of_warp_groups(cli: Cli) -> None:
    own = (*PRODUCT, "--type", "bf16", "--strategy", "warp-group-tile", "--fix")
    ran = cli(*own, "rows=128", "--evaluations", "1")
    assert ran.status == 0, ran.err
    assert re.search(r"tiles of (128×\d+|\d+×\d+) of C", ran.out)
    assert "tensor cores: " in cli(*own, "rows=64", "--explain").out
    for more, said in (
        (("rows=63",), "'63' is not a value of the choice 'rows'"),
        (("rows=64", "--estimate"), "--estimate is of loops, which rows=64 does not decide"),
        (("rows=64", "--engine", "exact"), "--engine exact is of loops"),
    ):
        wrong = cli(*own, *more)
        assert (wrong.status, said in wrong.err) == (2, True), wrong.err
