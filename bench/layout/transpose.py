"""Transpositions of whole matrices through shared memory: a space of settings, each with a layout
that the solver finds for it. `layout_device.py` measures them; the default is `DEFAULTS`.

A tile is made of words. A word is `group` rows of one column for elements smaller than a word, so
that global memory is read and written by 16 bytes. All loads of a thread come before its stores:
what is in flight decides the speed. Blocks go through the matrix in bands, so that few pages are
open at a time on both sides.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from warploom.emit.index_function import index_function
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.solver.front import front_of
from warploom.layout.solver.task import Task
from warploom.runtime.compile import compile_cuda

LANES = 32
CHUNK = 16  # bytes of a global access
MOST_SHARED = 48 << 10
WHOLE = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One kernel: elements of `size` bytes, tiles of rows × columns, threads of a block; `beside`
    are the lanes that load words of one column; `vector`: a lane's 16 bytes are stored as one;
    `streaming`: what is stored is not kept in the cache. Bands are tiles: `order` at launch."""

    size: int
    rows: int
    columns: int
    threads: int
    beside: int
    vector: bool = False
    streaming: bool = False

    @property
    def word(self) -> int:
        return max(4, self.size)

    @property
    def group(self) -> int:
        """Rows in a word."""
        return self.word // self.size

    @property
    def wide(self) -> int:
        """Elements of a global load."""
        return CHUNK // self.size

    @property
    def back(self) -> int:
        """Words of a global store."""
        return CHUNK // self.word

    @property
    def tall(self) -> int:
        """Rows of words."""
        return self.rows // self.group

    @property
    def across(self) -> int:
        """Loads beside each other in a row of the tile."""
        return self.columns // self.wide

    @property
    def down(self) -> int:
        """Stores that make up a column of the tile."""
        return self.tall // self.back

    @property
    def iterations(self) -> tuple[float, float]:
        """Loads, in groups, and stores of a thread, each of 16 bytes."""
        return self.tall * self.across / self.threads, self.columns * self.down / self.threads

    @property
    def fits(self) -> bool:
        whole = all(iteration >= 1 and iteration == int(iteration) for iteration in self.iterations)
        apart = self.across >= 1 and self.down >= self.beside and LANES % self.beside == 0
        held = self.iterations[0] * self.group
        return (
            whole and apart and self.columns % (LANES // self.beside) == 0 and held <= 16
            and self.tall * self.columns * self.word <= MOST_SHARED
            and not (self.vector and self.group > 1)
        )  # fmt: skip

    @property
    def placed(self) -> Setting:
        """What decides where words lie in shared memory."""
        return Setting(self.size, self.rows, self.columns, LANES, self.beside, self.vector)

    @property
    def name(self) -> str:
        return " ".join(f"{key}={int(value)}" for key, value in asdict(self).items())


Order = tuple[int, int, int]  # tiles of a band down and across (0: all), shifted along the diagonal
ORDERS: tuple[Order, ...] = ((1, 0, 0), (0, 1, 0), (1, 0, 1), (8, 8, 0), (16, 16, 0), (32, 32, 0),
                             (4, 0, 0), (0, 2, 0), (0, 4, 0))  # fmt: skip

TILES = {
    8: ((32, 32), (64, 32), (32, 64), (64, 64), (128, 16), (128, 32), (64, 16)),
    4: ((64, 64), (32, 64), (64, 32), (128, 32), (32, 128), (128, 64), (64, 128)),
    2: ((64, 64), (128, 64), (64, 128), (128, 128), (128, 32), (32, 128)),
    1: ((128, 128), (64, 128), (128, 64), (256, 128), (128, 256), (64, 64)),
}


def settings(size: int) -> list[Setting]:
    """The space that is tried for elements of so many bytes."""
    found = [
        Setting(size, rows, columns, threads, beside, vector, streaming)
        for (rows, columns), threads, beside, vector, streaming in product(
            TILES[size], (128, 256, 512), (4, 8, 16), (False, True), (False, True)
        )
    ]
    return [each for each in found if each.fits]


# What is taken untried, settled from the record of the whole space on an H200.
_DEFAULTS = {
    8: Setting(8, 64, 32, 512, 16, vector=False, streaming=True),
    4: Setting(4, 64, 64, 512, 16, vector=True, streaming=True),
    2: Setting(2, 128, 128, 512, 4, vector=False, streaming=True),
    1: Setting(1, 256, 128, 256, 4, vector=False, streaming=True),
}
COLUMNS_FIRST: Order = (0, 1, 0)  # neighbours write beside each other: the best order everywhere


def default(size: int) -> tuple[Setting, Order]:
    """The rule: a setting for elements of so many bytes, and an order."""
    return _DEFAULTS[size], COLUMNS_FIRST


@dataclass(frozen=True, slots=True)
class Transposition:
    setting: Setting
    text: str
    wavefronts: str

    def grid(self, height: int, width: int) -> int:
        return (height // self.setting.rows) * (width // self.setting.columns)

    def arguments(self, height: int, width: int, order: Order) -> tuple[int, ...]:
        """What the kernel takes after its arrays."""
        tiles = height // self.setting.rows, width // self.setting.columns
        bands = [min(each or tile, tile) for each, tile in zip(order, tiles, strict=False)]
        return height, width, *bands, order[2]


def _loads(s: Setting, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row of words and column of the k-th load, as in the text below."""
    return k // s.across, k % s.across * s.wide


def _stores(s: Setting, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row of words and column of the k-th store: `beside` lanes down, the others across."""
    beyond = LANES // s.beside
    q = k % s.beside + s.beside * (k // LANES % (s.down // s.beside))
    c = k // s.beside % beyond + beyond * (k // (LANES * (s.down // s.beside)))
    return q * s.back, c


@lru_cache(maxsize=256)
def _placed(s: Setting) -> tuple[str, int, str]:
    """The solver's layout for the accesses of a setting: function, words that it takes, score."""
    p, c = _loads(s, np.arange(s.tall * s.across).reshape(-1, LANES))
    q, d = _stores(s, np.arange(s.columns * s.down).reshape(-1, LANES))
    wide, back = np.arange(s.wide), np.arange(s.back)
    stored = (p * s.columns + c)[:, :, None] + wide
    if not s.vector:
        stored = stored.transpose(0, 2, 1).reshape(-1, LANES, 1)
    loaded = ((q[:, None] + back[:, None]) * s.columns + d[:, None]).reshape(-1, LANES, 1)
    accesses = (Access("store", stored, "st"), Access("load", loaded, "ld"))
    task = Task(Problem("transposition", (s.tall, s.columns), s.word, accesses))
    best = front_of(task, "mixed").best
    assert best is not None
    slots = int(task.addresses(best.map).max()) + 1
    return index_function(task.layout(best), "cuda", "place"), slots, str(best.score)


def transposition(setting: Setting) -> Transposition:
    """The kernel of a setting."""
    s = setting
    place, slots, score = _placed(s.placed)
    first, second = (int(iteration) for iteration in s.iterations)
    if s.vector:
        put = f"*(uint4*)&memory[place(p, j * {s.wide})] = v[n][0];"
    else:
        put = (
            f"#pragma unroll\n    for (int c = 0; c < {s.wide}; ++c)\n"
            f"      memory[place(p, j * {s.wide} + c)] = {_GATHERED[s.group]};"
        )
    taken = [f"memory[place(q * {s.back} + {i}, c)]" for i in range(s.back)]
    text = _TEXT.format(
        element=WHOLE[s.size], word=WHOLE[s.word], group=s.group, wide=s.wide, back=s.back,
        rows=s.rows, columns=s.columns, threads=s.threads, slots=slots, across=s.across,
        down=s.down, beside=s.beside, beyond=LANES // s.beside, folds=s.down // s.beside,
        first=first, second=second, put=put, cache=".cs" if s.streaming else "",
        kind="u64" if s.word == 8 else "u32", parts=s.back, letter="l" if s.word == 8 else "r",
        taken=", ".join(f'"{"l" if s.word == 8 else "r"}"({each})' for each in taken),
        listed=", ".join(f"%{n + 1}" for n in range(s.back)),
    )  # fmt: skip
    return Transposition(setting, place + text, score)


def built(many: list[Setting], arch: str) -> list[tuple[Transposition, bytes]]:
    """Run in processes of their own: the solver's layout, and machine code."""
    made = [transposition(each) for each in many]
    return [(each, compile_cuda(each.text, arch, kind="cubin").code) for each in made]


# Word c of a column, from `group` rows of 16 bytes, v[n][row].
_GATHERED = {
    1: "((const W*)&v[n][0])[c]",
    2: "__byte_perm(((const unsigned*)&v[n][0])[c / 2], ((const unsigned*)&v[n][1])[c / 2], "
       "c % 2 ? 0x7632 : 0x5410)",
    4: "__byte_perm(\n"
       "        __byte_perm(((const unsigned*)&v[n][0])[c / 4], ((const unsigned*)&v[n][1])[c / 4],"
       " c % 4 | (c % 4 + 4) << 4),\n"
       "        __byte_perm(((const unsigned*)&v[n][2])[c / 4], ((const unsigned*)&v[n][3])[c / 4],"
       " c % 4 | (c % 4 + 4) << 4), 0x5410)",
}  # fmt: skip
# Fixed numbers of iterations, so that all loads are there before the first is waited for; the
# stores are written as PTX, since compilers take vectors that went through memory apart.
_TEXT = """
typedef {word} W;
extern "C" __global__ void __launch_bounds__({threads})
transpose(const {element}* __restrict__ x, {element}* __restrict__ y, const int height,
          const int width, const int band_down, const int band_across, const int shifted) {{
  __shared__ __align__(16) W memory[{slots}];
  const int inside = blockIdx.x % (band_down * band_across);
  const int band = blockIdx.x / (band_down * band_across);
  const int bands = width / {columns} / band_across;
  const int down = band / bands * band_down + inside % band_down;
  int across = band % bands * band_across + inside / band_down;
  if (shifted) across = (across + down) % (width / {columns});
  const size_t row0 = (size_t)down * {rows}, column0 = (size_t)across * {columns};
  uint4 v[{first}][{group}];
  #pragma unroll
  for (int n = 0; n < {first}; ++n) {{
    const int k = n * {threads} + threadIdx.x, p = k / {across}, j = k % {across};
    #pragma unroll
    for (int g = 0; g < {group}; ++g)
      v[n][g] = __ldcs((const uint4*)&x[(row0 + p * {group} + g) * width + column0 + j * {wide}]);
  }}
  #pragma unroll
  for (int n = 0; n < {first}; ++n) {{
    const int k = n * {threads} + threadIdx.x, p = k / {across}, j = k % {across};
    {put}
  }}
  __syncthreads();
  #pragma unroll
  for (int n = 0; n < {second}; ++n) {{
    const int k = n * {threads} + threadIdx.x;
    const int q = k % {beside} + {beside} * (k / 32 % {folds});
    const int c = k / {beside} % {beyond} + {beyond} * (k / (32 * {folds}));
    {element}* const to = &y[(column0 + c) * height + row0 + q * {back} * {group}];
    asm volatile("st.global{cache}.v{parts}.{kind} [%0], {{{listed}}};" :: "l"(to), {taken}
                 : "memory");
  }}
}}
"""
