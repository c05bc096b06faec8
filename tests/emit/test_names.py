"""Any identifier may be a name: what a language reserves is renamed there, and nowhere else."""

from __future__ import annotations

from random import Random
from typing import Any, get_args

import numpy as np
import pytest
from bench.common.kernel.random_kernels import COMMENTS, HOSTILE
from bench.kernel.header_names import global_names, kernels, named, refused
from tests.tools import require

from warploom import runtime
from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.parts import comment_lines
from warploom.emit.reserved import header_names, is_reserved, is_reserved_function
from warploom.emit.spell import function_name, spelled
from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Var
from warploom.kernel.build import Builder, cast, from_index
from warploom.kernel.check import MOST_LETTERS, check_name
from warploom.kernel.dtype import f32, i32
from warploom.kernel.ir import Registers, walk
from warploom.kernel.lower import Row, rotate
from warploom.kernel.names import names_of, plain_name
from warploom.native import compile_c
from warploom.runtime.compile import compile_cuda
from warploom.runtime.host import FLAGS

LANGUAGES: tuple[Language, ...] = get_args(Language)
KEYWORDS = ("float", "for", "if", "register", "struct", "while", "restrict", "inline")


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_a_language_are_renamed_there_alone(language: Language) -> None:
    kernel = named("float", "asm", "kernel", "not", "template", "while")
    text = emit(kernel, language)
    made = spelled(kernel, language)
    assert not [each for each in names_of(made) if is_reserved(each, language)]
    assert function_name(kernel, language) in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["_", "___", "__func__", "_3", "__LINE__", "A_", "FP_INFINITE"])
def test_a_name_of_underscores_is_renamed_once(language: Language, name: str) -> None:
    kernel = named("k", name, f"{name}0", "c", "name_", "u_name")
    made = names_of(spelled(kernel, language))
    assert len(made) == len(names_of(kernel))
    assert not [each for each in made if is_reserved(each, language)]
    assert all(each.isidentifier() for each in made)


@pytest.mark.parametrize("name", ["va_list", "size_t", "clock_t", "va_arg", "FILE"])
def test_a_kernel_called_like_a_type_of_the_library(name: str) -> None:
    require("ptx")
    k = Builder(name, block=32)
    y = k.array("y", i32, 32)
    y[k.thread] = from_index(k.thread)
    result = np.zeros(32, np.int32)
    runtime.load(k.done(), "ptx")(result)
    assert np.array_equal(result, np.arange(32))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_names_become_one(language: Language) -> None:
    kernel = named("k", "asm", "asm_", "asm__1", "asm_1", "int")
    before, after = names_of(kernel), names_of(spelled(kernel, language))
    assert len(before) == len(after)


def test_what_nobody_reserves_stays() -> None:
    kernel = named("scale", "factor", "y", "v", "i", "j")
    for language in LANGUAGES:
        assert spelled(kernel, language) == kernel


@pytest.mark.parametrize("device", ["c", "ptx", "opencl"])
def test_hostile_names_run(device: Any) -> None:
    require(device)
    random = Random(7)
    tried = 1 if device == "opencl" else 6
    for _ in range(tried):
        names = random.sample([*HOSTILE, *KEYWORDS], 6)
        kernel = named(*names)
        y = np.zeros(32, np.int32)
        runtime.load(kernel, device)(5, y)
        assert np.array_equal(y, np.arange(32) * 10 + 3), names


@pytest.mark.parametrize("device", ["c", "ptx", "opencl"])
def test_one_name_for_two_types(device: Any) -> None:
    """In one branch `r` is a float, in the other an integer; lanes exchange in both."""
    require(device)
    k = Builder("two", block=64)
    y = k.array("y", i32, 64)
    total = k.register("total", i32, 0)
    with k.when(k.warp.eq(0)):
        r = k.register("r", f32, 0.75)
        k.set(r, k.shuffle(r + from_index(k.lane, f32), k.lane + 1))
        k.set(total, cast(i32, r * 4.0))
    with k.otherwise():
        q = k.register("r", i32, 9)
        k.set(q, k.shuffle(q + from_index(k.lane), k.lane ^ 3))
        k.set(total, q * 2)
    y[k.thread] = total
    kernel = k.done()
    results = []
    for each in ("simulator", device):
        out = np.zeros(64, np.int32)
        runtime.load(kernel, each)(out)
        results.append(out.tolist())
    assert results[0] == results[1]


def test_invented_names_avoid_those_of_the_user() -> None:
    k = Builder("rotated", block=32)
    y = k.array("y", i32, 96)
    a, _ = k.registers("a", i32, 3), k.registers("b", i32, 3)
    k.register("b_1", i32, 5)
    k.register("b_by", i32, 6)
    with k.loop("j", 3) as j:
        a[j] = from_index(j)
    k.extend(rotate(Row("a", i32, 3), Row("b", i32, 3), k.lane, "j"))
    with k.loop("j", 3) as j:
        y[j * 32 + k.thread] = k_cell("b", j)
    kernel = k.done()
    declared = [each.name for each in walk(kernel.body) if isinstance(each, Registers)]
    assert len(declared) == len(set(declared))
    out = np.zeros(96, np.int32)
    runtime.load(kernel, "simulator")(out)
    assert out.reshape(3, 32)[1].tolist() == [(1 + lane) % 3 for lane in range(32)]


