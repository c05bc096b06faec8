"""A launch whose floats are elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine.memory import WINDOWS, Memory, Region
from warploom.machine.record import NVIDIA
from warploom.ptx.emulate.asked import Asked, triple
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.compile import compile_function
from warploom.ptx.emulate.excuse import Excused
from warploom.ptx.emulate.trial import Trial
from warploom.ptx.field.digits import COPIES
from warploom.ptx.field.elements import NotKnown
from warploom.ptx.field.floats import Field, FieldArithmetic
from warploom.ptx.field.steps import step_of
from warploom.ptx.launch import Kernel

Array = npt.NDArray[Any]
UNWRITTEN = -1
_SIZES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}


@dataclass(slots=True, eq=False)
class Floats:
    """An array of floats: `bits` stand for it among the arguments of a launch, or under a tensor
    map. `numbers` are those of its elements, -1 for what nobody wrote. One float may be the
    argument itself, by its place among them."""

    kind: str  # f16, bf16, f32, f64
    numbers: Array
    bits: Array = dataclass_field(default_factory=lambda: np.zeros(0, np.uint8))
    argument: int | None = None
    left: Array | None = None  # the bits that a launch left, which the next one finds

    def __post_init__(self) -> None:
        if not self.bits.size:
            self.bits = np.zeros(self.numbers.shape, f"u{_SIZES[self.kind]}")

    def words(self, field: Field, r: Random) -> Array:
        """By copy and element; what nobody wrote is no element's."""
        flat = self.numbers.reshape(-1)
        known = flat != UNWRITTEN
        elements = np.where(known, flat, 0)
        held = (self.bits if self.left is None else self.left).reshape(-1)

        def floats(at: Array, bits: Array) -> Array:
            return np.asarray(bits == held[at])

        out = field.written(elements, self.kind, floats)
        junk = np.random.default_rng(r.randrange(1 << 63))
        noise = junk.integers(0, 1 << 8 * out.itemsize - 1, out.shape, out.dtype, endpoint=True)
        return np.where(known, out, noise)


def run(
    kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], floats: Sequence[Floats],
    field: Field, r: Random, *, shared_bytes: int = 0, deadline: float | None = None,
    cluster: Any = 1, others: Sequence[Array] = (), racing: bool = False,
) -> None:  # fmt: skip
    """Runs a kernel; then the arrays of floats hold what it wrote, and so do the `others`, which
    are not floats. `racing`: writes may race if they are of the same element."""
    _, memory, symbols = kernel._ready(args)
    places = [_place_of(kernel, memory, symbols, each) for each in floats]
    besides = [_place(memory, each) for each in others]
    memory.copy(COPIES)
    for each, (region, start) in zip(floats, places, strict=True):
        _bytes(region, start, each)[:] = each.words(field, r).view(np.uint8).reshape(COPIES, -1)
    asked = Asked(
        triple(grid, "grid"), triple(block, "block"), memory, symbols, shared_bytes, True, False,
        False, False, deadline, None, triple(cluster, "cluster"), None, False, NVIDIA,
        twins=COPIES, floats=field, arithmetic=FieldArithmetic(field),
    )  # fmt: skip
    code = compile_function(
        kernel.owner.module, kernel.function, kernel._shared, kernel._call, steps=step_of
    )
    _launched(kernel, code, asked, racing)
    for each, (region, start) in zip(floats, places, strict=True):
        raw = np.ascontiguousarray(_bytes(region, start, each))
        each.numbers = _read(raw.view(each.bits.dtype), each, field)
        each.left = raw.view(each.bits.dtype)[0].copy()
    for array, (region, start) in zip(others, besides, strict=True):
        raw = _copies(region, start, array.nbytes)
        if (raw != raw[0]).any():
            raise NotKnown("whole numbers that depend on floats, or that nobody wrote")
        array.reshape(-1).view(np.uint8)[:] = raw[0]


def _launched(kernel: Kernel, code: Code, asked: Asked, racing: bool) -> None:
    races = None
    if racing:  # all copies are in one batch, as blocks of their own
        x, y, z = asked.grid
        asked = replace(
            asked, races="all", benign=True, batch_threads=asked.threads * COPIES * COPIES
        )
        races = kernel._judge._detector(replace(asked, grid=(x * COPIES, y, z)), Excused())
    trial = Trial(kernel._judge.around, code, asked, races, None, Excused())
    trial.run()
    if trial.met:
        error = NotKnown("what two threads write to one place, and which of them is last")
        label = trial.met[0].second.label
        error.span = label if isinstance(label, Span) else None
        raise error


def _place(memory: Memory, array: Array) -> tuple[Region, int]:
    """Where an array was put."""
    region = next(each for each in memory.regions if np.shares_memory(each.data, array))
    return region, array.ctypes.data - region.data.ctypes.data


def _place_of(
    kernel: Kernel, memory: Memory, symbols: dict[str, int], given: Floats
) -> tuple[Region, int]:
    """Where floats were put: as an array, or as an argument itself."""
    if given.argument is None:
        return _place(memory, given.bits)
    region = next(each for each in memory.regions if each.space == "param")
    name = kernel.function.parameters[given.argument].name
    return region, symbols[name] + WINDOWS["param"] - region.base


def _bytes(region: Region, start: int, given: Floats) -> Array:
    return _copies(region, start, given.bits.nbytes)


def _copies(region: Region, start: int, size: int) -> Array:
    return region.data.reshape(COPIES, -1)[:, start : start + size]


def _read(words: Array, given: Floats, field: Field) -> Array:
    out = np.full(words.shape[1], UNWRITTEN)
    numbers, bad = field.decoded(words, given.kind)
    out[~bad] = numbers[~bad]
    same = (words == words[0]).all(axis=0)
    if same.any():
        out[same] = field.read(words[:, same], given.kind)
    return out.reshape(given.numbers.shape)
