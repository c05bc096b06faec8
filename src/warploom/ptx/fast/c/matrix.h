/* C functions for matrices of a warp: their rows in shared memory, and products of them. */

#pragma once
#include "memory.h"
#include "floats.h"
#include "products.h"

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

/* -- registers: a table says of each element which lane has it, and which of its values it is -- */

INLINE uint32_t element(uint32_t *const *x, int place, int bits) {
  int per = 32 / bits, value = place & 255;
  uint32_t word = x[value / per][place >> 8];
  return bits == 32 ? word : word >> (bits * (value % per)) & ((1u << bits) - 1);
}
static void terms_of(uint32_t *const *x, const uint16_t *table, int count, int kind, int as_half,
                     Term *o) {
  for (int n = 0; n < count; n++) o[n] = term_of(element(x, table[n], bits_of[kind]), kind, as_half);
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
#define MOST_TERMS (32 * 32)
APART int mma(uint32_t **a, uint32_t **b, uint32_t **c, uint32_t **d, uint32_t m, const uint16_t *ta,
              const uint16_t *tb, const uint16_t *tc, int rows, int columns, int depth, int kind_a,
              int kind_b, int group, int below, int kept, int half) {
  if (m != ALL) return 0;
  Term x[MOST_TERMS], y[MOST_TERMS];
  float z[256];
  terms_of(a, ta, rows * depth, kind_a, 0, x);
  terms_of(b, tb, columns * depth, kind_b, 0, y);
  sums_of(c, tc, rows * columns, half, z);
  products(x, y, z, rows, columns, depth, group, below, kept, half);
  put_sums(d, tc, rows * columns, half, z);
  return 1;
}
/* four products of 8 x 8 x 4: singles by a chain of fma, halves by two sums of pairs */
APART int mma_quads(uint32_t **a, uint32_t **b, uint32_t **c, uint32_t **d, uint32_t m,
                    const uint16_t *ta, const uint16_t *tb, const uint16_t *tc, int half) {
  if (m != ALL) return 0;
  float z[256];
  sums_of(c, tc, 256, half, z);
  for (int n = 0; n < 256; n++) {
    const uint16_t *at = ta + n / 8 * 4, *bt = tb + (n / 64 * 8 + n % 8) * 4;
    float x[4], y[4], total = 0;
    for (int k = 0; k < 4; k++) { x[k] = h32(element(a, at[k], 16)); y[k] = h32(element(b, bt[k], 16)); }
    if (!half) {
      for (int k = 0; k < 4; k++) total = __builtin_fmaf(x[k], y[k], total);
      z[n] = clean(z[n] + total);
      continue;
    }
    z[n] += __builtin_fmaf(x[1], y[1], x[0] * y[0]);
    z[n] += __builtin_fmaf(x[3], y[3], x[2] * y[2]);
  }
  put_sums(d, tc, 256, half, z);
  return 1;
}
/* numbers of 8 bits as halves: of each four the first two of all, then the others; c comes last */
static void in_pairs(Term *x, int rows, int depth) {
  Term line[64];
  for (int i = 0; i < rows; i++) {
    for (int k = 0; k < depth; k++)
      line[(k & 2 ? depth / 2 : 0) + k / 4 * 2 + (k & 1)] = x[i * depth + k];
    memcpy(x + i * depth, line, depth * sizeof *line);
  }
}
APART int mma_small(uint32_t **a, uint32_t **b, uint32_t **c, uint32_t **d, uint32_t m,
                    const uint16_t *ta, const uint16_t *tb, const uint16_t *tc, int rows, int columns,
                    int depth, int kind_a, int kind_b, int half) {
  if (m != ALL) return 0;
  Term x[MOST_TERMS], y[MOST_TERMS];
  float z[256] = {0}, before[256];
  terms_of(a, ta, rows * depth, kind_a, 1, x);
  terms_of(b, tb, columns * depth, kind_b, 1, y);
  in_pairs(x, rows, depth);
  in_pairs(y, columns, depth);
  sums_of(c, tc, rows * columns, half, before);
  products(x, y, z, rows, columns, depth, depth / 2, 25, 0, half);
  for (int n = 0; n < rows * columns; n++) {
    float sum = before[n] + z[n];
    z[n] = sum == sum ? sum : f32(0x7FFFFFFFu);
  }
  put_sums(d, tc, rows * columns, half, z);
  return 1;
}
/* doubles: fused multiply-adds in ascending k; of NaNs the first of b, c, a goes on */
APART int mma_double(uint64_t **a, uint64_t **b, uint64_t **c, uint64_t **d, uint32_t m,
                     const uint16_t *ta, const uint16_t *tb, const uint16_t *tc, int rows,
                     int columns, int depth) {
  if (m != ALL) return 0;
  uint64_t out[256];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      uint64_t total = c[tc[i * columns + j] & 255][tc[i * columns + j] >> 8];
      for (int k = 0; k < depth; k++) {
        int at = ta[i * depth + k], bt = tb[j * depth + k];
        double x = f64(a[at & 255][at >> 8]), y = f64(b[bt & 255][bt >> 8]), z = f64(total);
        double made = __builtin_fma(x, y, z), nan = y != y ? y : z != z ? z : x;
        total = made == made ? b64(made) : nan != nan ? b64(nan) | 1ull << 51 : 0xFFF8ull << 48;
      }
      out[i * columns + j] = total;
    }
  for (int n = 0; n < rows * columns; n++) d[tc[n] & 255][tc[n] >> 8] = out[n];
  return 1;
}

/* integers of 4 or 8 bits: exact, then wrapped or cut off */
INLINE int64_t small(uint32_t code, int bits, int is_signed) {
  int64_t v = code, top = 1 << (bits - 1);
  return is_signed ? (v ^ top) - top : v;
}
APART int mma_whole(uint32_t **a, uint32_t **b, uint32_t **c, uint32_t **d, uint32_t m,
                    const uint16_t *ta, const uint16_t *tb, const uint16_t *tc, int rows, int columns,
                    int depth, int bits, int sign_a, int sign_b, int saturates) {
  if (m != ALL) return 0;
  uint32_t out[256];
  for (int n = 0; n < rows * columns; n++) {
    int at = tc[n], i = n / columns, j = n % columns;
    int64_t total = (int32_t)c[at & 255][at >> 8];
    for (int k = 0; k < depth; k++)
      total += small(element(a, ta[i * depth + k], bits), bits, sign_a)
             * small(element(b, tb[j * depth + k], bits), bits, sign_b);
    out[n] = saturates ? (uint32_t)clipped_s32(total) : (uint32_t)total;
  }
  for (int n = 0; n < rows * columns; n++) d[tc[n] & 255][tc[n] >> 8] = out[n];
  return 1;
}

/* wmma: all lanes give one address */
APART int one_address(const uint64_t *a, uint32_t m) {
  uint64_t different = 0;
  EACH different |= a[l] ^ a[0];
  return m == ALL && !different;
}
