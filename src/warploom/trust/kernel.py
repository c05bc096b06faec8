"""Checks a certificate of a kernel: does it compute what it should on samples, is one run of it the
same in every schedule, and are its layouts the best?

The kernel in a certificate is PTX, made for axes that were cut short. It is run once more, on the
emulator, with inputs of the checker's own and races followed. What it stores has to be what
`meaning.py` says, and nothing else may change. The events of that run have to be those of the
certificate's proof, which `schedule.py` checks. Each layout is checked by `layout.py`, and has to
be the one that the kernel's tensor map writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, WarploomError
from warploom.kernel.dtype import DType, memory_of, numbers_of
from warploom.ptx import load, tensor_map
from warploom.ptx.prove.certificate import certificate
from warploom.trust.checked import Checked, digest, require, shielded
from warploom.trust.layout_text import check_layout_and_text
from warploom.trust.meaning import meant
from warploom.trust.schedule import check_schedule

VERSION = 1
_KEYS = {
    "kind", "version", "name", "machine", "asked", "tried", "words", "texts", "ptx", "launch",
    "meaning", "near", "seed", "proof", "layouts", "digest",
}  # fmt: skip
_NEAREST = 1 / 16  # of the largest number: a certificate may not claim less than that
_MOST_ELEMENTS = 1 << 24
_UNTOUCHED = 77
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?(?:f|u|ll|ull)?\b")
_SHOWN_BY_THE_RUN = ("that these are the events of the kernel", "data races")

Numbers = npt.NDArray[Any]


def check_kernel(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    return shielded(lambda: _check(record), lambda why: Checked((), why))


def _check(record: dict[str, Any]) -> Checked:
    require(set(record) == _KEYS, "it has other parts than it should")
    require(repr(record["version"]) == str(VERSION), "it is of another version")
    require(digest(record) == record["digest"], "it was changed after it was written")
    proof = check_schedule(record["proof"])
    layouts = [check_layout_and_text(_plain(each)) for each in record["layouts"]]
    for each in record["layouts"]:
        _check_written(each, record["launch"]["maps"])
    off = _check_run(record)
    sizes = ", ".join(f"{name} = {size}" for name, size in record["tried"].items())
    shown = [
        f"{record['name']!s:.80}: run on the emulator at {sizes}, without races, it stores what it "
        f"should on a sample (off by at most {off:.2g} of the largest)",
        *proof.shown,
        *(f"{e['of']}: {line}" for e, one in zip(record["layouts"], layouts, strict=True)
          for line in one.shown),
    ]  # fmt: skip
    caveats = [each for each in proof.not_covered if each not in _SHOWN_BY_THE_RUN]
    unsaid = ["other inputs than the sample", *other_sizes(record), *caveats]
    if any(each["copies"] for each in _problems(record)):
        unsaid.append("how matrix units read tiles, which is taken to be as ldmatrix does")
    opened = next((each.open for each in (proof, *layouts) if each.open), "")
    return Checked(tuple(shown), opened, tuple(unsaid))


def _plain(layout: dict[str, Any]) -> dict[str, Any]:
    """The certificate of a layout without what it is of."""
    return {key: each for key, each in layout.items() if key not in ("of", "map")}


def _problems(record: dict[str, Any]) -> list[Any]:
    return [each["problem"] for each in record["layouts"]]


def other_sizes(record: dict[str, Any]) -> list[str]:
    """What is said of the kernel at the sizes that were asked for."""
    asked, tried = (record["texts"][each].splitlines() for each in ("asked", "tried"))
    if asked == tried:
        return []
    sizes = ", ".join(f"{name} = {size}" for name, size in record["asked"].items())
    asked, tried = ([*map(_numberless, each)] for each in (asked, tried))
    blocks = SequenceMatcher(None, asked, tried, autojunk=False).get_matching_blocks()
    others = len(asked) - sum(each.size for each in blocks)
    beside = f", and in {others} of {len(asked)} lines" if others else " alone"
    return [f"the kernel at {sizes}: its text differs in numbers{beside}"]


def _numberless(line: str) -> str:
    return _NUMBER.sub("0", line)


# -- layouts ---------------------------------------------------------------------------------------


def _check_written(layout: dict[str, Any], maps: list[dict[str, Any]]) -> None:
    """The layout is that of boxes side by side, as the tensor map swizzles them."""
    map = next(each for each in maps if each["name"] == layout["map"])
    rows, columns = layout["problem"]["shape"]
    size = layout["problem"]["element_bytes"]
    high, wide = map["box"][-2:]
    # Blocks of a cluster bring parts of a tile, one below the other.
    require(columns % wide == 0 and rows % high == 0, f"{layout['of']}: boxes are of another size")
    row, column = np.divmod(np.arange(rows * columns), columns)
    place = (column // wide * rows + row) * wide * size + column % wide * size
    mask = map["swizzle"] // 16 - 1 if map["swizzle"] else 0
    place ^= (place >> 7 & mask) << 4
    require((place // size).tolist() == layout["addresses"],
            f"{layout['of']}: tensor copies write another layout")  # fmt: skip


# -- the run ---------------------------------------------------------------------------------------


def _check_run(record: dict[str, Any]) -> float:
    """How far the kernel is off on a sample, of the largest number."""
    launch, near = record["launch"], float(record["near"])
    require(0 <= near <= _NEAREST, "it claims to be near to nothing")
    given = launch["arrays"]
    require(sum(each["elements"] for each in given) <= _MOST_ELEMENTS, "its arrays are too large")
    random = np.random.default_rng(record["seed"])
    types = {each["name"]: DType(each["type"]) for each in given}
    arrays = {e["name"]: _drawn(types[e["name"]], int(e["elements"]), random) for e in given}
    numbers = {e["name"]: _number(DType(e["type"]), random) for e in launch["numbers"]}
    stored, places, wanted = meant(record["meaning"], arrays, numbers, types)
    arrays[stored][:] = _UNTOUCHED
    before = {name: each.copy() for name, each in arrays.items()}
    _run(record, arrays, numbers)
    for name, each in arrays.items():
        changed = each.view(np.uint8) != before[name].view(np.uint8)
        changed = changed.reshape(each.size, -1).any(axis=1)
        if name == stored:
            changed[places] = False
        require(not changed.any(), f"{name} is changed where nothing is stored")
    return _off(arrays[stored][places], wanted, types[stored], near)


def _off(held: Numbers, wanted: Numbers, dtype: DType, near: float) -> float:
    """How far numbers are off, if that is near; codes may be neighbours of what should be."""
    got = np.asarray(numbers_of(held, dtype), np.float64)
    finite = np.isfinite(wanted)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    require(bool(same[~finite].all()), "it stores what is finite, or is not, in the wrong place")
    largest = float(np.abs(wanted[finite]).max(initial=0.0))
    apart = np.abs(got - wanted)[finite]
    room = np.full(apart.shape, near * largest)
    if dtype.is_code:
        own, least = dtype.rounding
        room += 2 * np.maximum(own * np.abs(wanted[finite]), least)
    wrong = ~(apart <= room)
    require(not wrong.any(), "what it stores is not what it should be")
    return float(apart.max(initial=0.0)) / largest if largest else 0.0


def _run(record: dict[str, Any], arrays: Mapping[str, Numbers], numbers: Mapping[str, Any]) -> None:
    """On the emulator; the proof of the run is that of the certificate."""
    launch = record["launch"]
    maps = [tensor_map(_view(each, arrays[each["array"]]), tuple(each["box"]), each["swizzle"])
            for each in launch["maps"]]  # fmt: skip
    grid, block = tuple(launch["grid"]), tuple(launch["block"])
    try:
        kernel = load(record["ptx"]).kernel(launch["entry"])
        told = kernel.launch(
            grid, block, [*arrays.values(), *numbers.values(), *maps],
            shared_bytes=launch["shared"], races=True, prove=True,
        )  # fmt: skip
        require(told.proof is not None and not told.races, "its run has races")
        assert told.proof is not None
        proof = certificate(kernel.name, grid, block, told.proof, kernel.registers(prod(block)))
    except WarploomError as error:
        raise CheckError(f"the certificate does not hold: {error.message}") from None
    require(proof == record["proof"], "the events of its run are not those of its proof")


def _view(map: dict[str, Any], array: Numbers) -> Numbers:
    reach = sum((n - 1) * s for n, s in zip(map["sizes"], (*map["strides"], 1), strict=True)) + 1
    require(0 < reach <= array.size, f"the map {map['name']} is beyond its array")
    steps = [each * array.itemsize for each in (*map["strides"], 1)]
    return np.lib.stride_tricks.as_strided(array, map["sizes"], steps)


def _drawn(dtype: DType, count: int, random: np.random.Generator) -> Numbers:
    if dtype.is_real:
        return memory_of(random.standard_normal(count), dtype)
    least = -100 if dtype.is_signed else 0
    return random.integers(least, 100, count).astype(dtype.numpy)


def _number(dtype: DType, random: np.random.Generator) -> Any:
    return dtype.numpy.type(_drawn(dtype, 1, random)[0])
