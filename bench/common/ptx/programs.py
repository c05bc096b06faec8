"""Whole kernels of `cuda/*.cu`: how to launch them, and what NumPy says they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Args = list[Any]


@dataclass(frozen=True, slots=True)
class Program:
    """`expected` gets the arguments before the launch, and gives arrays by argument number."""

    file: str
    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: Callable[[np.random.Generator], Args]
    expected: Callable[[Args], dict[int, np.ndarray]]
    shared_bytes: int = 0

    def make(self) -> Args:
        return self.arguments(np.random.default_rng(list(self.name.encode())))


def _stencil(args: Args) -> dict[int, np.ndarray]:
    a, out, _, _, c0, c1 = args
    out = out.copy()
    around = ((a[1:-1, :-2] + a[1:-1, 2:]) + a[:-2, 1:-1]) + a[2:, 1:-1]
    # One rounding for c0·a + (c1·around), as the compiler contracts it; exact enough in double.
    product = (c1 * around).astype(np.float64)
    out[1:-1, 1:-1] = (np.float64(c0) * a[1:-1, 1:-1] + product).astype(np.float32)
    return {1: out}


def _matmul(args: Args) -> dict[int, np.ndarray]:
    a, b, _, n = args
    total = np.zeros((n, n), np.float32)
    for k in range(n):  # products of small whole numbers: every order gives the same
        total += a[:, k : k + 1] * b[k]
    return {2: total}


def _block_sums(args: Args) -> dict[int, np.ndarray]:
    values, out, n = args
    padded = np.zeros(out.size * 256, np.float32)
    padded[:n] = values
    part = padded.reshape(-1, 256)
    while part.shape[1] > 1:
        half = part.shape[1] // 2
        part = part[:, :half] + part[:, half:]
    return {1: part[:, 0]}


PAIR = np.dtype([("first", np.int32), ("second", np.float32, 3)])


def _functions(args: Args) -> dict[int, np.ndarray]:
    pair = np.frombuffer(args[0], PAIR)[0]
    n = args[3]
    stack = [np.float32(pair["second"][j % 3] * j) for j in range(8)]
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21]
    sums = []
    for i in range(n):
        total = np.float32(0)
        for t in range(i % 13):
            total += stack[(t * (int(pair["first"]) + i)) & 7]
        sums.append(total * np.float32([0.5, 1.5, 2.5, 3.5][i & 3]))
    whole = [fibonacci[i % 9] + 7 for i in range(n)]
    return {1: np.array(sums, np.float32), 2: np.array(whole, np.int32)}


def _collatz(args: Args) -> dict[int, np.ndarray]:
    def steps(value: int) -> int:
        count = 0
        while value != 1:
            value = 3 * value + 1 if value & 1 else value // 2
            count += 1
        return count

    return {1: np.array([steps(int(v)) for v in args[0]], np.uint32)}


def _vectors(args: Args) -> dict[int, np.ndarray]:
    a, b, c, d, e = args[:5]
    turned = d[:, ::-1].copy()
    turned[:, 0] = d[:, 3] + d[:, 0]
    doubled = e[:, ::-1].copy()
    doubled[:, 1] *= 2
    return {5: a[:, ::-1], 6: b[:, ::-1], 7: c[:, ::-1], 8: turned, 9: doubled}


def _atomics(values: np.ndarray, out: np.ndarray, signed: Any, narrow: bool) -> np.ndarray:
    out = out.copy()
    for slot in range(4):
        mine = values[values & 3 == slot]
        here = slice(slot, slot + 1)  # arrays wrap around without a warning
        out[here] += mine.sum(dtype=out.dtype)
        out[4 + slot] = min(out[4 + slot], mine.min())
        out[8 + slot] = max(out[8 + slot], mine.max())
        out[12 + slot] &= np.bitwise_and.reduce(mine | mine.dtype.type(0xFF00))
        out[16 + slot] |= np.bitwise_or.reduce(mine & mine.dtype.type(0xF0F0))
        out[20 + slot] ^= np.bitwise_xor.reduce(mine)
        at = 24
        if narrow:
            up = down = 0
            for _ in mine:
                up = 0 if up >= 17 else up + 1
                down = 23 if down == 0 or down > 23 else down - 1
            out[24 + slot], out[28 + slot] = up, down
            out[40 + slot : 41 + slot] -= mine.sum(dtype=out.dtype)
            at = 32
        view = out.view(signed)
        view[at + slot] = min(view[at + slot], mine.view(signed).min())
        view[at + 4 + slot] = max(view[at + 4 + slot], mine.view(signed).max())
    return out


def _atomics32(args: Args) -> dict[int, np.ndarray]:
    values, out, sums, wide = args
    result = _atomics(values, out, np.int32, narrow=True)
    result[44 + 1024 :] = values
    result[44 : 44 + 1024] = out[44 + 1024 :]
    parts = [values[values & 3 == s] for s in range(4)]
    singles = np.array([(p & 0xFF).sum() for p in parts], np.float32)
    doubles = np.array([(p & 0xFFFF).sum() for p in parts], np.float64)
    return {1: result, 2: sums + singles, 3: wide + doubles}


def _atomics64(args: Args) -> dict[int, np.ndarray]:
    return {1: _atomics(args[0], args[1], np.int64, narrow=False)}


def _generic(args: Args) -> dict[int, np.ndarray]:
    values = args[0]
    thread = np.arange(values.size) % 128
    i = np.arange(values.size)
    near_by = values + np.float32(1)
    own = values * (i % 4).astype(np.float32)
    return {1: np.select([thread % 3 == 0, thread % 3 == 1], [values[thread], near_by], own)}


def _local_stack(args: Args) -> dict[int, np.ndarray]:
    out = []
    for value in args[0].tolist():
        stack, v = [], value & 0xFFFF
        while v:
            stack.append(v)
            v >>= 1
        total = 0
        while stack:
            total = total * 3 + stack.pop()
        out.append((total + (1 << 31)) % (1 << 32) - (1 << 31))
    return {1: np.array(out, np.int32)}


def _branches(args: Args) -> dict[int, np.ndarray]:
    return {1: np.array([_branchy(v) for v in args[0].tolist()], np.int32)}


def _branchy(v: int) -> int:
    total = 0
    for k in range(v & 15):
        case = (v + k) & 7
        if case == 0:
            total += k * 3
        elif case == 1:
            total ^= v
        elif case in (2, 3):
            if case == 2:
                if total > 100:
                    continue
                total += 7
            total -= k
        elif case == 4:
            for j in range(k):
                if j * j > v % 50:
                    break
                total += j
        elif case == 5 and k > 9:
            return -total
        elif case == 6:
            total = total * 5 + 1
        elif case == 7:
            total >>= 1
    return total


def _wide_product(args: Args) -> dict[int, np.ndarray]:
    products = [int(x) * int(y) + int(x) for x, y in zip(args[0], args[1], strict=True)]
    low = [p & ((1 << 64) - 1) for p in products]
    return {2: np.array(low, np.uint64), 3: np.array([p >> 64 for p in products], np.uint64)}


def _divide128(args: Args) -> dict[int, np.ndarray]:
    words = [int(word) for word in args[0]]
    out: list[int] = []
    for i in range(args[2]):
        x, y = (words[4 * i + j] | words[4 * i + j + 1] << 64 for j in (0, 2))
        signed = [v - (1 << 128) if v >> 127 else v for v in (x, y)]
        quotient = abs(signed[0]) // abs(signed[1])
        quotient = -quotient if (signed[0] < 0) != (signed[1] < 0) else quotient
        for value in (x // y, x % y, quotient, signed[0] - quotient * signed[1]):
            out += [value & (1 << 64) - 1, value >> 64 & (1 << 64) - 1]
    return {1: np.array(out, np.uint64)}


def _long_numbers(rng: np.random.Generator, count: int) -> np.ndarray:
    """Pairs of 128-bit numbers of all sizes; the second is not zero."""
    out: list[int] = []
    for _ in range(2 * count):
        value = int.from_bytes(rng.bytes(16), "little") >> int(rng.integers(0, 128)) | 1
        out += [value & (1 << 64) - 1, value >> 64]
    return np.array(out, np.uint64)


def _partial_warps(args: Args) -> dict[int, np.ndarray]:
    values = args[0].astype(np.int64)
    out = np.zeros_like(values)
    block = 3 * 7
    for start in range(0, values.size, block):
        v = values[start : start + block].copy()
        odd = v & 1 == 1
        v[odd] += int(((v & 2 != 0) & odd).sum())
        other = np.arange(block) ^ 1
        inside = other < block
        v = v + np.where(inside, v[np.where(inside, other, 0)], v)
        out[start : start + block] = v + int((v & 0xFF).sum())
    return {1: out.astype(np.int32)}


def _ints(rng: np.random.Generator, count: int, low: int = 0, high: int = 1 << 15) -> np.ndarray:
    return rng.integers(low, high, count, dtype=np.int32)


def _zeros(count: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.zeros(count, dtype)


PROGRAMS = [
    Program("kernels", "transpose", (4, 3), (32, 8),
            lambda rng: [rng.random((70, 100), np.float32), _zeros((100, 70), np.float32), 100, 70],
            lambda args: {1: args[0].T}),
    Program("kernels", "warp_sum", (20,), (256,),
            lambda rng: [_ints(rng, 5000, -50, 50), _zeros(1, np.int32), 5000],
            lambda args: {1: args[0].sum(keepdims=True, dtype=np.int32)}),
    Program("kernels", "block_sum", (20,), (256,),
            lambda rng: [rng.random(5000, np.float32), _zeros(20, np.float32), 5000], _block_sums, 1024),
    Program("kernels", "histogram", (5,), (128,),
            lambda rng: [rng.integers(0, 256, 30000, np.uint8), _zeros(256, np.uint32), 30000],
            lambda args: {1: np.bincount(args[0], minlength=256).astype(np.uint32)}),
    Program("kernels", "stencil", (4, 5), (32, 16),
            lambda rng: [rng.random((75, 120), np.float32), _zeros((75, 120), np.float32), 120, 75,
                         np.float32(0.5), np.float32(0.125)], _stencil),
    Program("kernels", "matmul", (4, 4), (16, 16),
            lambda rng: [_ints(rng, 64 * 64, -9, 9).reshape(64, 64).astype(np.float32),
                         _ints(rng, 64 * 64, -9, 9).reshape(64, 64).astype(np.float32),
                         _zeros((64, 64), np.float32), 64], _matmul),
    Program("kernels", "prefix_sum", (3,), (1024,),
            lambda rng: [_ints(rng, 3000, -9, 9).reshape(3, 1000), _zeros((3, 1000), np.int32), 1000],
            lambda args: {1: np.cumsum(args[0], axis=1, dtype=np.int32)}),
    Program("kernels", "functions", (2,), (160,),
            lambda rng: [np.array([(3, (1, 2, 3))], PAIR).tobytes(), _zeros(300, np.float32),
                         _zeros(300, np.int32), 300], _functions),
    Program("kernels", "collatz", (8,), (128,),
            lambda rng: [rng.integers(1, 10000, 1000, np.uint32), _zeros(1000, np.uint32), 1000], _collatz),
    Program("kernels", "spin", (2,), (48,),
            lambda rng: [_zeros(1, np.int32), _zeros(1, np.int32)],
            lambda args: {0: np.zeros(1, np.int32), 1: np.array([96], np.int32)}),
    Program("memory", "vectors", (2,), (96,),
            lambda rng: [rng.integers(0, 255, (192, 4), np.uint8), rng.integers(-99, 99, (192, 2), np.int16),
                         _ints(rng, 384).reshape(192, 2), rng.random((192, 4), np.float32), rng.random((192, 2)),
                         _zeros((192, 4), np.uint8), _zeros((192, 2), np.int16), _zeros((192, 2), np.int32),
                         _zeros((192, 4), np.float32), _zeros((192, 2), np.float64)], _vectors),
    Program("memory", "atomics32", (8,), (128,),
            lambda rng: [rng.integers(0, 1 << 32, 1024, np.uint32), _initial(rng, np.uint32, 44 + 2048),
                         _zeros(4, np.float32), _zeros(4, np.float64)], _atomics32),
    Program("memory", "atomics64", (8,), (128,),
            lambda rng: [rng.integers(0, (1 << 64) - 1, 1024, np.uint64),
                         _initial(rng, np.uint64, 32)], _atomics64),
    Program("memory", "compare_and_swap", (4,), (128,),
            lambda rng: [rng.integers(0, 1 << 31, 512, np.uint32), _zeros(1, np.uint32), _zeros(513, np.uint32)],
            lambda args: {1: args[0].max(keepdims=True), 2: np.array([512] + [1] * 512, np.uint32)}),
    Program("memory", "copy_async", (3,), (128,),
            lambda rng: [rng.random((384, 4), np.float32), _zeros((384, 4), np.float32)],
            lambda args: {1: args[0].reshape(3, 128, 4)[:, ::-1].reshape(384, 4)}),
    Program("memory", "generic", (3,), (128,),
            lambda rng: [rng.random(384, np.float32), _zeros(384, np.float32)], _generic),
    Program("memory", "local_stack", (4,), (64,), lambda rng: [_ints(rng, 256), _zeros(256, np.int32)],
            _local_stack),
    Program("memory", "branches", (4,), (64,), lambda rng: [_ints(rng, 256), _zeros(256, np.int32)], _branches),
    Program("memory", "wide_product", (2,), (64,),
            lambda rng: [rng.integers(0, 1 << 63, 128, np.uint64) * np.uint64(2) for _ in range(2)]
            + [_zeros(128, np.uint64), _zeros(128, np.uint64)], _wide_product),
    Program("wide", "divide128", (3,), (64,),
            lambda rng: [_long_numbers(rng, 180), _zeros(8 * 180, np.uint64), 180], _divide128),
    Program("memory", "bytes", (2,), (128,),
            lambda rng: [rng.integers(-128, 127, 256, np.int8), rng.integers(0, 255, 256, np.uint8),
                         _zeros(256, np.int16), _zeros(256, np.uint8)],
            lambda args: {2: args[0].astype(np.int16) * args[1].astype(np.int16),
                          3: (args[0].astype(np.int16) - args[1]).astype(np.uint8)}),
    Program("memory", "volatile_flags", (3,), (64,), lambda rng: [_zeros(192, np.int32), _zeros(192, np.int32)],
            lambda args: {0: (np.arange(192) // 64 + np.arange(192) % 64).astype(np.int32),
                          1: np.full(192, 32, np.int32)}),
    Program("memory", "partial_warps", (5,), (3, 7), lambda rng: [_ints(rng, 105), _zeros(105, np.int32)],
            _partial_warps),
]  # fmt: skip


def _initial(rng: np.random.Generator, dtype: Any, count: int) -> np.ndarray:
    out = rng.integers(0, 1 << 20, count, dtype)
    if dtype is np.uint32:
        out[24:32] = 0
    return out
