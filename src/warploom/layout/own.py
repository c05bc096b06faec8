"""A user's own index arithmetic, checked for every lane, step and warp that is declared.

    >>> def place(row, column):
    ...     return row * 32 + (column ^ row)
    >>> tile = SharedTile((32, 32), 4, (
    ...     Use("store", lambda lane, step: (step, lane), lambda lane, step: place(step, lane),
    ...         kind="st", steps=32, wavefronts=1),
    ...     Use("load", lambda lane, step: (lane, step), lambda lane, step: place(lane, step),
    ...         steps=32, wavefronts=1),
    ... ))
    >>> examine(tile).right
    True

Two elements at one place, a place outside, a load that looks elsewhere than the store put it, a
vector that is torn, more wavefronts than stated, another layout than stated: each is found with the
lanes that show it. As every lane, step and warp is tried, nothing found is a proof for all of them.
The arithmetic is Python's: `//` and `%` round down, where C's round towards zero.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from warploom.errors import CheckError, InternalError, WarploomError, defining_line
from warploom.layout.formats.given import given_layout, row_major_addresses
from warploom.layout.language.check import MOST_ELEMENTS
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import (
    ACCESS_KINDS,
    IDLE,
    STORES,
    Access,
    AccessKind,
    Problem,
    coordinates,
)
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.conflicts import lane_runs, meeting_text, served_together
from warploom.machine.record import NVIDIA
from warploom.machine.serving import Serving

MOST_CALLS = 1 << 20
PLACES = ("lane", "step", "warp")


@dataclass(frozen=True, slots=True)
class Use:
    """One access. `element` and `place` take lane, step and warp, or some of them by name: what is
    accessed (a number or coordinates, None: nothing) and at which place, counted in elements."""

    name: str
    element: Callable[..., Any]
    place: Callable[..., int]
    kind: AccessKind = "ld"
    width: int = 1
    steps: int = 1
    warps: int = 1
    lanes: int = NVIDIA.lanes
    wavefronts: float | None = None


@dataclass(frozen=True, slots=True)
class SharedTile:
    """A tensor in shared memory and all that is done with it; `places` is how many there are, and
    `layout` is the one it is meant to have, in any text that `warploom layout check` reads."""

    shape: tuple[int, ...]
    element_bytes: int
    uses: tuple[Use, ...]
    places: int | None = None
    name: str = "tile"
    serving: Serving = NVIDIA
    layout: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """An access as tables: `elements[request, lane, i]`, and the place that a lane names."""

    access: Access
    at: Numbers
    stated: float | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found wrong, what each access costs, and what it would at least."""

    name: str
    wrong: tuple[str, ...]
    wavefronts: tuple[float, ...] = ()
    bound: tuple[float, ...] = ()
    accesses: tuple[str, ...] = ()
    tried: int = 0  # pairs of a thread and a step
    used: int = 0  # elements that somebody stores or loads
    size: int = 0  # elements of the tensor
    reach: int = 0  # places below this are used
    places: int | None = None  # and there are so many, where that is said

    @property
    def right(self) -> bool:
        return not self.wrong


def examine(tile: SharedTile) -> Examined:
    """Every use of a tile, on every lane, step and warp."""
    _check_kinds(tile)
    if not tile.uses:
        raise CheckError(f"{tile.name}: there is no use", advice="say who stores and who loads")
    shape = tuple(tile.shape)
    if min(shape, default=0) < 1 or math.prod(shape) > MOST_ELEMENTS:
        raise CheckError(
            f"{tile.name}: a tensor of {shape}", advice=f"1 to {MOST_ELEMENTS} elements"
        )
    looked = [_tabulated(tile, use) for use in tile.uses]
    if not any((each.access.elements != IDLE).any() for each in looked):
        raise CheckError(f"{tile.name}: no lane uses anything", advice="all elements are None")
    accesses = tuple(each.access for each in looked)
    problem = Problem(tile.name, shape, tile.element_bytes, accesses, tile.serving)
    steps = [use.steps for use in tile.uses]
    meant = None
    if tile.layout is not None:
        layout = given_layout(tile.layout, shape, tile.element_bytes)
        meant = row_major_addresses(layout, problem)
    return examine_tables(problem, looked, steps, tile.places, meant)


