/* C functions for wgmma: matrices in shared memory that descriptors describe, and their products. */

#pragma once
#include "matrix.h"

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
/* the codes of a matrix; those of a that lie in registers come from there */
static int codes_of(Launch *L, const uint64_t *d, uint32_t *const *held, const uint16_t *table,
                    int first, int rows, int depth, int size, int turned, int minus, uint32_t *o) {
  if (d && (d[0] >> 49 & 7)) return 0;
  for (int n = 0; n < rows * depth; n++) {
    o[n] = 0;
    if (d) {
      uint64_t at = described(d[0], first + n / depth, n % depth, size, turned);
      if (!in_shared(L, at, size)) return 0;
      for (int b = 0; b < size; b++) if (!L->marks[at + b] && L->check) return 0;
      memcpy(&o[n], L->shared + at, size);
    } else o[n] = element(held, table[n], 8 * size);
    if (minus) o[n] ^= 1u << (8 * size - 1);
  }
  return 1;
}
/* the warps of a warpgroup made the same products, one after the other */
static int together(Launch *L) {
  for (uint64_t w = 0; w < L->warps / 4 * 4; w++)
    if (L->warp[w].products != L->warp[w / 4 * 4].products) return 0;
  return 1;
}
typedef struct {  /* of an instruction: its line, its shape, types and small numbers */
  int line, columns, depth, size, transpose_a, transpose_b, minus_a, minus_b;
  int kind_a, kind_b, group, below, kept, half;  /* floats; kind_a is negative for integers */
  int sign_a, sign_b, saturates;
} Product;
APART int group_product(Launch *L, Warp *S, uint32_t **a, uint32_t **d, const uint64_t *at_a,
                        const uint64_t *at_b, const uint32_t *adds, uint32_t m, const uint16_t *ta,
                        const uint16_t *td, Product p) {
  static __thread uint32_t codes[(16 + 256) * 32];
  static __thread Term terms[(16 + 256) * 32];
  static __thread float sums[16 * 256];
  int left = 16 * p.depth, right = p.columns * p.depth;
  if (m != ALL || S->number / 4 >= L->threads / 128) return 0;
  for (int l = 1; l < 32; l++)
    if (adds[l] != adds[0] || at_b[l] != at_b[0] || (at_a && at_a[l] != at_a[0])) return 0;
  if (!codes_of(L, at_a, a, ta, 16 * (S->number % 4), 16, p.depth, p.size, p.transpose_a, p.minus_a, codes)
      || !codes_of(L, at_b, 0, 0, 0, p.columns, p.depth, p.size, p.transpose_b, p.minus_b, codes + left))
    return 0;
  S->products = S->products * 1000003 + p.line;
  if (p.kind_a < 0) {
    for (int n = 0; n < 16 * p.columns; n++) {
      uint32_t *word = &d[td[n] & 255][td[n] >> 8];
      int64_t total = adds[0] ? (int32_t)*word : 0;
      for (int k = 0; k < p.depth; k++)
        total += small(codes[n / p.columns * p.depth + k], 8, p.sign_a)
               * small(codes[left + n % p.columns * p.depth + k], 8, p.sign_b);
      *word = p.saturates ? (uint32_t)clipped_s32(total) : (uint32_t)total;
    }
    return 1;
  }
  for (int n = 0; n < left + right; n++) terms[n] = term_of(codes[n], n < left ? p.kind_a : p.kind_b, 0);
  if (adds[0]) sums_of(d, td, 16 * p.columns, p.half, sums); else memset(sums, 0, sizeof sums);
  products(terms, terms + left, sums, 16, p.columns, p.depth, p.group, p.below, p.kept, p.half);
  put_sums(d, td, 16 * p.columns, p.half, sums);
  return 1;
}
