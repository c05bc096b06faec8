"""The fixture `judge` of the pytest plugin, in somebody's tests."""

from __future__ import annotations

from pathlib import Path

from tests.without_gpu.test_plugin import ran

THEIRS = '''
import numpy as np

KERNEL = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 p, .param .u64 q) {
  .reg .b32 %r1; .reg .f32 %f1; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f1, %f1, %f1;
  st.global.f32 [%rd5], %f1;
  ret;
}"""
CLOCK = KERNEL.replace("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %clock; mov.u32 %r1, %tid.x;")
ARGS = {"x": "f32[32]", "y": "f32[32]=out"}

def test_right(judge):
    assert judge(KERNEL, lambda x: 2 * x, ARGS).verdict == "equal"

def test_wrong(judge):
    judge(KERNEL, lambda x: x * x, ARGS, seed=1)

def test_not_followed(judge):
    judge(CLOCK, lambda x: 2 * x, ARGS)

def test_not_followed_is_enough(judge):
    assert judge(CLOCK, lambda x: 2 * x, ARGS, unknown=True).verdict == "unknown"

def test_no_array(judge):
    judge(KERNEL, lambda x: 2 * x, {"x": "f32[32]"})
'''


def test_what_is_not_equal_fails_with_the_verdict_alone(tmp_path: Path) -> None:
    said = ran(tmp_path, THEIRS)
    assert "3 failed, 2 passed" in said, said
    assert "by the reference" in said
    assert "what differs from run to run" in said
    assert "no argument is an output" in said
    for ours in ("Traceback", "During handling", "warploom/", "def passes"):
        assert ours not in said, said