def k_cell(name: str, index: Var) -> Any:
    return Row(name, i32, 3)[index]


# -- names of headers -----------------------------------------------------------------------------

# Kernels of these names did not compile while a list was kept by hand.
MISSED = [
    "CUuuid", "clock64", "copysignf", "cyl_bessel_i0f", "cyl_bessel_i1f", "fdivide", "fdividef",
    "ilogbf", "libraryPropertyType", "llrintf", "llroundf", "lrintf", "lroundf", "nearbyintf",
    "nextafterf", "norm3df", "norm4df", "normcdff", "normcdfinvf", "normf", "rcbrtf",
    "remainderf", "remquof", "rhypotf", "rnorm3df", "rnorm4df", "rnormf", "scalblnf", "scalbnf",
    "std",
]  # fmt: skip


def sample(language: Language, count: int) -> list[str]:
    names = sorted(header_names(language, "macros") | header_names(language, "globals"))
    return Random(3).sample(names, count)


@pytest.mark.parametrize("count", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_kernels_called_like_what_cudas_headers_own_compile(count: int) -> None:
    require("ptx")
    made = kernels(sorted({*MISSED, *sample("cuda", count)}))
    assert refused(made, "cuda", lambda text: compile_cuda(text, contract=False)) == []


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_kernels_called_like_what_cs_headers_own_compile(count: int) -> None:
    require("c")
    made = kernels(sample("c", count))
    assert refused(made, "c", lambda text: compile_c(text, ("-O0", *FLAGS))) == []


def test_a_name_that_is_not_renamed_is_refused() -> None:
    """What the two tests above look at can fail."""
    require("c")
    text = emit(named("fine", "s", "y", "c", "t", "i"), "c").replace("fine", "clock")
    with pytest.raises(DeviceError, match="clock"):
        compile_c(f"#include <time.h>\n{text}", ("-O0", *FLAGS))


def test_what_a_preprocessed_text_declares() -> None:
    text = """# 1 "x.h"
    extern "C" { extern double scale(double x, int n); typedef struct tag { int inner; } type; }
    enum kind { first, second = 2 }; static inline int f(enum kind k) { int local = k; return 0; }
    template <class T, int N> struct box { T value; }; extern int variable;
    """
    found = global_names(text) - {"extern", "typedef", "struct", "enum", "static", "inline"}
    assert found - {"template", "int", "double"} == {
        "scale", "tag", "type", "kind", "first", "second", "f", "box", "variable"
    }  # fmt: skip


def test_functions_of_the_libraries() -> None:
    for name in ("memset", "printf", "sinf", "clock", "exp", "abs", "index", "main", "strlen"):
        for language in LANGUAGES:
            assert is_reserved_function(name, language)
    assert not is_reserved("index", "c")  # as a variable it hides the function, which is fine


# -- comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", COMMENTS)
def test_comments_end_where_their_line_does(text: str) -> None:
    for line in comment_lines(text):
        assert line.startswith("//")
        assert line.isprintable()
        assert not line.endswith(("\\", "??/"))


def test_comments_and_docs_swallow_nothing() -> None:
    require("c")
    k = Builder("commented", block=32, doc="\n".join(COMMENTS))
    y = k.array("y", i32, 32)
    v = k.register("v", i32, 0)
    for text in COMMENTS:
        k.comment(text)
        k.set(v, v + 1)
    y[k.thread] = v
    out = np.zeros(32, np.int32)
    runtime.load(k.done(), "c")(out)
    assert set(out.tolist()) == {len(COMMENTS)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_header_has_the_names_of_the_text(language: Language) -> None:
    """`lane__size` is no name of a parameter anywhere."""
    k = Builder("taking", block=32)
    length = k.scalar("lane__size")
    k.require(length.ge(32))
    k.grid((length + 31) // 32)
    y = k.array("y", i32, length)
    y.put(k.thread, from_index(k.thread), when=k.thread.lt(length))
    text = emit(k.done(), language)
    assert "lane__size" not in text
    assert "Requires: lane_size_ >= 32." in text


@pytest.mark.parametrize(
    ("title", "name"),
    [("größe", "gro_e"), ("café 5", "cafe_5"), ("lane", "lane_sketch"), ("七", "program"),
     ("1 abc", "k_1_abc"), ("*/ evil\n", "evil"), ("_x", "x")],
)  # fmt: skip
def test_titles_and_names_of_files_become_names(title: str, name: str) -> None:
    assert plain_name(title, "program") == name
    check_name(name)


def test_a_name_has_an_end() -> None:
    """PoCL ends the whole process at 300 letters."""
    longest = "a" * MOST_LETTERS
    emit(named(longest, "b", "c", "d", "e", "f"), "opencl")
    for names in ((longest + "a", "b"), ("k", longest + "a")):
        with pytest.raises(CheckError, match=r"'a{40}…' has 129 letters"):
            named(*names, "c", "d", "e", "f")