def examine_tables(
    problem: Problem,
    looked: Sequence[Looked],
    steps: Sequence[int],
    places: int | None,
    meant: Numbers | None = None,
) -> Examined:
    """`examine` for tables; `meant` is where each element should be."""
    task = Task(problem)
    wrong: list[str] = []
    where = _Where(problem)
    for element, place in enumerate([] if meant is None else meant.tolist()):
        where.at[element] = place, "the layout"
    for each, count in zip(looked, steps, strict=True):
        for finding in (_outside(each, count, places), _unaligned(each, count)):
            wrong += [] if finding is None else [finding]
        wrong += where.add(each, count)
    wrong += where.together()
    names = tuple(each.access.name for each in looked)
    tried = sum(each.at.size for each in looked)
    extent = (len(where.at), problem.size, where.reach, places)
    if wrong or task.torn is not None:
        more = () if task.torn is None else (task.torn,)
        return Examined(problem.name, (*wrong, *more), (), (), names, tried, *extent)
    score = task.meter.score(where.everywhere())
    if score is None:
        raise InternalError("a vector is torn that was looked at and found whole")
    for number, (each, found) in enumerate(zip(looked, score.per_request, strict=True)):
        if each.stated is not None and each.stated != float(found):  # 16/3 is stated as a float
            shown = _fullest(task, where.everywhere(), number, steps[number])
            wrong.append(
                f"{each.access.name} takes {float(found):g} wavefronts, not {each.stated:g}: "
                f"{shown}"
            )
    counts, bound = (tuple(float(f) for f in s.per_request) for s in (score, task.bound))
    return Examined(problem.name, tuple(wrong), counts, bound, names, tried, *extent)


def _check_kinds(tile: object) -> None:
    """People write tiles by hand, and nothing else looks at what they put where."""
    if not isinstance(tile, SharedTile):
        raise CheckError(f"a {type(tile).__name__} is no SharedTile", advice="check one at a time")
    if not (isinstance(tile.shape, tuple | list) and all(type(size) is int for size in tile.shape)):
        raise CheckError(f"{tile.name}: the shape is {tile.shape!r:.40}", advice="write (128, 48)")
    if not (isinstance(tile.uses, tuple | list) and all(isinstance(u, Use) for u in tile.uses)):
        raise CheckError(f"{tile.name}: uses are a tuple of Use", advice="(Use(…), Use(…))")
    _check_more(tile)
    for use in tile.uses:
        if not isinstance(use.name, str):
            raise CheckError(f"a use is called {use.name!r:.40}", advice='write "store"')
        for number in ("width", "steps", "warps", "lanes"):
            if type(getattr(use, number)) is not int:
                raise CheckError(
                    f"{use.name}: {number} is {getattr(use, number)!r:.40}, no whole number"
                )


def _check_more(tile: SharedTile) -> None:
    if type(tile.element_bytes) is not int:
        raise CheckError(f"{tile.name}: an element of {tile.element_bytes!r:.40} bytes")
    if tile.places is not None and (type(tile.places) is not int or tile.places < 1):
        raise CheckError(f"{tile.name}: there are {tile.places!r:.40} places", advice="at least 1")
    if not isinstance(tile.serving, Serving):
        raise CheckError(
            f"{tile.name}: served by {tile.serving!r:.40}",
            advice='machine_named("gfx942").serving',
        )
    for word, what in ((tile.name, "name"), (tile.layout or "", "layout")):
        if not isinstance(word, str):
            raise CheckError(f"the {what} of a tile is {word!r:.40}", advice="it is a text")


def _tabulated(tile: SharedTile, use: Use) -> Looked:
    """The functions on every lane, step and warp."""
    total = use.steps * use.warps * use.lanes
    if min(use.steps, use.warps, use.lanes, use.width) < 1 or total > MOST_CALLS:
        raise CheckError(f"{use.name}: {total} lanes and steps", advice=f"1 to {MOST_CALLS}")
    if use.kind not in ACCESS_KINDS:
        raise CheckError(
            f"{use.name}: no access is a '{use.kind}'", advice=f"known: {', '.join(ACCESS_KINDS)}"
        )
    if use.wavefronts is not None and not (
        isinstance(use.wavefronts, Real) and math.isfinite(use.wavefronts)
    ):
        raise CheckError(f"{use.name}: {use.wavefronts!r:.40} wavefronts are stated")
    element, place = _by_name(use.element), _by_name(use.place)
    elements = np.full((use.warps * use.steps, use.lanes, use.width), IDLE)
    at = np.zeros((use.warps * use.steps, use.lanes), dtype=np.int64)
    for warp, step, lane in np.ndindex(use.warps, use.steps, use.lanes):
        given = {"lane": int(lane), "step": int(step), "warp": int(warp)}
        request = warp * use.steps + step
        who = f"{use.name}, {_who(request, lane, use.steps)}"
        first = _number(tile, who, _called(use, element, given))
        if first is not None:
            if first + use.width > math.prod(tile.shape):
                last = math.prod(tile.shape) - 1
                raise CheckError(f"{who}: element {first + use.width - 1}, and the last is {last}")
            elements[request, lane] = first + np.arange(use.width)
            at[request, lane] = _whole(who, _called(use, place, given))
    return Looked(Access(use.name, elements, use.kind), at, use.wavefronts)


def _by_name(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[str]]:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise CheckError(
            f"{function!r:.60} does not say its parameters", advice="write a function of your own"
        ) from None
    strange = [name for name in names if name not in PLACES]
    if strange:
        raise CheckError(
            f"a parameter is called '{strange[0]}'",
            defining_line(function),
            advice=f"they are {', '.join(PLACES)}, or some of these",
        )
    return function, names


