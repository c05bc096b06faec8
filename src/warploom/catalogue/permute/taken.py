"""Rows of a tensor by their numbers, which are data: y[o, i, r] = x[o, index[i], r].

Kernels have no index that is read from memory, so this one is text: one body for CUDA and for C. A
thread loads a few words of up to 16 bytes, then writes them in the order of y; numbers of words are
divided by multiplying. Where an index is outside, nothing is read, and zeros are written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.catalogue.permute.launched import Addressed
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.ptx import load as load_ptx
from warploom.runtime.callable import Device
from warploom.runtime.compile import compile_cuda
from warploom.runtime.gpu import load_function

THREADS, TIMES = 256, 4  # words of a thread
MOST_WORDS = 1 << 31  # that are divided by multiplying
WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}
INDEX = {4: "int", 8: "long long"}
STRUCTURES = """\
typedef struct { unsigned int x, y; } uint2;
typedef struct { unsigned int x, y, z, w; } uint4;
"""
BODY = """\
    const unsigned int row = DIVIDED(word, row_over, row_shift);
    const unsigned int outer = DIVIDED(row, count_over, count_shift);
    long long at = (long long)index[row - outer * count];
    if (at < 0) at += size;
    const int inside = at >= 0 && at < size;
    const long long from = (outer * size + (inside ? at : 0)) * run + (word - row * run);
