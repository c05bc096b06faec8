# ruff: noqa: E501 - programs read better with a line each
"""An address is of one state space: elsewhere it is a located fault, never somebody's memory."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError

HEADER = """.version 9.0
.target sm_90a
.address_size 64
.const .align 4 .b32 table[4] = {11, 12, 13, 14};
.global .align 4 .b32 words[4] = {21, 22, 23, 24};
.global .align 8 .u64 pointers[4] = {words, generic(words)+4, table, generic(table)+8};
.global .u8 pieces[8] = {0xff(words), 0xff00(words), 0xff0000(words), 0xff000000(words), 0xff00000000(words), 0xff0000000000(words), 0xff000000000000(words), 0xff00000000000000(words)};
"""


def program(body: str) -> str:
    return f"""{HEADER}.visible .entry k(.param .u64 a, .param .u32 n)
{{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  .shared .align 8 .b8 tile[64];
  .local .align 8 .b8 mine[64];
  ld.param.u64 %rd1, [a];
  mov.u64 %rd2, table; mov.u64 %rd3, tile; mov.u64 %rd4, mine; mov.b64 %rd5, n; mov.u64 %rd6, words;
  st.shared.u32 [tile], 7; st.local.u32 [mine], 8;
{body}
  st.global.u32 [%rd1], %r1;
  ret;
}}
"""


def run(body: str) -> int:
    out = np.full(4, 99, np.uint32)
    ptx.load(program(body), "k.ptx").kernel("k").launch(1, 1, [out, 5])
    return int(out[0])


# Each space, the register with an address of it, and how an access of one word is written.
OWN = {"global": "%rd6", "const": "%rd2", "shared": "%rd3", "local": "%rd4", "param": "%rd5"}
VALUES = {"global": 21, "const": 11, "shared": 7, "local": 8, "param": 5}


@pytest.mark.parametrize("space", OWN)
@pytest.mark.parametrize("address", OWN)
def test_loads_reach_their_own_space_only(space: str, address: str) -> None:
    body = f"  ld.{space}.u32 %r1, [{OWN[address]}];"
    if space == address:
        assert run(body) == VALUES[space]
        return
    if {space, address} == {"shared", "local"}:
        return  # small numbers in both: whether they are right is for bounds to say
    with pytest.raises(DeviceError, match="out-of-bounds") as caught:
        run(body)
    assert caught.value.span is not None
    assert f"ld.{space}.u32" in caught.value.span.source.line(caught.value.span.line)


@pytest.mark.parametrize("space", [space for space in OWN if space != "global"])
def test_a_generic_load_needs_a_generic_address(space: str) -> None:
    with pytest.raises(DeviceError, match="belongs to no argument"):
        run(f"  ld.u32 %r1, [{OWN[space]}];")
    converted = f"  cvta.{space}.u64 %rd7, {OWN[space]};\n"
    assert run(converted + "  ld.u32 %r1, [%rd7];") == VALUES[space]
    back = converted + f"  cvta.to.{space}.u64 %rd7, %rd7;\n  ld.{space}.u32 %r1, [%rd7];"
    assert run(back) == VALUES[space]
    with pytest.raises(DeviceError, match=r"as a generic address it lies in|bytes into"):
        run(converted + f"  ld.{space}.u32 %r1, [%rd7];")


@pytest.mark.parametrize("space", ["const", "shared", "local"])
def test_global_accesses_do_not_reach_other_windows(space: str) -> None:
    converted = f"  cvta.{space}.u64 %rd7, {OWN[space]};\n"
    for body in ("ld.global.u32 %r1, [%rd7];", "st.global.u32 [%rd7], 1;",
                 "atom.global.add.u32 %r1, [%rd7], 1;", "cp.async.ca.shared.global [tile], [%rd7], 4;"):  # fmt: skip
        with pytest.raises(DeviceError, match=f"lies in .*{space}"):
            run(converted + "  " + body)


def test_stores_to_parameters_and_constants_are_refused() -> None:
    for space in ("const", "param"):
        converted = f"  cvta.{space}.u64 %rd7, {OWN[space]};\n"
        with pytest.raises(DeviceError, match="stores to constant memory"):
            run(converted + "  st.u32 [%rd7], 1;")


def test_what_isspacep_says() -> None:
    for address in OWN:
        for space in OWN:
            body = (f"  cvta.{address}.u64 %rd7, {OWN[address]};\n"
                    f"  isspacep.{space} %p1, %rd7;\n  selp.u32 %r1, 1, 0, %p1;")  # fmt: skip
            # The window of parameters lies within the global one.
            assert run(body) == (space == address or (space, address) == ("global", "param"))


def test_a_read_only_array_is_not_constant_memory() -> None:
    array = np.arange(4, dtype=np.uint32)
    array.flags.writeable = False
    text = program(
        "  isspacep.const %p1, %rd1;\n  @%p1 trap;\n  ld.global.u32 %r1, [%rd1+8];\n  ret;"
    )
    ptx.load(text).kernel("k").launch(1, 1, [array, 5])


def test_addresses_in_initial_values() -> None:
    load = "  ld.global.u64 %rd7, [pointers+{}];\n"
    assert run(load.format(0) + "  ld.global.u32 %r1, [%rd7];") == 21
    assert run(load.format(8) + "  ld.u32 %r1, [%rd7];") == 22
    assert run(load.format(16) + "  ld.const.u32 %r1, [%rd7];") == 11
    assert run(load.format(24) + "  ld.u32 %r1, [%rd7];") == 13
    joined = "\n".join(
        f"  ld.global.u8 %rd0, [pieces+{i}];\n  shl.b64 %rd0, %rd0, {8 * i};\n  or.b64 %rd7, %rd7, %rd0;"
        for i in range(8)
    )
    assert run("  mov.u64 %rd7, 0;\n" + joined + "\n  ld.global.u32 %r1, [%rd7];") == 21


@pytest.mark.skipif(which("ptxas") is None, reason="needs ptxas")
def test_ptxas_takes_these_programs(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(program("  ld.const.u32 %r1, [%rd2];"))
    done = subprocess.run(
        ["ptxas", "-arch", "sm_90a", "-o", str(tmp_path / "k.cubin"), str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, re.sub(r"\S+/", "", done.stderr)
