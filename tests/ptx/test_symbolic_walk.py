"""Kernels read on symbols: graphs, loops, joins, pruned paths, and Z3 as a second opinion."""

from __future__ import annotations

from pathlib import Path

import pytest

from warploom.errors import UnsupportedError
from warploom.ptx.dominance import Flow, analyse
from warploom.ptx.parse import parse
from warploom.ptx.shuffle import confirm, rewrite
from warploom.ptx.symbolic.distance import Distance, decide
from warploom.ptx.symbolic.memory import accesses
from warploom.ptx.symbolic.smt import judge
from warploom.ptx.symbolic.walk import Reading, read
from warploom.search.outcome import Verdict

KERNELGEN = (Path(__file__).parent / "kernelgen" / "kernelgen.ptx").read_text()


def kernel(body: str) -> str:
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 A, .param .u32 N)
{{
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<20>;
    ld.param.u64 %rd1, [A]; ld.param.u32 %r1, [N]; mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
{body}
    ret;
}}
"""


def reading_of(body: str) -> Reading:
    module = parse(kernel(body))
    return read(module, module.functions[0])


def flow_of(body: str) -> Flow:
    module = parse(kernel(body))
    return analyse(module, module.functions[0])


def distances(reading: Reading) -> list[Distance]:
    loads = [load for load in accesses(reading) if load.space == "global"]
    return [decide(reading, loads[0], load) for load in loads[1:]]


def test_blocks_dominators_and_loops() -> None:
    flow = flow_of("""
    mov.u32 %r3, 0;
OUTER: mov.u32 %r4, 0;
INNER: add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, 3; @%p1 bra INNER;
    add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 3; @%p2 bra OUTER;""")
    outer, inner = sorted(flow.loops, key=lambda header: -len(flow.loops[header].body))
    assert flow.loops[inner].body < flow.loops[outer].body
    assert flow.around[inner] == (outer, inner)
    assert flow.dominates(outer, inner)
    assert not flow.dominates(inner, outer)


def test_labels_belong_to_their_scope() -> None:
    loop = "{ mov.u32 %r3, 0; L: add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, 3; @%p1 bra L; }"
    assert len(flow_of(f"{loop}\n{loop}").loops) == 2


def test_a_modifier_that_is_not_known_is_never_looked_past() -> None:
    """The load may be anything, so it takes no part and what was loaded before is forgotten."""
    odd = "ld.global.sometimes.f32 %f2, [%rd3+4];"
    pair = (
        "ld.global.f32 %f1, [%rd3];\n{}\nld.global.f32 %f3, [%rd3+4]; st.global.f32 [%rd3+64], %f3;"
    )
    assert [load.refusal != "" for load in accesses(reading_of(pair.format(odd)))[2:]] == [
        False,
        True,
        False,
    ]
    assert rewrite(kernel(pair.format("")), select="all").kernels[0].shuffles == 1
    for strange in (odd, "add.sometimes.s32 %r5, %r5, 1;", "elsewhere.u32 %r5, %r4;"):
        assert rewrite(kernel(pair.format(strange)), select="all").kernels[0].shuffles == 0


def test_a_loop_with_two_entries_is_refused() -> None:
    body = """setp.lt.s32 %p1, %r2, 3; @%p1 bra MIDDLE;
TOP: add.s32 %r3, %r2, 1;
MIDDLE: setp.lt.s32 %p2, %r1, 3; @%p2 bra TOP;"""
    with pytest.raises(UnsupportedError):
        flow_of(body)
    report = rewrite(kernel(body)).kernels[0]
    assert "two entries" in report.refusal


def test_an_indirect_branch_has_all_its_targets() -> None:
    flow = flow_of("""
TABLE: .branchtargets ONE, TWO;
    brx.idx %r1, TABLE;
ONE: mov.u32 %r3, 1; bra END;
TWO: mov.u32 %r3, 2;
END: mov.u32 %r4, %r3;""")
    assert max(len(block.out) for block in flow.blocks) == 2


def test_an_induction_variable_is_followed() -> None:
    reading = reading_of("""
    mov.u32 %r3, 0; mov.b64 %rd4, %rd3;
