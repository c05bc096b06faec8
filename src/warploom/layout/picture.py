"""Which lane wants which bank, as a picture: one request before and after, lanes × banks.

SVG by itself, or in an HTML page that needs nothing else. A cell is a word that a lane wants in a
bank; cells of one bank and one group that are different words wait for each other, and the darker
one comes later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from warploom.errors import CheckError
from warploom.layout.access import IDLE, SERVED_AS, Access, coordinates
from warploom.layout.evaluate import Numbers
from warploom.layout.task import Task
from warploom.machine.serving import asked_in_pairs, cosets

CELL = 11
LEFT, TOP = 46, 34
COLOURS = ("#8ecae6", "#ffb703", "#fb8500", "#e63946", "#9d0208", "#370617")
STYLE = "font:9px monospace;fill:#333"


@dataclass(frozen=True, slots=True)
class WantedWord:
    """One word that a lane wants: it is served in the `turn`-th wavefront of its group and bank."""

    lane: int
    bank: int
    word: int
    element: int
    turn: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a warp: the words of each lane, and its wavefronts."""

    title: str
    wanted: tuple[WantedWord, ...]
    wavefronts: int


def request_of(task: Task, addresses: Numbers, access: int, step: int, title: str) -> Request:
    """What the lanes of one step want, group by group."""
    chosen = step_of(task, access, step)
    problem, serving = task.problem, task.problem.serving
    group = serving.group(SERVED_AS[chosen.kind], chosen.width * problem.element_bytes)
    row = chosen.elements[step]
    first = row[None, :, 0]
    if group.paired and asked_in_pairs(first, first != IDLE)[0]:
        group = group.when_paired()
    found, total = [], 0
    for lanes in cosets(group.basis, serving.lanes):
        turns: dict[int, dict[int, int]] = {}
        for lane in lanes[lanes < chosen.lanes].tolist():
            for word, element in _words(task, row[lane].tolist(), addresses):
                bank = turns.setdefault(word % serving.banks, {})
                turn = bank.setdefault(word, len(bank))
                found.append(WantedWord(lane, word % serving.banks, word, element, turn))
        total += max((len(bank) for bank in turns.values()), default=0)
    return Request(title, tuple(found), total)


def step_of(task: Task, access: int, step: int) -> Access:
    """An access that has this step."""
    accesses = task.problem.accesses
    if access >= len(accesses):
        raise CheckError(f"there is no access {access}", advice=f"0 to {len(accesses) - 1}")
    chosen = accesses[access]
    if step >= chosen.steps:
        raise CheckError(f"{chosen.name} has no step {step}", advice=f"0 to {chosen.steps - 1}")
    return chosen


def _words(task: Task, vector: Sequence[int], addresses: Numbers) -> list[tuple[int, int]]:
    """The words of a lane's vector, each with the first element in it."""
    size, word_bytes = task.problem.element_bytes, task.problem.serving.word_bytes
    found: dict[int, int] = {}
    for element in vector:
        if element != IDLE:
            first = int(addresses[element]) * size // word_bytes
            for word in range(first, first + max(1, size // word_bytes)):
                found.setdefault(word, element)
    return list(found.items())


def svg(task: Task, requests: Sequence[Request]) -> str:
    """The requests side by side."""
    serving = task.problem.serving
    width = LEFT + serving.banks * CELL + 20
    height = TOP + serving.lanes * CELL + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(requests)}" '
        f'height="{height}" style="background:#fff">'
    ]
    for number, request in enumerate(requests):
        parts.append(f'<g transform="translate({number * width},0)">')
        parts += _grid(task, request)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>\n"])


def _grid(task: Task, request: Request) -> list[str]:
    serving = task.problem.serving
    plural = "" if request.wavefronts == 1 else "s"
    title = f"{request.title}: {request.wavefronts} wavefront{plural}"
    parts = [
        f'<text x="{LEFT}" y="12" style="{STYLE}">{escape(title)}</text>',
        f'<text x="{LEFT}" y="26" style="{STYLE}">bank 0 … {serving.banks - 1}</text>',
        f'<rect x="{LEFT}" y="{TOP}" width="{serving.banks * CELL}" '
        f'height="{serving.lanes * CELL}" fill="#f4f4f4"/>',
    ]
    for lane in range(0, serving.lanes, 4):
        y = TOP + lane * CELL + CELL - 2
        parts.append(f'<text x="4" y="{y}" style="{STYLE}">lane {lane}</text>')
    for each in request.wanted:
        at = ",".join(map(str, coordinates(task.problem.shape, each.element)))
        told = f"lane {each.lane}, bank {each.bank}, word {each.word}, element {at}"
        colour = COLOURS[min(each.turn, len(COLOURS) - 1)]
        parts.append(
            f'<rect x="{LEFT + each.bank * CELL}" y="{TOP + each.lane * CELL}" '
            f'width="{CELL - 1}" height="{CELL - 1}" fill="{colour}">'
            f"<title>{told}, wavefront {each.turn}</title></rect>"
        )
    return parts


def page(title: str, lines: Sequence[str], picture: str) -> str:
    """A page that needs nothing else."""
    text = escape("\n".join(lines))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title></head>\n<body style="font-family:sans-serif">\n<h1>{escape(title)}</h1>\n'
        f"<pre>{text}</pre>\n{picture}</body></html>\n"
    )
