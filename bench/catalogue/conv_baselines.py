"""What the catalogue's convolutions and products are measured against, written by hand.

CUDA C++ texts (a 2-D convolution in shared memory; products over GF(2) with operands in shared
memory and in a register cache), NPP through ctypes, and a direct Triton kernel.
"""

from __future__ import annotations

import ctypes
import glob
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TILES = ((32, 8, 4), (64, 4, 4), (64, 4, 8), (32, 8, 8), (128, 2, 8))  # columns, threads, rows each


def shared_convolution(taps: int, columns: int, threads: int, rows: int) -> str:
    """A block loads its tile with a halo into shared memory; a thread makes `rows` outputs."""
    return f"""
#define TAPS {taps}
#define COLUMNS {columns}
#define THREADS {threads}
#define ROWS {rows}
#define HALF (TAPS / 2)
#define HEIGHT (THREADS * ROWS)
struct weights {{ float at[TAPS * TAPS]; }};
static __device__ __forceinline__ int clamp(int x, int n) {{
  return x < 0 ? 0 : x >= n ? n - 1 : x;
}}
extern "C" __global__ void __launch_bounds__(COLUMNS * THREADS)
shared_convolution(const int columns, const int height, const float* __restrict__ image,
                   const __grid_constant__ weights w, float* __restrict__ out) {{
  __shared__ float tile[HEIGHT + TAPS - 1][COLUMNS + TAPS - 1];
  const int left = blockIdx.x * COLUMNS, top = blockIdx.y * HEIGHT;
  const int x = threadIdx.x, y = threadIdx.y;
  for (int r = y; r < HEIGHT + TAPS - 1; r += THREADS)
    for (int c = x; c < COLUMNS + TAPS - 1; c += COLUMNS)
      tile[r][c] = image[clamp(top + r - HALF, height) * columns + clamp(left + c - HALF, columns)];
  __syncthreads();
  float sums[ROWS] = {{}};
  #pragma unroll
  for (int r = 0; r < ROWS + TAPS - 1; ++r) {{
    float row[TAPS];
    #pragma unroll
    for (int c = 0; c < TAPS; ++c) row[c] = tile[y * ROWS + r][x + c];
    #pragma unroll
    for (int k = 0; k < TAPS; ++k)
      if (r - k >= 0 && r - k < ROWS) {{
        #pragma unroll
        for (int c = 0; c < TAPS; ++c) sums[r - k] = fmaf(w.at[k * TAPS + c], row[c], sums[r - k]);
      }}
  }}
  #pragma unroll
  for (int r = 0; r < ROWS; ++r) {{
    const int row = top + y * ROWS + r;
    if (row < height && left + x < columns) out[row * columns + left + x] = sums[r];
  }}
}}
"""


_PRODUCT = """
#define P {parts}
#define DEGREE (32 * P)
extern "C" __global__ void __launch_bounds__({block})
{name}(const int batch, const unsigned* __restrict__ a, const unsigned* __restrict__ b,
       unsigned* __restrict__ c) {{
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int q = blockIdx.x * {warps} + warp;
  if (q >= batch) return;
{prepare}
  unsigned sums[2 * P] = {{}};
  #pragma unroll {unroll}
  for (int i = 0; i < 32; ++i) {{
    unsigned x[P], y[P];
    #pragma unroll
    for (int p = 0; p < P; ++p) {{
{fetch}
    }}
    #pragma unroll
    for (int p = 0; p < P; ++p)
      #pragma unroll
      for (int r = 0; r < P; ++r)
        if (lane >= i) sums[p + r] ^= x[p] & y[r];
        else sums[p + r + 1] ^= x[p] & y[r];
  }}
  #pragma unroll
  for (int p = 0; p < 2 * P; ++p) c[q * 2 * DEGREE + p * 32 + lane] = sums[p];
}}
"""
_SHARED = (
    """  __shared__ unsigned tiles[{warps}][2][DEGREE];
  #pragma unroll
  for (int p = 0; p < P; ++p) {{
    tiles[warp][0][p * 32 + lane] = a[q * DEGREE + p * 32 + lane];
    tiles[warp][1][p * 32 + lane] = b[q * DEGREE + p * 32 + lane];
  }}
  __syncwarp();""",
    """      x[p] = tiles[warp][0][p * 32 + i];
      y[p] = tiles[warp][1][p * 32 + ((lane - i) & 31)];""",
)
_REGISTERS = (
    """  unsigned held_a[P], held_b[P];
  #pragma unroll
  for (int p = 0; p < P; ++p) {{
    held_a[p] = a[q * DEGREE + p * 32 + lane];
    held_b[p] = b[q * DEGREE + p * 32 + lane];
  }}""",
    """      x[p] = __shfl_sync(0xffffffffu, held_a[p], i);
      y[p] = __shfl_sync(0xffffffffu, held_b[p], lane - i);""",
)


