"""`warploom kernel`: the catalogue on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from warploom.catalogue import function_entries, names
from warploom.errors import WarploomError
from warploom.runtime.measure import gpu_library


def has_gpu() -> bool:
    try:
        gpu_library()
    except WarploomError:
        return False
    return True


def test_alone_it_lists_the_catalogue(cli: Cli, tmp_path: Path) -> None:
    ran = cli("kernel", "--json", str(tmp_path / "all.json"))
    assert ran.status == 0
    records = json.loads((tmp_path / "all.json").read_text())
    assert [each["name"] for each in records] == [*names(), *function_entries()]
    assert {each["name"] for each in records if each["function"]} == set(function_entries())
    assert all(name in ran.out for name in names())


@pytest.mark.parametrize(
    ("language", "mark"), [("cuda", "__global__"), ("opencl", "__kernel"), ("c", "void ")]
)
def test_emits_text(cli: Cli, language: str, mark: str) -> None:
    ran = cli("kernel", "aos-to-soa", "--set", "fields=5", "--emit", language)
    assert ran.status == 0
    assert mark in ran.out
    assert "Verdict: proved" in ran.out


@pytest.mark.parametrize(
    ("n", "strategy", "said"),
    [("4096", "registers", "Verdict: proved"), ("4097", "shared", "there is no fill")],
)
def test_open_settings_are_decided_for_a_size(
    cli: Cli, tmp_path: Path, n: str, strategy: str, said: str
) -> None:
    out = tmp_path / "kernel.json"
    ran = cli("kernel", "aos-to-soa", "--set", "fields=5", "--size", f"n={n}", "--json", str(out))
    assert ran.status == 0
    assert said in ran.out
    assert json.loads(out.read_text())[0]["settings"]["strategy"] == strategy


def test_a_wrong_size_is_said_before_anything_is_built(cli: Cli) -> None:
    ran = cli("kernel", "aos-to-soa", "--size", "m=3")
    assert ran.status == 2
    assert "needs more sizes than m" in ran.err
    ran = cli("kernel", "aos-to-soa", "--size", "n=0")
    assert ran.status == 2
    assert "n=0 leaves 'aos-to-soa' nothing to do" in ran.err


def test_cuda_is_the_default(cli: Cli) -> None:
    assert "__global__" in cli("kernel", "transposition", "--set", "m=4", "--set", "n=3").out


def test_checks_on_every_device_there_is(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warploom.cli.kernel.WITHOUT_GPU", ("simulator", "c", "ptx"))
    out = tmp_path / "check.json"
    ran = cli("kernel", "aos-sum", "--set", "fields=2", "--check", "--json", str(out))
    assert ran.status == 0
    assert "simulator  agrees on" in ran.out
    (record,) = json.loads(out.read_text())
    assert record["settings"]["fields"] == 2
    assert record["check"]["simulator"]["wrong"] == 0


def test_a_wrong_kernel_is_refuted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warploom.cli.kernel.WITHOUT_GPU", ("simulator",))
    monkeypatch.setattr("warploom.catalogue.entry.same", lambda *_: False)
    ran = cli("kernel", "aos-sum", "--check")
    assert ran.status == 1
    assert "wrong result" in ran.out


def test_mutates(cli: Cli) -> None:
    ran = cli(
        "kernel", "aos-sum", "--mutate", "--most", "10", "--set", "block=32", "--set", "tiles=1"
    )
    assert ran.status == 0
    assert "10 mutants" in ran.out
    assert ", 0 not" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such"], "no kernel 'no-such'"),
        (["aos-to-so"], "did you mean aos-to-soa?"),
        (["aos-to-soa", "--set", "fields=x"], "whole number"),
        (["aos-to-soa", "--set", "fields"], "K=V"),
        (["aos-to-soa", "--set", "=3"], "K=V"),
        (["aos-to-soa", "--set", "feilds=3"], "did you mean fields?"),
        (["aos-to-soa", "--set", "fields=99"], "99 fields"),
        (["aos-to-soa", "--set", "order=" + "c" * 10_000], "unknown order"),
        (["aos-to-soa", "--json", "/no/such/folder/x.json"], "cannot write"),
    ],
)
def test_bad_input_is_one_error(cli: Cli, arguments: list[str], message: str) -> None:
    ran = cli("kernel", *arguments)
    assert ran.status == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err) < 1000


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_timing_without_a_gpu_is_one_error(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "time.json"
    ran = cli("kernel", "aos-to-soa", "--time", "--check", "--json", str(out))
    assert ran.status == 2
    assert "measuring needs" in ran.err or "no GPU" in ran.err
    assert ran.out == ""
    assert not out.exists()


def test_a_time_is_predicted_without_a_gpu(cli: Cli, tmp_path: Path) -> None:
    """Of twice as many elements twice the bytes; memory limits what only moves them."""
    out, found = tmp_path / "model.json", []
    for n in (1 << 26, 1 << 27):
        ran = cli("kernel", "aos-sum", "--model", "--size", f"n={n}", "--json", str(out))
        assert ran.status == 0, ran.err
        assert "predicted" in ran.out
        (record,) = json.loads(out.read_text())
        found.append(record["predicted"])
    assert {each["times"] for each in found} == {"h200"}
    assert {each["limit"] for each in found} == {"memory"}
    assert 1.8 < found[1]["nanoseconds"] / found[0]["nanoseconds"] < 2.2


def test_a_function_has_no_predicted_time(cli: Cli) -> None:
    ran = cli("kernel", "load-structures", "--set", "fields=5", "--model")
    assert ran.status == 2
    assert "a function is not measured" in ran.err
