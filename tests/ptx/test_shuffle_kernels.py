"""Sixteen kernels with the names of KernelGen's and three larger stencils, as nvcc compiles them.

The CUDA sources are ours: the published ones are OpenACC, and of them only the numbers of loads and
shuffles are known, from the paper. Ours are *shaped to those numbers*, so that equal counts check
the analysis on code of that shape; they do not reproduce a published measurement.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from warploom.errors import WarploomError
from warploom.ptx.ir import Function, Module
from warploom.ptx.parse import parse
from warploom.ptx.shuffle import KernelReport, Rewrite, check, rewrite
from warploom.ptx.symbolic.distance import decide
from warploom.ptx.symbolic.memory import accesses, survivors
from warploom.ptx.symbolic.walk import read
from warploom.search.outcome import Verdict

FOLDER = Path(__file__).parent
KERNELGEN = (FOLDER / "kernelgen" / "kernelgen.ptx").read_text()
STENCIL = (FOLDER / "stencil" / "stencil.ptx").read_text()

# shuffles, loads. Without restrict, one more load of whispering would be taken across stores.
COUNTS = {
    "divergence": (1, 6), "gameoflife": (6, 9), "gaussblur": (20, 25), "gradient": (1, 6),
    "jacobi": (6, 9), "lapgsrb": (12, 25), "laplacian": (2, 7), "matmul": (0, 6),
    "matvec": (0, 5), "sincos3d": (0, 2), "vecadd": (0, 2), "tricubic": (48, 67),
    "tricubic2": (48, 67), "uxx1": (3, 17), "wave13pt": (4, 14), "whispering": (5, 18),
}  # fmt: skip


@pytest.fixture(scope="module")
def everything() -> Rewrite:
    return rewrite(KERNELGEN, "kernelgen.ptx", select="all")


def of(result: Rewrite, name: str) -> KernelReport:
    return next(kernel for kernel in result.kernels if kernel.name == name)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_fixtures_shaped_to_the_published_ones(everything: Rewrite, name: str) -> None:
    kernel = of(everything, name)
    assert (kernel.shuffles, kernel.loads) == COUNTS[name]
    assert sum(kernel.deltas.values()) == kernel.shuffles


def test_all_sixteen_are_analysed_in_under_a_second_each(everything: Rewrite) -> None:
    assert len(COUNTS) == 16
    assert max(kernel.seconds for kernel in everything.kernels) < 30


def test_a_report_is_plain_data(everything: Rewrite) -> None:
    record = json.loads(json.dumps([kernel.as_record() for kernel in everything.kernels]))
    jacobi = next(entry for entry in record if entry["name"] == "jacobi")
    assert {"name", "loads", "shuffles", "deltas", "seconds", "candidates"} <= set(jacobi)
    assert len(jacobi["candidates"]) == 9
    assert all(entry["why"] for entry in jacobi["candidates"])
    assert sum("lanes further" in entry["proof"] for entry in jacobi["candidates"]) == 6


def test_without_restrict_loads_after_a_store_stay(everything: Rewrite) -> None:
    plain = of(everything, "whispering_plain")
    assert plain.shuffles == 4
    assert any("overwritten" in c.why for c in plain.candidates if not c.taken)


def results_stay_the_same(rewritten: str, rounds: int) -> None:
    report = check(KERNELGEN, rewritten, rounds=rounds)
    assert report.mismatch is None
    assert report.skipped == 0
    assert report.launches == 17 * rounds


@pytest.mark.slow
def test_results_stay_the_same_for_some_launch_shapes(everything: Rewrite) -> None:
    results_stay_the_same(everything.text, 2)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["corner", "predicated"])
def test_results_stay_the_same_for_any_launch_shape(variant: str) -> None:
    results_stay_the_same(rewrite(KERNELGEN, select="all", variant=variant).text, 8)


def test_everything_else_stays_byte_for_byte(everything: Rewrite) -> None:
    old, new = KERNELGEN.split("\n"), everything.text.split("\n")
    loads = {line for line in old if "ld.global" in line}
    kept = iter(new)
    for line in old:
        if line not in loads:
            assert line in kept  # `in` consumes: order is kept too


@pytest.mark.slow
def test_only_what_pays_is_inserted() -> None:
    volta = rewrite(KERNELGEN, machine="volta")
    assert volta.text == KERNELGEN
    assert all("no gain, kept" in c.why for c in of(volta, "jacobi").candidates if c.lanes)
    maxwell = rewrite(KERNELGEN, machine="maxwell")
    assert of(maxwell, "gaussblur").shuffles == 20
    assert all(
        c.gain is not None and c.gain > 0 for c in of(maxwell, "jacobi").candidates if c.taken
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_the_limit_holds(limit: int) -> None:
    for kernel in rewrite(KERNELGEN, select="all", limit=limit).kernels:
        assert all(abs(lanes) <= limit for lanes in kernel.deltas)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
@pytest.mark.parametrize("variant", ["corner", "predicated", "no-corner", "no-load"])
def test_ptxas_accepts_the_result(variant: str, tmp_path: Path) -> None:
    for name, text in (("kernelgen", KERNELGEN), ("stencil", STENCIL)):
        file = tmp_path / f"{name}.ptx"
        file.write_text(rewrite(text, select="all", variant=variant).text)
        command = ["ptxas", "-arch=sm_80", str(file), "-o", str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


# -- the larger ones ----------------------------------------------------------------------------

# With distances of one lane: loads, shuffles of the published rule, ours. The published tool left
# a load alone if its sources *could* be shuffled, even where they were not; we do not.
LARGER = {"hypterm": (48, 12, 24), "rhs4th3fort": (179, 44, 47), "derivative": (166, 52, 52)}


@pytest.fixture(scope="module")
def larger() -> Rewrite:
    return rewrite(STENCIL, select="all", limit=1)


@pytest.mark.parametrize("name", LARGER)
def test_larger_stencils(name: str, larger: Rewrite) -> None:
    kernel = of(larger, name)
    loads, _, ours = LARGER[name]
    assert (kernel.loads, kernel.shuffles) == (loads, ours)
    assert set(kernel.deltas) == {-1, 1}
    assert kernel.seconds < 60


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LARGER)
def test_the_published_rule_gives_the_counts_the_fixtures_are_shaped_to(name: str) -> None:
    module = parse(STENCIL)
    function = module.function(name)
    assert function is not None
    assert published_count(module, function, limit=1) == LARGER[name][1]


def published_count(module: Module, function: Function, limit: int) -> int:
    """Loads with a source that itself has none."""
    reading = read(module, function)
    loads = [load for load in accesses(reading) if load.space == "global"]
    alive = survivors(reading, loads)
    sources: dict[int, list[int]] = {}
    for number, load in enumerate(loads):
        for other in range(number):
            if alive[number] >> other & 1 and loads[other].kind == load.kind:
                verdict = decide(reading, loads[other], load, limit)
                if verdict.verdict is Verdict.PROVED:
                    sources.setdefault(number, []).append(other)
    return sum(any(s not in sources for s in found) for found in sources.values())


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 4])
def test_larger_stencils_compute_the_same(rounds: int) -> None:
    report = check(STENCIL, rewrite(STENCIL, select="all").text, rounds=rounds)
    assert report.mismatch is None
    assert report.agrees


# -- bad requests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"select": "some"}, {"variant": "fast"}, {"limit": 32}, {"machine": "abacus"}]
)
def test_a_bad_option_is_an_error_with_advice(options: dict[str, object]) -> None:
    with pytest.raises(WarploomError) as error:
        rewrite(KERNELGEN, **options)  # type: ignore[arg-type]
    assert error.value.advice