LOOP: ld.global.f32 %f1, [%rd4]; mad.wide.s32 %rd5, %r3, 8, %rd3;
    ld.global.f32 %f2, [%rd5+4]; ld.global.f32 %f3, [%rd4+8];
    add.s64 %rd4, %rd4, 8; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r1; @%p1 bra LOOP;""")
    # The pointer and the index of one loop count the same iterations; but the index has 32 bits.
    verdicts = distances(reading)
    assert verdicts[1].verdict is Verdict.PROVED
    assert verdicts[1].lanes == 2
    assert verdicts[0].compare == 4


def test_a_condition_met_before_prunes_the_path() -> None:
    reading = reading_of("""
    mov.b64 %rd4, %rd3; setp.lt.s32 %p1, %r2, %r1; @%p1 bra FAR;
    setp.ge.s32 %p2, %r2, %r1; @%p2 bra NEAR;
    add.s64 %rd4, %rd4, 64;
NEAR: ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd3+4];
FAR:""")
    assert distances(reading) == [Distance(Verdict.PROVED, 1)]


def test_the_taken_side_of_a_branch_knows_its_condition() -> None:
    reading = reading_of("""
    mov.b64 %rd4, %rd3; setp.lt.s32 %p1, %r2, %r1; @%p1 bra TAKEN;
    bra END;
TAKEN: @!%p1 add.s64 %rd4, %rd4, 64; ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd3+4];
END:""")
    assert distances(reading) == [Distance(Verdict.PROVED, 1)]


def test_a_pointer_chosen_alike_by_all_lanes_is_followed() -> None:
    reading = reading_of("""
    mov.b64 %rd4, %rd1; setp.lt.s32 %p1, %r1, 9; @%p1 bra JOIN;
    add.s64 %rd4, %rd1, 1024;
JOIN: add.s64 %rd5, %rd4, %rd2; ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+4];""")
    assert distances(reading) == [Distance(Verdict.PROVED, 1)]


def test_a_wrap_of_the_index_is_tested_at_run_time() -> None:
    reading = reading_of("""
    mad.lo.s32 %r3, %r1, 100, %r2; mul.wide.s32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4;
    ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+8];""")
    (verdict,) = distances(reading)
    assert verdict.verdict is Verdict.PROVED
    (margin,) = verdict.margins
    assert (margin.register.name, margin.room, margin.signed) == ("%r3", 2, True)


def test_an_index_that_wraps_alike_on_both_sides_needs_no_test() -> None:
    reading = reading_of("""
    mad.lo.s32 %r3, %r1, 100, %r2; mul.wide.s32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4;
    add.s32 %r4, %r3, 1; mul.wide.s32 %rd6, %r4, 4; add.s64 %rd7, %rd1, %rd6;
    ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd7];""")
    assert distances(reading) == [Distance(Verdict.PROVED, 1)]


# -- the judge ----------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["gameoflife", "gaussblur", "wave13pt", "whispering"])
def test_z3_confirms_every_proof(name: str) -> None:
    pytest.importorskip("z3")
    start = KERNELGEN.index(f".visible .entry {name}(")
    alone = KERNELGEN[: KERNELGEN.index(".visible")] + KERNELGEN[start:].split("\n}\n")[0] + "\n}\n"
    (said,) = confirm(rewrite(alone, select="all")).values()
    assert said
    assert set(said) == {Verdict.PROVED}


@pytest.mark.slow
def test_z3_refutes_a_proof_without_its_margin() -> None:
    pytest.importorskip("z3")
    report = next(k for k in rewrite(KERNELGEN, select="all").kernels if k.name == "divergence")
    assert report.plan is not None
    (shuffle,) = report.plan.shuffles
    assert shuffle.distance.margins
    bare = Distance(Verdict.PROVED, shuffle.lanes)
    wrong = Distance(Verdict.PROVED, shuffle.lanes + 1, shuffle.distance.margins)
    reading = report.plan.reading
    assert judge(reading, shuffle.source, shuffle.target, bare) is not Verdict.PROVED
    assert judge(reading, shuffle.source, shuffle.target, wrong) is not Verdict.PROVED