def _called(use: Use, known: tuple[Callable[..., Any], list[str]], given: dict[str, int]) -> Any:
    function, names = known
    try:
        return function(**{name: given[name] for name in names})
    except WarploomError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's own function
        told = ", ".join(f"{name} = {given[name]}" for name in names)
        raise CheckError(
            f"{use.name}: {type(error).__name__}: {error} at {told}", defining_line(function)
        ) from None


def _number(tile: SharedTile, who: str, found: Any) -> int | None:
    if found is None:
        return None
    if not isinstance(found, tuple):
        number = _whole(who, found)
        if number < 0:
            raise CheckError(
                f"{who}: element {number}", advice="a lane that wants nothing gives None"
            )
        return number
    if len(found) != len(tile.shape):
        raise CheckError(f"{who}: coordinates {found} of a tensor of {tile.shape}")
    numbers = [_whole(who, each) for each in found]
    for place, size in zip(numbers, tile.shape, strict=True):
        if not 0 <= place < size:
            raise CheckError(f"{who}: {tuple(numbers)} is outside {tile.shape}")
    return int(np.ravel_multi_index(numbers, tile.shape))


def _whole(who: str, found: Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int | np.integer):
        raise CheckError(f"{who}: {found!r} is no whole number")
    if abs(int(found)) >= 1 << 62:
        raise CheckError(f"{who}: {int(found):.3g} is too large")
    return int(found)


def _who(request: int, lane: int, steps: int) -> str:
    warp, step = divmod(request, steps)
    return f"lane {lane} of step {step}" + (f" of warp {warp}" if warp else "")


# -- what may be wrong -----------------------------------------------------------------------------


def _outside(each: Looked, steps: int, places: int | None) -> str | None:
    busy = each.access.elements[:, :, 0] != IDLE
    last = each.at + each.access.width - 1
    outside = busy & ((each.at < 0) | (last >= (places if places is not None else np.inf)))
    if not outside.any():
        return None
    request, lane = np.argwhere(outside)[0].tolist()
    end = "" if places is None else f", and there are {places}"
    who = _who(request, lane, steps)
    return f"{each.access.name}: {who} goes to place {int(each.at[request, lane])}{end}"


def _unaligned(each: Looked, steps: int) -> str | None:
    busy = each.access.elements[:, :, 0] != IDLE
    torn = busy & (each.at % each.access.width != 0)
    if not torn.any():
        return None
    request, lane = np.argwhere(torn)[0].tolist()
    return (
        f"{each.access.name}: the vector of {each.access.width} of {_who(request, lane, steps)}"
        f" begins at place {int(each.at[request, lane])}, which is no multiple of it"
    )


def _fullest(task: Task, addresses: Numbers, number: int, steps: int) -> str:
    """The request of an access that takes the most wavefronts, and the lanes that are why."""
    counts = task.meter.by_step(number, addresses)
    request = int(np.argmax(counts))
    groups = list(served_together(task.problem, addresses, number, request))
    warp, step = divmod(request, steps)
    where = f"step {step}" + (f" of warp {warp}" if warp else "")
    group = max(groups, key=lambda each: each.wavefronts)
    why = meeting_text(task.problem, group)
    if not why:
        why = f"lanes {lane_runs(group.lanes)} want no two words of one bank"
    return f"{where} takes {int(counts[request])}, {why}"


@dataclass
class _Where:
    """Where each element was found to lie, and by whom."""

    problem: Problem
    at: dict[int, tuple[int, str]] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    stores: bool = False

    def add(self, each: Looked, steps: int) -> list[str]:
        access, wrong = each.access, list[str]()
        store = access.kind in STORES
        self.stores = self.stores or store
        for request, lane in np.ndindex(access.elements.shape[:2]):
            elements = access.elements[request, lane].tolist()
            if elements[0] == IDLE:
                continue
            who = f"{access.name}, {_who(request, lane, steps)}"
            for part, element in enumerate(elements):
                place = int(each.at[request, lane]) + part
                known = self.at.setdefault(element, (place, who))
                if known[0] != place and not wrong:
                    wrong.append(
                        f"the element {self._name(element)} is at place {known[0]} for {known[1]}, "
                        f"and at place {place} for {who}"
                    )
                if store:
                    self.stored.add(element)
                elif self.stores and element not in self.stored and not wrong:
                    wrong.append(
                        f"nobody stored the element {self._name(element)} that {who} loads"
                    )
        return wrong

    @property
    def reach(self) -> int:
        return max((place for place, _ in self.at.values()), default=-1) + 1

    def together(self) -> list[str]:
        """Two elements at one place."""
        first: dict[int, int] = {}
        for element, (place, who) in self.at.items():
            other = first.setdefault(place, element)
            if other != element:
                return [
                    f"the elements {self._name(other)} ({self.at[other][1]}) and "
                    f"{self._name(element)} ({who}) are both at place {place}"
                ]
        return []

    def everywhere(self) -> Numbers:
        """The address of every element; those that nobody asks for lie beyond all others."""
        found = np.arange(self.problem.size, dtype=np.int64) + -(-self.reach // 1024) * 1024
        for element, (place, _) in self.at.items():
            found[element] = place
        return found

    def _name(self, element: int) -> str:
        return str(coordinates(self.problem.shape, element))
