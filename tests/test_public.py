"""What `import warploom` promises: few names, each with an example that runs, and nothing but NumPy
behind them. What its calls return has one manner: it prints, is shown, written, saved, compiled."""

from __future__ import annotations

import doctest
import json
import pydoc
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import warploom
from warploom.errors import AbsentError, CheckError, DeviceError, EmitError, UnsupportedError
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.patterns.named import pattern
from warploom.pipeline import layouts
from warploom.search.budget import BudgetSpentError
from warploom.search.outcome import Impossible, NothingFoundError, Reason, Undecided

COST = """
import time, numpy
started = time.process_time()
import warploom
print(time.process_time() - started)
"""
NAMES = [name for name in warploom.__all__ if not name.startswith("_")]
MOST = 24  # 27 once those are there that the design still has in mind


def test_the_public_surface_is_small_and_all_there() -> None:
    assert [name for name in dir(warploom) if not name.startswith("_")] == sorted(NAMES)
    assert len(NAMES) <= MOST
    assert not hasattr(warploom, "no_such_name")
    gone = "certificate load_file load_text reinstantiate show_fill to_kernel to_swflow transfer"
    assert not set(gone.split()) & set(NAMES)


def test_the_docstring_lists_every_name_and_no_other() -> None:
    listed = re.findall(r"^  (\w+) +(\S.*)$", warploom.__doc__ or "", re.MULTILINE)
    assert sorted(name for name, _ in listed) == sorted(NAMES)
    assert all(len(line.split()) >= 3 for _, line in listed)
    shown = pydoc.plain(pydoc.render_doc(warploom))
    assert all(f"  {name} " in shown for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    found, started = getattr(warploom, name), time.process_time()
    tests = doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    runner = doctest.DocTestRunner(verbose=False)
    for each in tests:
        runner.run(each)
    result = runner.summarize(verbose=False)
    assert result.attempted >= 2, f"{name} has no example"
    assert result.failed == 0
    assert time.process_time() - started < 3  # alone each takes less than one second


def test_what_belongs_to_a_class_has_examples_that_run() -> None:
    found = doctest.DocTestFinder().find(
        warploom.Sketch, "Sketch", globs={"Sketch": warploom.Sketch}
    )
    runner = doctest.DocTestRunner(verbose=False)
    for each in found:
        if each.name != "Sketch":
            runner.run(each)
    assert runner.summarize(verbose=False).failed == 0


EVERY_MODULE = """
import importlib, pkgutil, warploom
for found in pkgutil.walk_packages(warploom.__path__, "warploom."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:  # the server of agents is all of an extra
            assert (found.name, error.name) == ("warploom.agents.server", "anyio"), found.name
for name in warploom.__all__:
    first, second = getattr(warploom, name), getattr(warploom, name)
    assert first is second, name
    module, attribute = warploom._PUBLIC.get(name, ("", name))
    wanted = importlib.import_module(module) if module and attribute is None else (
        getattr(importlib.import_module(module), attribute) if module else warploom.__version__)
    assert first is wanted, f"{name} is a module once it was imported"
print(len(warploom.__all__))
"""


def test_no_public_name_is_that_of_a_module() -> None:
    assert int(python("-c", EVERY_MODULE).stdout) > 10
    top = {each.stem for each in Path(warploom.__path__[0]).iterdir()}
    assert not top & set(NAMES)


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, check=True, timeout=900
    )


def test_the_import_needs_nothing_but_numpy() -> None:
    def imported(code: str) -> set[str]:
        told = python("-X", "importtime", "-c", code).stderr
        modules = re.findall(r"\|\s+(\S+)$", told, re.MULTILINE)
        return {name.split(".")[0] for name in modules}

    # A site's own start-up files (editable installs, say) come before us and are not ours.
    ours = imported("import warploom") - imported("pass")
    assert "warploom" in ours
    foreign = ours - set(sys.stdlib_module_names) - {"numpy", "warploom"}
    assert {name for name in foreign if not name.startswith("_")} == set()


def test_the_import_is_cheap() -> None:
    cost = min(float(python("-c", COST).stdout) for _ in range(3))
    assert cost < 0.1


def test_the_pytest_plugin_imports_nothing_until_it_is_used() -> None:
    """pytest loads it for all tests of whoever has the package installed."""
    told = python("-c", "import sys, warploom.pytest_plugin; print(*sys.modules)").stdout.split()
    own = {name for name in told if name.startswith("warploom")}
    assert own == {"warploom", "warploom.began", "warploom.pictured", "warploom.pytest_plugin"}


