"""Runs the warp program of a certificate on symbols, statement by statement, all lanes at once.

It shares nothing with `sketch/simt`, which wrote it. Lanes are ordered by barriers alone: two that
touch one cell of shared memory or of an output between two of them, one writing, are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import require, whole_numbers
from warploom.trust.expression import Expression
from warploom.trust.terms import UNDEFINED, Terms

Numbers = npt.NDArray[np.int64]
Json = dict[str, Any]

_PARTS = {"lanes", "arrays", "accumulators", "fill", "program"}
_ARRAY = {"name", "space", "shape", "step"}
_ACCUMULATOR = {"outer", "inner", "init", "only", "finish"}
_SPACES = ("input", "constant", "output", "shared", "register")
_FORMS = {
    frozenset(parts): name for name, parts in {
        "for": ("for", "count", "body"), "read": ("set", "array", "index"),
        "exchange": ("set", "value", "lane"), "write": ("array", "index", "value"),
        "accumulate": ("accumulate", "items", "if"), "finish": ("set", "finish"), "sync": ("sync",),
    }.items()
}  # fmt: skip
_MOST_LANES = 1 << 10
_LANE = 32  # what a lane does in a statement takes as long as computing so many numbers
_MOST_DONE = 1 << 16  # statements, each iteration counted


def form_of(statement: Json) -> str:
    form = _FORMS.get(frozenset(statement))
    require(form is not None, f"no statement has the parts {sorted(statement)!r:.80}")
    return str(form)


def caveats(warp: Json) -> Iterator[str]:
    """What the proof of one tile leaves out, beside what its terms do."""
    yield "other tiles than this one"
    for made in warp["accumulators"].values():
        if made["only"]:
            yield f"element types other than {' and '.join(made['only'])}"


def run_warp(terms: Terms, warp: Json) -> Numbers:
    """The terms of all outputs, end to end."""
    require(set(warp) == _PARTS, "its warp has other parts than it should")
    machine = _Machine(terms, warp)
    done = _length(warp["program"])
    require(done <= _MOST_DONE, f"it has more than {_MOST_DONE} statements")
    machine.run(warp["program"], {})
    outputs = [array["name"] for array in warp["arrays"] if array["space"] == "output"]
    return np.concatenate([machine.cells[name] for name in outputs])


def _length(body: list[Json]) -> int:
    """The statements of a body, each iteration counted."""
    length = len(body)
    for statement in body:
        if form_of(statement) == "for":
            count = statement["count"]
            whole = type(count) is int and count > 0 and isinstance(statement["for"], str)
            require(whole, "a loop is none")
            length += count * (1 + _length(statement["body"]))  # also where nothing is in it
    return length


def _check_parts(warp: Json) -> None:
    """What is there for the reader is a text; the rest has the parts that it should."""
    names = [array["name"] for array in warp["arrays"]]
    require(len(set(names)) == len(names) > 0, "two arrays have one name")
    for array in warp["arrays"]:
        require(set(array) == _ARRAY and array["space"] in _SPACES, "an array is none")
        sizes, steps = whole_numbers(array["shape"]), whole_numbers(array["step"] or [0])
        fits = not array["step"] or steps.shape == sizes.shape
        require(fits and int(steps.min()) >= 0, "an array has steps that are none")
        require(bool((sizes > 0).all()), "an array has an axis that is none")
        require(math.prod(array["shape"]) <= 1 << 22, "an array is too large")
    texts = [*names, *warp["fill"], *warp["fill"].values()]
    for made in warp["accumulators"].values():
        require(set(made) == _ACCUMULATOR, "an accumulator has other parts than it should")
        texts += [made["outer"], made["inner"] or "", made["finish"], *made["only"]]
    require(all(isinstance(text, str) for text in texts), "what should be a text is none")


class _Machine:
    def __init__(self, terms: Terms, warp: Json) -> None:
        _check_parts(warp)
        axes = [(name, size) for name, size in warp["lanes"]]
        sizes = whole_numbers([size for _, size in axes])
        self.count = math.prod(size for _, size in axes)
        some = bool((sizes > 0).all()) and self.count <= _MOST_LANES
        require(some and all(isinstance(name, str) for name, _ in axes), "its lanes are none")
        self.terms, self.accumulators = terms, warp["accumulators"]
        self.axes = [int(size) for _, size in axes]
        places = np.indices(self.axes).reshape(len(axes), -1)
        self.lanes = {name: place for (name, _), place in zip(axes, places, strict=True)}
        require(len(self.lanes) == len(axes) > 0, "two axes of lanes have one name")
        self.arrays = {array["name"]: array for array in warp["arrays"]}
        self.cells: dict[str, Numbers] = {}  # of registers those of all lanes, lane by lane
        self._fill_arrays()
        self.values: dict[str, Numbers] = {}
        self.items: dict[str, list[list[int]]] = {}
        self.touched: dict[tuple[str, int], tuple[int, bool]] = {}
        self.written: set[tuple[int, str, int]] = set()

    def _fill_arrays(self) -> None:
        symbols = 0
        for name, array in self.arrays.items():
            size = math.prod(array["shape"])
            if array["space"] in ("input", "constant"):
                numbers = range(symbols, symbols + size)
                self.cells[name] = np.array([self.terms.read(n) for n in numbers], np.int64)
                symbols += size
                continue
            own = self.count if array["space"] == "register" else 1
            require(size * own <= 1 << 22, "an array is too large")
            self.cells[name] = np.full(size * own, UNDEFINED)

    def run(self, body: list[Json], counters: dict[str, int]) -> None:
        for statement in body:
            self.terms.work.take(self.count * _LANE)
            match form_of(statement):
                case "for":
                    var = statement["for"]
                    fresh = var not in counters and var not in self.lanes
                    require(fresh, "two counters have one name")
                    for i in range(statement["count"]):
                        self.run(statement["body"], {**counters, var: i})
                case "sync":
                    require(statement["sync"] is True, "a barrier is none")
                    self.touched.clear()
                case form:
                    getattr(self, f"_{form}")(statement, counters)

    def _at(self, text: str, counters: dict[str, int]) -> Numbers:
        """What an index expression is in each lane."""
        known = {name: np.full(self.count, at) for name, at in counters.items()}
        found = Expression(text, self.lanes | known, self.count, self.terms.work)
        return np.broadcast_to(found.value, (self.count,))

    def _flat(self, index: list[str], shape: list[int], counters: dict[str, int]) -> Numbers:
        """The place in row-major order in each lane, −1 outside."""
        require(len(index) == len(shape), "an index has other axes than its array")
        flat, inside = np.zeros(self.count, np.int64), np.ones(self.count, np.bool_)
        for text, size in zip(index, shape, strict=True):
            at = self._at(text, counters)
            inside &= (at >= 0) & (at < size)
            flat = flat * size + np.where(inside, at, 0)
        return np.where(inside, flat, -1)

    def _places(self, statement: Json, counters: dict[str, int]) -> Numbers:
        array = self.arrays[statement["array"]]
        flat = self._flat(statement["index"], array["shape"], counters)
        if array["space"] != "register":
            return flat
        own = np.arange(self.count) * math.prod(array["shape"])
        return np.where(flat < 0, -1, own + flat)

    def _touch(self, name: str, places: Numbers, writes: bool) -> None:
        """Each cell of shared memory or of an output that lanes meet at without a barrier."""
        if self.arrays[name]["space"] not in ("shared", "output"):
            return
        for lane, place in enumerate(places.tolist()):
            who, wrote = self.touched.get((name, place), (lane, False))
            alone = who == lane or not (wrote or writes)
            require(place < 0 or alone, f"lanes {who} and {lane} race at {name!r:.40}")
            # Of two that only read, both are known as one that is nobody.
            both = lane if who == lane else -1
            self.touched[name, place] = (both, wrote or writes)

    def _read(self, statement: Json, counters: dict[str, int]) -> None:
        places = self._places(statement, counters)
        self._touch(statement["array"], places, writes=False)
        cells = self.cells[statement["array"]]
        self.values[statement["set"]] = np.where(places < 0, UNDEFINED, cells[places])

    def _exchange(self, statement: Json, counters: dict[str, int]) -> None:
        places = self._flat(statement["lane"], self.axes, counters)
        offered = self.values[statement["value"]]
        self.values[statement["set"]] = np.where(places < 0, UNDEFINED, offered[places])

    def _write(self, statement: Json, counters: dict[str, int]) -> None:
        name, places = statement["array"], self._places(statement, counters)
        space = self.arrays[name]["space"]
        require(space not in ("input", "constant"), f"{name!r:.40} is written, and is an input")
        self._touch(name, places, writes=True)
        for place, value in zip(places.tolist(), self.values[statement["value"]], strict=True):
            if place >= 0:
                twice = space != "register" and (id(statement), name, place) in self.written
                self.written.add((id(statement), name, place))
                self.cells[name][place] = UNDEFINED if twice else value

    def _accumulate(self, statement: Json, counters: dict[str, int]) -> None:
        name = statement["accumulate"]
        inner, items = self.accumulators[name]["inner"], statement["items"]
        require(len(items) == 1 or inner is not None, "nothing says how items go together")
        values = np.stack([self.values[item] for item in items], axis=1).tolist()
        bags = self.items.setdefault(name, [[] for _ in range(self.count)])
        for lane, kept in enumerate(self._at(statement["if"], counters).tolist()):
            if kept:
                row = values[lane]
                bags[lane].append(row[0] if len(row) == 1 else self.terms.fold(inner, row))

    def _finish(self, statement: Json, _counters: dict[str, int]) -> None:
        made, terms = self.accumulators[statement["finish"]], self.terms
        first = [] if made["init"] is None else [terms.read({"number": made["init"]})]
        bags = self.items.pop(statement["finish"], [[] for _ in range(self.count)])
        found = [terms.fold(made["outer"], [*bag, *first]) for bag in bags]
        if made["finish"]:
            found = [terms.fold(f"{made['finish']}()", [item]) for item in found]
        self.values[statement["set"]] = np.array(found, np.int64)


# -- as lines --------------------------------------------------------------------------------------


def warp_lines(warp: Json) -> Iterator[str]:
    """The tile and the program, for a person."""
    lanes = ", ".join(f"{name}={size}" for name, size in warp["lanes"])
    yield f"one tile of one warp, lanes {lanes}"
    for array in warp["arrays"]:
        step = f", tiles {array['step']} apart" if array["step"] else ""
        yield f"  {array['space']} {array['name']} {array['shape']}{step}"
    yield from _lines(warp, warp["program"], "  ")


def _lines(warp: Json, body: list[Json], indent: str) -> Iterator[str]:
    for statement in body:
        yield indent + _line(warp, statement)
        if form_of(statement) == "for":
            yield from _lines(warp, statement["body"], indent + "  ")


def _line(warp: Json, statement: Json) -> str:
    index = ", ".join(statement["index"] if "index" in statement else statement.get("lane", ()))
    match form_of(statement):
        case "for":
            return f"for {statement['for']} in 0 … {statement['count'] - 1}:"
        case "read":
            return f"{statement['set']} = {statement['array']}[{index}]"
        case "exchange":
            return f"{statement['set']} = {statement['value']} of lane [{index}]"
        case "write":
            return f"{statement['array']}[{index}] = {statement['value']}"
        case "accumulate":
            made = warp["accumulators"][statement["accumulate"]]
            items = f" {made['inner']} ".join(statement["items"])
            when = "" if statement["if"] == "1" else f" if {statement['if']}"
            return f"{statement['accumulate']} {made['outer']}= {items}{when}"
        case "finish":
            made = warp["accumulators"][statement["finish"]]
            value = f"{made['finish']}({statement['finish']})" if made["finish"] else ""
            return f"{statement['set']} = {value or statement['finish']}"
    return "barrier of the warp"
