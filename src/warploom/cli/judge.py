"""`warploom judge`: a kernel beside its reference, and the verdict as an exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warploom.cli.commands.judge import Judge
from warploom.cli.declare import Context
from warploom.cli.files import replacing
from warploom.cli.guard import Status, check_meant
from warploom.cli.inputs import python_object
from warploom.cli.launch_file import LAUNCH, read_launch
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.ptx_arguments import parse_variables
from warploom.cli.ptx_input import loaded, recorded
from warploom.cli.sanitize_forms import Sanitized, junit, sarif
from warploom.cli.say import echo
from warploom.errors import CheckError, ParseError
from warploom.ptx.launch import Kernel
from warploom.verdict.answer import Judgement
from warploom.verdict.argument import said_in
from warploom.verdict.judged import Shapes, judged
from warploom.verdict.precision import Limits
from warploom.verdict.recorded import RecordedShape
from warploom.verdict.reference import Reference
from warploom.verdict.stand_in import torch_of_references
from warploom.without_gpu.cuda_kernel import CudaKernel

KIND = "judge"
STATUS = {
    "equal": Status.FOUND, "different": Status.IMPOSSIBLE, "unknown": Status.UNDECIDED,
}  # fmt: skip


def judge(asked: Judge, context: Context) -> None:
    if asked.problem is not None:
        from warploom.cli.judge_problem import judge_problem  # here: few calls have one

        judge_problem(asked, asked.problem, context)
    else:
        _judge_kernel(asked, context)


def _judge_kernel(asked: Judge, context: Context) -> None:
    def action(findings: list[dict[str, Any]]) -> Status:
        with kept_free(
            asked.json_file, asked.sarif, asked.junit, asked.counterexample, asked.pattern
        ):
            found = _judged(asked, context)
            echo(str(found))
        status = STATUS[found.verdict]
        findings += findings_of(found)
        write_records(asked.json_file, [{**found.record(), "status": int(status)}])
        if asked.counterexample is not None:
            _save(asked.counterexample, found)
        if asked.pattern is not None:
            _save_pattern(asked.pattern, found)
        return status

    def also(status: Status, findings: list[dict[str, Any]]) -> None:
        answer = Sanitized(asked.source, (KIND,), int(status), findings, "warploom judge")
        if asked.sarif is not None:
            write(asked.sarif, sarif(answer))
        if asked.junit is not None:
            write(asked.junit, junit(answer))

    recorded(action, asked.json_file, KIND, also)


def findings_of(found: Judgement) -> Iterator[dict[str, Any]]:
    """What speaks against *equal*, for programs that read findings."""
    for shape in found.shapes:
        for each in shape.reasons:
            yield {**each.record(), "kind": each.what, "tool": KIND, "kernel": found.kernel}
        if shape.counterexample is not None:
            message = f"{shape.name}: {shape.counterexample.text}"
            yield {"kind": "different", "message": message, "advice": "", "tool": KIND}
    for other in found.others if found.general else ():
        if other.found == "different":
            yield {"kind": "shape", "message": other.text, "advice": "", "tool": KIND}


def _judged(asked: Judge, context: Context) -> Judgement:
    if asked.reference is None:
        raise ParseError(
            "a kernel is judged beside a reference", advice="--reference FILE.py::NAME"
        )
    with torch_of_references():
        function = _function(asked.reference)
    reference = Reference(function, stands_in=True)
    listed = [said_in(text) for text in asked.arg]
    name = asked.kernel
    shapes: Shapes | RecordedShape
    if asked.launch is not None:
        check_meant(context, ("grid", "block", "cluster", "shared"), "beside --launch")
        launch = read_launch(asked.launch)
        name = name or launch.kernel
        shapes = RecordedShape(
            listed, launch.grid, launch.block, launch.cluster, launch.shared, launch.args,
            launch.arrays,
        )  # fmt: skip
    else:
        shapes = Shapes(listed, asked.grid, asked.block, asked.cluster, str(asked.shared))
    sizes = parse_shape_sizes(asked.shape)
    kernel = _kernel(asked, name)
    limits = Limits.of(asked.precision, asked.accumulate, asked.ulps)
    return judged(
        kernel,
        reference,
        shapes,
        sizes,
        asked.seconds,
        asked.seed,
        limits,
        asked.others,
        asked.general,
        asked.performance,
    )


def _function(text: str) -> Callable[..., Any]:
    if "::" not in text:
        raise ParseError(f"'{text[:80]}' names no function", advice="write FILE.py::NAME")
    found = python_object(text)
    if not callable(found):
        raise CheckError(f"{text} is a {type(found).__name__}", advice="name a function in it")
    return found


def _kernel(asked: Judge, name: str | None) -> Kernel:
    variables = parse_variables(asked.variable, 0)
    if "::" in asked.source:
        text = python_object(asked.source)
        if not isinstance(text, str):
            advice = "it should be CUDA or PTX text"
            raise CheckError(f"{asked.source} is a {type(text).__name__}", advice=advice)
        kernel = CudaKernel(text, name, asked.arch, asked.seconds).kernel
        for each, value in variables.items():
            kernel.owner.set_variable(each, value)
        return kernel
    return loaded(asked.source, asked.arch, name, None, variables)[0]


def parse_shape_sizes(texts: Sequence[str]) -> dict[str, list[int]]:
    """`n=1000,1024`: a size, and the values that are judged."""
    found: dict[str, list[int]] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        words = [word.strip() for word in values.split(",")]
        good = all(word.isdecimal() and len(word) <= 9 for word in words)
        if not name.isidentifier() or not equals or not good:
            raise ParseError(f"'{text[:80]}' is not a size", advice="write n=1000 or n=1000,1024")
        if name in found:
            raise ParseError(f"the size '{name}' is given twice", advice="leave one of them out")
        found[name] = [int(word) for word in words]
    return found


def _save_pattern(path: Path, found: Judgement) -> None:
    """How a kernel uses its shared memory, as `layout solve` takes it."""
    held = (shape.hindered for shape in found.shapes)
    patterns = (e.pattern for each in held if each is not None for e in each.remedies)
    text = next((each for each in patterns if each), None)
    if text is None:
        advice = "--pattern is written with --performance, where there are bank conflicts"
        raise ParseError(f"'{path}' is not written: no layout would help", advice=advice)
    write(path, text)


def _save(path: Path, found: Judgement) -> None:
    """The inputs that show a difference, as a launch that `ptx run --launch` takes."""
    example = found.counterexample
    if example is None or example.launch is None:
        raise ParseError(f"'{path}' is not written: there are no inputs that show a difference")
    text = json.dumps(example.launch).encode()
    arrays: Mapping[str, Any] = {LAUNCH: np.frombuffer(text, np.uint8), **example.arrays}
    with replacing(path) as file:
        np.savez(file, **arrays)
