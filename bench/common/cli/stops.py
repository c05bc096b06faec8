"""Every command, with where its work is done and which of its options name a file."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.cli.commands import PTX, SAXPY, SUMS
from bench.harness import ROOT


@dataclass(frozen=True, slots=True)
class Row:
    """`words` as they are typed; `work` is what the command calls for its answer; `outputs` are
    its options that name a file, with those that they go with."""

    words: tuple[str, ...]
    work: str
    outputs: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        return " ".join(word for word in self.words[:2] if word.islower() and word.isalpha())


def row(words: str, work: str, *outputs: str) -> Row:
    return Row(
        tuple(words.split()), f"warploom.cli.{work}", tuple(tuple(o.split()) for o in outputs)
    )


NONE = "--no-store"
WARP = f"{ROOT / 'examples/warp_stencil.py'}::stencil"
PROOF_FOR = ("synth", SUMS, "--no-store", "--certificate", "fill.json")  # that `verify` is given
ROWS = (
    row(f"synth {SUMS} {NONE}", "synth.synthesize", "--emit c -o", "--certificate"),
    row(f"synth {WARP} --size lanes=4 {NONE}", "synth.solve_warp"),
    row("kernel product-registers -o text.cu", "kernel.emit.emit"),
    row("kernel product-registers --check", "kernel.verify", "-o"),
    row("kernel load-structures --set fields=5 -o text.cuh", "kernel.named_header"),
    row("holes row_xforms", "holes.about"),
    row(f"layout solve rcd:32x32 {NONE}", "layout.best_way", "--emit c -o", "--certificate"),
    row("layout show (32,32):(32,1)", "layout_show.check_lines", "--pattern rcd:32x32 -o"),
    row("layout check (32,32):(32,1) rcd:32x32", "layout_show.check_lines"),
    row(f"layout convert --from (32,5):(1,32) --to (32,5):(5,1) {NONE}",
        "layout_convert.convert", "--emit c -o"),
    row(f"explore axpy --size n=64 {NONE}", "explore.nest_for", "--emit c -o", "--keep"),
    row(f"map dot --size n=64 --sample 1 {NONE}", "map.JointModel", "--emit c -o"),
    row(f"map dot --size n=64 --count {NONE}", "map.JointModel"),
    row("ptx run " + " ".join(SAXPY), "ptx.loaded", "--save"),
    row("ptx report " + " ".join(SAXPY), "ptx_report.loaded"),
    row(f"ptx shuffle {PTX}/stencil.ptx -o out.ptx", "ptx.rewrite"),
    row(f"show {SUMS}", "show.synthesize", "-o"),
    row("check mine.py::right", "check.examine"),
    row("verify fill.json", "verify.checked"),
    row("bench synth --match universe", "bench.apart"),
    row("machines", "machines._show"),
    row("store list --store s.sqlite", "store.Store"),
    row("store prune --store s.sqlite", "store.Store"),
)  # fmt: skip