def product(form: str, degree: int, block: int, unroll: int) -> str:
    """A warp makes a product; every pair of words goes to one of two sums, by lane.

    `form` is shared_product (operands in shared memory) or cached_product (a register cache).
    """
    prepare, fetch = _SHARED if form == "shared_product" else _REGISTERS
    values = {"parts": degree // 32, "warps": block // 32, "block": block, "unroll": unroll}
    return _PRODUCT.format(name=form, prepare=prepare.format(**values), fetch=fetch, **values)


# --- NPP --------------------------------------------------------------------------------------


class _Pair(ctypes.Structure):
    """NppiSize and NppiPoint."""

    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))


class _Context(ctypes.Structure):
    """NppStreamContext."""

    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("threads_of_multiprocessor", ctypes.c_int),
        ("threads_of_block", ctypes.c_int),
        ("shared_of_block", ctypes.c_size_t),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_int),
    )


REPLICATE = 2


def npp_library() -> ctypes.CDLL | None:
    """libnppif with the library it needs, from the toolkit or from Python packages."""
    folders = [
        *map(Path, glob.glob("/usr/local/cuda*/lib64")),
        *map(Path, glob.glob("/usr/local/cuda*/targets/*/lib")),
    ]
    for entry in sys.path:
        folders += [Path(each) for each in glob.glob(f"{entry}/nvidia/*/lib")]
    for folder in folders:
        core, filters = (sorted(folder.glob(f"lib{name}.so*")) for name in ("nppc", "nppif"))
        if core and filters:
            ctypes.CDLL(str(core[-1]), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(filters[-1]))
    return None


def npp_filter(
    library: ctypes.CDLL, image: Any, out: Any, weights: Any, taps: int, properties: Any
) -> Callable[[], None]:
    """A launch of nppiFilterBorder_32f_C1R_Ctx on CuPy arrays; the weights in NPP's own order."""
    height, columns = image.shape
    function = library.nppiFilterBorder_32f_C1R_Ctx
    function.restype = ctypes.c_int
    size, origin = _Pair(columns, height), _Pair(0, 0)
    context = _Context(
        None, 0, properties["multiProcessorCount"], properties["maxThreadsPerMultiProcessor"],
        properties["maxThreadsPerBlock"], properties["sharedMemPerBlock"], properties["major"],
        properties["minor"], 0, 0,
    )  # fmt: skip
    step = ctypes.c_int(columns * 4)
    source, target, kernel = (ctypes.c_void_p(each.data.ptr) for each in (image, out, weights))

    def launch() -> None:
        status = function(
            source, step, size, origin, target, step, size, kernel, _Pair(taps, taps),
            _Pair(taps // 2, taps // 2), ctypes.c_int(REPLICATE), context,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"NPP answered {status}")

    return launch


# --- Triton -----------------------------------------------------------------------------------

TRITON_BLOCKS = ((1, 1024, 4), (4, 256, 4), (8, 128, 4))  # rows, columns, warps

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:

    @triton.jit
    def direct_convolution(
        image, w, out, height, columns, taps: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
    ):
        """Every output from taps × taps loads; the cache holds what neighbours share."""
        rows = tl.program_id(1) * tall + tl.arange(0, tall)
        cols = tl.program_id(0) * wide + tl.arange(0, wide)
        total = tl.zeros((tall, wide), dtype=tl.float32)
        for y in tl.static_range(taps):
            row = tl.minimum(tl.maximum(rows + y - taps // 2, 0), height - 1)
            for x in tl.static_range(taps):
                col = tl.minimum(tl.maximum(cols + x - taps // 2, 0), columns - 1)
                value = tl.load(image + row[:, None] * columns + col[None, :])
                total += tl.load(w + y * taps + x) * value
        mask = (rows < height)[:, None] & (cols < columns)[None, :]
        tl.store(out + rows[:, None] * columns + cols[None, :], total, mask=mask)
