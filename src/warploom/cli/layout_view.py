"""Layouts and answers of the solver as lines for a person."""

from __future__ import annotations

import math
from typing import Any, assert_never

import numpy as np

from warploom.errors import CheckError, InternalError, ParseError
from warploom.layout.formats.given import row_major_addresses
from warploom.layout.formats.tma import box_of, mode_of
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import names_of, sizes_of
from warploom.layout.language.facts import alignment, facts_of, meeting, run
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show
from warploom.layout.patterns.access import SERVED_AS, Problem
from warploom.layout.solver.choose import Chosen
from warploom.layout.solver.front import Candidate, Front
from warploom.layout.solver.solve import Solved
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.conflicts import lane_runs, meeting_text, served_together
from warploom.layout.wavefronts.cost import Score
from warploom.layout.wavefronts.lower_bound import keeps_whole
from warploom.layout.wavefronts.picture import step_of
from warploom.search.outcome import Found, Impossible, Undecided

WIDEST = 100


def answer_lines(front: Front) -> list[str]:
    """What was asked, what each class gives, which answers none beats, and the verdict."""
    task, problem = front.task, front.task.problem
    size = "×".join(map(str, problem.shape))
    machine = problem.serving.name
    lines = [f"{problem.name}: {size} elements of {problem.element_bytes} bytes on {machine}"]
    if task.torn is not None:
        return [*lines, f"impossible: {task.torn}"]
    names = ", ".join([*problem.copies, *(access.name for access in problem.accesses)])
    lines += [f"  accesses: {names}"[:WIDEST], f"  objective: {objective(task)}", ""]
    if not front.asked.begun and not front.others and front.asked.best is None:
        return [*lines, *_verdict_lines(front)]
    lines.append(_row("", "per request", "cost", "least known by", "layout"))
    for solved in (*front.others, front.asked):
        if solved.best is not None and solved.begun:
            counts, cost = str(solved.best.score), f"{float(solved.best.cost):g}"
            text = show(task.layout(solved.best))
            lines.append(_row(solved.klass, counts, cost, _known(front, solved), text))
    least = f"{float(task.least):g}"
    lines += [_row("bound", str(task.bound), least, "", "no layout of any kind takes fewer")]
    if front.left_out:
        lines.append(f"  not tried: {', '.join(front.left_out)}")
    lines.append("")
    lines += _front_lines(front) + _verdict_lines(front) + _copy_lines(front) + _assumptions(task)
    return lines


def objective(task: Task) -> str:
    """What is minimised, in words."""
    weighted = any(weight != 1 for weight in task.problem.weights)
    by = ", each access by its weight" if weighted else ""
    if task.worst:
        return f"the fewest wavefronts of the access with the most{by}"
    return f"the fewest wavefronts of the tile: of every request of every access{by}"


def _known(front: Front, solved: Solved) -> str:
    """How it is known that nothing of a class costs less; or that it is not."""
    if isinstance(solved.outcome, Undecided):
        return "stopped: best so far"
    return "the bound" if solved.best and solved.best.cost == front.task.least else solved.how


def _copy_lines(front: Front) -> list[str]:
    """How tensor copies fill the tile that was found."""
    problem, best = front.task.problem, front.best
    if best is None or not problem.copies:
        return []
    box = box_of(front.task.addresses(best.map), problem)
    if box is None:
        raise InternalError("a tensor copy does not write what was found")
    return [f"  {', '.join(problem.copies)} by TMA: {box}; its own wavefronts are not counted"]


def _row(*words: str) -> str:
    name, counts, cost, known, text = words
    return f"  {name:9}{counts:22}{cost:>8}  {known[:28]:30}{text}"[: 2 * WIDEST].rstrip()


def _front_lines(front: Front) -> list[str]:
    """The answers that no other beats in wavefronts, waste, registers and operations."""
    if len(front.candidates) < 2:
        return []
    lines = ["  not beaten: wavefronts, wasted bytes, address registers, operations of the index"]
    return [*lines, *(f"  {_costs(front, each)}" for each in front.candidates), ""]


