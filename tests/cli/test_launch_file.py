# ruff: noqa: E501 - tables read better with a line each
"""`--launch FILE`: a launch that was recorded elsewhere, as .npz and as .json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called

from warploom import emulate, ptx
from warploom.cli.launch_file import read_launch
from warploom.errors import DeviceError, KernelError, ParseError

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "examples" / "ptx" / "saxpy.ptx"
# A structure {long n; float *x; float **rows} by value: out[t] = x[t] + rows[n][t]
DEEP = """.version 8.0
.target sm_80
.address_size 64
.visible .entry deep(.param .align 8 .b8 s[24], .param .u64 out)
{ .reg .b32 %t; .reg .b64 %l<9>; .reg .f32 %f<4>;
mov.u32 %t, %tid.x; mul.wide.u32 %l8, %t, 4;
ld.param.u64 %l1, [s]; ld.param.u64 %l2, [s+8]; ld.param.u64 %l3, [s+16]; ld.param.u64 %l7, [out];
shl.b64 %l1, %l1, 3; add.u64 %l3, %l3, %l1; ld.global.u64 %l4, [%l3];
add.u64 %l2, %l2, %l8; add.u64 %l4, %l4, %l8; add.u64 %l7, %l7, %l8;
ld.global.f32 %f1, [%l2]; ld.global.f32 %f2, [%l4]; add.f32 %f3, %f1, %f2; st.global.f32 [%l7], %f3;
ret; }
"""
Case = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def recorder() -> Any:
    """The function that the page gives, which people paste."""
    page = (ROOT / "docs" / "ptx.md").read_text()
    found = re.search(r"```python\n(import json\n.*?def record.*?)```", page, re.DOTALL)
    assert found is not None
    assert found[1].count("\n") <= 12
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names["record"]


def test_the_recorder_of_the_page(tmp_path: Path) -> None:
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    file, out = tmp_path / "launch.npz", tmp_path / "out.npz"
    recorder()(file, "saxpy", [1], [128], [x, y, 2.0, 100])
    ran = called(["ptx", "run", str(SAXPY), "--launch", str(file), "--races", "--save", str(out)])
    assert ran.exit_code == 0, ran.output
    assert np.array_equal(np.load(out)["a1"], 2 * x + 1)
    assert called(["sanitize", str(SAXPY), "--launch", str(file)]).exit_code == 0
    ran = called(["ptx", "report", str(SAXPY), "--launch", str(file)])
    assert (ran.exit_code, "1 blocks of 128 threads" in ran.output) == (0, True), ran.output
    ran = called(["ptx", "run", str(SAXPY), "--launch", str(file), "--block", "32"])
    assert (ran.exit_code, "--block means nothing beside --launch" in ran.output) == (2, True)


def case() -> Case:
    rows = np.arange(64, dtype=np.float32).reshape(2, 32).copy()
    return np.arange(32, dtype=np.float32), rows[0].copy(), rows[1].copy(), np.zeros(32, np.float32)


def test_structures_with_pointers() -> None:
    x, first, second, out = case()
    head = np.array([1, 0, 0], np.uint64)
    given = ptx.structure(head, {8: x, 16: ptx.pointers([first, second])})
    emulate(DEEP)[1, 32](given, out)
    assert np.array_equal(out, x + second)
    short = ptx.structure(head, {8: x[:16].copy(), 16: ptx.pointers([first, second])})
    with pytest.raises(KernelError, match="what byte 8 of argument 0"):
        emulate(DEEP)[1, 32](short, out)
    null = ptx.structure(head, {8: x, 16: ptx.pointers([first, None])})
    with pytest.raises(KernelError, match="out-of-bounds access: address 0x0"):
        emulate(DEEP)[1, 32](null, out)


@pytest.mark.parametrize(("place", "value"), [(4, None), (24, None), (-8, None), (8, 7)])
def test_what_no_structure_has(place: int, value: Any) -> None:
    with pytest.raises(DeviceError, match=f"byte {place}"):
        ptx.structure(bytes(24), {place: value})


def test_structures_of_a_file(tmp_path: Path) -> None:
    x, first, second, _ = case()
    np.save(tmp_path / "x.npy", x)
    inner = {"pointers": [{"array": "first"}, {"array": "first", "offset": 128}]}
    launch = {
        "grid": 1, "block": [32], "kernel": "deep",
        "arrays": {
            "x": "@x.npy", "out": "f32[32]=zeros",
            "first": {"type": "f32", "values": [*first.tolist(), *second.tolist()]},
        },
        "args": [
            {"bytes": "01" + "00" * 23, "pointers": {"8": {"array": "x"}, "16": inner}},
            {"array": "out"},
        ],
    }  # fmt: skip
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(launch))
    found = read_launch(file)
    ptx.load(DEEP).kernel(found.kernel).launch(found.grid, found.block, found.args)
    assert np.array_equal(found.arrays["out"], x + second)


def test_a_tensor_map_and_numbers(tmp_path: Path) -> None:
    made = {"array": "x", "box": [8, 16], "swizzle": 64, "fill": "nan"}
    args = [{"tensor_map": made}, {"type": "u8", "value": 7}, None, 3, 0.5]
    text = json.dumps({"grid": [2, 1], "block": 64, "cluster": [2], "shared": 512, "args": args})
    file = tmp_path / "l.npz"
    launch = np.frombuffer(text.encode(), np.uint8)
    np.savez(file, launch=launch, x=np.zeros((16, 32), np.float32))
    found = read_launch(file)
    assert (found.grid, found.block, found.cluster, found.shared) == ((2, 1), (64,), (2,), 512)
    map_, small, *rest = found.args
    assert (map_.box, map_.swizzle, map_.nan_outside) == ((8, 16), 64, True)
    assert (small.dtype, rest) == (np.uint8, [None, 3, 0.5])


GOOD: dict[str, Any] = {"grid": 1, "block": 32, "args": []}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grids": 1}, "did you mean grid"), ({"grid": 1.5}, "no whole number"), ({"grid": []}, "sizes"),
        ({"args": None}, "no list"), ({"kernel": 3}, "no text"), ({"arrays": []}, "no object"),
        ({"arrays": {"x": 3}}, "'x' is no array"), ({"arrays": {"x": "@no.npy"}}, "cannot read"),
        ({"arrays": {"x": {"type": "f32", "values": ["a"]}}}, "are no f32"), ({"shared": True}, "shared"),
        ({"args": [{"array": "y"}]}, "argument 0 names no array"), ({"args": ["x"]}, "no argument"),
        ({"args": [{"bytes": "0g"}]}, "hexadecimal"), ({"args": [{"bytes": "00", "pointers": {"0": None}}]}, "byte 0"),
        ({"args": [{"tensor_map": {"array": "x"}}], "arrays": {"x": "f32[4]=ones"}}, "tensor map"),
        ({"args": [{"array": "x", "offset": 99}], "arrays": {"x": "f32[4]=ones"}}, "byte 99"),
        ({"args": [{"type": "f99", "value": 1}]}, "no type"),
    ],
)  # fmt: skip
def test_what_is_no_launch(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "l.json"
    file.write_text(json.dumps(GOOD | change))
    with pytest.raises(ParseError, match=said):
        read_launch(file)
    ran = called(["ptx", "run", str(SAXPY), "--launch", str(file)])
    assert (ran.exit_code, "internal error" in ran.output) == (2, False)


def test_files_that_are_none(tmp_path: Path) -> None:
    for name, data in (("a.json", b"{"), ("b.json", b"[]"), ("c.json", b"[" * 100_000)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ParseError, match="no recorded launch"):
            read_launch(tmp_path / name)
    np.savez(tmp_path / "d.npz", x=np.zeros(3))
    with pytest.raises(ParseError, match="no array 'launch'"):
        read_launch(tmp_path / "d.npz")
