"""Instructions that the target of a kernel has, and clusters that the kernel allows."""

from __future__ import annotations

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError

TEXT = """
.version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 p)
{directives}
{{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .f32 %f<9>;
.reg .b64 %rd<9>;
.shared .align 128 .b8 s[256];
ld.param.u64 %rd1, [p];
mov.u32 %r1, s;
mov.u64 %rd2, 0;
mov.u32 %r2, 0;
mov.f32 %f1, 0f00000000;
{body}
ret;
}}
"""


def run(body: str, target: str, directives: str = "", **options: object) -> None:
    text = TEXT.format(body=body, target=target, directives=directives)
    blocks = options.pop("blocks", 1)
    arguments = [np.zeros(1024, np.uint8)]
    ptx.load(text, "k.ptx").kernel("k").launch(blocks, 128, arguments, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "has", "lacks"),
    [
        ("wgmma.fence.sync.aligned;", ["sm_90a"], ["sm_90", "sm_80", "sm_100a", "sm_103f"]),
        ("setmaxnreg.dec.sync.aligned.u32 64;", ["sm_90a", "sm_100a", "sm_103f"],
         ["sm_90", "sm_100", "sm_80"]),
        ("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;", ["sm_90", "sm_120"],
         ["sm_80", "sm_89"]),
        ("cp.async.bulk.commit_group;", ["sm_90", "sm_90a"], ["sm_80"]),
        ("cp.async.commit_group;", ["sm_80", "sm_100f"], ["sm_75"]),
        ("elect.sync _|%p1, 0xffffffff;", ["sm_90"], ["sm_80"]),
        ("fence.proxy.async;", ["sm_90"], ["sm_80"]),
        ("fence.acq_rel.cluster;", ["sm_90"], ["sm_80"]),
        ("fence.acq_rel.gpu;", ["sm_80"], []),
        ("mapa.shared::cluster.u32 %r3, %r1, 0;", ["sm_90"], ["sm_89"]),
        ("griddepcontrol.launch_dependents;", ["sm_90"], ["sm_80"]),
        ("redux.sync.add.u32 %r3, %r2, 0xffffffff;", ["sm_80"], ["sm_75"]),
        ("redux.sync.min.f32 %f2, %f1, 0xffffffff;", ["sm_100a"], ["sm_90a", "sm_100"]),
        ("add.rn.f32x2 %rd3, %rd2, %rd2;", ["sm_100"], ["sm_90a"]),
        ("ld.global.v4.b64 {%rd3, %rd4, %rd5, %rd6}, [%rd1];", ["sm_100"], ["sm_90a"]),
        ("ld.global.v2.b64 {%rd3, %rd4}, [%rd1];", ["sm_50"], []),
    ],
)  # fmt: skip
def test_an_instruction_that_the_target_lacks(body: str, has: list[str], lacks: list[str]) -> None:
    for target in has:
        run(body, target)
    for target in lacks:
        with pytest.raises(DeviceError, match=f"is of sm_.* target is {target}\n") as e:
            run(body, target)
        assert e.value.span is not None
        assert e.value.span.line == 18


def test_mbarriers_came_in_two_steps() -> None:
    start = "setp.ne.u32 %p1, %tid.x, 0;\n@!%p1 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync 0;\n"
    token = "@!%p1 mbarrier.arrive.shared.b64 %rd3, [%r1];\n"
    ask = "@!%p1 mbarrier.{}_wait.shared.b64 %p2, [%r1], %rd3;"
    run(start + token + ask.format("test"), "sm_80")
    for body in (start + token + ask.format("try"),
                 start + "@!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 0;"):  # fmt: skip
        run(body, "sm_90")
        with pytest.raises(DeviceError, match="is of sm_90 and later"):
            run(body, "sm_80")


def test_clusters_of_as_many_blocks_as_a_kernel_allows() -> None:
    for size, bound in ((1, 1), (2, 2), (2, 8), (4, 4)):
        run("", "sm_90", f".maxclusterrank {bound}", cluster=size, blocks=4)
    for size, bound in ((2, 1), (4, 2)):
        with pytest.raises(DeviceError, match=f"{size} blocks in a cluster; at most {bound}") as e:
            run("", "sm_90", f".maxclusterrank {bound}", cluster=size, blocks=4)
        assert e.value.span is not None
