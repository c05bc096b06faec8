# ruff: noqa: E501 - macros end where their lines end
"""C functions for matrices of a warp: their rows in shared memory, and products of them.

The arithmetic is a port of `machine/fused.py`, which says what a tensor core does and why doubles
hold it exactly.
"""

from __future__ import annotations

MATRICES = r"""
/* row r of matrix j is where lane 8j + r says; a lane has two halves of a row, or of a column */
APART int row_parts(Launch *L, const uint64_t *a, uint32_t m, int count, int writes) {
  if (m != ALL) return 0;
  for (int k = 0; k < 8 * count; k++) {
    if ((a[k] & 15) || !in_shared(L, a[k], 16)) return 0;
    if (writes) { memset(L->marks + a[k], 1, 16); continue; }
    for (int n = 0; n < 16; n++) if (!L->marks[a[k] + n] && L->check) return 0;
  }
  return 1;
}
APART void matrix_load(Launch *L, const uint64_t *a, int matrix, int turned, uint32_t *o) {
  EACH {
    int g = l >> 2, t = l & 3;
    if (!turned) { memcpy(&o[l], L->shared + a[8 * matrix + g] + 4 * t, 4); continue; }
    uint16_t low, high;
    memcpy(&low, L->shared + a[8 * matrix + 2 * t] + 2 * g, 2);
    memcpy(&high, L->shared + a[8 * matrix + 2 * t + 1] + 2 * g, 2);
    o[l] = low | (uint32_t)high << 16;
  }
}
APART void matrix_store(Launch *L, const uint64_t *a, int matrix, int turned, const uint32_t *x) {
  EACH {
    int g = l >> 2, t = l & 3;
    if (!turned) { memcpy(L->shared + a[8 * matrix + g] + 4 * t, &x[l], 4); continue; }
    uint16_t low = x[l], high = x[l] >> 16;
    memcpy(L->shared + a[8 * matrix + 2 * t] + 2 * g, &low, 2);
    memcpy(L->shared + a[8 * matrix + 2 * t + 1] + 2 * g, &high, 2);
  }
}
APART void matrix_turned(const uint32_t *x, uint32_t *o) {
  uint32_t out[LANES];
  EACH {
    int g = l >> 2, t = l & 3, odd = 16 * (g & 1);
    uint32_t low = x[8 * t + (g >> 1)] >> odd, high = x[8 * t + 4 + (g >> 1)] >> odd;
    out[l] = (low & 0xFFFFu) | (high & 0xFFFFu) << 16;
  }
  memcpy(o, out, sizeof out);
}

/* -- products -- */

#define DEPTH_MOST 64
#define NOWHERE (-4000)
typedef struct { double value; int exponent; } Term;

INLINE Term term(double value, int lowest) {
  int e = NOWHERE;
  if (value != 0) {
    __builtin_frexp(value, &e);
    e = (__builtin_isfinite(value) ? e : 0) - 1;
    if (e < lowest) e = lowest;
  }
  return (Term){value, e};
}
INLINE double scaled(int power) { return f64((uint64_t)(power + 1023) << 52); }

/* c + the sum of a b over one group, cut off `below` bits under the largest exponent */
static double group_sum(const Term *a, const Term *b, int count, double c, int lowest, int below, int *wild) {
  double product[DEPTH_MOST], special = c;
  int top = NOWHERE, finite = __builtin_isfinite(c);
  for (int k = 0; k < count; k++) {
    double p = a[k].value * b[k].value;
    special += p;
    if (!__builtin_isfinite(p)) { finite = 0; p = 0; }
    int e = p == 0 ? NOWHERE : a[k].exponent + b[k].exponent;
    if (e > top) top = e;
    product[k] = p;
  }
  *wild = !finite;
  if (!finite) return special;
  int own = term(c, lowest).exponent;
  if (own > top) top = own;
  int shift = below - top;
  shift = shift < -1000 ? -1000 : shift > 1000 ? 1000 : shift;
  double scale = scaled(shift), total = __builtin_trunc(c * scale);
  for (int k = 0; k < count; k++) total += __builtin_trunc(product[k] * scale);
  return __builtin_ldexp(total, -shift);
}
INLINE float to_single(double x, int wild, int kept) {
  if (wild) return x != x ? f32(0x7FFFFFFFu) : (float)x;
  float r = narrow(x, RZ);
  if (__builtin_fabs(x) >= 0x1p128) r = __builtin_copysignf(__builtin_inff(), (float)x);
  if (kept) r = f32(b32(r) & ~((1u << (23 - kept)) - 1));
  return r + 0.0f;
}
INLINE uint16_t to_half(double x, int wild) {
  uint16_t h = wild ? h16((float)x) : h16d(x);
  return h == 0x8000u ? 0 : h;
}
/* rows of a and b have k terms; c and d are singles, or halves held as singles */
static void products(const Term *a, const Term *b, float *c, int rows, int columns, int depth,
                     int group, int below, int kept, int half) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      float total = c[i * columns + j];
      for (int k = 0; k < depth; k += group) {
        int wild, count = group < depth - k ? group : depth - k;
        double sum = group_sum(a + i * depth + k, b + j * depth + k, count, total,
                               half ? -14 : -126, below, &wild);
        total = half ? h32(to_half(sum, wild)) : to_single(sum, wild, kept);
      }
      c[i * columns + j] = total;
    }
}

/* -- registers: a table says of each element which lane has it, and which of its values it is -- */

enum { OF_F16, OF_BF16, OF_TF32 };
INLINE Term term_of(uint32_t code, int kind) {
  return kind == OF_F16 ? term(h32(code), -14) : kind == OF_BF16 ? term(bf32(code), -126)
       : term(f32(code & 0xFFFFE000u), -126);
}
static void terms_of(uint32_t *const *x, const uint16_t *table, int count, int kind, Term *o) {
  int per = kind == OF_TF32 ? 1 : 2;
  for (int n = 0; n < count; n++) {
    int value = table[n] & 255;
    uint32_t word = x[value / per][table[n] >> 8];
    o[n] = term_of(per == 2 ? word >> (16 * (value & 1)) & 0xFFFFu : word, kind);
  }
}
static void sums_of(uint32_t *const *x, const uint16_t *table, int count, int half, float *o) {
  for (int n = 0; n < count; n++) {
    int value = table[n] & 255, lane = table[n] >> 8;
    o[n] = half ? h32(x[value / 2][lane] >> (16 * (value & 1)) & 0xFFFFu) : f32(x[value][lane]);
  }
}
static void put_sums(uint32_t **x, const uint16_t *table, int count, int half, const float *given) {
  for (int n = 0; n < count; n++) {
    int value = table[n] & 255, lane = table[n] >> 8, up = 16 * (value & 1);
    if (!half) { x[value][lane] = b32(given[n]); continue; }
    uint32_t *word = &x[value / 2][lane];
    *word = (*word & ~(0xFFFFu << up)) | (uint32_t)h16(given[n]) << up;
  }
}
APART int mma(uint32_t **a, uint32_t **b, uint32_t **c, uint32_t **d, uint32_t m, const uint16_t *ta,
              const uint16_t *tb, const uint16_t *tc, int rows, int depth, int kind, int group,
              int below, int kept, int half) {
  if (m != ALL) return 0;
  Term x[16 * 16], y[8 * 16];
  float z[16 * 8];
  terms_of(a, ta, rows * depth, kind, x);
  terms_of(b, tb, 8 * depth, kind, y);
  sums_of(c, tc, rows * 8, half, z);
  products(x, y, z, rows, 8, depth, group, below, kept, half);
  put_sums(d, tc, rows * 8, half, z);
  return 1;
}

/* integers of 4 or 8 bits: exact, then wrapped or cut off */
INLINE int64_t small(uint32_t *const *x, int place, int bits, int is_signed) {
  int per = 32 / bits, value = place & 255;
  uint32_t word = x[value / per][place >> 8] >> (bits * (value % per)), top = 1u << (bits - 1);
  int64_t v = word & (2 * top - 1);
  return is_signed ? (v ^ top) - top : v;
}
APART int mma_whole(uint32_t **a, uint32_t **b, uint32_t **c, uint32_t **d, uint32_t m,
                    const uint16_t *ta, const uint16_t *tb, const uint16_t *tc, int rows, int depth,
                    int bits, int sign_a, int sign_b, int saturates) {
  if (m != ALL) return 0;
  uint32_t out[16 * 8];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < 8; j++) {
      int at = tc[8 * i + j];
      int64_t total = (int32_t)c[at & 255][at >> 8];
      for (int k = 0; k < depth; k++)
        total += small(a, ta[i * depth + k], bits, sign_a) * small(b, tb[j * depth + k], bits, sign_b);
      out[8 * i + j] = saturates ? (uint32_t)clipped_s32(total) : (uint32_t)total;
    }
  for (int n = 0; n < 8 * rows; n++) d[tc[n] & 255][tc[n] >> 8] = out[n];
  return 1;
}

/* -- products of four warps: matrices in shared memory, which a descriptor describes -- */

/* the element (row, k): where the matrix starts, how far its parts are, how its rows are swizzled */
static uint64_t described(uint64_t d, int row, int k, int size, int turned) {
  uint64_t leading = (d >> 16 & 0x3FFF) << 4, stride = (d >> 32 & 0x3FFF) << 4;
  uint64_t mode = d >> 62 & 3, width = mode ? 256 >> mode : 16;
  uint64_t inner = (turned ? row : k) * size, line = turned ? k : row, at;
  if (mode && turned) at = inner / width * leading + line / 8 * stride + line % 8 * width + inner % width;
  else if (mode) at = line / 8 * stride + line % 8 * width + inner;
  else at = (turned ? inner / 16 * stride + line / 8 * leading : line / 8 * stride + inner / 16 * leading)
       + line % 8 * 16 + inner % 16;
  at += (d & 0x3FFF) << 4;
  return at ^ ((at >> 7 & (width / 16 - 1)) << 4);
}
static int described_terms(Launch *L, uint64_t d, int first, int rows, int depth, int kind, int turned,
                           int minus, Term *o) {
  int size = kind == OF_TF32 ? 4 : 2;
  if (d >> 49 & 7) return 0;
  for (int n = 0; n < rows * depth; n++) {
    uint64_t at = described(d, first + n / depth, n % depth, size, turned);
    if (!in_shared(L, at, size)) return 0;
    for (int b = 0; b < size; b++) if (!L->marks[at + b] && L->check) return 0;
    uint32_t code = 0;
    memcpy(&code, L->shared + at, size);
    o[n] = term_of(minus ? code ^ 1u << (8 * size - 1) : code, kind);
  }
  return 1;
}
APART int group_product(Launch *L, Warp *S, uint32_t **a, uint32_t **d, const uint64_t *at_a,
                        const uint64_t *at_b, const uint32_t *adds, uint32_t m, const uint16_t *ta,
                        const uint16_t *td, int columns, int depth, int kind, int turn_a, int turn_b,
                        int minus_a, int minus_b, int group, int below, int kept, int half) {
  Term x[16 * 16], y[256 * 16];
  float z[16 * 256];
  if (m != ALL) return 0;
  if (!at_a) {
    terms_of(a, ta, 16 * depth, kind, x);
    if (minus_a) for (int n = 0; n < 16 * depth; n++) x[n].value = -x[n].value;
  } else if (!described_terms(L, at_a[0], 16 * (S->number % 4), 16, depth, kind, turn_a, minus_a, x))
    return 0;
  if (!described_terms(L, at_b[0], 0, columns, depth, kind, turn_b, minus_b, y)) return 0;
  if (adds[0]) sums_of(d, td, 16 * columns, half, z); else memset(z, 0, sizeof z);
  products(x, y, z, 16, columns, depth, group, below, kept, half);
  put_sums(d, td, 16 * columns, half, z);
  return 1;
}
"""
