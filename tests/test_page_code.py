"""Python on the pages that no room's own test runs: it does what the page says beside it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tools import require

from warploom import ptx, synthesize
from warploom.array.language.evaluate import evaluate
from warploom.errors import DeviceError
from warploom.search.outcome import Verdict
from warploom.sketch.synth.transfer import transfer
from warploom.without_gpu.fixture import Gpu

ROOT = Path(__file__).resolve().parents[1]
BOX = """.version 8.4
.target sm_90a
.address_size 64
.visible .entry box(.param .align 64 .b8 map[128], .param .u64 po) {
  .reg .pred %p<3>; .reg .b16 %h; .reg .b32 %r<5>; .reg .b64 %l<5>;
  .shared .align 1024 .b8 tile[2048]; .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
  ld.param.u64 %l1, [po]; mov.b64 %l2, map; cvta.param.u64 %l3, %l2; mov.u32 %r2, 0;
  @!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 %l4, [bar], 2048;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [tile], [%l3, {%r2, %r2}], [bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;
  shl.b32 %r3, %r1, 1; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3; ld.shared.u16 %h, [%r4];
  cvt.u64.u32 %l4, %r3; add.u64 %l1, %l1, %l4; st.global.u16 [%l1], %h; ret;
}
"""
HALF_WAY = """.version 8.0
.target sm_80
.address_size 64
.visible .entry half_way(.param .u64 image, .param .u64 made) {
  .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; ld.param.u64 %l1, [image];
  ld.param.u64 %l2, [made]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; add.f32 %f1, %f1, 1.0;
  mov.f32 %f2, 0.5; tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%l1, {%f1, %f2}];
  shl.b32 %r1, %r1, 2; mov.b32 %r2, %f3; sust.b.1d.b32.trap [%l2, {%r1}], {%r2}; ret;
}
"""


def python(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def form(page: str, word: str) -> str:
    """The block that shows how something is written, with names that the reader has."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```(?:python|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(each for each in blocks if word in each)


def run(block: str, /, **names: Any) -> dict[str, Any]:
    exec(compile(block, "page", "exec"), names)  # our own page
    return names


def test_a_text_is_emulated() -> None:
    seen = run(python("ptx.md")[0])
    np.testing.assert_array_equal(seen["y"], np.full(1000, 3, np.float32))
    assert seen["report"].sectors > 0


def test_a_tensor_map_is_an_argument() -> None:
    array, out = np.arange(64 * 128).reshape(64, 128).astype(np.float16), np.zeros(64, np.float16)
    kernel = ptx.load(BOX, "box.ptx").kernel("box")
    run(
        form("ptx.md", "ptx.tensor_map("),
        ptx=ptx,
        array=array,
        out=out,
        kernel=kernel,
        grid=1,
        block=64,
    )
    np.testing.assert_array_equal(out, array[0, :64])  # the first row is not moved by a swizzle
    with pytest.raises(DeviceError, match="swizzle"):  # as a driver does
        ptx.tensor_map(array, box=(16, 72), swizzle=128)


def test_a_texture_is_an_argument() -> None:
    """A surface gets what linear filtering finds half-way, and zeros beside the border."""
    array, made = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(4, np.float32)
    kernel = ptx.load(HALF_WAY, "half_way.ptx").kernel()
    run(
        form("ptx.md", "ptx.texture("),
        ptx=ptx,
        array=array,
        made=made,
        kernel=kernel,
        grid=1,
        block=4,
    )
    np.testing.assert_array_equal(made, [0.5, 1.5, 2.5, 1.5])


def test_what_a_kernel_does_wrong_is_said_as_shown() -> None:
    require("ptx")
    with pytest.raises(DeviceError) as caught:
        run(python("without-gpu.md")[0])
    shown = (ROOT / "docs" / "without-gpu.md").read_text().split("```\n\n```\n")[1].split("```")[0]
    shown, said = (re.sub(r":\d+: ", ": ", each) for each in (shown, str(caught.value)))  # columns
    for line in shown.splitlines():
        for part in line.split(" …"):
            assert part.strip() in said


def test_the_fixture() -> None:
    require("ptx")
    gpu = Gpu()
    seen = run(python("without-gpu.md")[1], np=np)
    seen["test_saxpy"](gpu)
    assert gpu.reports


def test_the_product_of_matrices() -> None:
    product = run(python("arrays.md")[0])["matmul"]
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(evaluate(product, a, b, m=2, n=4, k=3), a @ b)


def test_fills_are_carried_over() -> None:
    gaussian = runpy.run_path(str(ROOT / "examples" / "gaussian_hvx.py"))["gaussian"]
    names = {"gaussian": gaussian, "synthesize": synthesize, "transfer": transfer}
    large = run(form("sketch.md", "transfer("), **names)["large"]
    assert large.verdict is Verdict.PROVED
    small = gaussian(8)
    assert run(form("sketch.md", "certificate()"), s=small)["proof"]["verdict"] == "proved"
