"""Random permutations compared with NumPy: shapes, strides, offsets, types and orders of axes.

    python -m bench.catalogue.permute_random                   5,000 on C, the simulator and PTX
    python -m bench.catalogue.permute_random --seconds 60      as many as that time allows on each
    python -m bench.catalogue.permute_random --dry             a few

Each case is one call of `warploom.permute` on a view of some memory; every byte of what is written
is compared, and what lies around a given output must stay as it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from bench.harness import arguments, environment, save

import warploom
from warploom.runtime.callable import Device

DEVICES: tuple[Device, ...] = ("c", "simulator", "ptx")
TYPES = (
    "uint8",
    "int16",
    "float16",
    "int32",
    "float32",
    "int64",
    "float64",
    "complex64",
    "complex128",
)
MOST = 20000  # elements: emulators are slow


@dataclass(frozen=True)
class Case:
    """A view of memory, an order of axes, and whether an output is given."""

    seed: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: str
    steps: tuple[int, ...]  # of the slice along each axis of the input
    offset: int  # elements before the input, and before the output
    given: bool

    @classmethod
    def drawn(cls, seed: int, most: int = MOST) -> Case:
        random = np.random.default_rng(seed)
        count = int(random.integers(1, 9))
        shape: list[int] = []
        for _ in range(count):
            left = most // int(np.prod(shape, dtype=np.int64) or 1)
            high = [2, 4, 9, 40, 140, 300][int(random.integers(6))]
            shape.append(int(random.integers(1, max(2, min(high, left)))))
        if random.random() < 0.02:
            shape[int(random.integers(count))] = 0
        if random.random() < 0.3:  # aligned sizes
            shape = [min(size + -size % 16, max(1, most)) if size > 8 else size for size in shape]
        while np.prod(shape, dtype=np.int64) > 2 * most:
            shape[int(np.argmax(shape))] //= 2
        order = random.permutation(count) if random.random() < 0.95 else np.arange(count)
        steps = [int(random.choice([1, 1, 1, 1, 1, 2, 3, -1])) for _ in shape]
        if random.random() < 0.5:
            steps = [1] * count
        return cls(
            seed, tuple(shape), tuple(int(axis) for axis in order), str(random.choice(TYPES)),
            tuple(steps), int(random.integers(0, 5)) if random.random() < 0.4 else 0,
            bool(random.random() < 0.3),
        )  # fmt: skip

    def input(self) -> np.ndarray[Any, Any]:
        whole = tuple(size * abs(step) for size, step in zip(self.shape, self.steps, strict=True))
        memory = _memory(int(np.prod(whole)) + self.offset, self.dtype, self.seed)
        view = memory[self.offset :].reshape(whole)[tuple(slice(None, None, s) for s in self.steps)]
        return view[tuple(slice(0, size) for size in self.shape)]

    def wrong(self, device: Device) -> str:
        """What is wrong on a device; nothing if all is right."""
        x = self.input()
        wanted = np.ascontiguousarray(x.transpose(self.axes))
        if not self.given:
            found = warploom.permute(x, self.axes, device=device)
            return "" if _same(found, wanted) else "other elements than NumPy's"
        memory = _memory(wanted.size + 2 * self.offset + 8, self.dtype, self.seed + 1)
        before = memory.copy()
        out = memory[self.offset : self.offset + wanted.size].reshape(wanted.shape)
        found = warploom.permute(x, self.axes, out, device=device)
        if found is not out or not _same(out, wanted):
            return "other elements than NumPy's in a given output"
        before[self.offset : self.offset + wanted.size] = wanted.reshape(-1)
        return "" if _same(memory, before) else "memory around the output was written"


def _memory(count: int, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)


def _same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def failures(count: int, device: Device, first: int = 0, most: int = MOST) -> list[str]:
    """What is wrong with so many cases, each by what it is."""
    return [wrong for wrong in tried(count, device, first, most) if wrong]


def tried(count: int, device: Device, first: int = 0, most: int = MOST) -> Iterator[str]:
    """So many cases, one after the other: what is wrong with each."""
    for seed in range(first, first + count):
        case = Case.drawn(seed, most)
        wrong = case.wrong(device)
        yield f"{device}: {wrong}: {case}" if wrong else ""


def main() -> int:
    parser = arguments(__doc__, "permute_random.json", dry="only a few")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="CPU time on each device")
    given = parser.parse_args()
    count = 50 if given.dry else given.count
    record: dict[str, Any] = {"devices": {}}
    for device in DEVICES:
        started = time.process_time()
        cases, wrong = 0, []
        for said in tried(count, device):
            cases += 1
            wrong += [said] if said else []
            if time.process_time() - started > given.seconds:
                break
        seconds = round(time.process_time() - started, 1)
        found = {"cases": cases, "wrong": len(wrong), "cpu_seconds": seconds}
        record["devices"][device] = found
        print(device, cases, "cases,", len(wrong), "wrong,", seconds, "CPU s", flush=True)
        for each in wrong[:10]:
            print(" ", each, flush=True)
    if not given.dry:
        save(given.out, record | environment())
    return int(any(each["wrong"] for each in record["devices"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
