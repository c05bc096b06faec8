"""Other schedules of a launch, one after another: is there one in which it fails?

A run in which all take turns tells the events of each warp. In every other run one warp is held
back before one of its events until nobody else can go on. Events come in the order: the first,
second and last that a warp has at each place of the code, then the others. An event that happens
only where somebody is late is held back, too. After that come pairs of events, drawn by chance.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.errors import DeviceError, KernelError, LimitError
from warploom.machine.proof import Explored
from warploom.ptx.emulate.hold import Hold, text_of

Events = Mapping[Hold, int]  # where in the code each event of a warp is
SEED = 1
DEEPEST = 3  # holds of one schedule
VAIN = 100  # draws in a row


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run under a schedule: the events of all warps, and a digest of what memory holds then."""

    events: Events
    result: bytes


Run = Callable[[tuple[Hold, ...], float], Attempt]  # until a moment


def explored(run: Run, seconds: float) -> Explored:
    """Runs other schedules for so many seconds. A fault is raised with the schedule in which it
    happens; what a budget ends is no fault."""
    until = time.monotonic() + seconds
    first = _tried(run, (), until)
    if first is None:
        return Explored(0, 0, 0)
    known, singles = set(first.events), _ordered(first.events)
    queue, others = deque[tuple[Hold, ...]]((hold,) for hold in singles), _pairs(singles)
    single, several, differs = 0, 0, ""
    while time.monotonic() < until:
        holds = queue.popleft() if queue else next(others, None)
        attempt = None if holds is None else _tried(run, holds, until)
        if holds is None or attempt is None:
            break
        single += len(holds) == 1
        several += len(holds) > 1
        if attempt.result != first.result and not differs:
            differs = text_of(holds)
        # What happens only where somebody is late: another may be late for that.
        fresh = sorted(set(attempt.events) - known)
        known.update(fresh)
        if len(holds) < DEEPEST:
            for each in fresh:
                queue.extendleft(((*holds, each), (each, *holds)))
    return Explored(single, len(singles), several, differs)


def _tried(run: Run, holds: tuple[Hold, ...], until: float) -> Attempt | None:
    try:
        return run(holds, until)
    except LimitError:
        return None
    except KernelError as error:
        raise _under(error, holds) from None


def _under(error: KernelError, holds: tuple[Hold, ...]) -> KernelError:
    """The fault, with the schedule that shows it."""
    text = text_of(holds)
    error.message += f"; under the schedule '{text}'"
    again = f"schedule='{text}' runs it again: {_in_words(holds)}"
    error.advice = "; ".join(filter(None, (error.advice, again)))
    return error


def _in_words(holds: Sequence[Hold]) -> str:
    held = [f"block {h.block}, warp {h.warp} waits before its event {h.event}" for h in holds]
    return f"{' and '.join(held)} until nobody else can go on" if held else "all take turns"


def _ordered(events: Events) -> list[Hold]:
    """All events of warps, those first that are the first, second or last at their place."""
    at: dict[tuple[int, int, int], list[Hold]] = {}
    for hold in sorted(events, key=lambda each: each.event):
        at.setdefault((hold.block, hold.warp, events[hold]), []).append(hold)
    rounds: list[list[Hold]] = [[], [], [], []]
    for found in at.values():
        for number, hold in enumerate(found):
            last = number == len(found) - 1
            rounds[number if number < 2 else 2 if last else 3].append(hold)
    return [hold for each in rounds for hold in each]


def _pairs(singles: Sequence[Hold]) -> Iterator[tuple[Hold, ...]]:
    """Two events of different warps, by chance and each once; until most draws are in vain."""
    chance, seen, vain = random.Random(SEED), set[tuple[Hold, ...]](), 0
    while len(singles) > 1 and vain < VAIN:
        one, other = chance.sample(singles, 2)  # which ends first is drawn, too
        if (one.block, one.warp) == (other.block, other.warp) or (one, other) in seen:
            vain += 1
            continue
        vain = 0
        seen.add((one, other))
        yield one, other


def check_seconds(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise DeviceError(f"explore={given!r}", advice="give seconds, more than 0")
    return float(given)
