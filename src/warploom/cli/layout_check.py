"""A layout as somebody wrote it, in lines: what is true of it, and how it serves accesses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warploom.errors import CheckError, ParseError
from warploom.layout.formats.given import row_major_addresses
from warploom.layout.formats.tma import box_of, mode_of
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import names_of, sizes_of
from warploom.layout.language.facts import alignment, facts_of, meeting, run
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Problem
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.conflicts import lane_runs, meeting_text, served_together
from warploom.layout.wavefronts.cost import Score
from warploom.layout.wavefronts.lower_bound import keeps_whole
from warploom.layout.wavefronts.picture import step_of

WIDEST = 100


def _longest_run(layout: Layout) -> tuple[int, int, str]:
    """The longest runs as one coordinate goes fastest; how they are aligned, and which it is."""
    sizes = sizes_of(layout)
    table = values(layout).reshape(sizes[::-1])  # the first coordinate fastest
    found = []
    for place, name in enumerate(names_of(len(sizes))):
        along = np.moveaxis(table, len(sizes) - 1 - place, -1).ravel()
        length = run(along)
        found.append((length, alignment(along[::length]), name))
    return max(found, key=lambda each: each[0])


def check_lines(layout: Layout, task: Task | None) -> tuple[list[str], dict[str, Any]]:
    """What is true of a layout and, with a problem, what it does there; also as a record."""
    facts = facts_of(layout)
    longest, aligned, along = _longest_run(layout)
    lines = [
        show(layout)[: 2 * WIDEST],
        f"  {facts.size} elements at {facts.lowest} to {facts.highest}, {facts.wasted} places "
        f"unused; runs of {longest} by {along}, aligned to {aligned or 'anything'}",
    ]
    record: dict[str, Any] = {
        "layout": show(layout),
        "size": facts.size,
        "highest": facts.highest,
        "injective": facts.injective,
        "run": longest,
        "clean": facts.injective,
    }
    met = meeting(values(layout))
    if met is not None:
        lines.append(f"  refuted: elements {met[0]} and {met[1]} have one place")
    if task is not None:
        more, rest = _in_use(layout, task)
        lines += more
        record |= rest | {"clean": facts.injective and rest["clean"]}
    return lines, record


def _in_use(layout: Layout, task: Task) -> tuple[list[str], dict[str, Any]]:
    problem = task.problem
    addresses = row_major_addresses(layout, problem)
    torn = [a.name for a in problem.accesses if not keeps_whole(a, addresses)]
    if torn:
        bound = None if task.torn is not None else [float(x) for x in task.bound.per_request]
        return [f"  refuted: vectors of {', '.join(torn)} are not whole and aligned"], {
            "wavefronts": None,
            "bound": bound,
            "clean": False,
        }
    score = task.meter.score(addresses)
    assert score is not None
    lines = [_access_line(task, number, addresses) for number in range(len(problem.accesses))]
    lines += _mode_lines(addresses, problem)
    copied = not problem.copies or box_of(addresses, problem) is not None
    if not copied:
        lines.append(f"  refuted: {problem.copies[0]} by TMA cannot write it in any of its modes")
    meets = task.weighted(score) == task.least
    lines.append("  no layout takes fewer: proved" if meets else _could(task, score))
    record = {"wavefronts": [float(x) for x in score.per_request], "clean": meets and copied}
    return lines, record | {"bound": [float(x) for x in task.bound.per_request]}


def _mode_lines(addresses: Numbers, problem: Problem) -> list[str]:
    """Whether tensor copies write it: as rows in one of the modes, or as boxes side by side."""
    if problem.packed > 1:
        return []  # tensor copies are of whole bytes here
    mode = mode_of(addresses, problem.columns, problem.element_bytes)
    if mode is not None:
        return [f"  this is TMA's mode {mode.name}"]
    box = box_of(addresses, problem)
    return [] if box is None else [f"  TMA writes this: {box}"]


def _could(task: Task, score: Score) -> str:
    return f"  wavefronts {score}, and the bound is {task.bound}: ask `warploom layout solve`"


def _access_line(task: Task, number: int, addresses: Numbers) -> str:
    access = task.problem.accesses[number]
    steps = task.meter.by_step(number, addresses)
    worst = int(np.argmax(steps))
    mean = float(steps.mean())
    return (
        f"  {access.name:20} {mean:g} wavefronts per request, {int(steps[worst])} in step {worst}"
    )


def measured_lines(task: Task, addresses: Numbers, text: str) -> list[str]:
    """What a profiler counted per request beside the model, with the known reasons."""
    words, accesses = text.split(","), task.problem.accesses
    try:
        figures = [float(word) for word in words]
        if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
            raise ValueError
    except ValueError:
        raise ParseError(f"'{text[:60]}' is not a list of numbers", advice="write 4,32") from None
    if len(figures) != len(accesses):
        raise CheckError(f"{len(figures)} figures are given for {len(accesses)} accesses")
    lines = ["  access               model  measured"]
    for number, (access, figure) in enumerate(zip(accesses, figures, strict=True)):
        model = float(task.meter.by_step(number, addresses).mean())
        why = "" if figure == model else _reason(access.kind, model, figure)
        lines.append(f"  {access.name:20} {model:6g} {figure:9g}  {why}".rstrip())
    return lines


def _reason(kind: str, model: float, figure: float) -> str:
    """Why counters differ from the model, as measured on an H200."""
    if kind == "cp.async":
        return (
            "cp.async.cg always shows 3 and no conflicts; .ca shows 3 more than a store, and does "
            "not merge equal addresses"
        )
    if figure > model:
        return "other traffic is counted with it (spills, other accesses), or it is another layout"
    return "idle lanes, equal addresses of pairs of lanes, or another width than the pattern's"


# -- pictures --------------------------------------------------------------------------------------


def grid_lines(task: Task, addresses: Numbers, access: int, step: int) -> list[str]:
    """Lines that show, for one request, the banks of each group of lanes and their conflicts."""
    problem, chosen = task.problem, step_of(task, access, step)
    head = f"{chosen.name}, step {step} of {chosen.steps}"
    lines = [f"{head}: words wanted of each bank, by groups of lanes"]
    for group in served_together(problem, addresses, access, step):
        counts = [len(group.banks.get(bank, {})) for bank in range(problem.serving.banks)]
        picture = "".join("." if not c else str(c) if c < 10 else "#" for c in counts)
        lines.append(f"  lanes {lane_runs(group.lanes):20} {picture}  {max(counts)}")
        text = meeting_text(problem, group)
        lines += [f"    {text}"] if text else []
    return lines
