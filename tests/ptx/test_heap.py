# ruff: noqa: E501 - programs read better with a line each
"""Device malloc and free: memory of a thread's own that lasts, with bounds, and who freed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called

from warploom import emulate, ptx
from warploom.errors import DeviceError, KernelError
from warploom.machine import heap
from warploom.machine.race import RaceDetector

FOLDER = Path(__file__).parent / "heap"
TEXT = (FOLDER / "heap.ptx").read_text()
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _beside_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)


def module() -> ptx.LoadedModule:
    return ptx.load(TEXT, "heap.ptx")


@pytest.mark.parametrize("races", [False, "all"])
@pytest.mark.parametrize("schedule", [None, 3])
def test_a_list_of_every_thread(races: Any, schedule: int | None) -> None:
    out = np.zeros(150, np.int32)
    loaded = module()
    report = loaded.kernel("list").launch(3, 50, [out, 7], races=races, schedule=schedule)
    assert out.tolist() == [sum(k * i for k in range(i % 7)) for i in range(150)]
    assert report.races == []
    assert report.engine == "numpy"
    assert loaded.heap.used == 0


def test_the_compiled_engine_leaves_it_alone() -> None:
    """And what works on memory of the heap without calling malloc, once there is some."""
    loaded = module()
    assert loaded.kernel("list").why_not_fast() == "call.uni"
    other = ptx.load(HEAD + ".visible .entry k() { ret; }").kernel("k")
    assert other.why_not_fast() == ""
    other.owner.heap.give(
        np.array([8], np.uint64), 16, np.array([0]), heap.Call("", (1,) * 3, (1,) * 3)
    )
    assert other.why_not_fast() == "memory that malloc gave"
    assert other.launch(1, 32, [], engine="c").engine == "numpy"


def test_memory_of_a_block() -> None:
    out = np.zeros(128, np.int32)
    loaded = module()
    report = loaded.kernel("block_array").launch(2, 64, [out, 200, 0], races="all")
    assert out.tolist() == [0] * 64 + [199 - i for i in range(64)]
    assert report.races == []
    assert loaded.heap.used == 0


@pytest.mark.parametrize(
    ("mistake", "line", "message"),
    [
        (1, 49, r"ld\.u32: data race: this read and an earlier write by .* \(heap\.cu:47\)"),
        (2, 51, r"free: data race: this write and an earlier read by .* \(heap\.cu:49\)"),
    ],
)
def test_races_on_memory_of_a_block(mistake: int, line: int, message: str) -> None:
    """What nobody waits for: writes of others before they are read, and readers before a free."""
    arguments = [np.zeros(128, np.int32), 200, mistake]
    with pytest.raises(KernelError, match=message) as caught:
        module().kernel("block_array").launch(2, 64, arguments, races=True)
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_objects_are_made_and_deleted() -> None:
    out = np.zeros(64, np.float32)
    loaded = module()
    assert loaded.kernel("objects").launch(1, 64, [out], races="all").races == []
    i = np.arange(64)
    assert out.tolist() == (i * i * np.where(i % 2, 3, 1) + i).tolist()
    assert loaded.heap.used == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("size", "pieces"),
    [(1000, MIB // 1008), (0, MIB // 16), (1, MIB // 16), (17, MIB // 32), (MIB, 1), (MIB + 1, 0)],
)
def test_a_full_heap_gives_no_memory(size: int, pieces: int) -> None:
    """Every piece costs a multiple of 16 bytes, and none is given beyond the size of the heap."""
    out = np.zeros(64, np.int32)
    loaded = module()
    loaded.kernel("fill").launch(2, 32, [out, size], heap_bytes=MIB)
    assert out.sum() == pieces


def test_the_heap_of_a_driver_that_nobody_told() -> None:
    out = np.zeros(32, np.int32)
    module().kernel("fill").launch(1, 32, [out, 1 << 16])
    assert out.sum() == 8 * MIB >> 16


def test_memory_lasts_over_launches_until_it_is_freed() -> None:
    loaded = module()
    loaded.kernel("keep").launch(1, 64, [100])
    loaded.kernel("keep").launch(1, 16, [7])  # the first sixteen are lost
    out = np.zeros(64, np.int32)
    loaded.kernel("look").launch(1, 64, [out, 0])
    assert out.tolist() == [7 + i if i < 16 else 100 + i for i in range(64)]
    loaded.kernel("look").launch(1, 64, [out, 1])
    assert loaded.heap.used == 16 * 16
    with pytest.raises(KernelError, match=r"use after free, of 4 bytes.* \(heap\.cu:82\) freed"):
        loaded.kernel("look").launch(1, 64, [out, 0])


@pytest.mark.parametrize(
    ("what", "line", "message"),
    [
        (1, 89, r"st\.u32: out-of-bounds access of 4 bytes, 40 bytes into the 40 bytes that malloc gave "
                r"block \(0,0,0\), thread \(3,0,0\) \(heap\.cu:86\), at address 0x7"),
        (2, 90, "4 bytes before the 40 bytes"),
        (3, 91, r"use after free, of 4 bytes, 8 bytes into the 40 bytes that malloc gave block "
                r"\(0,0,0\), thread \(3,0,0\) \(heap\.cu:86\) and that .* \(heap\.cu:91\) freed"),
        (4, 92, r"double free of the 40 bytes .* \(heap\.cu:92\) freed"),
        (5, 93, "free of an address that malloc did not give, 8 bytes into the 40 bytes"),
        (6, 94, "free of an address that malloc did not give, at address 0x7f"),
        (7, 95, "misaligned access of 4 bytes"),
        (8, 96, r"reads memory of the device heap that was never written: .* \(heap\.cu:96\)"),
        (9, 97, "800 bytes into the 40 bytes"),
        (10, 98, "free of an address that malloc did not give, at address 0x2000000000000000"),
        (11, 104, r"double free, by two threads at once, .*; block \(0,0,0\), thread \(1,0,0\)"),
    ],
)  # fmt: skip
def test_what_is_wrong(what: int, line: int, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        module().kernel("wrong").launch(1, 32, [np.zeros(64, np.int32), what])
    assert caught.value.span is not None
    assert caught.value.span.source.name == "heap.cu"
    assert caught.value.span.line == line


def test_without_checks_what_nobody_wrote_is_read() -> None:
    out = np.zeros(64, np.int32)
    module().kernel("wrong").launch(1, 32, [out, 8], check=False)
    assert out[0] == 2


@pytest.mark.parametrize("size", [0, 1, 5, 4096])
def test_everybody_has_an_address_of_its_own(size: int) -> None:
    out = np.zeros(96, np.uint64)
    module().kernel("sizes").launch(1, 96, [out, size])
    assert np.unique(out).size == 96
    assert not (out % 16).any()
    assert out.all()


@pytest.mark.parametrize("size", [1 << 40, (1 << 64) - 1, (1 << 64) - 15, 1 << 63])
def test_huge_sizes_get_nothing(size: int) -> None:
    out = np.ones(32, np.uint64)
    module().kernel("sizes").launch(1, 32, [out, size])
    assert not out.any()


@pytest.mark.parametrize(
    ("align", "given"),
    [(256, True), (1 << 20, True), (4, True), (3, False), (0, False), (1 << 40, False)],
)
def test_alignments(align: int, given: bool) -> None:
    out = np.zeros(40, np.uint64)
    module().kernel("aligned").launch(1, 40, [out, 100, align])
    assert out.all() == given
    assert not given or not (out % np.uint64(align)).any()


def test_strings_and_atomics_on_the_heap() -> None:
    assert module().kernel("words").launch(1, 3, []).output == ["a!\n", "b!\n", "c!\n"]
    out = np.zeros(33, np.int32)
    with pytest.raises(KernelError, match="atomic on memory of the device heap that was never"):
        module().kernel("atomics").launch(1, 32, [out], races=True)
    assert set(out[:32].tolist()) == {5 + sum(range(32))}


@pytest.mark.parametrize("races", [False, True])
def test_no_address_is_given_twice(races: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the kernel runs; bytes are given back as arenas become free."""
    monkeypatch.setattr(heap, "ARENA_BYTES", 4096)
    monkeypatch.setattr(heap, "REMEMBERED", 2)
    monkeypatch.setattr(heap, "MOST_BYTES", 1 << 16)
    out = np.zeros(8, np.int32)
    loaded = module()
    loaded.kernel("churn").launch(1, 8, [out, 40], races=races)
    assert set(out.tolist()) == {40}
    assert loaded.heap.used == 0


