"""Sketches by a short name, each a function of its sizes; `warploom synth NAME --size k=v`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from inspect import signature

from warploom.bench import sketches
from warploom.errors import CheckError

Build = Callable[..., str]


def crc(columns: int = 5, rows: int = 32, level: int = 3) -> str:
    return sketches.transposition("crc", columns, level, rows)


def rcr(columns: int = 5, rows: int = 32, level: int = 3) -> str:
    return sketches.transposition("rcr", columns, level, rows)


def sums(columns: int = 5, rows: int = 32, level: int = 3) -> str:
    return sketches.transposition("cr", columns, level, rows)


def stencil(taps: int = 3, lanes: int = 32, level: int = 3) -> str:
    return sketches.stencil_1d(taps, level, lanes)


def convolution(taps: int = 3, lanes: int = 32, level: int = 3) -> str:
    return sketches.convolution_1d(taps, level, lanes)


def stencil_2d(taps: int = 3, side: int = 4, level: int = 3) -> str:
    return sketches.stencil_2d(taps, level, side)


def product(width: int = 4, level: int = 1) -> str:
    return sketches.multiplication_narrow(level, width)


def product_registers(level: int = 3) -> str:
    return sketches.multiplication_registers(level)


def product_shared(level: int = 3) -> str:
    return sketches.multiplication_shared(level)


def gaussian(lanes: int = 8) -> str:
    return sketches.gaussian_hvx(lanes)


FAMILIES: Mapping[str, Build] = {
    "transposition": crc,
    "transposition-rcr": rcr,
    "sums": sums,
    "stencil": stencil,
    "convolution": convolution,
    "stencil-2d": stencil_2d,
    "product": product,
    "product-registers": product_registers,
    "product-shared": product_shared,
    "gaussian": gaussian,
}


def sizes_of(build: Callable[..., object]) -> tuple[str, ...]:
    """The parameters that a sketch can be built with."""
    return tuple(signature(build).parameters)


def named(name: str) -> Build | None:
    """The sketch of that name: a family, or a row of the published table."""
    if name in FAMILIES:
        return FAMILIES[name]
    return partial(sketches.published_sketch, name) if name in published() else None


def sized(name: str, build: Callable[..., str], sizes: Mapping[str, int]) -> str:
    """The text of a sketch at some sizes; a size it does not have is a CheckError."""
    for key, value in sizes.items():
        if key not in sizes_of(build):
            known = ", ".join(sizes_of(build)) or "none"
            raise CheckError(f"'{name}' has no size '{key}'", advice=f"its sizes: {known}")
        if not 1 <= value <= 4096:
            raise CheckError(f"'{name}': {key}={value} is not between 1 and 4096")
    if not 1 <= sizes.get("level", 1) <= 3:
        raise CheckError(f"'{name}': the level is 1, 2 or 3")
    return build(**sizes)


@dataclass(frozen=True, slots=True)
class Published:
    """A row of the published table; None where the published tool gave up."""

    name: str
    solutions: int | None
    states: int | None
    cpu_seconds: float | None  # nothing cached
    peak_mb: float


@cache
def published() -> Mapping[str, Published]:
    """The rows of section 5 of the Swizzleflow paper: what its tool needs with nothing cached."""
    text = files("warploom.bench").joinpath("published_synth.csv").read_text()
    return {
        row["name"]: Published(
            row["name"],
            int(row["solutions"]) if row["solutions"] else None,
            int(row["states"]) if row["states"] else None,
            float(row["cold_cpu_s"]) if row["cold_cpu_s"] else None,
            float(row["peak_mb"]),
        )
        for row in csv.DictReader(text.splitlines())
    }
