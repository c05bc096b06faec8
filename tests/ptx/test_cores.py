"""Blocks over cores: what comes out is what one core makes of them in order, whoever runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError, LimitError
from warploom.ptx.fast import cores as cores_module

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")
CORES, BLOCKS, BLOCK = 3, 60, 32

IN_ORDER = {
    "all blocks write one word": "st.global.u32 [%a1], %r2; ret;",
    "each reads what the one before wrote": """ld.global.u32 %r3, [%a3];
add.u32 %r3, %r3, 1; st.global.u32 [%a3+128], %r3; ret;""",
    "each reads what the one after writes": """ld.global.u32 %r3, [%a3+128];
add.u32 %r3, %r3, %r2; st.global.u32 [%a3], %r3; ret;""",
    "all blocks add to one word": "red.global.add.u32 [%a1], %r2; ret;",
    "bytes of one word": """cvt.u64.u32 %a4, %r1; add.u64 %a4, %a1, %a4;
st.global.u8 [%a4], %r2; ret;""",
}
WRONG = {
    "outside": "@%q1 add.u64 %a3, %a3, 65536; st.global.u32 [%a3], %r1; ret;",
    "two of them": """setp.eq.u32 %q2, %r1, 7; @%q1 add.u64 %a3, %a3, 65536;
@%q2 add.u64 %a3, %a3, 1; st.global.u32 [%a3], %r1; ret;""",
}
BODIES = {
    "own": """ld.global.u32 %r3, [%a2]; mad.lo.u32 %r3, %r3, 3, %r1;
st.global.u32 [%a3], %r3; ret;""",
    "scatter": """ld.global.u32 %r3, [%a2]; mad.wide.u32 %a4, %r3, 4, %a1;
st.global.u32 [%a4], %r2; ret;""",
    "variable": """mov.u64 %a4, kept; ld.global.u32 %r3, [%a4];
st.global.u32 [%a3], %r1; ret;""",
    "far": """ld.global.u32 %r3, [%a3]; mad.wide.u32 %a4, %r3, 64, %a1;
setp.gt.u32 %q2, %r1, 0; @%q2 ld.global.u32 %r4, [%a4]; st.global.u32 [%a3+128], 0; ret;""",
    "endless": "LOOP: st.global.u32 [%a3], %r1; @%q1 bra LOOP; ret;",
    "told": """setp.ne.u32 %q2, %r1, 0; @%q2 bra LOOK; st.global.u32 [%a1], 7; ret;
LOOK: ld.global.u32 %r3, [%a1]; AGAIN: setp.eq.u32 %q2, %r3, 0; @%q2 bra AGAIN;
st.global.u32 [%a3], %r3; ret;""",
    **IN_ORDER, **WRONG,
}  # fmt: skip
# Thread t of block b: %r0 is t, %r1 is b, %r2 the number of the thread in the grid, %a0 is x,
# %a1 is out, %a2 and %a3 are where the thread's words lie there; %q1 in a late block. All bodies
# are one text, which is compiled once.
TEXT = "\n".join([
    """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 kept[256];
.visible .entry k(.param .u64 x, .param .u64 out, .param .u32 which) {
.reg .b64 %a<9>; .reg .b32 %r<9>; .reg .pred %q<3>;
ld.param.u64 %a0, [x]; ld.param.u64 %a1, [out]; ld.param.u32 %r8, [which];
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 32, %r0;
mad.wide.u32 %a2, %r2, 4, %a0; mad.wide.u32 %a3, %r2, 4, %a1; setp.eq.u32 %q1, %r1, 55;""",
    *(f"setp.ne.u32 %q0, %r8, {number}; @%q0 bra N{number};\n{body}\nN{number}:"
      for number, body in enumerate(BODIES.values())),
    "ret; }",
])  # fmt: skip
NUMBERS = {name: np.uint32(number) for number, name in enumerate(BODIES)}


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test has a kernel of its own, which knows nothing of earlier launches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPLOOM_CACHE", str(tmp_path_factory.mktemp("code")))
        fresh().launch(1, BLOCK, [*words(), NUMBERS["own"]], engine="c")
        yield


def fresh() -> ptx.Kernel:
    return ptx.load(TEXT, "k.ptx").kernel("k")


@pytest.fixture(autouse=True)
def in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores wait for each other after a few blocks, so that each of them gets some."""
    for name, value in (("FIRST_SLICE", 1), ("SMALLEST_SLICE", 40), ("LARGEST_SLICE", 40)):
        monkeypatch.setattr(cores_module, name, value)
    meeting, plain = threading.Barrier(CORES), cores_module.Core.step

    def step(core: cores_module.Core) -> cores_module.Status:
        try:
            if threading.current_thread() is threading.main_thread():
                meeting.reset()  # the beginning of a launch
            else:
                meeting.wait(10)
        except threading.BrokenBarrierError:
            pass  # some core has nothing left to do
        status = plain(core)
        if status is not cores_module.Status.AGAIN:
            meeting.abort()
        return status

    monkeypatch.setattr(cores_module.Core, "step", step)


def words(seed: int = 0) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(BLOCKS * BLOCK).astype(np.uint32), np.zeros(64 * BLOCK, np.uint32)]


