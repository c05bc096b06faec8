"""Measures one sketch in a process of its own, so that its peak memory is its own, too.

`measure` does the work; `apart` runs it in a new process, whose `main` reads a request as JSON from
standard input and writes the record to standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from warploom.bench.published import named
from warploom.errors import CheckError, WarploomError
from warploom.process import python_command
from warploom.search.budget import Budget
from warploom.sketch.synth.result_json import Record, record_of
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply, Program, size


@dataclass(frozen=True, slots=True)
class Request:
    """A sketch by name and sizes, and how to search; `fuel` and `single` weaken engine pairs."""

    name: str
    sizes: dict[str, int] = field(default_factory=dict)
    engine: str = "default"
    seconds: float | None = None
    megabytes: float | None = None
    fuel: int | None = None
    single: bool = False

    @property
    def label(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.sizes.items())])


def measure(request: Request) -> Record:
    """All fills, timed from the text on: gather sets are built in the run."""
    build = named(request.name)
    if build is None:
        raise CheckError(f"no sketch is called '{request.name}'")
    started = time.process_time()
    program = build(request.sizes)
    result = synthesize(
        program,
        engine=request.engine,
        budget=Budget(request.seconds, request.megabytes),
        set_seconds=time.process_time() - started,
        fuel=request.fuel,
        single=request.single,
    )
    about = {"name": request.label, "engine": request.engine, **_size(program)}
    return about | record_of(result, limit=10)


def _size(program: Program) -> Record:
    """The cells of the largest array, and the options of all holes."""
    applied = [step for step in program.steps if isinstance(step, Apply)]
    return {
        "cells": max(size(step.gathers.out_shape) for step in applied),
        "options": sum(len(step.gathers) for step in applied if step.gathers.is_hole),
    }


def apart(request: Request, seconds: float = 600.0) -> Record:
    """The record of a run in a process of its own, or `{"error": why}`."""
    command = python_command("from warploom.bench.measure import main; sys.exit(main())")
    failed: dict[str, Any] = {"name": request.label, "engine": request.engine}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(asdict(request)),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {**failed, "error": f"no answer in {seconds:.0f} s"}
    if done.returncode != 0:
        why = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {**failed, "error": why[-1]}
    record: Record = json.loads(done.stdout)
    return record


def main() -> int:
    try:
        record = measure(Request(**json.load(sys.stdin)))
    except WarploomError as error:
        print(error.message, file=sys.stderr)
        return 2
    json.dump(record, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
