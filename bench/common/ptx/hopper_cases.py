"""Hopper kernels as people write them, each with its launch, and mutants of them: `hopper/`.

`NAME.cu` is a kernel, `NAME.toml` beside it its mutants: a piece of text that stands there once,
what stands there instead, and the lines of which one has to be named. `hopper_launches.py` says how
each kernel is compiled and launched, and what it has to compute.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warploom.errors import DeadlockError, KernelError, LimitError, RaceError, WarploomError
from warploom.machine.proof import Proof, Reach
from warploom.machine.report import Report
from warploom.ptx import load
from warploom.ptx.emulate.asked import Model
from warploom.ptx.findings import proof_lines
from warploom.ptx.launch import LoadedModule
from warploom.without_gpu.cuda_kernel import compiled_text

FOLDER = Path(__file__).with_name("hopper")
MOST_SECONDS = 60.0  # of one core, for a launch
MOST_WAITED = 300.0  # by the clock, on a machine that has other things to do
MOST_DEADLOCK = 5.0
WORDS = 400  # of what was said that a record keeps


@dataclass(frozen=True)
class Launch:
    """A launch, the array that it writes, and what it must hold."""

    grid: int | Sequence[int]
    block: int | Sequence[int]
    args: Sequence[Any]
    out: Any
    expected: Any
    shared_bytes: int = 0
    cluster: int | None = None
    right: Callable[[Any, Any], bool] = np.array_equal


@dataclass(frozen=True)
class Case:
    """A kernel at a launch; `options` are the compiler's, `file` is CUDA or PTX."""

    name: str
    file: Path
    launch: Callable[[], Launch]
    options: tuple[str, ...] = ()
    models: tuple[Model, ...] = ("ptx", "practice")  # by which it is proved
    benign: bool = False

    def text(self) -> str:
        return self.file.read_text()


@dataclass(frozen=True)
class Mutant:
    """`at`: pieces of lines of the mutated text; a finding has to name a line that has one.

    `equivalent`: why no schedule can show a difference; then the mutant has to be proved.
    """

    name: str
    case: str
    kind: str
    old: str
    new: str
    at: tuple[str, ...] = ()
    equivalent: str = ""

    def text(self, original: str) -> str:
        if original.count(self.old) != 1:
            raise ValueError(f"{self.name}: its text stands there {original.count(self.old)} times")
        return original.replace(self.old, self.new)


def mutants_of(path: Path) -> list[Mutant]:
    """The mutants of a table; `case` is said once, or by a mutant for itself."""
    table = tomllib.loads(path.read_text())
    return [
        Mutant(**{"case": table["case"], **each, "at": tuple(each.get("at", ()))})
        for each in table["mutant"]
    ]  # fmt: skip


def all_mutants() -> dict[str, Mutant]:
    """By name, as `ring: no wait for data`."""
    return {
        f"{path.stem}: {each.name}": each
        for path in sorted(FOLDER.glob("*.toml")) for each in mutants_of(path)
    }  # fmt: skip


# -- running ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What was said of a kernel. `verdict`: proved, data, refused, race, deadlock, error, wrong
    result, not ended or failed; `lines` of its file were named."""

    verdict: str
    said: str
    lines: frozenset[int]
    seconds: float  # of the processor, without compiling
    breaks: bool = True  # false of what the manual alone forbids
    agents: int = 0
    assumed: tuple[str, ...] = field(default=())

    @property
    def located(self) -> bool:
        return bool(self.lines)


REFUSED = frozenset({"refused", "race", "deadlock", "error"})  # a fault was found


def judge(case: Case, text: str | None = None, model: Model | None = None) -> Outcome:
    """Runs a case, or its mutated text, once with races and a proof."""
    given = case.text() if text is None else text
    module = _loaded(case, given)
    launch = case.launch()
    started = time.process_time()
    try:
        report = module.kernel().launch(
            launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes,
            cluster=launch.cluster, races=True, prove=True, model=model or case.models[0],
            benign=case.benign, seconds=MOST_WAITED,
        )  # fmt: skip
    except WarploomError as error:
        return _faulty(case, error, time.process_time() - started)
    seconds = time.process_time() - started
    right = launch.right(launch.out, launch.expected)
    return _done(case, module, report, right, seconds)


def _loaded(case: Case, text: str) -> LoadedModule:
    if case.file.suffix == ".ptx":
        return load(text, case.file.name)
    name = str(case.file)
    made = compiled_text(text, name, "sm_90a", case.options)
    return load(made, f"{case.file.name}, as PTX", {name: text})


def _faulty(case: Case, error: WarploomError, seconds: float) -> Outcome:
    match error:
        case RaceError():
            verdict = "race"
        case DeadlockError():
            verdict = "deadlock"
        case LimitError():
            verdict = "not ended"
        case KernelError():
            verdict = "error"
        case _:
            verdict = "failed"
    breaks = not isinstance(error, KernelError) or error.breaks
    return Outcome(verdict, error.message, _lines(case, str(error)), seconds, breaks)


def _done(
    case: Case, module: LoadedModule, report: Report, right: bool, seconds: float
) -> Outcome:  # fmt: skip
    proof = report.proof
    assert proof is not None
    head, *rest = proof_lines(module, proof)
    failed = [each for each in rest if not each.startswith("  assumed")]
    match proof.reach:
        case Reach.ALL_DATA:
            verdict = "proved"
        case Reach.THIS_DATA:
            verdict = "data"
        case _:
            verdict = "refused"
    if not right and verdict != "refused":
        verdict = "wrong result"
    said = "; ".join(each.strip() for each in [head, *failed])
    return Outcome(
        verdict, said, _lines(case, said) | _of_text(case, proof), seconds, True, proof.agents,
        proof.assumed,
    )  # fmt: skip


def _of_text(case: Case, proof: Proof) -> frozenset[int]:
    """The lines of a PTX text at which conditions failed; they are told by those of its source."""
    if case.file.suffix != ".ptx":
        return frozenset()
    return frozenset(each.span.line for each in proof.failed if each.span is not None)


def _lines(case: Case, said: str) -> frozenset[int]:
    """The lines of a case's file that a message names."""
    name = re.escape(case.file.name)
    found = re.findall(rf"{name}(?:, line |:)(\d+)", said)
    return frozenset(int(each) for each in found)


def wanted_lines(mutant: Mutant, text: str) -> frozenset[int]:
    """The lines of a mutated text of which one has to be named."""
    lines = text.split("\n")
    found: set[int] = set()
    for piece in mutant.at:
        here = {number for number, line in enumerate(lines, 1) if piece in line}
        if not here:
            raise ValueError(f"{mutant.name}: no line has {piece!r}")
        found |= here
    return frozenset(found)


def shortcoming(mutant: Mutant, text: str, outcome: Outcome) -> str:
    """What is wrong with what was said of a mutant; nothing where it is as it should be."""
    if mutant.equivalent:
        return "" if outcome.verdict == "proved" else f"accused: {outcome.verdict}"
    if outcome.verdict not in REFUSED:
        return f"missed: {outcome.verdict}"
    if outcome.verdict == "deadlock" and outcome.seconds > MOST_DEADLOCK:
        return f"late: {outcome.seconds:.1f} s"
    wanted = wanted_lines(mutant, text)
    if not outcome.lines & wanted:
        return f"another line: {sorted(outcome.lines)} instead of {sorted(wanted)}"
    return ""