def test_the_whole_core_needs_nothing_but_numpy() -> None:
    """Also when it is used: rich and z3 stay out."""
    told = python(
        "-c",
        "import sys, warploom\n"
        "s = warploom.Sketch('t'); x = s.input('x', 4)\n"
        "s.hole('rots', x, main=0, second=0, out=0); s.goal([1, 2, 3, 0])\n"
        "assert warploom.synthesize(s).fills.count == 1\n"
        "warploom.solve_layout('transpose:32x32:f32', 'swizzle')\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'rich', 'z3', 'cuda'}))",
    )
    assert told.stdout.strip() == "[]"


# -- what calls return -----------------------------------------------------------------------------


def turned() -> warploom.Sketch:
    s = warploom.Sketch("turned")
    x = s.input("x", 4)
    s.hole("rots", x, main=0, second=0, out=0, name="y")
    s.goal(lambda x: [x[1], x[2], x[3], x[0]])
    return s


@warploom.warp_sketch
def by_one(k: Any, lanes: int = 4) -> None:
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    y[lane] = k.shuffle(k.load(x, rounds=1)[0], k.swizzle(lane, lanes))


by_one.specification(lambda x, lanes: [x[(i + 1) % lanes] for i in range(lanes)])

X = np.arange(8, dtype=np.float32)
TURNED = X.reshape(2, 4)[:, [1, 2, 3, 0]].reshape(-1)
A = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)

# How each kind of result is made, and what its function makes of which arrays.
Case = tuple[Callable[[], Any], Callable[[Any], Any], Any]
RESULTS: dict[str, Case] = {
    "synthesize": (lambda: warploom.synthesize(turned()), lambda f: f(X), TURNED),
    "solve": (lambda: warploom.solve(by_one), lambda f: f(X), TURNED),
    "explore": (
        lambda: warploom.explore("axpy", {"n": 64}, evaluations=1, model=True, space="paper"),
        lambda f: f(np.tile(X, 8), np.tile(X, 8), alpha=2.0),
        3 * np.tile(X, 8),
    ),
    "map_array": (
        lambda: warploom.map_array("matvec", {"m": 32, "n": 16}, first=True),
        lambda f: f(A, np.ones(16, np.float32)),
        A.sum(axis=1),
    ),
    "solve_layout": (
        lambda: warploom.solve_layout("rcd:32x32", "xor"),
        lambda f: np.sort(f(*np.indices((32, 32))).reshape(-1)),
        np.arange(1024),
    ),
    "convert_layout": (
        lambda: warploom.convert_layout("(32,4):(1,32)", "(32,4):(4,1)", way="shuffles"),
        lambda f: f(np.arange(128, dtype=np.float32).reshape(4, 32)),
        np.arange(128).reshape(32, 4).T,
    ),
    "load": (
        lambda: warploom.load("aos-to-soa", fields=3),
        lambda f: f(np.arange(12, dtype=np.float32).reshape(4, 3)),
        np.arange(12).reshape(4, 3).T,
    ),
    "compile": (lambda: warploom.compile(turned()), lambda f: f(X), TURNED),
}


@cache
def made(kind: str) -> Any:
    return RESULTS[kind][0]()


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_compiles_to_a_function_on_arrays(kind: str) -> None:
    _, call, wanted = RESULTS[kind]
    function = warploom.compile(made(kind))
    assert np.array_equal(call(function), wanted)
    assert warploom.compile(function) is function
    assert function.text("cuda") == made(kind).text("cuda")


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_prints_and_is_shown(kind: str) -> None:
    result = made(kind)
    assert 10 < len(str(result)) < 1000
    assert repr(result).startswith("<")
    assert "object at 0x" not in repr(result)
    html = result._repr_html_()
    assert "<svg" in html
    assert "<script" not in html


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_is_saved_by_how_the_name_ends(kind: str, tmp_path: Path) -> None:
    result = made(kind)
    for ending, language in ((".cu", "cuda"), (".cl", "opencl"), (".c", "c")):
        result.save(tmp_path / f"it{ending}")
        assert (tmp_path / f"it{ending}").read_text() == result.text(language)
    result.save(tmp_path / "it.cuh")
    assert result.text("cuda") in (tmp_path / "it.cuh").read_text()
    assert (tmp_path / "it.cuh").read_text().startswith("#ifndef WARPLOOM_IT_")
    result.save(tmp_path / "it.svg")
    assert (tmp_path / "it.svg").read_text().startswith("<svg")
    assert not list(tmp_path.glob("it-*"))
    result.save(str(tmp_path / "it.json"))
    (record,) = json.loads((tmp_path / "it.json").read_text())
    assert record == json.loads(json.dumps(result.record()))
    result.save(tmp_path / "it.html")
    assert "<html" in (tmp_path / "it.html").read_text()
    with pytest.raises(EmitError, match="how the name ends"):
        result.save(tmp_path / "it.png")
    with pytest.raises(EmitError, match="cannot write"):
        result.save(tmp_path / "nowhere" / "it.json")


