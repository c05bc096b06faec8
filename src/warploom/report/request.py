"""One request of a warp to shared memory in several layouts, side by side: lanes × banks."""

from __future__ import annotations

from warploom.layout.patterns.access import coordinates
from warploom.layout.wavefronts.picture import Compared, Request, WantedWord
from warploom.report.grid import Grid, rules, side_by_side
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.theme import HEATS

_NOTE = (
    "A cell is a word that a lane wants of a bank; the number says in which wavefront of its group "
    "it is served: 0 at once, later ones wait for those before them."
)


def picture(compared: Compared, brief: bool = False) -> Picture:
    del brief  # nothing takes long
    grids = [grid_of(compared, request) for request in compared.requests]
    facts = tuple(
        Fact(request.title, _wavefronts(request), "good" if request.wavefronts == 1 else "")
        for request in compared.requests
    )
    panels = "".join(grid.html() for grid in grids)
    return Picture(
        "Request to shared memory",
        compared.title,
        facts,
        (Part("", f'<div class="flow heat">{panels}</div>', _NOTE),),
        (Figure("request", _NOTE, side_by_side(compared.title, grids)),),
        compared.lines,
        None,
        ("flow.css",),
        rules(grids),
    )


def grid_of(compared: Compared, request: Request) -> Grid:
    serving = compared.task.problem.serving
    wanted: dict[tuple[int, int], WantedWord] = {}
    for each in request.wanted:  # of a lane that wants several words of a bank, the last to come
        known = wanted.get((each.lane, each.bank))
        if known is None or each.wavefront > known.wavefront:
            wanted[each.lane, each.bank] = each
    cells = [
        wanted.get((lane, bank)) for lane in range(serving.lanes) for bank in range(serving.banks)
    ]
    return Grid(
        request.title,
        _wavefronts(request),
        serving.banks,
        tuple(f"lane {lane}" for lane in range(serving.lanes)),
        tuple(map(str, range(serving.banks))),
        tuple("" if each is None else f"h{min(each.wavefront, HEATS - 1)}" for each in cells),
        tuple("" if each is None else str(each.wavefront) for each in cells),
        tuple("" if each is None else _told(compared, each) for each in cells),
        "banks",
        "lanes",
    )


def _told(compared: Compared, each: WantedWord) -> str:
    at = ",".join(map(str, coordinates(compared.task.problem.shape, each.element)))
    where = f"lane {each.lane}, bank {each.bank}, word {each.word}"
    return f"{where}, element {at}, wavefront {each.wavefront}"


def _wavefronts(request: Request) -> str:
    return f"{request.wavefronts} wavefront{'' if request.wavefronts == 1 else 's'}"
