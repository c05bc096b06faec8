"""A launch that was recorded elsewhere: grid, block, cluster, shared bytes and arguments, read from
JSON or from an .npz file that has the JSON beside its arrays. docs/ptx.md describes the format.

Nothing of such a file is evaluated: it is JSON and plain arrays of numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warploom.cli.npy import read_archive
from warploom.cli.ptx_arguments import TYPES, parse_argument
from warploom.errors import DeviceError, ParseError, one_of
from warploom.ptx import tensor_map
from warploom.ptx.emulate.nested import DEEPEST, structure

LAUNCH = "launch"  # the array of an .npz file that holds the JSON
MOST_BYTES = 64 << 20  # of the JSON
FIELDS = ("kernel", "grid", "block", "cluster", "shared", "args", "arrays")
MAP_FIELDS = ("array", "box", "swizzle", "fill", "kind")


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    kernel: str | None = None
    cluster: tuple[int, ...] | None = None
    shared: int = 0
    arrays: dict[str, Any] = field(default_factory=dict)


def read_launch(path: Path, seed: int = 0) -> RecordedLaunch:
    """The launch of a .json or .npz file; random arrays are drawn from the seed."""
    reader = _Reader(path, np.random.default_rng(seed))
    if path.suffix == ".npz":
        arrays = read_archive(path)
        if LAUNCH not in arrays:
            raise reader.error(f"it has no array '{LAUNCH}', which holds the launch as JSON")
        text = arrays.pop(LAUNCH).tobytes()
        reader.arrays |= {name: _plain(array) for name, array in arrays.items()}
    else:
        text = _read(path)
    return reader.read(text)


def _plain(array: Any) -> Any:
    return np.ascontiguousarray(array) if array.ndim else array


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParseError(f"cannot read '{path}': {error.strerror or error}") from None
    if len(text) > MOST_BYTES:
        raise ParseError(f"'{path}' is larger than {MOST_BYTES >> 20} MiB")
    return text


class _Reader:
    """The parts of one file; `arrays` are found by name."""

    def __init__(self, path: Path, chance: np.random.Generator) -> None:
        self.path = path
        self.chance = chance
        self.arrays: dict[str, Any] = {}

    def error(self, why: str, advice: str = "") -> ParseError:
        return ParseError(f"'{self.path}' is no recorded launch: {why}", advice=advice)

    def read(self, text: bytes) -> RecordedLaunch:
        try:
            found = json.loads(text.rstrip(b"\0"))
        except (ValueError, RecursionError) as error:
            raise self.error(f"it is no JSON ({str(error)[:80]})") from None
        if not isinstance(found, dict):
            raise self.error("it is no object of JSON")
        self.only(found, FIELDS, "a launch")
        for name, start in self.objects(found, "arrays").items():
            self.arrays[name] = self.array_of(name, start)
        args = found.get("args")
        if not isinstance(args, list):
            raise self.error("'args' is no list")
        kernel = found.get("kernel")
        if kernel is not None and not isinstance(kernel, str):
            raise self.error("'kernel' is no text")
        cluster = None if found.get("cluster") is None else self.shape(found, "cluster")
        return RecordedLaunch(
            self.shape(found, "grid"), self.shape(found, "block"),
            [self.argument(each, f"argument {n}") for n, each in enumerate(args)],
            kernel, cluster, self.whole(found.get("shared", 0), "shared"), self.arrays,
        )  # fmt: skip

    # -- parts ------------------------------------------------------------------------------------

    def only(self, found: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        for name in found:
            if name not in known:
                raise self.error(f"{what} has no '{name[:40]}'", one_of(name, known))

    def objects(self, found: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = found.get(name, {})
        if not isinstance(value, dict):
            raise self.error(f"'{name}' is no object of JSON")
        return value

    def whole(self, value: Any, what: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"'{what}' is no whole number")
        return value

    def shape(self, found: Mapping[str, Any], name: str) -> tuple[int, ...]:
        value = found.get(name)
        sizes = value if isinstance(value, list) else [value]
        if not 1 <= len(sizes) <= 3:
            raise self.error(f"'{name}' has one to three sizes")
        return tuple(self.whole(each, name) for each in sizes)

    def array_of(self, name: str, start: Any) -> Any:
        """`f32[64]=zeros`, `@x.npy` beside this file, or a list of numbers with their type."""
        match start:
            case str():
                text = start
                if "@" in start and not Path(start.partition("@")[2]).is_absolute():
                    head, _, file = start.partition("@")
                    text = f"{head}@{self.path.resolve().parent / file}"
                return parse_argument(text, self.chance)
            case {"type": str(kind), "values": list(values)} if kind in TYPES:
                try:
                    return np.array(values, dtype=TYPES[kind]).reshape(-1)
                except (ValueError, TypeError, OverflowError):
                    raise self.error(f"the values of '{name}' are no {kind}") from None
        raise self.error(f"'{name}' is no array", "write f32[64]=zeros, @x.npy or type and values")

    def named(self, name: Any, what: str) -> Any:
        if not isinstance(name, str) or name not in self.arrays:
            raise self.error(f"{what} names no array", one_of(str(name)[:40], self.arrays))
        return self.arrays[name]

    def argument(self, entry: Any, what: str, depth: int = 0) -> Any:
        """A number, null, or an object that says what it is."""
        if depth > DEEPEST:
            raise self.error(f"{what} is nested too deeply")
        match entry:
            case None | bool() | int() | float():
                return entry
            case {"type": str(kind), "value": value, **rest} if not rest:
                return parse_argument(f"{kind}={value}", self.chance)
            case {"array": name, **rest} if set(rest) <= {"offset"}:
                return self.pointed(name, rest.get("offset", 0), what)
            case {"tensor_map": dict(given), **rest} if not rest:
                return self.map(given, what)
            case {"bytes": str(text), **rest} if set(rest) <= {"pointers"}:
                return self.structure(text, rest.get("pointers", {}), what, depth)
            case {"pointers": list(entries), **rest} if not rest:
                places = {str(8 * n): each for n, each in enumerate(entries)}
                return self.structure("00" * 8 * max(1, len(entries)), places, what, depth)
        advice = "write a number, null, type and value, array, tensor_map, bytes or pointers"
        raise self.error(f"{what} is no argument", advice)

    def pointed(self, name: Any, offset: Any, what: str) -> Any:
        """An array from a byte on."""
        array = self.named(name, what)
        if offset == 0:
            return array
        raw = array.reshape(-1).view(np.uint8)
        if not 0 <= self.whole(offset, "offset") < raw.size:
            raise self.error(f"{what} begins at byte {offset} of an array of {raw.size} bytes")
        return raw[offset:]

    def structure(self, text: str, pointers: Any, what: str, depth: int) -> Any:
        try:
            data = bytes.fromhex(text)
        except ValueError:
            raise self.error(f"the bytes of {what} are no hexadecimal digits") from None
        if not isinstance(pointers, dict) or not all(each.isdecimal() for each in pointers):
            raise self.error(f"the pointers of {what} do not go by byte")
        inner = {
            int(place): self.argument(each, f"byte {place} of {what}", depth + 1)
            for place, each in pointers.items()
        }
        return self.checked(lambda: structure(data, inner), what)

    def map(self, given: Mapping[str, Any], what: str) -> Any:
        self.only(given, MAP_FIELDS, "a tensor map")
        array = self.named(given.get("array"), what)
        fill = given.get("fill", "zero")
        if fill not in ("zero", "nan"):
            raise self.error(f"{what} fills with {fill!r}", "write zero or nan")
        return self.checked(
            lambda: tensor_map(
                array, given.get("box", ()), given.get("swizzle", 0), nan_outside=fill == "nan",
                kind=given.get("kind", ""),
            ),
            what,
        )  # fmt: skip

    def checked(self, made: Callable[[], Any], what: str) -> Any:
        try:
            return made()
        except DeviceError as error:
            raise self.error(f"{what}: {error.message}", error.advice) from None
