"""The museum: faults of public issue threads as small kernels, `tests/ptx/museum/*.cu`.

A text holds a kernel before and after its mend: lines that end in `//-` are there before alone,
those that end in `//+` after alone. Lines with an `!` behind the sign, or `//!`, are those that a
finding shall name. Comments at the head say what happened, how it is launched, and what is expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from warploom import ptx
from warploom.errors import DeadlockError, KernelError, Span, WarploomError
from warploom.machine.proof import Proof, Reach
from warploom.machine.report import Report
from warploom.ptx.emulate.asked import Model
from warploom.ptx.findings import race_findings
from warploom.ptx.launch import LoadedModule
from warploom.runtime.compile import compile_cuda

FOLDER = Path("tests/ptx/museum")
ARCH = "sm_90a"
_SIGN = re.compile(r"//([-+]?!?)$")
_HEAD = re.compile(r"// (?P<project>[^#:]+) #(?P<number>\d+): (?P<title>.+)")
_KEY = re.compile(r"// (mend|launch|before|after): (.*)")
_NUMBER = re.compile(r"(grid|block|cluster|n) (\d+)")
WORDS = 4096  # of each array


@dataclass(frozen=True)
class Exhibit:
    """A fault: what its text says of it. `before` is the kind of finding and words of its message;
    `after` is for what the mended kernel is proved, or the condition that is in the way."""

    name: str
    title: str
    link: str
    kind: str
    story: str
    mend: str
    before: tuple[str, str]
    after: str
    lines: tuple[str, ...]
    marked: frozenset[int]
    launch: dict[str, int]
    model: Model

    def text(self, mended: bool) -> str:
        """The kernel before or after its mend, with the same lines."""
        gone = "-" if mended else "+"
        return "\n".join(
            "" if (sign := _SIGN.search(line)) and gone in sign[1] else line for line in self.lines
        )


@dataclass
class Verdict:
    """What Warploom says of a kernel: the kind of finding ("" if there is none), its words, the
    lines that it names, and for what a proof holds."""

    kind: str = ""
    message: str = ""
    lines: set[int] = field(default_factory=set)
    proved: str = ""
    seconds: float = 0.0

    @property
    def told(self) -> str:
        """The finding as the page quotes it: its kind, if the words do not begin so, and they."""
        words = self.message.partition("; in ")[0]
        return words if words.startswith(self.kind) else f"{self.kind}: {words}"


def exhibits() -> list[Exhibit]:
    return [read(path.stem) for path in sorted(FOLDER.glob("*.cu"))]


@cache
def read(name: str) -> Exhibit:
    lines = (FOLDER / f"{name}.cu").read_text().splitlines()
    head = _HEAD.fullmatch(lines[0])
    assert head is not None, name
    said: dict[str, str] = {"story": ""}
    key = "story"
    for line in lines[3 : next(i for i, line in enumerate(lines) if line.startswith("#"))]:
        if found := _KEY.fullmatch(line):
            key = found[1]
            said[key] = found[2]
        else:
            said[key] = f"{said[key]} {line.removeprefix('// ')}".strip()
    kind, _, words = said["before"].partition("; ")
    launch = {"grid": 1, "block": 64, "cluster": 1, "n": 4}
    launch |= {each: int(value) for each, value in _NUMBER.findall(said.get("launch", ""))}
    signs = [(at, sign[1]) for at, line in enumerate(lines, 1) if (sign := _SIGN.search(line))]
    return Exhibit(
        name, lines[0].removeprefix("// "), lines[1].removeprefix("// "),
        lines[2].removeprefix("// kind: "), said["story"], said["mend"], (kind, words),
        said.get("after", "all data"), tuple(lines), frozenset(at for at, s in signs if "!" in s),
        launch, "ptx" if "model ptx" in said.get("launch", "") else "practice",
    )  # fmt: skip


@cache
def loaded(name: str, mended: bool) -> LoadedModule:
    text, file = read(name).text(mended), f"{name}.cu"
    options = ("-lineinfo", f"-I{FOLDER.resolve()}")
    made = compile_cuda(text, ARCH, options=options).text
    shown = re.sub(r'(\.file\s+\d+\s+)"[^"]*\bkernel\.cu"', rf'\1"{file}"', made)
    return ptx.load(shown, f"{file}, as PTX", {file: text})


def arrays() -> list[Any]:
    return [np.arange(WORDS, dtype=np.int32) % 97, np.zeros(WORDS, np.int32)]


def look(name: str, mended: bool, schedule: int | None = None) -> Verdict:
    """Launches a kernel with races and a proof; with a schedule, without a proof."""
    exhibit, module = read(name), loaded(name, mended)
    started = process_time()
    sizes, given = exhibit.launch, [*arrays(), exhibit.launch["n"]]
    shape = sizes["grid"], sizes["block"]
    before = None
    if "earlier" in module.kernels:  # a launch that may still run
        before = module.kernel("earlier").launch(*shape, given, races="all", dependents=True)
        assert not before.races, name
    try:
        report = module.kernel("fault").launch(
            *shape, given, cluster=sizes["cluster"], races="all", prove=schedule is None,
            model=exhibit.model, seconds=60, schedule=schedule, after=before,
        )  # fmt: skip
    except WarploomError as error:
        verdict = _of_error(module, error)
    else:
        verdict = _of_report(module, report)
    verdict.seconds = process_time() - started
    return verdict


def named(exhibit: Exhibit, verdict: Verdict) -> bool:
    """Whether a finding has the kind, the words and a line that the exhibit expects."""
    kind, words = exhibit.before
    return (
        verdict.kind == kind and words in verdict.message and bool(exhibit.marked & verdict.lines)
    )


def _of_error(module: LoadedModule, error: WarploomError) -> Verdict:
    kind = "fault" if isinstance(error, KernelError) else "refused"
    kind = "deadlock" if isinstance(error, DeadlockError) else kind
    message = f"{error.message}; {error.advice}"
    return Verdict(kind, message, _told(module, message) | _lines(module, error.span))


def _of_report(module: LoadedModule, report: Report) -> Verdict:
    if report.races:
        finding = race_findings(module, report.races)[0]
        message = finding.error.message
        lines = _told(module, message) | _lines(module, finding.error.span)
        return Verdict(message.partition(":")[0], message, lines)
    return Verdict() if report.proof is None else _of_proof(module, report.proof)


def _of_proof(module: LoadedModule, proof: Proof) -> Verdict:
    if proof.reach is not Reach.THIS_SCHEDULE:
        return Verdict(proved=proof.reach.name.lower().replace("_", " "))
    first = next(each for each in proof.failed if each.condition != "data")
    return Verdict(first.condition, first.message, _lines(module, first.span))


def _told(module: LoadedModule, words: str) -> set[int]:
    """The lines of the kernel's own text that a message names."""
    file = module.module.text.source.name.partition(",")[0]
    return {int(line) for line in re.findall(rf"{re.escape(file)}:(\d+)", words)}


def _lines(module: LoadedModule, span: Span | None) -> set[int]:
    """The line of the kernel's own text that a place is in, if it is told in it."""
    if span is None:
        return set()
    file = module.module.text.source.name.partition(",")[0]
    if span.source.name == file:
        return {span.line}
    place = module.places.at(span)
    return set() if place is None else {place.frames[-1].line}
