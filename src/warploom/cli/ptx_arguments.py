"""Arguments of a kernel as text: `f32[1024]=random`, `i32=7`; launch shapes as `16,8`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warploom.cli.array_files import read_file
from warploom.cli.files import replacing
from warploom.cli.npy import converted, read_npy
from warploom.errors import ParseError, one_of

TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
MOST_ELEMENTS = 1 << 28
_SIZE = re.compile(r"\d{1,18}", re.ASCII)  # what is too large for a machine is said by the launch
STARTS = ("zeros", "ones", "range", "random", "@FILE.npy")
_PATTERN = re.compile(r"(?P<type>[a-z]\w*)(?:\[(?P<count>\d{1,12})\])?=(?P<value>.+)")
ADVICE = (
    "write f32[1024]=random, i32=7, u8[64]=@file.npy or @file.npy; "
    f"types: {', '.join(TYPES)}; arrays start as {', '.join(STARTS)}"
)


def parse_arguments(texts: Sequence[str], seed: int) -> list[Any]:
    """The arguments of a launch; random ones are drawn one after the other."""
    if seed < 0:
        raise ParseError(f"the seed {seed} is negative", advice="give 0 or more")
    rng = np.random.default_rng(seed)
    return [parse_argument(text, rng) for text in texts]


def parse_argument(text: str, rng: np.random.Generator) -> Any:
    if text.startswith("@"):
        return read_file(text[1:])
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ParseError(f"'{text[:80]}' is not an argument", advice=ADVICE)
    if match["type"] not in TYPES:
        raise ParseError(
            f"'{text[:80]}' is not an argument: no type is called '{match['type'][:20]}'",
            advice=one_of(match["type"], TYPES),
        )
    kind = np.dtype(TYPES[match["type"]])
    if match["count"] is None:
        return _number(kind, match["value"])
    count = int(match["count"])
    if not 1 <= count <= MOST_ELEMENTS:
        raise ParseError(f"'{text[:80]}': 1 to {MOST_ELEMENTS} elements are possible")
    return _array(kind, count, match["value"], rng)


def _number(kind: np.dtype[Any], text: str) -> Any:
    try:
        value = float(text) if kind.kind == "f" else int(text, 0)
        return np.array(value).astype(kind)[()] if kind.kind == "f" else kind.type(value)
    except (ValueError, OverflowError):
        raise ParseError(f"'{text[:80]}' is no {kind.name}", advice=ADVICE) from None


def _array(kind: np.dtype[Any], count: int, start: str, rng: np.random.Generator) -> Any:
    match start:
        case "zeros":
            return np.zeros(count, kind)
        case "ones":
            return np.ones(count, kind)
        case "range":
            return np.arange(count).astype(kind)
        case "random" if kind.kind == "f":
            return rng.standard_normal(count).astype(kind)
        case "random":
            return rng.integers(0, 100, count).astype(kind)
    if not start.startswith("@"):
        raise ParseError(
            f"'{start[:80]}' is no way to start an array", advice=one_of(start, STARTS)
        )
    if not start.endswith((".npz", ".pt")) and ".npz:" not in start:
        return read_npy(Path(start[1:]), kind, count)
    found = read_file(start[1:])
    if found.size != count:
        raise ParseError(f"'{start[1:]}' holds {found.size} elements, not {count}")
    return converted(Path(start[1:]), found.ravel(), kind)


def parse_variables(texts: Sequence[str], seed: int) -> dict[str, Any]:
    """`NAME=TYPE[COUNT]=START`: values of variables, by name."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            advice = "write table=f32[8]=range or n=i32=7"
            raise ParseError(f"'{text[:80]}' gives no variable a value", advice=advice)
        found[name] = parse_argument(value, rng)
    return found


def parse_shape(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(_SIZE.fullmatch(p.strip()) for p in parts):
        raise ParseError(f"'{text[:80]}' is not a shape", advice="write 256 or 16,8 or 8,8,4")
    return tuple(int(p) for p in parts)


def parse_cluster(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else parse_shape(text)


def save_arrays(path: Path, arrays: dict[str, Any], before: dict[str, Any]) -> None:
    """Writes exactly this file: as .npy the one array that the kernel changed, else all of them."""
    changed = [name for name in arrays if not same_bytes(arrays[name], before[name])]
    if path.suffix == ".npy" and len(changed) != 1:
        listed = ", ".join(changed) or "none"
        raise ParseError(
            f"'{path}' takes one array, but the kernel changed {len(changed)}: {listed}",
            advice="write all of them with --save FILE.npz",
        )
    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, arrays[changed[0]])
        else:
            np.savez(file, **arrays)


def same_bytes(one: Any, other: Any) -> bool:
    return bool(one.tobytes() == other.tobytes())
