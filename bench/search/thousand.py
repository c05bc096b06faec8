"""How a long search would go on a thousand workers: the sizes of its pieces, and a model.

    python -m bench.search.thousand [--cpu 600] [--only WORD] [--compare]

Each search runs in pieces until these took so many seconds of CPU. A cell is divided at the limit
of 1,024 workers. What the cells took is then handed out again by the same rules
(`search/workers/pieces.py`), in virtual time, to 2 up to 1,024 workers, until ten hours of CPU are
done. Those that were measured stand for all cells of the search. Where it has too few of them for
ten hours, each is taken to be so many times as heavy. One process hands out all pieces, one after
another; what it takes for each was measured, and so was the time before the first. The first piece
of each worker fills its caches: it counts as time before the work. What a piece costs beside its
cells is measured in one process. "As fast" compares with the CPU time of the cells alone.
`two_cores` compares one process with two: by the CPU seconds that each took, which others on the
machine do not change, and with `--compare` by the clock. Rows go to bench/results/thousand.json, as
each is done; a later run makes those that are missing. The status is 1 if 1,024 workers are not 500
times as fast.
"""

from __future__ import annotations

import heapq
import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from bench.harness import arguments, earlier, environment, save

from warploom.catalogue.texts import transposition
from warploom.search.workers.farm import Farm
from warploom.search.workers.pieces import Division, Line, Pace, Piece, Range, Todo
from warploom.sketch.front import load_text
from warploom.sketch.synth.parts import KEEP_SHARE, Answer
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting, PartSolver

# Transpositions with four holes, one after another along these axes, take six hours and more, where
# the catalogue's own, of three holes, take less than a minute.
SEARCHES: dict[str, dict[str, Any]] = {
    "columns first": {"order": "crcr", "columns": 18},
    "columns first, wider": {"order": "crcr", "columns": 20},
    "rows first": {"order": "rcrc", "columns": 14},
}
HOURS = 10.0
WORKERS = (2, 16, 64, 256, 1024)
WANTED = 500.0
LEAST = 0.1  # of a piece is its cells
FEW_SECONDS = 5.0  # of one process, to see what a piece costs beside its cells
BATCH = 1 + 1 / KEEP_SHARE  # writing takes no more than this part of the time

Row = dict[str, Any]


class EnoughError(Exception):
    """So many seconds of CPU were measured."""


