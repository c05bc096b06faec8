"""Reads access patterns from TOML: a tensor, and accesses whose indices are expressions.

    shape = [128, 48]
    element = "f16"

    [[access]]
    name = "store"
    kind = "st"
    steps = 24
    bytes = 16
    index = "(step * 32 + lane) * 8"

An index is over `lane`, `step` and `warp`, and gives the first element of a vector, which goes on
along the row; with `element` in it, it gives every element. `index = ["row", "column"]` gives the
coordinates. Expressions are parsed, never run as Python; `lane / 4` is C's division, and beside it
`%` is C's, too. `weight = 10` makes every wavefront of an access count ten times. `use = "mma.a"`
stands for an access by its name, in place of an index: the one warp that moves the whole tile.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from warploom.errors import (
    CheckError,
    ParseError,
    Source,
    Span,
    UnsupportedError,
    WarploomError,
    one_of,
    spelled,
)
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables
from warploom.index.parse import parse as parse_index
from warploom.layout.formats.cute_tiled import read_tiled
from warploom.layout.formats.descriptor import MAJORS
from warploom.layout.formats.operand import read_by_wgmma
from warploom.layout.language.check import MOST_ELEMENTS
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import (
    ACCESS_KINDS,
    ELEMENT_BYTES,
    IDLE,
    MOST_MOVED,
    Access,
    AccessKind,
    Operand,
    Problem,
    check_problem,
    pieces,
)
from warploom.layout.patterns.named import ELEMENTS, MOST_ROWS, element_of
from warploom.layout.patterns.operands import named_access
from warploom.layout.patterns.usual import Tensor
from warploom.machine.record import KNOWN, Machine, machine_named
from warploom.machine.serving import Serving

MOST_BYTES = 1 << 20
_TENSOR_KEYS = ("name", "shape", "element", "bytes", "machine", "access", "note")
_ACCESS_KEYS = (
    "name", "kind", "index", "steps", "lanes", "warps", "bytes", "width", "weight", "mask",
)  # fmt: skip
_NAMED_KEYS = ("name", "kind", "use", "weight")
_UNIT_KEYS = ("name", "kind", "major", "rows")
_TILED_KEYS = ("name", "kind", "tiled", "operand", "width", "weight")
_KINDS_OF_USES: tuple[AccessKind, ...] = ("ld", "st", "cp.async")
TENSOR_COPY, MATRIX_UNIT = "tma", "wgmma"  # kinds that no lane does
BY_UNIT = "wgmma.b"  # the one access by name that is of such a kind
_SAID = {
    "at a time": "rows",
    ": the weight": "weight",
    ": a vector of": "width",
    "lanes, and": "lanes",
}  # where
_VARIABLES = ("lane", "step", "warp", "element")


def load_pattern(path: Path, machine: str | None = None) -> Problem:
    """The problem in a file, on the machine that it names, or on another."""
    return parse_pattern(pattern_text(path), str(path), machine)


def pattern_text(path: Path) -> str:
    """What a file of patterns says."""
    try:
        data = path.read_bytes()[: MOST_BYTES + 1]
    except OSError as error:
        raise ParseError(f"cannot read '{path}': {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ParseError(f"{path} is larger than {MOST_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ParseError(f"{path} is not a text", advice="a pattern is a TOML file") from None


def parse_pattern(text: str, source_name: str = "<pattern>", machine: str | None = None) -> Problem:
    return PatternText(Source(source_name, text), machine).read()


@dataclass(frozen=True, slots=True)
class Place:
    """A table of the file: its number among all [[access]] and [[tile]] (-1: the top), for
    errors."""

    file: PatternText
    access: int
    table: dict[str, Any]
    number: int = 0  # among the accesses of its tile

    def fail(self, key: str | None, message: str, advice: str = "") -> NoReturn:
        raise CheckError(message, self.file.span(self.access, key), advice)

    def whole(self, key: str, otherwise: int | None, most: int = MOST_ELEMENTS) -> int:
        value = self.table.get(key, otherwise)
        if type(value) is not int or not 1 <= value <= most:
            if key not in self.table:
                self.fail(None, f"'{key}' is not said")
            self.fail(key, f"{key} = {value!r:.40}", f"{key} is a number from 1 to {most}")
        return value

    def text(self, key: str, otherwise: str) -> str:
        value = self.table.get(key, otherwise)
        if not isinstance(value, str):
            self.fail(key, f"{key} = {value!r:.40}", f"{key} is a text")
        return value

    def known(self, keys: tuple[str, ...]) -> None:
        for key in self.table:
            if key not in keys:
                self.fail(key, f"unknown key '{key[:40]}'", f"known are {', '.join(keys)}")


class PatternText:
    """A file of patterns, read table by table; errors say where they are."""

    def __init__(self, source: Source, machine: str | None) -> None:
        self._source, self._machine = source, machine
        starts = [-1]
        for number, line in enumerate(source.text.split("\n"), 1):
            if re.match(r"\s*\[\[\s*(?:access|tile|tile\s*\.\s*access)\s*\]\]", line):
                starts.append(number)
        self._starts = starts

    def span(self, access: int, key: str | None) -> Span:
        """The line of a key in a table; the table's first line if it is not found."""
        lines = self._source.text.split("\n")
        first = self._starts[access + 1] if access + 1 < len(self._starts) else 1
        end = self._starts[access + 2] if access + 2 < len(self._starts) else len(lines) + 1
        for number in range(max(first, 1), end):
            if key is not None and re.match(rf'\s*"?{re.escape(key)}"?\s*=', lines[number - 1]):
                text = lines[number - 1]
                return Span(self._source, number, len(text) - len(text.lstrip()) + 1, len(key))
        return Span(self._source, max(first, 1), 1, max(1, len(lines[max(first, 1) - 1])))

    def parsed(self) -> Place:
        """The whole file as a table."""
        try:
            table = tomllib.loads(self._source.text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            line, column = (int(found[1]), int(found[2])) if found else (1, 1)
            message = re.sub(r"\s*\(at .*\)", "", str(error))
            raise ParseError(message[:200], Span(self._source, line, column)) from None
        except RecursionError:
            raise ParseError("the file is nested too deeply") from None
        return Place(self, -1, table)

    def read(self) -> Problem:
        top = self.parsed()
        if "tile" in top.table:
            advice = "'warploom layout tiles' takes such files"
            top.fail("tile", "a file of several tiles where a pattern of one is wanted", advice)
        top.known(_TENSOR_KEYS)
        return self.problem(top, self.machine_of(top), top.text("name", self._source.name))

    def machine_of(self, top: Place) -> Machine:
        found: Machine = self._at(
            top, "machine", lambda: self._machine_named(top.text("machine", "cuda"))
        )
        return found

    def accesses_of(self, top: Place, first: int) -> list[Place]:
        """The accesses of a table, numbered from `first` on."""
        given = top.table.get("access", [])
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            top.fail("access", "accesses are tables", "write [[access]]")
        return [Place(self, first + n, each, n) for n, each in enumerate(given)]

    def problem(self, top: Place, machine: Machine, name: str) -> Problem:
        """A tile with its accesses, which are numbered after it."""
        serving, places = machine.serving, self.accesses_of(top, top.access + 1)
        shape, (size, packed) = _shape(top), _element_bytes(top)
        one = Problem(name, shape, size, (), serving, packed=packed)  # without its accesses
        copies = tuple(self._copy(p) for p in places if _of_kind(p, TENSOR_COPY))
        units = [p for p in places if _of_kind(p, MATRIX_UNIT) or p.table.get("use") == BY_UNIT]
        by_lanes = [p for p in places if not _of_kind(p, TENSOR_COPY) and p not in units]
        accesses = tuple(self._access(place, one) for place in by_lanes)
        note = top.text("note", "")
        problem = replace(one, accesses=accesses, note=note, copies=copies)
        for place in units:
            problem = read_by_wgmma(problem, self._operand(place, shape))
        numbers = [place.access for place in (*by_lanes, *units)]
        return self._checked(problem, top.access, numbers)

    def _machine_named(self, named: str) -> Machine:
        """A file of a machine comes by the command line alone, where its bytes are looked at."""
        if named not in KNOWN:
            option = spelled("--machine", "machine=")
            advice = f"{one_of(named, KNOWN)}; {option} takes a FILE.toml"
            raise UnsupportedError(f"no machine called {named[:40]!r} is known", advice=advice)
        return machine_named(self._machine or named)

    def _checked(self, problem: Problem, top: int, numbers: list[int]) -> Problem:
        """Errors about one access are placed at its table, of which there is the number."""
        try:
            return check_problem(problem)
        except WarploomError as error:
            names = [access.name for access in problem.accesses]
            placed = zip(numbers, names, strict=True)
            about = next((n for n, a in placed if error.message.startswith(f"{a}:")), top)
            said = next((key for words, key in _SAID.items() if words in error.message), "index")
            error.span = error.span or self.span(about, said if about > top else "shape")
            raise

    def _at(self, place: Place, key: str, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except WarploomError as error:
            error.span = error.span or self.span(place.access, key)
            raise

    def _copy(self, place: Place) -> str:
        """A tensor copy moves the whole tile; nothing else is said of it."""
        for key in place.table:
            if key not in ("name", "kind"):
                place.fail(key, f"a tensor copy has no '{key[:40]}'", "it moves the whole tensor")
        return place.text("name", f"access {place.number}")

    def _operand(self, place: Place, shape: tuple[int, ...]) -> Operand:
        """What wgmma reads of the tile by descriptors."""
        named = place.table.get("use") == BY_UNIT
        for key in place.table:
            if key not in _UNIT_KEYS and not (named and key == "use"):
                place.fail(key, f"wgmma has no '{key[:40]}'", "it reads the whole tile")
        if named and not _of_kind(place, MATRIX_UNIT) and "kind" in place.table:
            place.fail("kind", f"{BY_UNIT} of another kind", "wgmma reads it by a descriptor")
        major = next((each for each in MAJORS if each == place.text("major", "k")), None)
        if major is None:
            place.fail("major", f"major = {place.text('major', '')[:20]!r}", "k or mn")
        wide = shape[-1] if major == "mn" else math.prod(shape[:-1])
        rows = place.whole("rows", min(wide, MOST_ROWS), MOST_ROWS)
        name = BY_UNIT if named else f"access {place.number}"
        return Operand(place.text("name", name), rows, major)

    def _access(self, place: Place, one: Problem) -> Access:
        if "use" in place.table:
            return self._named(place, one)
        if "tiled" in place.table:
            return self._tiled(place, one.shape)
        place.known((*_ACCESS_KEYS, "use", "tiled"))
        name = place.text("name", f"access {place.number}")
        kind = place.text("kind", "ld")
        if kind not in ACCESS_KINDS:
            advice = f"known are {', '.join((*ACCESS_KINDS, TENSOR_COPY, MATRIX_UNIT))}"
            place.fail("kind", f"no access is of kind '{kind[:20]}'", advice)
        weight = _weight(place)
        elements = self._elements(place, one.serving, one.shape, _width(place, one))
        return Access(name, elements, kind, weight)

    def _tiled(self, place: Place, shape: tuple[int, ...]) -> Access:
        """A TiledCopy, or an operand of a TiledMMA, as CuTe prints it."""
        for key in place.table:
            if key not in _TILED_KEYS:
                place.fail(key, f"'{key}' beside 'tiled'", "the text says which elements are moved")
        operand = place.text("operand", "") or None
        found = self._at(place, "tiled", lambda: read_tiled(place.text("tiled", ""), operand))
        fragment = self._at(place, "tiled", lambda: found.fragment(shape))
        width = place.whole("width", found.width, 16)
        kind = next((k for k in _KINDS_OF_USES if k == place.text("kind", "ld")), None)
        if kind is None or fragment.registers % width:
            place.fail("kind", f"no access in vectors of {width}", "kind is ld, st or cp.async")
        elements = fragment.elements.reshape(fragment.warps, -1, fragment.registers // width, width)
        steps = elements.transpose(0, 2, 1, 3).reshape(-1, elements.shape[1], width)
        return Access(place.text("name", found.name), steps, kind, _weight(place))

    def _named(self, place: Place, one: Problem) -> Access:
        """An access by its name: what it moves is the whole tile."""
        for key in place.table:
            if key not in _NAMED_KEYS:
                place.fail(key, f"'{key}' beside 'use'", "an access by name says all of it")
        use, kind = place.text("use", ""), place.table.get("kind")
        if kind is not None and (kind not in _KINDS_OF_USES or "matrix" in use):
            place.fail("kind", f"kind = {kind!r:.20} of {use[:20]}", "ld, st or cp.async")
        tensor = Tensor(one.rows, one.columns, one.element_bytes, one.serving, packed=one.packed)
        found = self._at(place, "use", lambda: named_access(tensor, use, kind))
        name = place.text("name", use)
        return Access(name, found.elements, found.kind, _weight(place))

    def _elements(
        self, place: Place, serving: Serving, shape: tuple[int, ...], width: int
    ) -> Numbers:
        steps, warps = place.whole("steps", 1), place.whole("warps", 1)
        lanes = place.whole("lanes", serving.lanes, serving.lanes)
        if steps * warps * lanes * width > MOST_MOVED:
            place.fail("steps", f"{steps * warps * lanes * width} elements moved are too many")
        index, mask = self._index(place, len(shape)), None
        if "mask" in place.table:
            mask = self._parsed(place, "mask", place.text("mask", ""))
        parts = []
        for piece in pieces(steps * warps, lanes * width):
            requests = np.arange(steps * warps, dtype=np.int64)[piece]
            env = _axes(requests, steps, lanes, width)
            parts.append(self._moved(place, shape, index, mask, env))
        return np.concatenate(parts)

    def _moved(
        self,
        place: Place,
        shape: tuple[int, ...],
        index: list[Expr],
        mask: Expr | None,
        env: dict[str, Numbers],
    ) -> Numbers:
        """The elements of some requests."""
        whole = np.broadcast_shapes(*(each.shape for each in env.values()))
        numbers = [self._value(place, "index", each, env, whole) for each in index]
        active = np.ones(whole, bool)
        if mask is not None:
            active = self._value(place, "mask", mask, env, whole) != 0
        if len(numbers) > 1:
            _check_coordinates(place, shape, numbers, active, env)
        result = numbers[0]
        for size, each in zip(shape[1:], numbers[1:], strict=len(numbers) > 1):
            result = result * size + each
        if not any("element" in variables(each) for each in index):
            result = result + env["element"]
        _check_above_zero(place, result, active, env)
        return np.where(active, result, IDLE)

    def _index(self, place: Place, dimensions: int) -> list[Expr]:
        given = place.table.get("index")
        texts = given if isinstance(given, list) else [given]
        if given is None or not all(isinstance(each, str) for each in texts):
            place.fail("index", "an access needs its index", 'write index = "step * 32 + lane"')
        if isinstance(given, list) and len(texts) != dimensions:
            place.fail("index", f"{len(texts)} coordinates, and the tensor has {dimensions}")
        return [self._parsed(place, "index", str(each)) for each in texts]

    def _parsed(self, place: Place, key: str, text: str) -> Expr:
        span = self.span(place.access, key)
        try:
            found = parse_index(text, span.source.name)
        except ParseError as error:
            line = self._source.line(span.line)
            start = line.find(text)
            column = start + (error.span.column if error.span else 1) if start >= 0 else span.column
            length = error.span.length if error.span else 1
            raise ParseError(
                error.message, Span(self._source, span.line, column, length), error.advice
            ) from None
        unknown = sorted(variables(found) - set(_VARIABLES))
        if unknown:
            place.fail(
                key, f"unknown variable '{unknown[0]}'", f"known are {', '.join(_VARIABLES)}"
            )
        return found

    def _value(
        self, place: Place, key: str, expr: Expr, env: dict[str, Numbers], shape: tuple[int, ...]
    ) -> Numbers:
        found = self._at(place, key, lambda: evaluate(expr, env))
        return np.broadcast_to(np.asarray(found, dtype=np.int64), shape)


def _weight(place: Place) -> float:
    weight = place.table.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        place.fail("weight", f"weight = {weight!r:.40}", "a weight is a number")
    return float(weight)


def _of_kind(place: Place, *kinds: str) -> bool:
    return place.table.get("kind") in kinds


def _axes(requests: Numbers, steps: int, lanes: int, width: int) -> dict[str, Numbers]:
    """Steps of one warp after those of another."""
    request = requests[:, None, None]
    return {
        "step": request % steps,
        "warp": request // steps,
        "lane": np.arange(lanes, dtype=np.int64)[None, :, None],
        "element": np.arange(width, dtype=np.int64)[None, None, :],
    }


def _asker(env: dict[str, Numbers], request: int, lane: int) -> str:
    step, warp = (int(env[name][request, 0, 0]) for name in ("step", "warp"))
    return f"lane {lane} of step {step}" + (f" of warp {warp}" if warp else "")


def _check_coordinates(
    place: Place,
    shape: tuple[int, ...],
    numbers: list[Numbers],
    active: Any,
    env: dict[str, Numbers],
) -> None:
    for axis, (size, each) in enumerate(zip(shape, numbers, strict=True)):
        bad = active & ((each < 0) | (each >= size))
        if bad.any():
            step, lane, element = np.argwhere(bad)[0].tolist()
            place.fail(
                "index",
                f"{_asker(env, step, lane)} wants coordinate {int(each[step, lane, element])} "
                f"on axis {axis} for element {element} of its vector",
                f"the tensor has {size} there",
            )


def _check_above_zero(
    place: Place, elements: Numbers, active: Any, env: dict[str, Numbers]
) -> None:
    """Here, as one of the numbers below zero means an idle lane later on."""
    bad = active & (elements < 0)
    if bad.any():
        step, lane, at = np.argwhere(bad)[0].tolist()
        place.fail(
            "index",
            f"{_asker(env, step, lane)} wants element {int(elements[step, lane, at])} at place "
            f"{at} of its vector",
            "elements count from 0; a lane that does nothing has a mask",
        )


def _shape(top: Place) -> tuple[int, ...]:
    shape = top.table.get("shape")
    if not isinstance(shape, list) or not shape or any(type(size) is not int for size in shape):
        top.fail("shape", "the tensor needs its shape", "write shape = [32, 32]")
    if min(shape) < 1:
        top.fail("shape", f"the shape {shape} is empty", "every size is at least 1")
    return tuple(shape)


def _element_bytes(top: Place) -> tuple[int, int]:
    """Bytes, and the elements that share them."""
    if ("element" in top.table) == ("bytes" in top.table):
        top.fail("bytes", "say the element type, or its bytes", 'write element = "f16"')
    if "bytes" in top.table:
        size = top.whole("bytes", None)
        if size not in ELEMENT_BYTES:
            listed = ", ".join(map(str, ELEMENT_BYTES))
            top.fail("bytes", f"an element of {size} bytes", f"an element has {listed} bytes")
        return size, 1
    word = top.text("element", "")
    found = element_of(word)
    if found is None:
        top.fail("element", f"no element type '{word[:20]}'", f"known are {', '.join(ELEMENTS)}")
    return found


def _width(place: Place, one: Problem) -> int:
    """The elements of a vector, from its bytes or their number."""
    if "bytes" in place.table and "width" in place.table:
        place.fail("width", "a vector has bytes or a width, not both")
    if "width" in place.table:
        return place.whole("width", 1, 1024)
    width = place.whole("bytes", one.element_bytes, 1024)
    if width % one.element_bytes:
        place.fail("bytes", f"{width} bytes are no whole elements of {one.element_bytes}")
    return one.elements_in(width)