"""
PARAMETERS = """\
const WORD* RESTRICT x, const INDEX* RESTRICT index, WORD* RESTRICT y,
    const unsigned int words, const unsigned int run, const unsigned int count,
    const long long size, const unsigned int row_over, const unsigned int row_shift,
    const unsigned int count_over, const unsigned int count_shift"""


@dataclass(frozen=True, slots=True)
class Taking:
    """Bytes of a word and of an index; words of a row; how many rows are taken, of how many; words
    of y in all."""

    word: int
    index: int
    run: int
    count: int
    size: int
    words: int

    @property
    def name(self) -> str:
        return f"take_{self.word}_{self.index}"

    @property
    def scalars(self) -> list[Any]:
        row, count = (divider(each) for each in (self.run, self.count))
        u = np.uint32
        numbers = [u(self.words), u(self.run), u(self.count), np.int64(self.size)]
        return [*numbers, *(u(each) for each in (*row, *count))]

    @property
    def grid(self) -> tuple[int, int, int]:
        return -(-self.words // (THREADS * TIMES)), 1, 1


def divider(by: int) -> tuple[int, int]:
    """The factor and shift that divide numbers below 2³¹: n // by = (n · factor >> 32) >> shift; of
    1, the factor is 0.

    >>> factor, shift = divider(7)
    >>> all((n * factor >> 32) >> shift == n // 7 for n in (0, 6, 7, 13, 2**31 - 1))
    True
    """
    bits = (by - 1).bit_length()
    return (-(-(1 << 31 + bits) // by), bits - 1) if bits else (0, 0)


def cuda_text(taking: Taking) -> str:
    """The kernel as CUDA text."""
    head = _defined(taking, "__restrict__", "__umulhi(n, over)")
    return (
        f'{head}extern "C" __global__ void __launch_bounds__({THREADS})\n'
        f"{taking.name}({PARAMETERS}) {{\n"
        f"  const unsigned int first = blockIdx.x * {TIMES * THREADS} + threadIdx.x;\n"
        f"  const WORD none = {{0}};\n  WORD found[{TIMES}];\n"
        f"  #pragma unroll\n  for (int n = 0; n < {TIMES}; ++n) {{\n"
        # Beyond the last word some other one is loaded: then no load waits for a condition.
        f"    const unsigned int word = min(first + n * {THREADS}, words - 1);\n"
        f"{BODY}    found[n] = inside ? x[from] : none;\n  }}\n"
        f"  #pragma unroll\n  for (int n = 0; n < {TIMES}; ++n) {{\n"
        f"    const unsigned int word = first + n * {THREADS};\n"
        f"    if (word < words) y[word] = found[n];\n  }}\n}}\n"
    )


def c_text(taking: Taking) -> str:
    """The same as a loop in C."""
    head = _defined(taking, "restrict", "(unsigned int)((unsigned long long)n * over >> 32)")
    return (
        f"{STRUCTURES}{head}void {taking.name}({PARAMETERS}) {{\n"
        "  const WORD none = {0};\n"
        f"  for (unsigned int word = 0; word < words; ++word) {{\n"
        f"{BODY}    y[word] = inside ? x[from] : none;\n  }}\n}}\n"
    )


def _defined(taking: Taking, restrict: str, product: str) -> str:
    return (
        f"#define WORD {WORDS[taking.word]}\n#define INDEX {INDEX[taking.index]}\n"
        f"#define RESTRICT {restrict}\n"
        "static inline "
        + ("__device__ " if restrict.startswith("_") else "")
        + "unsigned int DIVIDED(unsigned int n, unsigned int over, unsigned int shift) {\n"
        f"  return over ? {product} >> shift : n;\n}}\n"
    )


def launcher(taking: Taking, device: Device, number: int) -> Callable[..., None]:
    """What takes rows: called with three addresses, and a stream on a GPU."""
    if device == "cuda":
        values = [0, 0, 0, *(each.tobytes() for each in taking.scalars)]
        function = _gpu(taking.word, taking.index, number).function
        launch = Addressed(function, taking.grid, (THREADS, 1, 1), values, (0, 1, 2))
        return lambda x, index, y, stream=0: launch((x, index, y), stream)
    if device == "ptx":
        return lambda x, index, y, stream=0: _emulated(taking, x, index, y)  # noqa: ARG005
    passed = [_c_number(each) for each in taking.scalars]
    native = _native(taking.word, taking.index)

    def call(x: int, index: int, y: int, stream: int = 0) -> None:
        del stream
        native(*(ctypes.c_void_p(each) for each in (x, index, y)), *passed)

    return call


def _c_number(each: Any) -> Any:
    return (ctypes.c_int64 if each.dtype == np.int64 else ctypes.c_uint32)(int(each))


def _kind(word: int, index: int) -> Taking:
    return Taking(word, index, 1, 1, 1, 1)


@lru_cache(maxsize=64)
def _gpu(word: int, index: int, number: int) -> Any:
    kind = _kind(word, index)
    return load_function(cuda_text(kind), kind.name, number)


@lru_cache(maxsize=16)
def _native(word: int, index: int) -> Any:
    kind = _kind(word, index)
    code = kept_library(c_text(kind), ("-O2", "-shared", "-fPIC"), cache_folder())
    function = getattr(load_library(code), kind.name)
    function.restype = None
    return function


@lru_cache(maxsize=16)
def _ptx(word: int, index: int) -> Any:
    kind = _kind(word, index)
    return load_ptx(compile_cuda(cuda_text(kind)).text).kernel(kind.name)


def _emulated(taking: Taking, x: int, index: int, y: int) -> None:
    words = taking.words
    sizes = (words // max(1, taking.count) * taking.size, taking.count, words)
    bytes = taking.word, taking.index, taking.word
    given = [_memory(at, n * b) for at, n, b in zip((x, index, y), sizes, bytes, strict=True)]
    function = _ptx(taking.word, taking.index)
    function.launch(taking.grid, (THREADS, 1, 1), [*given, *taking.scalars])


def _memory(at: int, count: int) -> np.ndarray[Any, Any]:
    cells = (ctypes.c_ubyte * count).from_address(at)
    return np.frombuffer(memoryview(cells), np.uint8)


def word_of(row: int, places: Sequence[int]) -> int:
    """The longest word that rows of so many bytes, and these places, are multiples of."""
    return next(each for each in (16, 8, 4, 2, 1) if not any(n % each for n in (row, *places)))
