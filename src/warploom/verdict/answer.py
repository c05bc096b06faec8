"""What is said of a kernel: the verdict of each shape, why, and what was checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from warploom.errors import KernelError, Span, UninitialisedError, WarploomError
from warploom.verdict.case import Case, Launch
from warploom.verdict.elsewhere import Other
from warploom.verdict.floats import Counterexample
from warploom.verdict.hindered import Hindered
from warploom.verdict.precision import Precise

Ruling = Literal["equal", "different", "unknown"]
ORDER = ("different", "unknown", "equal")  # of several shapes the first decides
_ARGUMENT = re.compile(r"argument (\d+) \('[^']*'\)")
CLAIM = (
    "equal as functions over the reals, where no denominator vanishes; rounding and overflow are "
    "not looked at"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a kernel is not equal, or why that is not known: `what` in one word."""

    what: str
    message: str
    span: Span | None = None
    advice: str = ""

    @staticmethod
    def of(what: str, error: WarploomError) -> Reason:
        return Reason(what, error.message, error.span, error.advice)

    @property
    def text(self) -> str:
        return str(WarploomError(self.message, self.span, self.advice))

    def record(self) -> dict[str, Any]:
        place = {} if self.span is None else {
            "file": self.span.source.name, "line": self.span.line
        }  # fmt: skip
        return {"what": self.what, "message": self.message, **place, "advice": self.advice}


@dataclass(slots=True)
class Judged:
    """One shape. `error`: log2 of how likely *equal* is wrong. `schedule`: for what one run of the
    kernel stands. `constants`: of the reference, and the floats that they were taken for."""

    sizes: dict[str, int]
    verdict: Ruling = "unknown"
    reasons: list[Reason] = field(default_factory=list)
    error: float | None = None
    draws: int = 0
    schedule: str = ""
    assumed: tuple[str, ...] = ()
    constants: dict[float, float] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()  # arguments that were the same in all runs
    counterexample: Counterexample | None = None
    precision: list[Precise] = field(default_factory=list)
    hindered: Hindered | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return ", ".join(f"{k}={v}" for k, v in self.sizes.items()) or "this shape"

    def lines(self) -> list[str]:
        """What a person reads."""
        out = [f"{self.name}: {self.verdict}"]
        out += [f"  {line}" for each in self.reasons for line in each.text.split("\n")]
        if self.counterexample is not None:
            out.append(f"  {self.counterexample.text}")
        if self.error is not None:
            out.append(f"  error below 2^{self.error:.0f}, in {self.draws} draws")
        if self.schedule:
            out.append(f"  schedule: {self.schedule}")
        out += [f"  assumed: {each}" for each in self.assumed]
        if self.fixed:
            out.append(f"  for the values of {', '.join(self.fixed)} that were given")
        for value, taken in sorted(self.constants.items()):
            out.append(f"  the constant {value!r} of the reference is taken for {taken!r}")
        out += [f"  {line}" for each in self.precision for line in each.lines()]
        return out + [f"  {line}" for line in (self.hindered.lines() if self.hindered else ())]

    def record(self) -> dict[str, Any]:
        found = self.counterexample
        return {
            "shape": self.sizes, "verdict": self.verdict,
            "reasons": [each.record() for each in self.reasons], "error_log2": self.error,
            "draws": self.draws, "schedule": self.schedule, "assumed": list(self.assumed),
            "constants": [
                {"value": value, "taken": taken} for value, taken in sorted(self.constants.items())
            ],
            "fixed": list(self.fixed),
            "counterexample": None if found is None else {
                "output": found.output, "index": list(found.index), "kernel": found.kernel,
                "reference": found.reference, "inputs": found.how, "seed": found.seed,
            },
            "precision": [each.record() for each in self.precision],
            "performance": None if self.hindered is None else self.hindered.record(),
            "seconds": self.seconds,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """What `warploom.judge` gives: it prints as a short text."""

    kernel: str
    reference: str
    shapes: tuple[Judged, ...]
    seed: int
    others: tuple[Other, ...] = ()
    general: bool = False  # what is wrong at other shapes makes the verdict

    @property
    def verdict(self) -> Ruling:
        if self.general and any(each.found == "different" for each in self.others):
            return "different"
        return min((each.verdict for each in self.shapes), key=ORDER.index)

    @property
    def counterexample(self) -> Counterexample | None:
        return next((e.counterexample for e in self.shapes if e.counterexample is not None), None)

    def record(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {
            "kind": "judge", "verdict": self.verdict, "kernel": self.kernel,
            "reference": self.reference, "claim": CLAIM, "seed": self.seed,
            "shapes": [each.record() for each in self.shapes],
            "others": [each.record() for each in self.others],
        }  # fmt: skip

    def __str__(self) -> str:
        head = f"{self.kernel} and {self.reference}: {self.verdict}"
        out = [head, *(line for each in self.shapes for line in each.lines())]
        out += [each.text for each in self.others]
        if self.verdict == "equal":
            out.append(CLAIM)
        return "\n".join(out)


def fault(error: KernelError, case: Case, launch: Launch | None) -> Reason:
    """What a launch died of, with the names of arguments."""
    names = (launch or case.launches[0]).names()
    met = {int(number) for number in _ARGUMENT.findall(error.message)}
    message = _ARGUMENT.sub(lambda m: f"'{names.get(int(m[1]), m[0])}'", error.message)
    told = {names.get(number) for number in met}
    outputs = [e.name for e in case.outputs if e.name in told and e.said.start == "out"]
    if isinstance(error, UninitialisedError) and outputs:
        advice = f"say {outputs[0]}=…=inout if it changes what is there"
        return Reason("reads output", f"it reads its output: {message}", error.span, advice)
    return Reason("fault", message, error.span, error.advice)
