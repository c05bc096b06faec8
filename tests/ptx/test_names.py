# ruff: noqa: E501 - names are long
"""Kernels and variables by the names that they have in the source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called as cli

from warploom import emulate, ptx
from warploom.errors import DeviceError
from warploom.ptx.demangle import called, demangled, plain_name

NAMES = {
    "saxpy": "saxpy",
    "_Z4demoPii": "demo",
    "_ZN5inner4demoEPi": "inner::demo",
    "_ZN4deep5scaleIfEEvPT_i": "deep::scale<float>",
    "_Z1kILi4ELb1EEvPf": "k<4, true>",
    "_Z1kILj4ELln3EEvv": "k<4u, -3l>",
    "_Z1kIPKfRSt4pairIidEEvv": "k<float const*, std::pair<int, double>&>",
    "_ZN3cub6detail1kINS_4PairIifEELi128EEEvT_": "cub::detail::k<cub::Pair<int, float>, 128>",
    "_Z3fooIJifdEEvPT_": "foo<int, float, double>",
    "_ZN12_GLOBAL__N_13barEv": "(anonymous namespace)::bar",
    "_ZL5tableIfE": "table<float>",
    "_Z1kIA4_iEvv": "k<int [4]>",
    "_Z1kIN1a1bES1_E": "k<a::b, a::b>",
    "_Z1kI1aIS0_IiEEEvv": "k<a<a<int> > >",
}


@pytest.mark.parametrize(("mangled", "name"), NAMES.items())
def test_names_as_they_are_written(mangled: str, name: str) -> None:
    assert demangled(mangled).replace(" ", "") == name.replace(" ", "")


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt")
@pytest.mark.parametrize("mangled", NAMES)
def test_names_as_others_read_them(mangled: str) -> None:
    said = subprocess.run(["c++filt", "-p", mangled], capture_output=True, text=True, check=True)
    want = said.stdout.strip().replace(" ", "")
    if want != mangled:  # it wants whole encodings
        assert demangled(mangled).replace(" ", "") == want


@pytest.mark.parametrize(
    "name",
    [
        "_Z",
        "_ZN",
        "_Z9",
        "_Z99999999999999x",
        "_ZNS_E",
        "_Z1kIXplT_Li1EEE",
        "_Z1kI" + "P" * 5000 + "f",
        "_ZN" + "1a" * 3000,
        "_Z1kIS9_E",
        "_Z1kIT_E",
        "_Z1kILi" + "9" * 9000 + "EE",
    ],
)
def test_names_that_are_none(name: str) -> None:
    assert isinstance(demangled(name), str)
    assert name in called(name)


def test_without_types() -> None:
    assert plain_name("_ZN5inner4demoEPi") == "demo"
    assert plain_name("_ZN8__main__4axpyB2v1B92cw") == "axpy"


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
TEXT = (
    HEAD
    + """.const .align 4 .b8 _ZN4deep5tableE[16];
.global .align 4 .u32 count;
"""
)
for _name, _value in (
    ("_ZN4deep5scaleIfEEvPT_i", 1),
    ("_ZN4deep5scaleIdEEvPT_i", 2),
    ("_Z5otherPf", 3),
):
    TEXT += f""".visible .entry {_name}(.param .u64 out)
{{ .reg .b32 %r; .reg .b64 %l; ld.param.u64 %l, [out]; st.global.u32 [%l], {_value};
ld.const.b32 %r, [_ZN4deep5tableE+4]; st.global.b32 [%l+4], %r; ld.global.u32 %r, [count]; st.global.u32 [%l+8], %r; ret; }}
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale<float>", 1),
        ("deep::scale<double>", 2),
        ("deep::scale< double >", 2),
        ("other", 3),
        ("_Z5otherPf", 3),
    ],
)
def test_kernels_by_their_names(name: str, value: int) -> None:
    out = np.zeros(3, np.uint32)
    ptx.load(TEXT).kernel(name).launch(1, 1, [out])
    assert out[0] == value


@pytest.mark.parametrize(
    ("name", "message", "advice"),
    [("scale", "'scale' may be any of 2 kernels", r"deep::scale<float> \(_ZN4deep5scaleIfEEvPT_i\)"),
     ("nothing", "no kernel 'nothing'", r"other \(_Z5otherPf\)"),
     ("", "no kernel ''", "other"),
     (None, "a module with 3 kernels, and none is named", "other")],
)  # fmt: skip
def test_names_that_say_too_little(name: str | None, message: str, advice: str) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        ptx.load(TEXT).kernel(name)
    assert caught.value.advice
    with pytest.raises(DeviceError, match=advice):
        ptx.load(TEXT).kernel(name)


def test_long_lists_are_cut() -> None:
    text = HEAD + "".join(f".visible .entry k{n}() {{ ret; }}\n" for n in range(50))
    with pytest.raises(DeviceError, match=r"k19, …$"):
        ptx.load(text).kernel("x")


def test_variables_by_their_names() -> None:
    out, module = np.zeros(3, np.uint32), ptx.load(TEXT)
    for name in ("table", "deep::table", "_ZN4deep5tableE"):
        module.set_variable(name, np.arange(4, dtype=np.float32) + len(name))
        module.set_variable("count", np.uint32(len(name)))
        module.kernel("other").launch(1, 1, [out])
        assert out[1:2].view(np.float32)[0] == 1 + len(name)
        assert out[2] == len(name)
    run = emulate(TEXT, "other")
    run.set_variable("table", np.full(4, 7.0, np.float32))
    run[1, 1](out)
    assert out[1:2].view(np.float32)[0] == 7


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("table", np.zeros(3, np.float32), "'table' has 16 bytes, 12 are given"),
     ("table", [1.0] * 4, "a list for variable 'table'"), ("count", 5, "a int for variable"),
     ("nothing", np.zeros(1), "no variable 'nothing'")],
)  # fmt: skip
def test_values_that_do_not_fit(name: str, value: Any, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        ptx.load(TEXT).set_variable(name, value)


@pytest.mark.parametrize("command", ["run", "report"])
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("table=f32[4]=range", 0),
        ("count=u32=9", 0),
        ("table=f32[3]=range", 2),
        ("x=f32=1", 2),
        ("table", 2),
        ("=f32=1", 2),
        ("table=f33[4]=ones", 2),
    ],
)
def test_on_the_command_line(command: str, given: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(TEXT)
    words = [
        "ptx",
        command,
        str(file),
        "--kernel",
        "other",
        "--block",
        "1",
        "--arg",
        "u32[3]=zeros",
        "--variable",
        given,
    ]
    result = cli(words)
    assert result.exit_code == status, result.output
    if command == "run" and status == 0:
        want = "[         3 1065353216          0]" if "table" in given else "[3 0 9]"
        assert want in result.output