def _costs(front: Front, each: Candidate) -> str:
    quality = each.quality
    registers = "/".join(map(str, quality.registers))
    text = show(front.task.layout(each.answer))[:60]
    return (
        f"  {each.answer.score!s:20}{quality.wasted_bytes:>6} B  {registers:14}"
        f"{quality.operations or 'table':>6}  {text}"
    )


def _verdict_lines(front: Front) -> list[str]:
    task, asked = front.task, front.asked
    if front.kept:
        return [
            "keep yours, nothing to gain: rows as they are take the fewest wavefronts there are"
        ]
    match asked.outcome:
        case Found():
            text = "" if front.best is None else show(task.layout(front.best))
            return [f"found: {text}", "  no layout of any kind takes fewer: proved"]
        case Impossible(why):
            if front.best is None:
                return [f"impossible: {why}"]
            if not asked.proved:
                return [f"impossible: {why}", f"  {_gap(front)}"]
            text = show(task.layout(front.best))
            return [f"impossible: {why}", f"  best: {text}, that is the least of its class"]
        case Undecided(reason):
            return [f"undecided: {reason.value}", f"  {_gap(front)}"]
        case _:
            assert_never(asked.outcome)


def _gap(front: Front) -> str:
    best, least = front.best, float(front.asked.least)
    if best is None:
        return "nothing was tried" if not front.asked.begun else "nothing was found"
    text = show(front.task.layout(best))
    return f"best so far {float(best.cost):g}, and nothing costs less than {least:g}: {text}"


def _assumptions(task: Task) -> list[str]:
    """What the figures rest on, where that was not measured."""
    problem, lines = task.problem, []
    for access in problem.accesses:
        width = access.width * problem.element_bytes
        group = problem.serving.group(SERVED_AS[access.kind], width)
        if group.known == "assumed":
            lines.append(
                f"  assumed: how {problem.serving.name} serves {access.kind} of {width} bytes"
            )
        if access.kind == "cp.async":
            lines.append("  a profiler does not count cp.async.cg; cp.async.ca it counts as 3 more")
    return list(dict.fromkeys(lines))


# -- ways to do the accesses -----------------------------------------------------------------------

MOST_WAYS_SHOWN = 8


def ways_lines(chosen: Chosen) -> list[str]:
    """The ways that were tried, the best first, with what the whole tile takes."""
    lines = ["", "ways to do the accesses: wavefronts and instructions of the whole tile"]
    for each in chosen.tried[:MOST_WAYS_SHOWN]:
        found = "–" if each.wavefronts is None else f"{float(each.wavefronts):g}"
        lines.append(f"  {found:>8}{each.instructions:>8}  {each.way.name or 'as they are'}")
    if len(chosen.tried) > MOST_WAYS_SHOWN:
        lines.append(f"  and {len(chosen.tried) - MOST_WAYS_SHOWN} more")
    if chosen.open:
        lines.append(
            f"undecided: {len(chosen.open)} ways may be better and were not solved in time"
        )
    if chosen.left:
        lines.append(f"undecided: {chosen.left} ways were not begun in time")
    return lines


# -- tables ----------------------------------------------------------------------------------------


def table_head() -> str:
    return f"{'pattern':38}{'none':>16}{'pad':>16}{'swizzle':>16}{'best':>16}{'bound':>16}  outcome"


def row_line(front: Front) -> str:
    task = front.task
    if task.torn is not None:
        return f"{task.problem.name:38} impossible: {task.torn}"
    found = {each.klass: each.best for each in front.others}
    best = front.asked.best
    words = [found.get(name) for name in ("none", "pad", "swizzle")]
    counts = ["–" if each is None else str(each.score) for each in words]
    counts += ["–" if best is None else str(best.score), str(task.bound)]
    outcome = type(front.asked.outcome).__name__.lower()
    return f"{task.problem.name:38}" + "".join(f"{_short(c):>16}" for c in counts) + f"  {outcome}"


def _short(text: str, most: int = 15) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# -- checks ----------------------------------------------------------------------------------------


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
        raise ParseError(f"'{text[:60]}' are no figures", advice="write 4,32") from None
    if len(figures) != len(accesses):
        raise CheckError(f"{len(figures)} figures of {len(accesses)} accesses")
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