@pytest.mark.parametrize("kind", [each for each in RESULTS if each != "solve_layout"])
def test_results_have_a_kernel(kind: str) -> None:
    kernel = made(kind).kernel
    assert kernel.name
    assert kernel is not None
    assert warploom.compile(made(kind)).kernel == kernel


def test_a_layout_has_places_and_no_kernel() -> None:
    with pytest.raises(UnsupportedError, match="no kernel"):
        _ = made("solve_layout").kernel
    assert made("solve_layout").wavefronts == made("solve_layout").bound == (1.0, 1.0, 1.0)


def test_a_result_of_a_search_has_its_proof_and_other_sizes() -> None:
    assert warploom.synthesize(turned()).certificate()["verdict"] == "proved"
    assert warploom.solve(by_one).certificate()["verdict"] == "proved"
    assert warploom.solve_layout("transpose:32x32:f32", "swizzle").certificate()["kind"] == "layout"
    larger = warploom.solve(by_one).transfer(by_one.at(lanes=16))
    assert "(lane + 1) % 16" in str(larger)
    assert larger.verdict.value == "proved"


def test_what_was_found_elsewhere_is_found_here(tmp_path: Path) -> None:
    """A sketch that was read is the one that was written, and is finished."""
    file = tmp_path / "turned.swflow"
    file.write_text(turned().text())
    read = warploom.Sketch.from_file(file)
    assert read.text() == turned().text()
    assert str(warploom.synthesize(read)).endswith("x.flat[(x0 + 1) % 4]")
    with pytest.raises(CheckError, match="is finished"):
        read.input("y", 4)


@pytest.mark.parametrize(
    ("one", "other", "shape", "element", "way"),
    [
        ("(32,4):(1,32)", "(32,4):(4,1)", None, "f32", None),
        ("(32,8):(8,1)", "(32,(2,4)):(2,(1,64))", None, "f16", "shuffles"),
        ("mma_c()", "mma_a(4)", (16, 32), "i8", "shared"),
    ],
)
def test_a_conversion_moves_every_element(
    one: str, other: str, shape: Any, element: str, way: str | None
) -> None:
    """Elements that travel as words come apart again."""
    found = warploom.convert_layout(one, other, shape=shape, element=element, way=way)
    source, target = read_fragment(one, shape), read_fragment(other, shape)
    values = np.random.default_rng(0).integers(0, 100, (2, source.size))
    kind = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[element]
    held, wanted = (
        values[:, each.elements].transpose(0, 3, 1, 2).reshape(2, each.registers, -1)
        for each in (source, target)
    )
    try:
        function = warploom.compile(found)
    except AbsentError as error:
        pytest.skip(error.message)
    assert np.array_equal(function(held.astype(kind)), wanted)


