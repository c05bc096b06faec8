"""Numba kernels as people write them; needs Numba with CUDA, and no GPU."""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import cuda

THREADS = 64


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((8, 9), dtype=numba.float32)
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        tile[cuda.threadIdx.x, cuda.threadIdx.y] = x[i, j]
    cuda.syncthreads()
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def block_sums(x, out):
    shared = cuda.shared.array(THREADS, dtype=numba.float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = shared[0]


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


@cuda.jit
def logistic(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = 1.0 / (1.0 + math.exp(-x[i]))


def _f4(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


# Each with arguments of the types that it is compiled for.
KERNELS = {
    "axpy": (axpy, (np.float32(2), _f4(4), _f4(4))),
    "axpy_f64": (axpy, (2.0, np.zeros(4), np.zeros(4))),
    "transpose": (transpose, (_f4(4, 4), _f4(4, 4))),
    "block_sums": (block_sums, (np.zeros(4), np.zeros(4))),
    "block_sums_f32": (block_sums, (_f4(4), _f4(4))),
    "histogram": (histogram, (np.zeros(4, np.int32), np.zeros(4, np.int32))),
    "histogram_i64": (histogram, (np.zeros(4, np.int64), np.zeros(4, np.int64))),
    "logistic": (logistic, (np.zeros(4), np.zeros(4))),
    "logistic_f32": (logistic, (_f4(4), _f4(4))),
}
