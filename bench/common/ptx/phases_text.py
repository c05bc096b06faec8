"""Small programs of mbarriers, named barriers and flags as PTX, with a warp for each thread."""

from __future__ import annotations

from bench.common.ptx.phases import ADDS, BYTES, OF_FLAGS, RELEASING, WRITES, Case, Op


def text(case: Case) -> str:
    """A kernel with a warp for each thread, of which all lanes but the first leave."""
    bars = len(case.counts)
    lines = [
        ".version 8.3", ".target sm_90a", ".address_size 64",
        ".visible .entry k(.param .u64 in, .param .u64 flags)", "{", ".reg .pred %p<4>;", ".reg .b32 %r<9>;",
        f".reg .b64 %rd<{4 + max(map(len, case.program), default=0)}>;",
        f".shared .align 8 .b64 bars[{bars}];", ".shared .align 16 .b8 data[16];",
        "ld.param.u64 %rd1, [in];", "cvta.to.global.u64 %rd1, %rd1;", "mov.u32 %r1, %tid.x;",
        "ld.param.u64 %rd2, [flags];", "cvta.to.global.u64 %rd2, %rd2;",
        "mov.u32 %r2, bars;", "mov.u32 %r3, data;", "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra INITED;",
        *(f"mbarrier.init.shared::cta.b64 [%r2+{8 * at}], {n};" for at, n in enumerate(case.counts)),
        "fence.mbarrier_init.release.cluster;", "INITED:", "bar.sync 0;",
        "and.b32 %r4, %r1, 31;", "setp.ne.u32 %p1, %r4, 0;", "@%p1 exit;", "shr.u32 %r5, %r1, 5;",
    ]  # fmt: skip
    for t in range(1, len(case.program)):
        lines += [f"setp.eq.u32 %p1, %r5, {t};", f"@%p1 bra T{t};"]
    for t, ops in enumerate(case.program):
        lines.append(f"T{t}:")
        for i, op in enumerate(ops):
            lines += _lines(case, op, t, i)
        lines.append("exit;")
    return "\n".join([*lines, "}"])


def _lines(case: Case, op: Op, t: int, i: int) -> list[str]:
    at, token = f"[%r2+{8 * op.where}]", f"%rd{4 + i}"
    if op.word in ("wait", "peek", "token", "glimpse"):
        by, given = (
            ("", f"%rd{4 + op.number}") if op.word == "token" else (".parity", str(op.number))
        )
        by += ".relaxed.cta" * (op.word == "glimpse")
        asks = f"mbarrier.try_wait{by}.shared::cta.b64 %p2, {at}, {given};"
        first = [asks, f"@%p2 bra P{t}_{i};"] if op.word == "peek" else []
        return [*first, f"W{t}_{i}:", asks, f"@!%p2 bra W{t}_{i};", f"P{t}_{i}:"]
    if op.word in OF_FLAGS:
        return _flag_lines(op, t, i)
    if op.word in ("sync", "come"):
        word = "sync" if op.word == "sync" else "arrive"
        return [f"bar.{word} {op.where + 1}, {32 * case.needed[op.where]};"]
    return [{
        "arrive": f"mbarrier.arrive.shared::cta.b64 {token}, {at};",
        "loose": f"mbarrier.arrive.relaxed.cta.shared::cta.b64 {token}, {at};",
        "full": f"mbarrier.arrive.expect_tx.shared::cta.b64 {token}, {at}, {BYTES};",
        "expect": f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 {at}, {BYTES};",
        "copy": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                f"[%r3], [%rd1], {BYTES}, {at};",
        "later": f"cp.async.mbarrier.arrive.shared::cta.b64 {at};",
        "counted": f"cp.async.mbarrier.arrive.noinc.shared::cta.b64 {at};",
    }[op.word]]  # fmt: skip


def _flag_lines(op: Op, t: int, i: int) -> list[str]:
    if op.word == "fence":
        return ["fence.acq_rel.gpu;"]
    at = f"[%rd2+{4 * op.where}]"
    if op.word in WRITES:
        order = "release" if op.word in RELEASING else "relaxed"
        if op.word in ADDS:
            return [f"red.{order}.gpu.global.add.u32 {at}, {op.number};"]
        return [f"st.{order}.gpu.global.u32 {at}, {op.number};"]
    order = "relaxed" if op.word == "glance" else "acquire"
    compare = "eq" if op.word == "equal" else "ge"
    return [f"W{t}_{i}:", f"ld.{order}.gpu.global.u32 %r6, {at};",
            f"setp.{compare}.u32 %p2, %r6, {op.number};", f"@!%p2 bra W{t}_{i};"]  # fmt: skip
