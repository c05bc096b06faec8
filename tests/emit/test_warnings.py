"""C text compiles without a warning of -Wall -Wextra, with the flags that its header names."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.common.kernel import kernels
from tests.tools import is_here

import warploom
from warploom.catalogue import find, find_function, function_entries, names
from warploom.catalogue.entry import Entry
from warploom.emit.c import c
from warploom.emit.index_function import index_function
from warploom.emit.language import calling_text
from warploom.errors import ParseError
from warploom.kernel.build import Builder, from_index
from warploom.kernel.dtype import i32
from warploom.layout.language.parse import parse
from warploom.native import c_compiler
from warploom.pipeline.header import named_header

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")
ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = ("(32,32):(32,1)", "(1,32):(0,1)", "S<3,4,3> o (64,64):(64,1)", "(4,1,8):(8,0,1)")


def said(text: str, folder: Path) -> str:
    """What the compiler says of a text, compiled with the flags that stand in it."""
    flags = re.findall(r"^// Compile with: (.*)$", text, re.MULTILINE)
    assert flags, text[:300]
    source = folder / "text.c"
    # One text may be several, each in functions that nobody calls.
    source.write_text(text)
    options = [each for line in flags for each in line.split() if each != "-lm"]
    command = [str(c_compiler()), *dict.fromkeys(options), "-O1", "-Wall", "-Wextra", "-Werror"]
    ran = subprocess.run(
        [*command, "-c", "-o", str(folder / "text.o"), str(source)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert bool(ran.returncode) == bool(ran.stderr)
    return ran.stderr


def entries() -> Iterator[Entry]:
    for name in names():
        try:
            yield find(name)
        except ParseError:  # a sketch alone
            continue


def test_the_catalogue_has_enough() -> None:
    assert len(list(entries())) >= 10


@pytest.mark.sampled(4)
@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: str(entry.name))
def test_kernels_of_the_catalogue(entry: Entry, tmp_path: Path) -> None:
    assert said(c(entry.kernel()), tmp_path) == ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", function_entries())
def test_device_functions(name: str, tmp_path: Path) -> None:
    header = named_header(find_function(name), {})
    assert said(header.text("c"), tmp_path) == ""
    assert said(calling_text(header.template.kernel, "c"), tmp_path) == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["sums", "transposition", "convolution", "own_gathers"])
def test_sketches(name: str, tmp_path: Path) -> None:
    file = ROOT / "examples" / "sketches" / f"{name}.swflow"
    made = warploom.compile(warploom.Sketch.from_text(file.read_text(), file.name))
    assert said(made.text("c"), tmp_path) == ""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, tmp_path: Path) -> None:
    assert said(index_function(parse(layout), "c"), tmp_path) == ""


def test_a_parameter_that_is_not_used(tmp_path: Path) -> None:
    k = Builder("idle", block=32)
    k.scalar("unused")
    y = k.array("y", i32, 32)
    y[k.thread] = from_index(k.thread)
    assert said(c(k.done()), tmp_path) == ""


def test_flags_are_those_that_the_text_needs() -> None:
    def flags(text: str) -> str:
        return text.partition("// Compile with: ")[2].partition("\n")[0]

    assert flags(c(kernels.transpose())) == "-std=c11 -fwrapv"
    floats = "-std=c11 -fwrapv -frounding-math -ffp-contract=off"
    assert flags(c(kernels.stencil())) == floats
    roots = [flags(c(each.kernel())) for each in entries()]
    assert any(each.startswith(floats) for each in roots)