# -- what is refused -------------------------------------------------------------------------------


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no such nest": (lambda: warploom.explore("matmull"), warploom.WarploomError, "matmul"),
    "a size is missing": (lambda: warploom.explore("axpy"), CheckError, "axpy needs n"),
    "a size too many": (lambda: warploom.explore("axpy", {"m": 3}), CheckError, "no 'm'"),
    "a size of nothing": (lambda: warploom.explore("axpy", {"n": 0}), CheckError, "a size of 0"),
    "no nest": (lambda: warploom.explore(3), CheckError, "is a int"),  # type: ignore[arg-type]
    "no engine": (lambda: warploom.explore("axpy", {"n": 8}, engine="x"), CheckError, "no engine"),
    "no space": (lambda: warploom.explore("axpy", {"n": 8}, space="x"), CheckError, "no space"),
    "no evaluations": (
        lambda: warploom.explore("axpy", {"n": 8}, evaluations=0),
        CheckError,
        "evaluations=0",
    ),
    "no such expression": (lambda: warploom.map_array("doot"), warploom.WarploomError, "dot"),
    "no expression": (lambda: warploom.map_array(3), CheckError, "is a int"),  # type: ignore[arg-type]
    "a size that is none": (
        lambda: warploom.map_array("dot", {"n": "x"}),  # type: ignore[dict-item]
        CheckError,
        "the size n is 'x'",
    ),
    "no fusion": (lambda: warploom.map_array("dot", {"n": 8}, fusion="x"), CheckError, "fusion"),  # type: ignore[arg-type]
    "exclude each other": (
        lambda: warploom.map_array("dot", {"n": 8}, first=True, sample=3),
        warploom.WarploomError,
        "exclude each other",
    ),
    "no such pattern": (lambda: warploom.solve_layout("rcdd:3x3"), warploom.WarploomError, "rcdd"),
    "no pattern": (lambda: warploom.solve_layout(3), CheckError, "not a int"),  # type: ignore[arg-type]
    "no class": (
        lambda: warploom.solve_layout("rcd:32x32", "best"),
        warploom.WarploomError,
        "no class",
    ),
    "two machines": (
        lambda: warploom.solve_layout(pattern("rcd:32x32"), machine="gfx942"),
        CheckError,
        "leave machine out",
    ),
    "decisions that contradict each other": (
        lambda: warploom.explore("axpy", {"n": 64}, fix=["dim_kind(n0)=UNROLL"], space="paper"),
        CheckError,
        "no implementation has",
    ),
    "no register layout": (
        lambda: warploom.convert_layout(3, "mma_c()"),  # type: ignore[arg-type]
        CheckError,
        "is a text",
    ),
    "no way": (
        lambda: warploom.convert_layout("(32,4):(1,32)", "(32,4):(4,1)", way="magic"),
        warploom.WarploomError,
        "no way",
    ),
    "no element": (
        lambda: warploom.convert_layout("(32,4):(1,32)", "(32,4):(4,1)", element="f3"),
        warploom.WarploomError,
        "no element type",
    ),
    "lanes of a layout": (
        lambda: warploom.compile(made("solve_layout"), lanes=4),
        CheckError,
        "no lanes to choose",
    ),
    "a coordinate outside": (
        lambda: warploom.compile(made("solve_layout"))([32], [0]),
        DeviceError,
        "from 0 to 31",
    ),
    "an array too few": (
        lambda: warploom.compile(made("map_array"))(A),
        DeviceError,
        "takes",
    ),
    "a number too few": (
        lambda: warploom.compile(made("explore"))(X, X),
        DeviceError,
        "'alpha' is missing",
    ),
    "threads too few": (
        lambda: warploom.compile(made("convert_layout"))(X.reshape(4, 2)),
        DeviceError,
        "4 registers, 32 threads",
    ),
    "no sketch": (lambda: warploom.compile(3), CheckError, "cannot be compiled"),  # type: ignore[call-overload]
    "a text": (lambda: warploom.compile("x.swflow"), CheckError, "from_file"),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_located_error(name: str) -> None:
    call, kind, words = WRONG[name]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        call()
    assert isinstance(caught.value, warploom.WarploomError)
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__


def test_what_is_impossible_says_so_and_has_no_kernel() -> None:
    s = warploom.Sketch("not possible")
    s.hole("rots", s.input("x", 4), main=0, second=0, out=0)
    s.goal(lambda x: [x[0], x[0], x[0], x[0]])
    for result in (warploom.synthesize(s), warploom.map_array("dot", {"n": 1 << 30}, memory=0)):
        assert isinstance(result.outcome, Impossible), str(result)
        assert "impossible" in str(result)
        with pytest.raises(NothingFoundError):
            warploom.compile(result)


def test_a_layout_that_was_not_begun_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object, **__: object) -> None:
        raise BudgetSpentError(Reason.SECONDS)

    monkeypatch.setattr(layouts, "best_way", spent)
    with pytest.raises(NothingFoundError, match="nothing was tried") as caught:
        warploom.solve_layout("rcd:32x32", seconds=1)
    assert caught.value.outcome == Undecided(Reason.SECONDS)


def test_modules_that_are_public_names_show_only_theirs() -> None:
    assert isinstance(warploom.arrays, ModuleType)
    assert {"f32", "f16", "bf16", "array", "program", "map_", "fold"} <= set(dir(warploom.arrays))


def test_a_conversion_by_matrices_is_shown_too() -> None:
    found = warploom.convert_layout("(32,6):(1,32)", "(32,6):(6,1)")
    assert found.way == "matrices"
    assert "instead of ldmatrix" in warploom.show(found).html


def test_a_name_is_looked_up_once() -> None:
    """A search at each use would cost as much as half a launch."""
    vars(warploom).pop("permute", None)
    found = warploom.permute
    assert vars(warploom)["permute"] is found