def both(
    name: str, kernel: ptx.Kernel | None = None, make: Callable[[], list[Any]] = words
) -> ptx.Report:
    """Runs it on several cores, and the evaluator beside it, block by block."""
    kernel, wanted, args = kernel or fresh(), make(), make()
    one, many = [*wanted, NUMBERS[name]], [*args, NUMBERS[name]]
    mix = kernel.launch(BLOCKS, BLOCK, one, engine="numpy", batch_threads=BLOCK).mix
    report = kernel.launch(BLOCKS, BLOCK, many, engine="c", cores=CORES)
    assert report.engine == "c"
    assert report.mix == mix
    for some, others in zip(wanted, args, strict=True):
        np.testing.assert_array_equal(some, others)
    return report


@pytest.mark.slow
def test_blocks_that_leave_each_other_alone_are_shared_out() -> None:
    assert both("own").cores == CORES


@pytest.mark.parametrize("name", IN_ORDER)
def test_what_depends_on_the_order_runs_in_order(name: str) -> None:
    kernel = fresh()
    assert both(name, kernel).cores == 1
    assert both("own", kernel).cores == 1  # and from then on at once


def test_stores_to_places_that_only_memory_knows() -> None:
    """A permutation has no word twice; with some that meet, the last block wins."""

    def make(seed: int) -> list[Any]:
        places, out = words(seed)
        rng = np.random.default_rng(seed)
        for _ in range(seed % 4):
            places[rng.integers(places.size)] = places[rng.integers(places.size)]
        return [places, out]

    found = [both("scatter", make=partial(make, seed)).cores for seed in range(8)]
    assert set(found[::4]) == {CORES}
    assert 1 in found


def test_one_core_where_bytes_have_two_addresses() -> None:
    kernel = fresh()
    same = kernel.owner.variable("kept").view(np.uint32)
    args = [np.zeros(64, np.uint32), same, NUMBERS["variable"]]
    report = kernel.launch(2, BLOCK, args, engine="c", cores=CORES)
    assert (report.engine, report.cores) == ("c", 1)
    assert both("variable", kernel).cores == CORES


def test_one_core_where_there_is_no_room_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores_module, "MOST_BYTES", 1 << 10)
    assert both("own").cores == 1


def test_small_launches_stay_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores_module, "FIRST_SLICE", 1_000_000)
    assert both("own").cores == 1


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_is_that_of_the_evaluator(name: str) -> None:
    said = []
    for engine in ("numpy", "c"):
        args = [*words(), NUMBERS[name]]
        with pytest.raises(DeviceError) as error:
            fresh().launch(BLOCKS, BLOCK, args, engine=engine, cores=CORES)
        said.append((str(error.value), args[0].tobytes(), args[1].tobytes()))
    assert said[0] == said[1]


def test_a_fault_that_the_order_does_not_have() -> None:
    """Read too early, a word sends the block out of bounds: it runs again, in order."""

    def make() -> list[Any]:
        x, out = words()
        out[BLOCK:] = 1 << 20
        return [x, out]

    assert both("far", make=make).cores == 1


def test_a_late_block_without_end_ends() -> None:
    args, kernel = words(), fresh()
    # Compiles it; with other cores than `CORES` some would wait for those that are not there.
    kernel.launch(BLOCKS, BLOCK, [*words(), NUMBERS["own"]], engine="c", cores=CORES)
    with pytest.raises(LimitError, match=r"'k' did not end in the time.* is still here") as error:
        kernel.launch(
            BLOCKS, BLOCK, [*args, NUMBERS["endless"]], engine="c", cores=CORES, seconds=0.3
        )
    assert error.value.span is not None
    assert not args[1].any()  # as it was


def test_nobody_still_writes_when_memory_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever interrupts the wait for cores that were told to stop."""
    pressed = iter([KeyboardInterrupt, KeyboardInterrupt])

    def wait(going: Any, timeout: float | None = None) -> Any:
        for error in pressed if timeout is None else ():
            raise error
        return futures.wait(going, timeout)

    args = words()
    kernel = fresh()
    kernel.launch(BLOCKS, BLOCK, [*words(), NUMBERS["own"]], engine="c", cores=CORES)  # compiles it
    before = threading.active_count()
    monkeypatch.setattr(cores_module, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        kernel.launch(
            BLOCKS, BLOCK, [*args, NUMBERS["endless"]], engine="c", cores=CORES, seconds=0.3
        )
    assert next(pressed, None) is None  # both came
    assert threading.active_count() == before
    assert not args[1].any()


def test_a_loop_that_only_a_word_read_too_early_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block 0 says where the others stop; they may have read that before, and would not end."""
    monkeypatch.setattr(cores_module, "FIRST_LOOK", 0.0)
    assert both("told").cores == 1


def test_an_interrupt_puts_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    args = words()
    monkeypatch.setattr(cores_module, "_check_time", interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fresh().launch(BLOCKS, BLOCK, [*args, NUMBERS["endless"]], engine="c", cores=CORES)
    assert not args[1].any()
    assert threading.active_count() == before


@pytest.mark.parametrize("cores", [0, -1, 1.5, "two"])
def test_a_number_of_cores_that_there_cannot_be(cores: Any) -> None:
    with pytest.raises(DeviceError, match="cores"):
        fresh().launch(1, 32, [*words(), NUMBERS["own"]], cores=cores)
