"""How a search went: samples of its progress, few enough to draw and to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warploom.errors import CheckError
from warploom.pictured import Pictured
from warploom.search.engine import OnProgress, Progress

MOST = 512  # samples; of more every second one goes


@dataclass(frozen=True, slots=True, eq=False)
class History(Pictured):
    """Samples in order of time; `unit` is what the best is measured in, `bound` what nothing can
    be better than."""

    samples: list[Progress] = field(default_factory=list)
    unit: str = ""
    bound: float | None = None

    def noting(self, report: OnProgress | None) -> Callable[[Progress], None]:
        """A function for an engine: notes its progress here, and passes it on."""

        def note(at: Progress) -> None:
            self.add(at)
            if report is not None:
                report(at)

        return note

    def add(self, at: Progress) -> None:
        self.samples.append(at)
        if len(self.samples) > MOST:
            self.samples[:] = [
                each
                for number, each in enumerate(self.samples)
                if number % 2 == 0
                or number == len(self.samples) - 1
                or _improves(self.samples, number)
            ]

    @property
    def improvements(self) -> list[Progress]:
        """The samples at which the best was a new one."""
        return [each for number, each in enumerate(self.samples) if _improves(self.samples, number)]

    def to_json(self) -> dict[str, Any]:
        rows = [
            [round(s.seconds, 4), s.phase, s.states, s.found, s.best, dict(s.pruned)]
            for s in self.samples
        ]
        return {"unit": self.unit, "bound": self.bound, "samples": rows}


def _improves(samples: Sequence[Progress], number: int) -> bool:
    own = samples[number].best
    before = samples[number - 1].best if number else None
    return own is not None and (before is None or own < before)


def history_from(record: object) -> History:
    """What `History.to_json` wrote."""
    match record:
        case {"unit": str(unit), "bound": (int() | float() | None) as bound, "samples": [*rows]}:
            return History([_sample(row) for row in rows], unit, bound)
    raise CheckError("not the record of a search's history")


def _sample(row: object) -> Progress:
    match row:
        case [
            int() | float() as seconds, str(phase), int(states), int(found),
            (int() | float() | None) as best, dict() as pruned,
        ]:  # fmt: skip
            counts: Mapping[str, int] = {str(key): int(value) for key, value in pruned.items()}
            return Progress(phase, states, found, best, float(seconds), counts)
    raise CheckError("not a sample of a search's history")
