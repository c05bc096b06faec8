"""setmaxnreg: the pool of a block, what a warp may ask for, and who waits for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeadlockError, DeviceError, SynchronisationError
from warploom.ptx.prove import registers
from warploom.ptx.prove.registers import check_registers

TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
DIRECTIVES
{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %l<4>; .shared .b32 word;
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 7; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0;
BODY
ld.param.u64 %l1, [out]; mul.wide.u32 %l2, %r1, 4; add.u64 %l1, %l1, %l2;
st.global.u32 [%l1], %r1; ret; }
"""
BOUND = ".reqntid 256\n.maxnreg 128"
ROLES = "@!%p1 bra MORE;\nFEW\nbra DONE;\nMORE:\nMANY\nDONE:\n"
SET = "setmaxnreg.{}.sync.aligned.u32 {};\n"


def launch(
    body: str, directives: str = BOUND, threads: int = 256, prove: bool = False
) -> ptx.Report:
    text = TEXT.replace("DIRECTIVES", directives).replace("BODY", body)
    out = np.zeros(threads, np.uint32)
    report = ptx.load(text, "k.ptx").kernel("k").launch(1, threads, [out], races=True, prove=prove)
    assert out.tolist() == list(range(threads))
    return report


def roles(few: str, many: str) -> str:
    return ROLES.replace("FEW", few).replace("MANY", many)


def test_registers_go_from_one_warpgroup_to_the_other() -> None:
    assert launch(roles(SET.format("dec", 40), SET.format("inc", 216)))
    assert launch(roles(SET.format("dec", 40) + "bar.sync 1, 128;\n" + SET.format("inc", 64),
                        SET.format("inc", 192)))  # fmt: skip


def test_without_a_bound_nothing_is_rationed() -> None:
    launch(roles(SET.format("inc", 240), SET.format("inc", 240)), "")


@pytest.mark.parametrize(
    ("few", "many", "message"),
    [
        (SET.format("dec", 40), SET.format("inc", 224), "pool of the block has 2048"),
        ("", SET.format("inc", 136), "registers that never come back"),
        (SET.format("dec", 40) + "bar.sync 1, 128;\n" + SET.format("inc", 72),
         SET.format("inc", 216), "registers that never come back"),
    ],
)  # fmt: skip
def test_registers_that_nobody_gives_back(few: str, many: str, message: str) -> None:
    with pytest.raises(DeadlockError, match=message):
        launch(roles(few, many))


def test_who_gives_back_waits_for_who_takes() -> None:
    with pytest.raises(DeadlockError, match="registers"):
        launch(roles("bar.sync 1, 256;\n" + SET.format("dec", 40),
                     SET.format("inc", 216) + "bar.sync 1, 256;\n"))  # fmt: skip


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (SET.format("dec", 136), "has 128 registers a thread; it cannot keep 136"),
        (SET.format("inc", 120), "has 128 registers a thread; it cannot have 120"),
        ("shr.u32 %r3, %r1, 5; setp.eq.u32 %p3, %r3, 2; @%p3 bra N;\n" + SET.format("dec", 40)
         + "N:\n", "four warps of the warpgroup do not all do this"),
    ],
)  # fmt: skip
def test_what_no_warp_may_do(body: str, message: str) -> None:
    with pytest.raises(SynchronisationError, match=message):
        launch(body)


def test_a_lane_that_does_not_come() -> None:
    with pytest.raises(SynchronisationError, match="not all lanes of the warp come here"):
        launch("@%p2 bra N;\n" + SET.format("dec", 40) + "bra E;\nN: bar.sync 2, 512;\nE:\n")


@pytest.mark.parametrize("count", ["20", "260", "44"])
def test_numbers_that_no_assembler_takes(count: str) -> None:
    with pytest.raises(DeviceError, match="24 to 256, in steps of 8"):
        launch(SET.format("dec", count))


@pytest.mark.parametrize(
    ("few", "many", "alike"),
    [
        (SET.format("dec", 40), SET.format("inc", 216), True),
        (SET.format("dec", 40) + "bar.sync 1, 128;\n" + SET.format("inc", 64),
         SET.format("inc", 192), True),
        (SET.format("dec", 40), SET.format("inc", 160) + "bar.sync 1, 128;\n"
         + SET.format("inc", 216), False),
    ],
)  # fmt: skip
def test_one_order_stands_for_all_where_all_lack_as_many(
    few: str, many: str, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many registers as there are, and with fewer; beside all orders, one by one."""
    proof = launch(roles(few, many), prove=True).proof
    assert proof is not None
    (recorded,) = proof.skeletons
    some = {each: [*check_registers(recorded, each)] for each in (128, 120)}
    seen: list[bool] = []

    def none(self: Any, sets: Any, increases: Any) -> list[Any]:
        seen.append(bool(own(self, sets, increases)))
        return []

    own = registers._Pool._alike
    monkeypatch.setattr(registers._Pool, "_alike", none)
    assert some == {each: [*check_registers(recorded, each)] for each in (128, 120)}
    assert seen == [alike, alike]
    assert [bool(each) for each in some.values()] == [False, True]
