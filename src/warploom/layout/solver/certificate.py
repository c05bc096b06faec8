"""An answer of the solver as a certificate: plain data that `warploom verify` checks by itself.

It holds the problem, the layout's addresses, what it costs, the bound, and, where the bound is not
met, why no layout of the class costs less: the cases of a search with the accesses that each of
them makes too dear, the members of a family, or an argument by counting.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

from warploom.errors import InternalError
from warploom.layout.formats.operand import tiles_in_blocks
from warploom.layout.formats.tma import boxes
from warploom.layout.language.ir import Layout, Pad, Swizzle
from warploom.layout.language.show import show
from warploom.layout.solver.colour import colouring_of, crowded
from warploom.layout.solver.columns import Case, ColumnSearch
from warploom.layout.solver.solve import Solved, members
from warploom.layout.solver.task import Task
from warploom.machine.record import KNOWN
from warploom.machine.serving import Serving
from warploom.search.budget import STOPS, reason_of
from warploom.search.engine import Watch

VERSION = 2  # the first counted the mean of each access, `warploom verify` still reads it
SPANS = {"none": 0, "32B": 32, "64B": 64, "128B": 128}  # bytes that a mode of TMA swizzles


def certificate(task: Task, solved: Solved, watch: Watch | None = None) -> dict[str, Any]:
    """The record; searches again, with the cases kept, where the proof is a search. If that is
    stopped, the record says that it has no proof."""
    best = solved.best
    found: dict[str, Any] = {
        "kind": "layout",
        "version": VERSION,
        "problem": problem_record(task),
        "objective": "worst" if task.worst else "total",
        "waste": task.waste,
        "class": solved.klass,
        "bound": text_of(task.least) if task.torn is None else None,
        "least": text_of(solved.least),
        "cost": None if best is None else text_of(best.cost),
        "layout": None if best is None else show(task.layout(best)),
        "addresses": None if best is None else task.addresses(best.map).tolist(),
        "wavefronts": None if best is None else list(best.score.wavefronts),
        "proof": _proof(task, solved, watch or Watch()),
    }
    return found | {"digest": digest(found)}


def problem_record(task: Task) -> dict[str, Any]:
    problem = task.problem
    return {
        "name": problem.name,
        "machine": machine_record(problem.serving),
        "shape": list(problem.shape),
        "element_bytes": problem.element_bytes,
        "accesses": [
            {
                "name": access.name,
                "kind": access.kind,
                "weight": text_of(weight),
                "elements": access.elements.tolist(),
            }
            for access, weight in zip(problem.accesses, problem.weights, strict=True)
        ],
        "copies": list(problem.copies),
        **({"packed": problem.packed} if problem.packed > 1 else {}),
    } | (
        {"operands": [[each.name, each.rows, each.major] for each in problem.operands]}
        if problem.operands
        else {}
    )


def machine_record(serving: Serving) -> str | dict[str, Any]:
    """The name of a machine that is built in; of a user's all that a checker needs."""
    if serving.name in KNOWN:
        return serving.name
    groups = {
        f"{kind}{width}": {"basis": list(g.basis), "paired": g.paired, "known": g.known}
        for (kind, width), g in serving.groups.items()
        if width >= 4
    }
    return {
        "name": serving.name, "lanes": serving.lanes, "banks": serving.banks,
        "bank_bytes": serving.word_bytes, "tensor_copies": serving.tensor_copies,
        "serving": groups,
    }  # fmt: skip


def digest(record: dict[str, Any]) -> str:
    """SHA-256 of a certificate without its digest, so that accidental edits are noticed first."""
    rest = {key: value for key, value in record.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(number: Fraction) -> str:
    return str(number)


def _proof(task: Task, solved: Solved, watch: Watch) -> dict[str, Any]:
    """Why nothing of the class costs less than `least`."""
    if solved.best is None:
        return {"by": "nothing"}
    if solved.least == task.least:
        return {"by": "bound"}
    try:
        with watch.budget.governing():
            return _argument(task, solved, watch)
    except STOPS as stop:
        return {"by": f"{solved.how}, not written out: {reason_of(stop).value}"}


def _argument(task: Task, solved: Solved, watch: Watch) -> dict[str, Any]:
    match solved.klass:
        case "none" | "pad" | "swizzle" | "tma" | "wgmma":
            return {"by": "members", "members": _members(task, solved)}
        case "xor":
            return _cases(task, solved.least, watch)
        case "any" if solved.how == "by counting":
            colouring = colouring_of(task)
            if colouring is None:
                raise InternalError("what was counted is no colouring")
            return {"by": "counting", "count": crowded(colouring)}
    return {"by": solved.how}


def _members(task: Task, solved: Solved) -> list[list[Any]]:
    """Each member's numbers, and its wavefronts; none if it tears a vector."""
    found = []
    layouts = list(members(task, solved.klass))
    numbers = [_numbers(layout) for layout in layouts]
    if solved.klass == "tma":
        numbers = [[box.width, SPANS[box.mode.name]] for box in boxes(task.problem)]
    if solved.klass == "wgmma":
        numbers = [[b.height, SPANS[b.mode]] for b in tiles_in_blocks(task.problem)]
    for layout, number in zip(layouts, numbers, strict=True):
        answer = task.answer(layout)
        found.append([number, None if answer is None else list(answer.score.wavefronts)])
    return found


def _numbers(layout: Layout) -> list[int]:
    match layout:
        case Pad(_, by):
            return [by]
        case Swizzle(bits, base, shift):
            return [bits, base, shift]
    return []


def _cases(task: Task, least: Fraction, watch: Watch) -> dict[str, Any]:
    demands = task.demands
    limit = int(least * demands.scale)
    search = ColumnSearch(demands, watch, limit, worst=task.worst, record=True)
    search.run()
    if search.best is not None:
        raise InternalError("a linear layout costs less than the least")
    return {
        "by": "cases",
        "basis": [each.vector for each in demands.frame.free],
        "cases": _case(search.case),
    }


def _case(case: Case) -> list[int] | dict[str, Any]:
    if isinstance(case, dict):
        return {str(column): _case(inner) for column, inner in case.items()}
    return list(case)
