"""Layouts and answers of the solver as lines for a person."""

from __future__ import annotations

from typing import assert_never

from warploom.errors import InternalError
from warploom.layout.formats.operand import reading
from warploom.layout.formats.tma import box_of
from warploom.layout.language.show import show
from warploom.layout.patterns.access import SERVED_AS, size_words
from warploom.layout.solver.choose import Chosen
from warploom.layout.solver.front import Candidate, Front
from warploom.layout.solver.solve import Solved
from warploom.layout.solver.task import Task
from warploom.search.outcome import Found, Impossible, Undecided

WIDEST = 100


def answer_lines(front: Front) -> list[str]:
    """What was asked, what each class gives, which answers none beats, and the verdict."""
    task, problem = front.task, front.task.problem
    size = "×".join(map(str, problem.shape))
    machine = problem.serving.name
    lines = [f"{problem.name}: {size} elements of {size_words(problem)} on {machine}"]
    if task.torn is not None:
        return [*lines, f"impossible: {task.torn}"]
    names = " / ".join(access.name for access in problem.accesses)
    lines.append(f"  accesses: {names}"[:WIDEST])
    lines += [f"  filled by: {', '.join(problem.copies)}"[:WIDEST]] if problem.copies else []
    lines += [f"  objective: {objective(task)}", ""]
    if not front.asked.begun and not front.others and front.asked.best is None:
        return [*lines, *_verdict_lines(front)]
    lines.append("  wavefronts per request, one figure for each access")
    lines.append(_row("", "wavefronts", "cost", "why none is lower", "layout"))
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
    lines += _front_lines(front) + _verdict_lines(front) + _copy_lines(front)
    return lines + _operand_lines(front) + assumptions(task)


def objective(task: Task) -> str:
    """What is minimised, in words."""
    weighted = any(weight != 1 for weight in task.problem.weights)
    by = ", each access by its weight" if weighted else ""
    if task.worst:
        return f"the fewest wavefronts of the access with the most{by}"
    return f"the fewest wavefronts, added up over all requests of all accesses{by}"


def _known(front: Front, solved: Solved) -> str:
    """How it is known that nothing of a class costs less; or that it is not."""
    if isinstance(solved.outcome, Undecided):
        return "stopped: best so far"
    return (
        "it meets the bound" if solved.best and solved.best.cost == front.task.least else solved.how
    )


def _copy_lines(front: Front) -> list[str]:
    """How tensor copies fill the tile that was found."""
    problem, best = front.task.problem, front.best
    if best is None or not problem.copies:
        return []
    box = box_of(front.task.addresses(best.map), problem)
    if box is None:
        raise InternalError("a tensor copy does not write what was found")
    return [f"  {', '.join(problem.copies)} by TMA: {box}; its own wavefronts are not counted"]


def _operand_lines(front: Front) -> list[str]:
    """By which descriptors wgmma reads the tile."""
    problem, best, lines = front.task.problem, front.best, list[str]()
    if best is None:
        return lines
    for operand in problem.operands:
        found = reading(problem, operand, front.task.addresses(best.map))
        if found is None:
            raise InternalError("no descriptor reads what was found")
        one, starts = found.descriptor, found.starts
        lines.append(
            f"  {operand.name}: major {operand.major}, swizzle {one.mode}, LBO {one.leading}, "
            f"SBO {one.stride} bytes: descriptor {one.bits:#018x} + start / 16"
        )
        steps = ", ".join(map(str, starts[0][:8])) + ", …" * (len(starts[0]) > 8)
        if len(starts) > 1:
            steps += f"; the next {operand.rows} rows {starts[1][0] - starts[0][0]} bytes on"
        lines.append(f"    k steps start at bytes {steps}")
    return lines


def _row(*words: str) -> str:
    name, counts, cost, known, text = words
    return f"  {name:9}{counts:22}{cost:>8}  {known[:28]:30}{text}"[: 2 * WIDEST].rstrip()


def _front_lines(front: Front) -> list[str]:
    """The answers that no other beats in wavefronts, waste, registers and operations."""
    if len(front.candidates) < 2:
        return []
    lines = ["  trade-offs: wavefronts, wasted bytes, address registers, operations of the index"]
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
    asked = front.asked
    if front.kept:
        return [
            "keep yours, nothing to gain: rows as they are take the fewest wavefronts there are"
        ]
    match asked.outcome:
        case Found():
            return [f"found: {_named(front)}", "  no layout of any kind takes fewer: proved"]
        case Impossible(why):
            if front.best is None:
                return [f"impossible: {why}"]
            if not asked.proved:
                return [f"impossible: {why}", f"  {_gap(front)}"]
            return [f"impossible: {why}", f"  best: {_named(front)}, the least of its class"]
        case Undecided(reason):
            return [f"undecided: {reason.value}", f"  {_gap(front)}"]
        case _:
            assert_never(asked.outcome)


def _named(front: Front) -> str:
    """The best layout, and which row of the table it is."""
    if front.best is None:
        return ""
    rows = [each.klass for each in (*front.others, front.asked) if each.best == front.best]
    return show(front.task.layout(front.best)) + (f" (class {rows[0]})" if rows else "")


def _gap(front: Front) -> str:
    best, least = front.best, float(front.asked.least)
    if best is None:
        return "nothing was tried" if not front.asked.begun else "nothing was found"
    text = show(front.task.layout(best))
    return f"best so far {float(best.cost):g}, and nothing costs less than {least:g}: {text}"


def assumptions(task: Task) -> list[str]:
    """What the figures rest on, where that was not measured."""
    problem, lines = task.problem, []
    for access in problem.accesses:
        width = problem.bytes_of(access.width)
        group = problem.serving.group(SERVED_AS[access.kind], width)
        said = {"assumed": "assumed", "published": "published, not measured here"}.get(group.known)
        if said is not None:
            served = f"how {problem.serving.name} serves {access.kind} of {width} bytes"
            lines.append(f"  {said}: {served}")
        if any(access.name == operand.name for operand in problem.operands):
            lines.append("  assumed: wgmma reads rows of 16 bytes as ldmatrix does")
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
