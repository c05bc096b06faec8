"""Shuffles instead of loads, in finished PTX from any compiler.

`rewrite` takes the text of a PTX file and gives it back with the loads that can be proved to be in
a register of a neighbouring lane replaced, and a report of every load it looked at.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from warploom.choices import FARTHEST
from warploom.errors import CheckError, UnsupportedError, one_of
from warploom.machine.record import Machine, for_ptx, machine_named, timed
from warploom.ptx.ir import Function, Module
from warploom.ptx.parse import parse
from warploom.ptx.show import Edit, show
from warploom.ptx.shuffle.check import CheckReport, Launch, check
from warploom.ptx.shuffle.gain import cycles_won
from warploom.ptx.shuffle.plan import Candidate, Plan, Shuffle, plan
from warploom.ptx.shuffle.write import VARIANTS, edits
from warploom.ptx.symbolic.smt import judge
from warploom.ptx.symbolic.walk import read
from warploom.search.outcome import Verdict

SELECTIONS = ("pays", "all")
OLDEST = (6, 2)  # the first PTX with activemask
FERMI = ("sm_10", "sm_11", "sm_12", "sm_13", "sm_20", "sm_21")

__all__ = [
    "Candidate", "CheckReport", "KernelReport", "Launch", "Rewrite", "Shuffle", "check", "confirm",
    "rewrite",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: loads that differ between lanes, shuffles put in, and why for each load.

    `deltas` counts the shuffles by lane distance; `refusal` says why nothing was looked at.
    """

    name: str
    loads: int
    shuffles: int
    deltas: dict[int, int]
    seconds: float
    candidates: tuple[Candidate, ...] = ()
    refusal: str = ""
    plan: Plan | None = None

    def line(self) -> str:
        """What was done, in one line."""
        if self.refusal:
            return f"{self.name}: {self.refusal}"
        return f"{self.name}: {self.shuffles} of {self.loads} loads became shuffles"

    def as_record(self) -> dict[str, object]:
        """Plain data for a JSON file."""
        return {
            "name": self.name,
            "loads": self.loads,
            "shuffles": self.shuffles,
            "deltas": {str(lanes): count for lanes, count in self.deltas.items()},
            "seconds": round(self.seconds, 6),
            "refusal": self.refusal,
            "candidates": [asdict(candidate) for candidate in self.candidates],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Rewrite:
    """PTX with shuffles put in (`text`), and what was done to each kernel."""

    text: str
    kernels: tuple[KernelReport, ...]

    def __repr__(self) -> str:
        lines = [each.line() for each in self.kernels]
        return "\n  ".join([f"<PTX of {len(self.text.splitlines())} lines", *lines]) + ">"


def rewrite(
    text: str,
    name: str = "<ptx>",
    *,
    select: str = "pays",
    variant: str = "corner",
    limit: int = FARTHEST,
    machine: str = "h200",
) -> Rewrite:
    """Replaces loads by shuffles; every other byte of the text stays as it is.

    `select` is `pays` for what the time model says wins, or `all`. `variant` is `corner` for
    correct code, `predicated` for the same with the shuffle behind a predicate, and for studies
    of time `no-corner` and `no-load`, which compute something else.

    >>> import warploom
    >>> text = '''
    ... .version 7.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry sums(.param .u64 p, .param .u64 q) {
    ...   .reg .b32 %r1; .reg .f32 %f<4>; .reg .b64 %rd<7>;
    ...   ld.param.u64 %rd1, [p];
    ...   ld.param.u64 %rd2, [q];
    ...   cvta.to.global.u64 %rd1, %rd1;
    ...   cvta.to.global.u64 %rd2, %rd2;
    ...   mov.u32 %r1, %tid.x;
    ...   mul.wide.u32 %rd3, %r1, 4;
    ...   add.s64 %rd4, %rd1, %rd3;
    ...   add.s64 %rd5, %rd2, %rd3;
    ...   ld.global.nc.f32 %f1, [%rd4];
    ...   ld.global.nc.f32 %f2, [%rd4+4];
    ...   add.f32 %f3, %f1, %f2;
    ...   st.global.f32 [%rd5], %f3;
    ...   ret;
    ... }'''
    >>> found = warploom.insert_shuffles(text, select="all")
    >>> found.kernels[0].shuffles, found.kernels[0].deltas  # by lane distance
    (1, {1: 1})
    >>> "shfl.sync" in found.text
    True
    """
    asked = _checked(select, variant, limit, machine)
    module = parse(text, name)
    changes: list[Edit] = []
    reports = []
    for function in module.functions:
        if function.kind == "entry" and function.body is not None:
            report = _kernel(module, function, asked, select, limit)
            reports.append(report)
            if report.plan is not None:
                changes += edits(report.plan, variant)
    return Rewrite(show(module, changes) if changes else text, tuple(reports))


def confirm(result: Rewrite) -> dict[str, list[Verdict]]:
    """Z3's own word on every shuffle, by kernel; needs the extra `smt`."""
    return {
        kernel.name: [
            judge(kernel.plan.reading, shuffle.source, shuffle.target, shuffle.distance)
            for shuffle in kernel.plan.shuffles
        ]
        for kernel in result.kernels
        if kernel.plan is not None
    }


def _checked(select: str, variant: str, limit: int, machine: str) -> Machine:
    if select not in SELECTIONS:
        raise CheckError(f"select is {select!r}", advice=one_of(select, SELECTIONS))
    if variant not in VARIANTS:
        raise CheckError(f"variant is {variant!r}", advice=one_of(variant, VARIANTS))
    if not 0 <= limit <= FARTHEST:
        raise CheckError(f"the limit is {limit} lanes", advice=f"a warp allows 0 to {FARTHEST}")
    asked = timed(for_ptx(machine_named(machine), "lanes"))
    cycles_won(asked, 1, 1, 0)  # a record that lacks a field is refused before anything is read
    return asked


def _refusal(module: Module) -> str:
    if module.version < OLDEST:
        return "PTX before 6.2 has no activemask"
    old = [word for word in module.target if word in FERMI]
    return f"{old[0]} has no shuffles" if old else ""


def _kernel(
    module: Module, function: Function, machine: Machine, select: str, limit: int
) -> KernelReport:
    start = time.perf_counter()
    refusal = _refusal(module)
    if refusal:
        return KernelReport(function.name, 0, 0, {}, 0.0, refusal=refusal)
    try:
        found = plan(read(module, function), machine, pays_only=select == "pays", limit=limit)
    except UnsupportedError as error:
        seconds = time.perf_counter() - start
        return KernelReport(function.name, 0, 0, {}, seconds, refusal=error.message)
    deltas: dict[int, int] = {}
    for shuffle in found.shuffles:
        deltas[shuffle.lanes] = deltas.get(shuffle.lanes, 0) + 1
    seconds = time.perf_counter() - start
    return KernelReport(
        function.name, found.loads, len(found.shuffles), dict(sorted(deltas.items())), seconds,
        found.candidates, "", found,
    )  # fmt: skip
