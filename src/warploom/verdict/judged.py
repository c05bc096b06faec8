"""`warploom.judge`: is a kernel equal to its reference, for all inputs of a shape?

Three things have to hold for *equal*: the run stands for all schedules, what the kernel writes is
the same function of its inputs over the reals as the reference, and plain launches find no fault.
What is not shown is *unknown*. *Different* is what a plain launch on floats shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from os import PathLike
from secrets import randbelow
from typing import Any, Protocol

import numpy as np

from warploom.errors import CheckError, KernelError, LimitError, ParseError, Span, located
from warploom.machine.proof import Proof, Reach
from warploom.machine.report import Report
from warploom.ptx.demangle import demangled
from warploom.ptx.field.elements import NotKnown
from warploom.ptx.field.equal import Answer
from warploom.ptx.findings import race_findings
from warploom.ptx.launch import Kernel
from warploom.ptx.patience import deadline_of, within
from warploom.ptx.prove.verdict import SAME_VALUE
from warploom.ptx.types import types_of
from warploom.ptx.work import counted
from warploom.verdict.answer import Judged, Judgement, Reason, fault
from warploom.verdict.argument import Said, said
from warploom.verdict.case import Argument, Case, case_of
from warploom.verdict.elsewhere import MOST, USUAL, Other, other_shapes, tried
from warploom.verdict.exact import Exactly
from warploom.verdict.floats import (
    Counterexample,
    Launches,
    doubles,
    furthest,
    grossly,
    shaken,
    unwritten,
    values,
)
from warploom.verdict.hindered import Hindered, hindered
from warploom.verdict.inputs import DISTRIBUTIONS
from warploom.verdict.precision import AS_WIDE, Limits, Measured
from warploom.verdict.reference import Reference
from warploom.without_gpu.cuda_kernel import CudaKernel
from warploom.without_gpu.front import DEFAULT_ARCH

SECONDS = 60.0
MOST_SHAPES = 64
SEEDS = 1 << 31
SHAKEN = 3
MOST_RACES = 3  # that are told: one may show at many lines


class Question:
    """What is asked of one kernel; `of` answers it for one shape."""

    def __init__(
        self, kernel: Kernel, reference: Reference, seed: int, seconds: float, limits: Limits,
        performance: bool,
    ) -> None:  # fmt: skip
        self.kernel, self.reference = kernel, reference
        self.seed, self.seconds, self.limits = seed, seconds, limits
        self.performance = performance

    def of(self, case: Case) -> Judged:
        started = time.monotonic()
        found = Judged(case.sizes, fixed=_fixed(case))
        trial = _Trial(self, case, found, deadline_of(self.seconds))
        try:
            with within(trial.deadline, "the judgement of this shape"):
                trial.run()
        except LimitError as error:
            found.verdict = "unknown"
            found.reasons.append(Reason.of("limit", error))
        except KernelError as error:
            found.verdict = "different"
            found.reasons.append(fault(error, case, trial.launches.last))
        finally:
            trial.launches.restore()
        found.seconds = time.monotonic() - started
        return found

    def elsewhere(self, case: Case) -> list[str]:
        """What launches at a shape find that nobody stated."""
        trial = _Trial(self, case, Judged(case.sizes), deadline_of(self.seconds))
        try:
            with within(trial.deadline, "the launches of this shape"):
                return trial.launched()
        except KernelError as error:
            return [fault(error, case, trial.launches.last).message]
        finally:
            trial.launches.restore()


class _Trial:
    """One shape on its way to a verdict."""

    def __init__(self, asked: Question, case: Case, found: Judged, deadline: float | None) -> None:
        self.asked, self.case, self.found, self.deadline = asked, case, found, deadline
        self.kernel, self.reference, self.seed = asked.kernel, asked.reference, asked.seed
        self.kernels = case.kernels(asked.kernel)
        self.owners = list({id(each.owner): each.owner for each in self.kernels}.values())
        self.launches = Launches(asked.kernel, deadline)
        self.exactly = Exactly(asked.kernel, case, asked.reference, deadline, seed=asked.seed)
        self.measured = Measured(
            self.launches, case, asked.reference, self.exactly, asked.seed
        )  # fmt: skip

    def run(self) -> None:
        found = self.found
        doubts = self._checked()
        if found.reasons:
            found.verdict = "different"
            return
        answer = self.exactly.answer()
        found.draws = answer.draws
        found.constants = dict(self.exactly.taken)
        self.measured.passed(self.exactly.went)
        found.precision = list(self.measured.outputs.values())
        found.counterexample = self._apart(answer) or self._not_finite()
        if found.counterexample is not None:
            found.verdict = "different"
            return
        found.reasons += doubts
        match answer.verdict:
            case "different":
                what = "over the reals it is not known to be the reference, and no inputs were "
                what += "found on which it is further from it than rounding explains"
                found.reasons.append(Reason("function", what))
            case "unknown":
                found.reasons.append(Reason("not followed", answer.why, self._line(answer.span)))
            case "equal":
                found.error = answer.error
        if self.asked.limits.tried:
            self.measured.hard(answer.narrow)
        broken = self._broken(self.asked.limits)
        found.verdict = "different" if broken else "unknown" if found.reasons else "equal"
        found.reasons += broken
        if self.asked.performance:
            found.hindered = self._hindered()

    def launched(self) -> list[str]:
        """What is wrong on one draw of inputs."""
        self._checked()
        example = None if self.found.reasons else self._gross("normal", self.seed)
        wrong = [each.message for each in self.found.reasons]
        return wrong if example is None else [example.text]

    def _hindered(self) -> Hindered:
        """What holds a right kernel back, by a launch on usual inputs."""
        case = self.case
        case.fill(np.random.default_rng(self.seed), "normal")
        self.launches.restore()
        (launch,) = case.launches
        done = counted(
            self.kernel, launch.grid, launch.block, launch.passed(), shared_bytes=launch.shared,
            cluster=launch.cluster, deadline=self.deadline,
        )  # fmt: skip
        return hindered(self.kernel, done)

    def _broken(self, limits: Limits) -> list[Reason]:
        """What is less precise than was asked for."""
        out = []
        for each in self.found.precision:
            for kind in each.accumulators or () if limits.accumulate else ():
                if kind not in AS_WIDE[limits.accumulate or ""]:
                    message = f"{each.name}: sums are held in {kind}, and more is added to them"
                    advice = f"add in {limits.accumulate}, and round once at the end"
                    place = self._line(self.exactly.holding.get(kind))
                    out.append(Reason("accumulator", message, place, advice))
        seen = self.measured.furthest
        if seen is not None and limits.ulps is not None and seen.ulps > limits.ulps:
            name = seen.argument.name
            message = f"{name} is {seen.ulps:.3g} ulps from the reference, of {limits.ulps:g}"
            out.append(Reason("ulps", message))
            self.found.counterexample = self._example(
                seen.argument, seen.at, seen.found, seen.wanted, seen.how, self.seed, seen.inputs
            )
        return out

    # -- plain launches ---------------------------------------------------------------------------

    def _checked(self) -> list[Reason]:
        """A launch with all checks: what is wrong goes to the reasons, what is open comes back."""
        case, found = self.case, self.found
        before, reports = self._launched(benign=False)
        if any(each.races for each in reports):
            before, reports = self._launched(benign=True)
            self.exactly.racing = not any(each.races for each in reports)
        races = [
            each
            for kernel, report in zip(self.kernels, reports, strict=True)
            for each in race_findings(kernel.owner, report.races)
        ]
        found.reasons += [Reason.of("race", each.error) for each in races[:MOST_RACES]]
        for name, first, count in unwritten(case, self.launches.marks):
            message = f"{count} elements of {name} are not written, the first is {name}[{first}]"
            found.reasons.append(Reason("unwritten", message))
        for name, start in before.items():
            if case.named[name].memory.tobytes() != start.tobytes():
                message = f"it writes to its input {name}"
                advice = f"say {name}=…=inout if it is meant to"
                found.reasons.append(Reason("writes input", message, None, advice))
        return [*self._scheduled([each.proof for each in reports]), *self._lasting()]

    def _launched(self, *, benign: bool) -> tuple[dict[str, Any], list[Report]]:
        """What the inputs held, and the reports of launches with all checks."""
        self.case.fill(np.random.default_rng(self.seed), "normal")
        before = {each.name: each.memory.copy() for each in self.case.kept}
        return before, self.launches.run(self.case, prove=True, benign=benign)

    def _scheduled(self, proofs: Sequence[Proof | None]) -> list[Reason]:
        """Launches follow each other: each of them is to be the same in all schedules."""
        known = [each for each in proofs if each is not None]
        if len(known) < len(proofs):
            return [Reason("schedule", "nothing is known of other schedules")]
        # That writes which race are of one value, the run on elements shows.
        assumed = (each for proof in known for each in proof.assumed if each != SAME_VALUE)
        self.found.schedule = "; ".join(dict.fromkeys(each.text for each in known))
        self.found.assumed = tuple(dict.fromkeys(assumed))
        # What data decides are whole numbers, which stay: floats decide nothing, or the run on
        # elements says so.
        open_ = [each for each in known if each.reach is Reach.THIS_SCHEDULE]
        failed = [each for proof in open_ for each in proof.failed]
        return [Reason("schedule", e.message, self._line(e.span)) for e in failed]

    def _line(self, span: Span | None) -> Span | None:
        """A place in the source, where one is known, and else in the PTX."""
        places = (None if span is None else each.places.at(span) for each in self.owners)
        place = next((each for each in places if each is not None), None)
        return (place.span() if place else None) or span

    def _lasting(self) -> list[Reason]:
        """What a launch leaves for the next one."""
        found = [
            Reason("state", f"it leaves something in the variable '{name}' for the next launch")
            for name in self.launches.changed()
        ]
        if any(each.heap.was_used for each in self.owners):
            found.append(Reason("state", "it takes memory by malloc, which is not followed"))
        if found:
            self._next_launch()
        return found

    def _next_launch(self) -> None:
        """Another launch, with other inputs, that finds what the first left."""
        example = self._gross("normal", self.seed + 1, keep=True)
        if example is not None:
            self.found.counterexample = example
            message = "a second launch, with other inputs, is wrong by what the first one left"
            self.found.reasons.append(Reason("state", message))

    # -- counterexamples --------------------------------------------------------------------------

    def _apart(self, answer: Answer) -> Counterexample | None:
        """Inputs on which a plain launch is not as the reference."""
        for number, how in enumerate(DISTRIBUTIONS if answer.verdict != "equal" else ()):
            seed = self.seed + number
            if answer.verdict == "unknown":
                example = self._gross(how, seed) if how in ("normal", "whole") else None
            else:
                example = self._replayed(how, seed, answer)
            if example is not None:
                return example
        return None

    def _not_finite(self) -> Counterexample | None:
        """A launch on usual inputs that overflows, or divides by what is always zero."""
        case = self.case
        case.fill(np.random.default_rng(self.seed), "normal")
        inputs = _arrays(case)
        wanted = doubles(case, self.reference, {k: np.copy(v) for k, v in case.given().items()})
        self.launches.run(case)
        for each, found, right in zip(case.outputs, values(case.outputs), wanted, strict=True):
            wrong = ~np.isfinite(found) & np.isfinite(right)
            if wrong.any():
                at = int(wrong.argmax())
                return self._example(each, at, found, right, "normal", self.seed, inputs)
        return None

    def _replayed(self, how: str, seed: int, answer: Answer) -> Counterexample | None:
        """Beside what both functions are without rounding, a launch on the same inputs."""
        try:
            self.exactly.again(how, seed, answer.narrow)
        except NotKnown:
            return None
        case = self.case
        case.fill(np.random.default_rng(seed), how)
        inputs, given = _arrays(case), {k: np.copy(v) for k, v in case.given().items()}
        plain = doubles(case, self.reference, given)
        self.launches.run(case)
        compared = self.exactly.compared
        for number, (each, found, (kernel, wanted)) in enumerate(
            zip(compared, values(compared), self.exactly.real, strict=True)
        ):
            of_floats = number < len(plain) and each.said.is_float
            references = [plain[number], wanted] if of_floats else [wanted]
            at = furthest(found, kernel, references, each.said.kind)
            if at is not None:
                return self._example(each, at, found, references[0], how, seed, inputs)
        return None

    def _gross(self, how: str, seed: int, *, keep: bool = False) -> Counterexample | None:
        """A launch that is further from the reference than any rounding that may be expected."""
        case, draw = self.case, np.random.default_rng(seed)
        case.fill(draw, how)
        inputs, given = _arrays(case), {k: np.copy(v) for k, v in case.given().items()}
        unit = max(map(_unit, self.kernels))
        wanted = doubles(case, self.reference, given)
        moved = [
            doubles(case, self.reference, shaken(case, given, unit, draw)) for _ in range(SHAKEN)
        ]
        with suppress(KernelError):
            self.launches.run(case, keep=keep)
            for number, each in enumerate(case.outputs):
                found = values([each])[0]
                near = [one[number] for one in moved]
                at = grossly(found, wanted[number], near, unit)
                if at is not None:
                    wanted_ = wanted[number]
                    return self._example(each, at, found, wanted_, how, seed, inputs)
        return None

    def _example(
        self, each: Argument, at: int, found: Any, wanted: Any, how: str, seed: int,
        inputs: dict[str, Any],
    ) -> Counterexample:  # fmt: skip
        index = tuple(int(n) for n in np.unravel_index(at, each.shape)) if each.shape else ()
        arrays = {
            name: given for name, given in inputs.items() if not self.case.named[name].is_scalar
        }
        return Counterexample(
            each.name, index, float(found[at]), float(wanted[at]), how, seed, arrays,
            self.case.launch(self.kernel.name),
        )  # fmt: skip


def _unit(kernel: Kernel) -> float:
    """How coarse the numbers may be that a kernel computes with."""
    used = {kind.removesuffix("x2") for s in kernel.function.instructions() for kind in types_of(s)}
    if "bf16" in used:
        return 2.0**-7
    if used & {"f16", "tf32"}:
        return 2.0**-9
    return 2.0**-16


def _arrays(case: Case) -> dict[str, Any]:
    return {each.name: each.memory.copy() for each in case.named.values()}


def _fixed(case: Case) -> tuple[str, ...]:
    named = [e.name for e in case.named.values() if e.start is not None and not e.said.is_output]
    return (*named, *(name for name in case.whole if name not in case.sizes))


# -- the call --------------------------------------------------------------------------------------


def shapes_of(sizes: Mapping[str, Any]) -> list[dict[str, int]]:
    """Every combination of the sizes."""
    if not isinstance(sizes, Mapping) or not all(isinstance(name, str) for name in sizes):
        advice = 'give {"n": 1024}, or several: {"n": [37, 64]}'
        raise CheckError(f"the shape is {sizes!r:.60}", advice=advice)
    listed: dict[str, Sequence[int]] = {}
    for name, given in sizes.items():
        values_ = list(given) if isinstance(given, list | tuple | range) else [given]
        if not values_ or not all(type(each) is int and each > 0 for each in values_):
            raise ParseError(f"the size {name}={given!r:.60}", advice="give whole numbers above 0")
        listed[name] = values_
    found = [dict(zip(listed, each, strict=True)) for each in product(*listed.values())]
    if len(found) > MOST_SHAPES:
        raise ParseError(f"{len(found)} shapes; at most {MOST_SHAPES} are judged at a time")
    return found


@located
def judge(
    kernel: Any, reference: Callable[..., Any], args: Mapping[str, Any], *, grid: Any = 1,
    block: Any = 32, shape: Mapping[str, Any] | None = None, cluster: Any = None,
    shared_bytes: Any = 0, name: str | None = None, arch: str = DEFAULT_ARCH,
    seconds: float = SECONDS, seed: int | None = None, precision: bool = False,
    accumulate: str | None = None, ulps: float | None = None, others: int = USUAL,
    general: bool = False, performance: bool = False,
) -> Judgement:  # fmt: skip
    """Whether a kernel is equal to its reference, for all inputs of a shape, without a GPU.

    `kernel` is CUDA or PTX text, or a file of it, of which `name` chooses a kernel. `reference` is
    a function on NumPy arrays, or on tensors of PyTorch if it names that, whose parameters bear
    names of arguments and sizes. `args` says what each argument is, in the kernel's order:
    `f32[rows,n]` stands for any values, `f32[n]=out` is what the kernel writes, `i32=n` a number.
    `shape` gives the sizes, each one number or several. `grid` and `block` are expressions of the
    sizes. Each shape has `seconds`.

    The verdict is *equal* if the kernel gives the reference's results as functions over the reals,
    in every schedule; rounding is not looked at. It is *different* if some inputs show it, or if
    the kernel does something wrong. All else is *unknown*, with the reasons.

    With `precision` hard inputs are tried, too: magnitudes far apart, near ties, subnormal numbers,
    zeros, infinities and NaNs. Limits are verdicts: `accumulate="float32"` is the narrowest type
    that sums may be held in, and `ulps` how far results may be from the reference's.

    So many `others` are shapes that were not stated, at which the kernel is launched, too. What is
    wrong there is said; with `general` it makes the verdict.

    With `performance` each shape says what holds the kernel back on an H200, by the time model, and
    what would help. Nothing is measured.

    >>> import warploom
    >>> text = '''
    ... .version 7.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry twice(.param .u64 p, .param .u64 q) {
    ...   .reg .b32 %r1; .reg .f32 %f1; .reg .b64 %rd<6>;
    ...   ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
    ...   mov.u32 %r1, %tid.x;
    ...   mul.wide.u32 %rd3, %r1, 4;
    ...   add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ...   ld.global.f32 %f1, [%rd4];
    ...   add.f32 %f1, %f1, %f1;
    ...   st.global.f32 [%rd5], %f1;
    ...   ret;
    ... }'''
    >>> args = {"x": "f32[32]", "y": "f32[32]=out"}
    >>> warploom.judge(text, lambda x: 2 * x, args).verdict
    'equal'
    >>> warploom.judge(text, lambda x: x * x, args).verdict
    'different'
    """
    advice = 'give {"x": "f32[n]", "y": "f32[n]=out", "n": "i32=n"}'
    if not isinstance(args, Mapping):
        raise CheckError(f"the arguments are a {type(args).__name__}", advice=advice)
    if nameless := [each for each in args if not isinstance(each, str)]:
        raise CheckError(f"an argument is called {nameless[0]!r:.60}", advice=advice)
    if not isinstance(kernel, Kernel | str | PathLike):
        raise CheckError(
            f"a {type(kernel).__name__} is no kernel", advice="give its text or a file"
        )
    chosen = (
        kernel if isinstance(kernel, Kernel) else CudaKernel(kernel, name, arch, seconds).kernel
    )
    listed = [said(each, text) for each, text in args.items()]
    cases = Shapes(
        listed, _joined(grid), _joined(block), None if cluster is None else _joined(cluster),
        str(shared_bytes),
    )  # fmt: skip
    limits = Limits.of(precision, accumulate, ulps)
    return judged(
        chosen, Reference(reference), cases, shape or {}, seconds, seed, limits, others, general,
        performance,
    )  # fmt: skip


def _joined(given: Any) -> str:
    return ",".join(map(str, given)) if isinstance(given, list | tuple) else str(given)


class Cases(Protocol):
    """Launches, by shape."""

    def at(self, sizes: Mapping[str, int], seed: int) -> Case: ...


@dataclass(frozen=True, slots=True)
class Shapes:
    """What is said of launches, over sizes."""

    args: Sequence[Said]
    grid: str
    block: str
    cluster: str | None = None
    shared: str = "0"

    def at(self, sizes: Mapping[str, int], seed: int) -> Case:
        return case_of(
            self.args, sizes, self.grid, self.block, self.cluster, self.shared, seed
        )  # fmt: skip


def judged(
    kernel: Kernel, reference: Reference, shapes: Cases, sizes: Mapping[str, Any], seconds: float,
    seed: int | None = None, limits: Limits | None = None, others: int = USUAL,
    general: bool = False, performance: bool = False,
) -> Judgement:  # fmt: skip
    """Primes and inputs are drawn anew in every call, so that no kernel can be made for them; a
    `seed` repeats a call."""
    chosen = randbelow(SEEDS) if seed is None else seed
    if not isinstance(chosen, int) or chosen < 0:
        raise CheckError(f"the seed {chosen!r:.40}", advice="give 0 or more")
    if not isinstance(others, int) or not 0 <= others <= MOST:
        raise CheckError(f"{others!r:.40} other shapes", advice=f"give 0 to {MOST}")
    stated = shapes_of(sizes)
    cases = [shapes.at(each, chosen) for each in stated]
    kernels = [demangled(each.name) for each in cases[0].kernels(kernel)]
    if performance and len(kernels) > 1:
        raise CheckError(f"{len(kernels)} launches, of which no time is predicted")
    name = " then ".join(dict.fromkeys(kernels))
    question = Question(kernel, reference, chosen, seconds, limits or Limits(), performance)
    found = tuple(question.of(each) for each in cases)
    made = Judgement(name, reference.name, found, chosen, general=general)
    if made.verdict == "different":
        return made
    return replace(made, others=_elsewhere(question, shapes, stated, others))


def _elsewhere(
    question: Question, shapes: Cases, stated: list[dict[str, int]], count: int
) -> tuple[Other, ...]:
    """Other shapes, of launches whose arrays follow the sizes."""
    if not isinstance(shapes, Shapes) or any(each.values is not None for each in shapes.args):
        return ()
    found = []
    for sizes in other_shapes(stated, count, np.random.default_rng(question.seed)):
        at = partial(shapes.at, sizes, question.seed)
        found.append(tried(sizes, partial(_launched_at, question, at)))
    return tuple(found)


def _launched_at(question: Question, at: Callable[[], Case]) -> list[str]:
    return question.elsewhere(at())