def test_what_was_freed_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "ARENA_BYTES", 64)
    monkeypatch.setattr(heap, "REMEMBERED", 0)
    loaded = module()
    out = np.zeros(64, np.int32)
    loaded.kernel("keep").launch(1, 2, [0])
    loaded.kernel("look").launch(1, 2, [out, 1])
    loaded.kernel("churn").launch(1, 1, [out, 3])
    with pytest.raises(
        KernelError, match=r"use after free: .* was given by malloc, and freed long"
    ):
        loaded.kernel("look").launch(1, 2, [out, 0])


def call(declared: str, words: str) -> str:
    return f"""{HEAD}.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 n);
.visible .entry k(.param .u64 out) {{ .reg .b64 %l<9>; {declared}
{words} ret; }}
"""


def test_through_a_register() -> None:
    text = call(
        ".param .b64 r; .param .b64 n;",
        """mov.u64 %l1, malloc; st.param.b64 [n], 8;
        f: .callprototype (.param .b64 _) _ (.param .b64 _); call (r), %l1, (n), f;
        ld.param.b64 %l2, [r]; st.u64 [%l2], 5; ld.param.u64 %l3, [out]; ld.u64 %l4, [%l2]; st.u64 [%l3], %l4;""",
    )
    out = np.zeros(1, np.uint64)
    ptx.load(text, "k.ptx").kernel("k").launch(1, 32, [out])
    assert out.tolist() == [5]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("", "call (%l1), malloc, (%l2);"),
        (".param .b64 r;", "call (r), malloc, ();"),
        (".param .b64 r; .param .b64 n;", "call (r), malloc, (n, n, n);"),
        (".param .b64 n; .param .b64 r;", "call (r, r), malloc, (n);"),
        (".param .b32 n;", "call free, (n);"),
        ("", "call free, (8);"),
    ],
)
def test_calls_that_do_not_fit(declared: str, words: str) -> None:
    with pytest.raises(DeviceError, match=r"k\.ptx:7"):
        ptx.load(call(declared, words), "k.ptx").kernel("k").launch(1, 32, [np.zeros(1, np.uint64)])


