"""Answers of the solver as plain data, ready for JSON."""

from __future__ import annotations

from typing import Any

from warploom.errors import InternalError
from warploom.layout.formats.operand import reading
from warploom.layout.formats.tma import box_of
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Operand, Problem
from warploom.layout.solver.choose import Chosen
from warploom.layout.solver.front import Candidate, Front
from warploom.layout.solver.solve import Solved
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.cost import Score
from warploom.search.outcome_json import outcome_record, statistics_record


def front_record(front: Front) -> dict[str, Any]:
    """One problem: the bound, each class, the answers that none beats."""
    task, problem = front.task, front.task.problem
    found: dict[str, Any] = {
        "name": problem.name,
        "machine": problem.serving.name,
        "shape": list(problem.shape),
        "element_bytes": problem.element_bytes,
        **({"packed": problem.packed} if problem.packed > 1 else {}),
        "accesses": [access.name for access in problem.accesses],
        "steps": [access.steps for access in problem.accesses],
        "weights": [float(weight) for weight in problem.weights],
        **({"copies": list(problem.copies)} if problem.copies else {}),
        "objective": "worst" if task.worst else "total",
        "class": front.asked.klass,
        **outcome_record(front.asked.outcome),
    }
    if task.torn is not None:
        none: dict[str, Any] = {"layout": None, "classes": {}, "not_tried": []}
        return found | {"why": task.torn, **none, **statistics_record(front.asked.statistics)}
    if not front.asked.begun and front.best is None:
        return found | {"layout": None, "classes": {}, "not_tried": list(front.left_out)}
    best = front.best
    box = box_of(task.addresses(best.map), problem) if best is not None and problem.copies else None
    if box is not None:
        found["box"] = {"rows": box.height, "columns": box.width, "swizzle": box.mode.name}
    if best is not None and problem.operands:
        addresses = task.addresses(best.map)
        found["operands"] = [_operand(problem, each, addresses) for each in problem.operands]
    return found | {
        "bound": _counts(task.bound),
        "least": float(task.least),
        "layout": None if front.best is None else show(task.layout(front.best)),
        "cost": None if front.best is None else float(front.best.cost),
        "classes": {
            each.klass: solved_record(task, each)
            for each in (*front.others, front.asked)
            if each.begun
        },
        "not_tried": list(front.left_out),
        "front": [candidate_record(task, each) for each in front.candidates],
        **statistics_record(front.asked.statistics),
    }


def _operand(problem: Problem, operand: Operand, addresses: Numbers) -> dict[str, Any]:
    """The descriptors by which wgmma reads the tile, offsets in bytes."""
    found = reading(problem, operand, addresses)
    if found is None:
        raise InternalError("no descriptor reads what was found")
    one = found.descriptor
    return {
        "name": operand.name, "major": operand.major, "rows": operand.rows,
        "swizzle": one.mode, "leading": one.leading, "stride": one.stride,
        "descriptor": f"{one.bits:#018x}", "starts": [list(row) for row in found.starts],
    }  # fmt: skip


def ways_record(chosen: Chosen) -> dict[str, Any]:
    """What was changed of the accesses, and what every way takes for the whole tile."""
    return {
        "way": chosen.best.way.name,
        "ways": [
            {
                "way": each.way.name,
                "wavefronts": None if each.wavefronts is None else float(each.wavefronts),
                "instructions": each.instructions,
                "outcome": outcome_record(each.front.asked.outcome)["outcome"],
            }
            for each in chosen.tried
        ],
        "ways_not_tried": chosen.left,
    }


def solved_record(task: Task, solved: Solved) -> dict[str, Any]:
    best = solved.best
    found = {
        "outcome": outcome_record(solved.outcome)["outcome"],
        "proved": solved.proved,
        "least": float(solved.least),
        "how": solved.how,
    }
    if best is None:
        return found | {"wavefronts": None}
    return found | {
        "wavefronts": _counts(best.score),
        "cost": float(best.cost),
        "layout": show(task.layout(best)),
    }


def candidate_record(task: Task, candidate: Candidate) -> dict[str, Any]:
    quality = candidate.quality
    return {
        "class": candidate.klass,
        "layout": show(task.layout(candidate.answer)),
        "wavefronts": _counts(candidate.answer.score),
        "cost": float(candidate.answer.cost),
        "wasted_bytes": quality.wasted_bytes,
        "registers": list(quality.registers),
        "operations": quality.operations,
        "total_wavefronts": quality.wavefronts,
        "instructions": quality.instructions,
    }


def _counts(score: Score) -> list[float]:
    return [float(each) for each in score.per_request]
