# ruff: noqa: E501 - tables and programs read better with a line each
"""What goes wrong in a kernel is reported with line, block and thread; nothing else is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import (
    DeviceError,
    MalformedError,
    ParseError,
    UnsupportedError,
    WarploomError,
)

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
INDEX = """
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
  .shared .align 8 .b8 tile[256];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u64 %rd1, [a]; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;
  shl.b32 %r5, %r3, 2; mov.u32 %r6, tile; add.u32 %r7, %r6, %r5;
"""


def launch(
    body: str, array: np.ndarray, grid: Any = 2, block: Any = 32, **options: Any
) -> ptx.Report:
    text = f"{HEADER}.visible .entry k(.param .u64 a)\n{{{INDEX}{body}\n  ret;\n}}\n"
    return ptx.load(text, "k.ptx").kernel("k").launch(grid, block, [array], **options)


def refused(
    body: str, message: str, *, size: int = 64, where: str = "", **options: Any
) -> WarploomError:
    with pytest.raises(WarploomError, match=message) as caught:
        launch(body, np.zeros(size, np.uint32), **options)
    error = caught.value
    assert error.span is not None
    assert error.span.source.name == "k.ptx"
    if where:
        assert where in error.message, error.message
    return error


def test_out_of_bounds_load() -> None:
    error = refused(
        "  ld.global.u32 %r9, [%rd3+4];", "out-of-bounds", where="block (1,0,0), thread (31,0,0)"
    )
    assert isinstance(error, DeviceError)
    assert "256 bytes into argument 0 ('a')" in error.message
    assert error.span is not None
    assert error.span.line == 11


def test_out_of_bounds_store() -> None:
    refused(
        "  st.global.u32 [%rd3+-8], %r4;", "8 bytes before", where="block (0,0,0), thread (0,0,0)"
    )


def test_inactive_threads_may_hold_any_address() -> None:
    array = np.arange(40, dtype=np.uint32)
    launch("  setp.lt.u32 %p1, %r4, 40;\n  @!%p1 bra end;\n  ld.global.u32 %r9, [%rd3];\n"
           "  add.u32 %r9, %r9, 1;\n  st.global.u32 [%rd3], %r9;\nend:", array)  # fmt: skip
    assert array.tolist() == list(range(1, 41))
    launch("  setp.lt.u32 %p1, %r4, 40;\n  @%p1 st.global.u32 [%rd3], %r4;", array)
    assert array.tolist() == list(range(40))


def test_null_pointer() -> None:
    refused("  mov.u64 %rd4, 0;\n  ld.global.u32 %r9, [%rd4];", "belongs to no argument")


def test_misaligned() -> None:
    refused("  ld.global.u32 %r9, [%rd3+2];", "misaligned", where="thread (0,0,0)")
    refused("  ld.global.v2.u32 {%r9, %r10}, [%rd3];", "misaligned", where="thread (1,0,0)")


def test_shared_bounds() -> None:
    refused("  st.shared.u32 [%r7+140], %r4;", "out-of-bounds", where="thread (29,0,0)")


def test_uninitialised_shared() -> None:
    """Where the value is used; nobody who only looks at it is told off."""
    load = "  ld.shared.u32 %r9, [%r7];"
    body = f"{load}\n  st.global.u32 [%rd3], %r9;"
    refused(body, "never written", where="block (0,0,0), thread (0,0,0)")
    through = f"{load}\n  st.shared.u32 [%r7], %r9;\n"  # it may lie there, and is still none
    launch(load, np.zeros(64, np.uint32))
    launch(through, np.zeros(64, np.uint32))
    refused(through + body, "never written")
    refused(f"{load}\n  setp.eq.u32 %p1, %r9, 0;\n  @%p1 exit;", "never written")
    launch(body, np.zeros(64, np.uint32), check=False)
    partly = "  setp.ne.u32 %p1, %r3, 5;\n  @%p1 st.shared.u32 [%r7], %r4;\n  bar.sync 0;\n" + body
    refused(partly, "never written", where="thread (5,0,0)")
    launch("  st.shared.u32 [%r7], %r4;\n  bar.sync 0;\n" + body, np.zeros(64, np.uint32))
    refused("  st.shared.u8 [%r7], %r4;\n  bar.sync 0;\n" + body, "never written")


@pytest.mark.parametrize("stored", ["", "st.shared.u8 [%r7], %r4;", "st.shared.u8 [%r7+3], %r4;"])
def test_atomics_on_uninitialised_shared(stored: str) -> None:
    body = f"  {stored}\n  bar.sync 0;\n  atom.shared.add.u32 %r9, [%r7], 1;"
    refused(body, "never written", where="block (0,0,0), thread (0,0,0)")


def test_barrier_not_reached_by_all() -> None:
    body = "  setp.lt.u32 %p1, %r3, 16;\n  @!%p1 bra skip;\n  bar.sync 0;\nskip:\n  st.global.u32 [%rd3], %r4;"
    error = refused(body, "not all threads", where="block (0,0,0), thread (0,0,0)")
    assert error.span is not None
    assert "bar.sync 0" in error.span.source.line(error.span.line)


def test_barrier_after_early_exit() -> None:
    """Threads that left the kernel are not waited for."""
    array = np.zeros(64, np.uint32)
    launch(
        "  setp.lt.u32 %p1, %r3, 20;\n  @!%p1 ret;\n  bar.sync 0;\n  st.global.u32 [%rd3], 1;",
        array,
    )
    assert array.reshape(2, 32).sum(axis=1).tolist() == [20, 20]
    work = ("  setp.lt.u32 %p1, %r3, 20;\n  @%p1 bra go;\n  st.global.u32 [%rd3], 7;\n  ret;\ngo:\n"
            "  bar.sync 0;\n  st.global.u32 [%rd3], 1;")  # fmt: skip
    launch(work, array)
    assert array.reshape(2, 32).sum(axis=1).tolist() == [20 + 84, 20 + 84]


def test_barriers_of_different_warps_meet() -> None:
    array = np.zeros(128, np.uint32)
    launch("  setp.lt.u32 %p1, %r3, 32;\n  @%p1 bra one;\n  bar.sync 1, 64;\n  bra end;\none:\n"
           "  bar.sync 1, 64;\nend:\n  st.global.u32 [%rd3], 3;", array, block=64)  # fmt: skip
    assert (array == 3).all()


@pytest.mark.parametrize(("barrier", "half"), [("bar.sync 0", 32), ("bar.warp.sync -1", 16)])
def test_threads_that_waited_elsewhere_keep_their_registers(barrier: str, half: int) -> None:
    """Both halves go on at once; what the first one writes is not seen by the second."""
    way = "  {mov};\n  " + barrier + ";\n  add.u32 %r9, %r9, {add};\n"
    body = (f"  setp.lt.u32 %p1, %r3, {half};\n  @%p1 bra one;\n" + way.format(mov="mov.u32 %r9, %r3", add=1000)
            + "  bra end;\none:\n" + way.format(mov="shl.b32 %r9, %r3, 4", add=5) + "end:\n  st.global.u32 [%rd3], %r9;")  # fmt: skip
    array = np.zeros(2 * half, np.uint32)
    launch(body, array, grid=1, block=2 * half)
    assert array.tolist() == [t * 16 + 5 if t < half else t + 1000 for t in range(2 * half)]


def test_barriers_with_a_predicate() -> None:
    body = "  mov.u32 %r9, %r3;\n  setp.lt.u32 %p1, %r3, 32;\n  @%p1 {};\n  add.u32 %r9, %r9, 7;\n  st.global.u32 [%rd3], %r9;"
    for barrier in ("bar.sync 1, 32", "bar.warp.sync -1"):
        array = np.zeros(64, np.uint32)
        launch(body.format(barrier), array, grid=1, block=64)
        assert array.tolist() == [t + 7 for t in range(64)]


RACE = "  st.shared.u32 [%r7], %r4;\n  xor.b32 %r8, %r7, 4;\n{between}  ld.shared.u32 %r9, [%r8];"


def test_races() -> None:
    refused(RACE.format(between=""), "data race", races=True, where="thread (0,0,0)")
    launch(RACE.format(between="  bar.sync 0;\n"), np.zeros(64, np.uint32), races=True)
    launch(RACE.format(between="  bar.warp.sync -1;\n"), np.zeros(64, np.uint32), races=True)
    launch(RACE.format(between=""), np.zeros(64, np.uint32))  # not asked for


def test_race_between_warps_needs_a_block_barrier() -> None:
    body = ("  st.shared.u32 [%r7], %r4;\n  xor.b32 %r8, %r7, 128;\n  bar.warp.sync -1;\n"
            "  ld.shared.u32 %r9, [%r8];")  # fmt: skip
    refused(body, "data race", races=True, block=64, size=128)


def test_race_write_after_read_and_clash() -> None:
    body = (
        "  ld.global.u32 %r9, [%rd1];\n  setp.eq.u32 %p1, %r3, 3;\n  @%p1 st.global.u32 [%rd1], 1;"
    )
    refused(body, "earlier read", races=True, where="thread (3,0,0)")
    refused("  st.global.u32 [%rd1], %r4;", "data race", races=True)
    refused("  st.global.u32 [%rd1], 5;", "data race", races=True)  # equal values are no excuse


def test_unknown_instruction_matters_when_reached() -> None:
    body = "  setp.lt.u32 %p1, %r4, {n};\n  @!%p1 bra end;\n  wmma.magic::v2.f16 %r9, %r8;\nend:"
    launch(body.format(n=0), np.zeros(64, np.uint32))
    error = refused(body.format(n=1), re.escape("wmma.magic::v2.f16"))
    assert isinstance(error, UnsupportedError)


def test_trap_and_undeclared() -> None:
    refused("  trap;", "trap was reached", where="thread (0,0,0)")
    refused("  mov.u64 %rd4, nowhere;", "'nowhere' is not declared")
    refused("  call other, ();", "no body")
    refused("  bra missing;", "no label 'missing'")


def test_branch_by_number() -> None:
    body = ("targets: .branchtargets A, B;\n  brx.idx %r{n}, targets;\nA:\n  st.global.u32 [%rd3], 1;\n  ret;\n"
            "B:\n  st.global.u32 [%rd3], 2;")  # fmt: skip
    array = np.zeros(64, np.uint32)
    launch(body.replace("{n}", "1"), array)  # the number of the block
    assert array.tolist() == [1] * 32 + [2] * 32
    refused(body.replace("{n}", "3"), "no target number 2", where="thread (2,0,0)")
    guarded = body.replace("brx.idx %r{n}", "setp.lt.u32 %p1, %r3, 2;\n  @%p1 brx.idx %r3")
    launch(guarded.replace("A:\n", "  st.global.u32 [%rd3], 9;\n  ret;\nA:\n"), array)
    assert array.tolist() == ([1, 2] + [9] * 30) * 2


def test_endless_loop_ends() -> None:
    """It counts, so no thread ever comes back as it was: only time can end it."""
    body = "  ld.global.u32 %r9, [%rd1];\n  setp.eq.u32 %p1, %r9, 0;\n  @%p1 ret;\nagain:\n  add.u32 %r9, %r9, 3;\n  st.global.u32 [%rd1], %r9;\n  bra again;"
    launch(body, np.zeros(1, np.uint32))  # made ready, however long it takes
    with pytest.raises(DeviceError, match="did not end"):
        launch(body, np.ones(1, np.uint32), seconds=1)


@pytest.mark.parametrize(
    "option",
    [{"seconds": "x"}, {"seconds": -1}, {"seconds": float("nan")}, {"schedule": "x"}, {"schedule": -1},
     {"engine": "cuda"}, {"races": "some"}, {"cores": 0}],
    ids=str,
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(DeviceError):
        launch("  st.global.u32 [%rd3], 1;", np.zeros(64, np.uint32), **option)


def test_store_to_constant() -> None:
    text = f"{HEADER}.const .u32 c = 5;\n.visible .entry k()\n{{ st.global.u32 [c], 3; ret; }}\n"
    with pytest.raises(DeviceError, match="constant memory"):
        ptx.load(text).kernel("k").launch(1, 1, [])
    frozen = np.zeros(64, np.uint32)
    frozen.setflags(write=False)
    with pytest.raises(DeviceError, match="constant memory"):
        launch("  st.global.u32 [%rd3], 1;", frozen)


@pytest.mark.parametrize(
    ("grid", "block", "args", "message"),
    [
        (1, 2000, [np.zeros(1)], "at most 1024"),
        (1, (1, 1, 128), [np.zeros(1)], "a block of"),
        ((1, 70000), 32, [np.zeros(1)], "a grid of"),
        (0, 32, [np.zeros(1)], "positive"),
        (float("nan"), 32, [np.zeros(1)], "positive"),
        (float("inf"), 32, [np.zeros(1)], "positive"),
        ((1, 1, 1, 1), 32, [np.zeros(1)], "one to three"),
        (1, 32, [], "takes 1 arguments"),
        (1, 32, [np.zeros((4, 4))[:, ::2]], "not contiguous"),
        (1, 32, ["text"], "cannot be passed"),
    ],
)
def test_bad_launches(grid: Any, block: Any, args: list[Any], message: str) -> None:
    text = f"{HEADER}.visible .entry k(.param .u64 a)\n{{ ret; }}\n"
    with pytest.raises(DeviceError, match=message):
        ptx.load(text).kernel("k").launch(grid, block, args)


def test_calls_make_room_for_one_thread_too() -> None:
    text = f"""{HEADER}.func (.param .b32 r) f(.param .b32 a)
{{ .local .align 4 .b8 own[64]; .reg .b32 %r<3>; ld.param.u32 %r1, [a]; st.local.u32 [own+60], %r1;
ld.local.u32 %r2, [own+60]; st.param.u32 [r], %r2; ret; }}
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<3>; .reg .b64 %rd<2>; .param .b32 a; .param .b32 r; mov.u32 %r1, 7; st.param.u32 [a], %r1;
call (r), f, (a); ld.param.u32 %r2, [r]; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r2; ret; }}
"""
    out = np.zeros(1, np.uint32)
    ptx.load(text).kernel("k").launch(1, 1, [out])
    assert out[0] == 7


def test_a_kernel_must_be_named_where_there_is_not_one() -> None:
    for count in (0, 2):
        entries = "".join(f".visible .entry k{i}()\n{{ ret; }}\n" for i in range(count))
        with pytest.raises(DeviceError, match=f"a module with {count} kernels, and none is named"):
            ptx.load(HEADER + entries).kernel()


def test_unknown_kernel() -> None:
    with pytest.raises(DeviceError, match="no kernel 'x'"):
        ptx.load(HEADER).kernel("x")


@pytest.mark.parametrize(
    "line",
    ["add.u32 %r9;", "add %r9, %r8, %r7;", "and.f32 %f1, %f2, %f3;", "ld.global.u32 %r9;", "mov.u32 %r9;",
     "setp.lt %p1, %r1, %r2;", "shfl.sync.up.b32 %r9, %r1;", "st.global.u32 %r9, [%rd3];", "cvt.u32 %r9, %r8;",
     "add.u32 %rd1, %p1, %r2;", "popc.b32 %p1, %r2;", "atom.global.add.u32 %r9, [%rd3];", "lop3.b32 %r9, %r8, %r7, %r6;",
     "selp.u32 %r9, %r8, %r7;", "mul.wide.u64 %rd1, %rd2, %rd3;", "vote.sync.ballot.b32 %r9;",
     "sin.approx.s32 %r9, %r8;", "mov.b64 {%r9, %r8, %r7}, %rd1;", "ld.global.v4.u32 {%r9}, [%rd3];", "brx.idx %r9, nowhere;",
     "call (%r9), (%r8);", "cp.async.ca.shared.global [%r7], [%rd3], %r9;", "red.global.add.u32 [%rd3];"],
)  # fmt: skip
def test_malformed_instructions_are_located(line: str) -> None:
    error = refused("  " + line, "k.ptx")
    assert error.span is not None
    assert line.split(" ")[0] in error.span.source.line(error.span.line)


def test_more_memory_than_there_is() -> None:
    body = "  .local .b8 own[999999999999]; mov.u64 %rd4, own;"
    with pytest.raises(DeviceError, match="a thread has 524288"):
        launch(body, np.zeros(64, np.uint32), block=1024)


def test_two_shared_variables_of_one_name_are_not_mixed_up() -> None:
    one = "{ .shared .b8 twice[64]; mov.u32 %r9, twice; }"
    error = refused(f"  {one}\n  {one}", "two shared variables are called 'twice'")
    assert isinstance(error, UnsupportedError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".global .align 3 .b8 g[5];", "an alignment is a power of two"),
        (".address_size 16", "addresses have 32 or 64 bits"),
        (".func f() { ret; }\n.func f() { ret; }", "a second body of 'f'"),
    ],
)
def test_what_no_assembler_takes(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        ptx.load(f".version 8.0\n.target sm_80\n.address_size 64\n{text}\n")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add.u32 %r77, 1, 1;", "writes to '%r77', which is no register here"),
        ("add.u32 %r1;", "takes the operands"), ("call nobody;", "has no body"),
        ("add.f32 %p1, 0f00000000, 0f00000000;", "a register of another kind"),
    ],
)  # fmt: skip
def test_what_no_thread_could_execute_is_no_fault_of_the_kernel(body: str, message: str) -> None:
    """The text is bad input, status 2 of the command; a fault of a thread is a finding, status 1."""
    text = f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r<9>; .reg .pred %p<3>;\n{body}\nret; }}\n"
    with pytest.raises(MalformedError, match=message) as error:
        ptx.load(text).kernel("k").launch(1, 32, [])
    assert error.value.span is not None


def test_an_error_does_not_repeat_a_name_without_end() -> None:
    text = f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{ add{'.rn' * 100000}.f32 %f1; ret; }}\n"
    with pytest.raises(UnsupportedError) as error:
        ptx.load(text).kernel("k").launch(1, 32, [])
    assert len(str(error.value)) < 1000


def hopper(body: str) -> ptx.Report:
    text = f"{HEADER.replace('sm_80', 'sm_90a')}.visible .entry k()\n{{\n{body}\nret;\n}}\n"
    return ptx.load(text, "k.ptx").kernel("k").launch(1, 128, [], races=True, prove=True)


@pytest.mark.parametrize("number", ["-1", "99999999999999999999", "0x1ffffffffffffffff"])
def test_a_wait_for_products_leaves_so_many_groups_as_there_can_be(number: str) -> None:
    with pytest.raises((MalformedError, ParseError), match=r"leaves -1 groups|is no number"):
        hopper(f"wgmma.wait_group.sync.aligned {number};")
    hopper("wgmma.wait_group.sync.aligned 0xffffffffffffffff;")


def test_the_sums_of_a_product_are_several_registers() -> None:
    product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 %f1, %rd1, %rd1, %p1, 1, 1, 0, 0;"
    registers = ".reg .f32 %f<9>; .reg .b64 %rd<2>; .reg .pred %p<2>; mov.f32 %f1, 0f00000000;"
    values = "mov.u64 %rd1, 0; setp.eq.u64 %p1, %rd1, 1;"
    with pytest.raises(WarploomError, match="wgmma") as found:
        hopper(f"{registers} {values}\n{product}")
    assert found.value.span is not None
    assert found.value.span.source.text.splitlines()[found.value.span.line - 1] == product