@dataclass(slots=True)
class Weights:
    """Seconds of CPU of each cell; of a divided one also those of its parts."""

    seconds: list[float]
    parts: dict[int, Weights] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.seconds)

    def scaled(self, by: float) -> Weights:
        parts = {cell: each.scaled(by) for cell, each in self.parts.items()}
        return Weights([each * by for each in self.seconds], parts)

    def grown(self, by: float, cells: int) -> Weights:
        """So many times the work: more cells as far as a search has them, then heavier ones."""
        count = len(self.seconds)
        times = max(1, min(round(by), cells // count))
        parts = {
            at * count + cell: each for at in range(times) for cell, each in self.parts.items()
        }
        return Weights(self.seconds * times, parts).scaled(by / times)

    def of(self, line: Line) -> Weights:
        found = self
        for cell, _, _ in line:
            found = found.parts[cell]
        return found


def weights(pieces: list[Piece[Answer]], fixed: float, line: Line = ()) -> Weights:
    """What was measured, less what a piece costs; cells that were not done are left out."""
    found = Weights([])
    for piece in sorted((p for p in pieces if p.line == line), key=lambda p: p.low):
        count = piece.high - piece.low
        each = max(piece.seconds - fixed, LEAST * piece.seconds) / max(1, count)
        found.seconds += [each] * count
        if piece.division is not None:
            inner = weights(pieces, fixed, piece.within)
            found.parts[len(found.seconds)] = inner
            found.seconds.append(inner.total)
    return found


def virtual(known: Weights, given: Range, pace: Pace, fixed: float) -> Piece[None]:
    """What a worker would make of a range."""
    cells, at, took = known.of(given.line), given.low, fixed
    while at < given.high:
        if cells.seconds[at] > pace.limit and at in cells.parts:
            inner = cells.parts[at]
            took += pace.limit  # in vain
            made = Division("again", len(inner.seconds), None)
            return Piece(given.low, at, None, took, given.line, made)
        took += cells.seconds[at]
        at += 1
        if took >= 0.8 * pace.seconds:
            break
    return Piece(given.low, at, None, took, given.line)


def makespan(known: Weights, workers: int, each: float, fixed: float) -> tuple[float, int]:
    """When the last piece is done, and how many there are: handed out one after another."""
    todo = Todo(len(known.seconds), [Range((), 0, len(known.seconds))])
    free, ready = [0.0] * workers, deque[tuple[float, Range, Pace]]()
    ends: list[tuple[float, int, Range, Piece[None]]] = []
    now, last, running, count = 0.0, 0.0, 0, 0
    most = workers + 1 + workers // 16
    while todo or running:
        while todo and running < most:
            given = todo.give(workers)
            now += each / 2
            ready.append((now, given, todo.pace(workers)))
            running += 1
        while ready and free:
            at, given, pace = ready.popleft()
            piece = virtual(known, given, pace, fixed)
            end = max(at, heapq.heappop(free)) + piece.seconds
            heapq.heappush(ends, (end, count, given, piece))
            count += 1
        end, _, given, piece = heapq.heappop(ends)
        heapq.heappush(free, end)
        now, last, running = max(now, end) + each / 2, max(last, end), running - 1
        todo.take(given, piece)
    return max(now, last), count


class Watched:
    """What is told of a search while it runs, until its pieces took so many seconds of CPU."""

    def __init__(self, cpu: float) -> None:
        self.cpu = cpu
        self.cells = 0
        self.pieces: list[Piece[Answer]] = []
        self.wall: list[float] = []
        self.own: list[float] = []
        self.inside: list[float] = []  # seconds at cells, where one process does all

    @property
    def seconds(self) -> list[float]:
        return [piece.seconds for piece in self.pieces]

    def note(self, piece: Piece[Answer]) -> None:
        self.pieces.append(piece)
        self.wall.append(time.monotonic())
        self.own.append(time.process_time())
        if sum(self.seconds) > self.cpu:
            raise EnoughError

    def run(self, program: Any, workers: int) -> bool:
        """Whether the search came to its end."""
        finest = Pace(Todo(1, []).pace(2).seconds, Todo(1, []).pace(WORKERS[-1]).limit)
        begin, solved = Todo.__init__, PartSolver.solved

        def counted(todo: Todo, cells: int, ranges: Iterable[Range]) -> None:
            self.cells = self.cells or cells
            begin(todo, cells, ranges)

        def timed(solver: PartSolver, *given: Any) -> Answer | None:
            started = time.thread_time()
            answer = solved(solver, *given)
            self.inside.append(time.thread_time() - started)
            return answer

        crew = Farm(workers) if workers > 1 else None
        try:
            with (
                patch.object(Todo, "pace", lambda _todo, _workers: finest),
                patch.object(Todo, "__init__", counted),
                patch.object(PartSolver, "solved", timed),
            ):
                synthesize(program, parting=Parting(crew=crew, patience=0.0, on_piece=self.note))
        except EnoughError:
            return False
        finally:
            if crew is not None:
                crew.shutdown(cancel_futures=True)
        return True


def beside_the_cells(program: Any) -> float:
    """What a piece costs in one process that is ready for it, less the time at its cells."""
    watched = Watched(FEW_SECONDS)
    watched.run(program, 1)
    return max(0.0, sum(watched.seconds) - sum(watched.inside)) / len(watched.pieces)


def measured(program: Any, workers: int, cpu: float, fixed: float) -> tuple[Row, Weights]:
    watched = Watched(cpu)
    started, used = time.monotonic(), time.process_time()
    ended = watched.run(program, workers)
    pieces, seconds, own = watched.pieces, watched.seconds, watched.own
    known = weights(pieces[2 * workers :], fixed)
    alone = workers == 1
    mine = own[-1] - own[0] - (sum(seconds[1:]) if alone else 0.0)
    row = {
        "workers": workers,
        "ended": ended,
        "cells_of_the_search": watched.cells,
        "cpu_before_the_first_piece": round(own[0] - used - (seconds[0] if alone else 0.0), 2),
        "longest_first_piece": round(max(seconds[: 2 * workers]), 3),
        "cpu_of_pieces": round(sum(seconds), 1),
        "cpu_of_a_piece_beside_its_cells": round(fixed, 5),
        "cpu_to_hand_out_a_piece": round(max(mine, 0.0) / max(1, len(pieces) - 1), 5),
        "seconds": round(watched.wall[-1] - started, 1),
        "pieces": len(pieces),
        "cells": len(known.seconds),
        "divided": sum(piece.division is not None for piece in pieces),
        "piece_deciles": [round(float(each), 4) for each in
                          np.quantile(seconds, np.linspace(0, 1, 11))],
        "heaviest_cell": round(max(known.seconds), 4),
        "load": round(os.getloadavg()[0], 2),
    }  # fmt: skip
    return row, known


def modelled(row: Row, known: Weights) -> Row:
    """Ten hours of CPU on more and more workers."""
    by = HOURS * 3600 / known.total
    all_of_it = known.grown(by, max(row["cells_of_the_search"], len(known.seconds)))
    return {
        "times_the_work_measured": round(by, 1),
        "cells": len(all_of_it.seconds),
        "heaviest_cell": round(max(all_of_it.seconds), 2),
        "times_as_fast": {
            str(workers): times_as_fast(all_of_it, workers, row) for workers in WORKERS
        },
    }


def times_as_fast(known: Weights, workers: int, row: Row) -> float:
    each, fixed = row["cpu_to_hand_out_a_piece"] * BATCH, row["cpu_of_a_piece_beside_its_cells"]
    took, _ = makespan(known, workers, each, fixed)
    before = row["cpu_before_the_first_piece"] + row["longest_first_piece"]
    return round(known.total / (before + took), 1)


def two_cores(row: Row, one: Row | None) -> Row:
    """One process against two: by the CPU seconds of each process, as it was and for ten minutes of
    CPU, and by the clock. What is before the pieces is done by one process, the pieces by both, and
    whoever hands them out takes his time from one of them."""
    before, work = row["cpu_before_the_first_piece"], row["cpu_of_pieces"]
    share = row["cpu_to_hand_out_a_piece"] * row["pieces"] / work
    found = {
        name: round((before + cpu) / (before + cpu * (1 + share) / 2), 3)
        for name, cpu in (("by_cpu_seconds", work), ("by_cpu_seconds_of_ten_minutes", 600.0))
    }
    if one is not None:
        found["by_the_clock"] = round(one["seconds"] / row["seconds"], 3)
        found["load_of_both"] = [one["load"], row["load"]]
    return found


def main() -> int:
    parser = arguments(
        __doc__, "thousand.json", only="searches with this word in their name", resumes=True
    )
    parser.add_argument("--cpu", type=float, default=600.0)
    parser.add_argument("--compare", action="store_true", help="one process, too")
    asked = parser.parse_args()
    kept: dict[str, Row] = earlier(asked.out, again=asked.again)
    rows = {name: row for name, row in kept.items() if name in SEARCHES}
    for name, sizes in SEARCHES.items():
        if asked.only in name and not whole(rows.get(name), asked.cpu, asked.compare):
            program = load_text(transposition(sizes["order"], sizes["columns"], level=3), name)
            fixed = beside_the_cells(program)
            row, known = measured(program, 2, asked.cpu, fixed)
            row["ten_hours_of_cpu"] = modelled(row, known)
            one = measured(program, 1, asked.cpu, fixed)[0] if asked.compare else None
            row["two_cores"] = two_cores(row, one)
            rows[name] = {"search": sizes, **row, **environment()}
            print(name, json.dumps(rows[name]), flush=True)
            save(asked.out, rows)
    return 1 if any(least_of_model(row) < WANTED for row in rows.values()) else 0


def whole(row: Row | None, cpu: float, compared: bool) -> bool:
    """Whether an earlier run measured as much as is asked for."""
    if row is None or not (row["ended"] or row["cpu_of_pieces"] >= cpu):
        return False
    return not compared or "by_the_clock" in row["two_cores"]


def least_of_model(row: Row) -> float:
    """How many times as fast the most workers are."""
    return float(row["ten_hours_of_cpu"]["times_as_fast"][str(WORKERS[-1])])


if __name__ == "__main__":
    sys.exit(main())