def test_a_function_of_the_module_is_no_malloc_of_ours() -> None:
    text = f"""{HEAD}.func (.param .b64 r) malloc (.param .b64 n) {{ st.param.b64 [r], 77; ret; }}
.visible .entry k(.param .u64 out) {{ .reg .b64 %l<9>; .param .b64 r; .param .b64 n;
st.param.b64 [n], 8; call (r), malloc, (n); ld.param.b64 %l2, [r]; ld.param.u64 %l3, [out]; st.u64 [%l3], %l2; ret; }}
"""
    out = np.zeros(1, np.uint64)
    ptx.load(text).kernel("k").launch(1, 1, [out])
    assert out.tolist() == [77]


@pytest.mark.parametrize("size", [-1, 1 << 40, 1.5, "8"])
def test_heaps_that_cannot_be(size: Any) -> None:
    with pytest.raises(DeviceError, match="a device heap of"):
        module().kernel("words").launch(1, 1, [], heap_bytes=size)


def test_its_size_can_be_said_everywhere(gpu: Any, tmp_path: Path) -> None:
    out = np.zeros(32, np.int32)
    emulate(FOLDER / "heap.ptx", "fill", heap_bytes=4096)[1, 32](out, 1024)
    assert out.sum() == 4
    gpu.heap_bytes = 2048
    gpu.launch(FOLDER / "heap.ptx", (1, 32), out, 1024, name="fill")
    assert out.sum() == 2
    file = tmp_path / "out.json"
    words = ["ptx", "run", "heap.ptx", "--kernel", "wrong", "--arg", "i32[64]=zeros", "--arg",
             "i32=0", "--heap", "64", "--json", str(file)]  # fmt: skip
    result = called(words)
    assert result.exit_code == 1
    (record,) = json.loads(file.read_text())
    assert "address 0x0 belongs to no argument" in record["findings"][0]["message"]


def test_misaligned_far_inside_an_array() -> None:
    """It is in nobody's gap, and not outside of everything."""
    text = (
        HEAD
        + ".visible .entry k(.param .u64 x) { .reg .b64 %l; ld.param.u64 %l, [x]; st.global.u32 [%l+400002], 1; ret; }"
    )
    with pytest.raises(DeviceError, match="misaligned access of 4 bytes"):
        ptx.load(text).kernel("k").launch(1, 1, [np.zeros(1 << 20, np.uint8)])


def test_an_exchange_writes_shared_memory() -> None:
    """What nobody wrote may be exchanged: from then on somebody has."""
    text = (
        HEAD
        + """.visible .entry k(.param .u64 out) { .shared .u32 s; .reg .b32 %r<3>; .reg .b64 %l;
atom.shared.exch.b32 %r1, [s], 5; ld.shared.u32 %r2, [s]; ld.param.u64 %l, [out]; st.global.u32 [%l], %r2; ret; }"""
    )
    out = np.zeros(1, np.uint32)
    ptx.load(text).kernel("k").launch(1, 1, [out])
    assert out.tolist() == [5]


FREED = (
    HEAD
    + """.extern .func (.param .b64 r) malloc (.param .b64 a);
.extern .func free (.param .b64 a);
.visible .entry k(.param .u64 n) { .reg .b64 %a<3>;
ld.param.u64 %a0, [n];
{ .param .b64 x; .param .b64 y; st.param.b64 [x], %a0; call.uni (y), malloc, (x); ld.param.b64 %a1, [y]; }
st.u32 [%a1], 7;
{ .param .b64 x; st.param.b64 [x], %a1; call.uni free, (x); }
ret; }
"""
)


@pytest.mark.parametrize(
    ("block", "at_once", "size"), [(1, 1, 4), (1, 1, MIB), (2, 2, MIB), (2, 2, 16), (2, 2, 4)]
)
def test_few_threads_free_pieces_of_any_size(
    block: int, at_once: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes of a piece are looked at for races, many at once."""
    asked = []
    access = RaceDetector.access

    def counted(*args: Any, **more: Any) -> Any:
        asked.append(1)
        return access(*args, **more)

    monkeypatch.setattr(RaceDetector, "access", counted)
    report = (
        ptx.load(FREED).kernel("k").launch(2, block, [size], races="all", batch_threads=at_once)
    )
    assert report.races == []
    assert len(asked) < 20
