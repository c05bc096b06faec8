/* Products of many warps for the evaluator: rows of a times rows of b, added to c. */

#pragma once
#include "products.h"

typedef struct { int rows, columns, depth, kind_a, kind_b, group, below, kept, half; } Fused;
enum { MOST_LEFT = 64 * DEPTH_MOST, MOST_RIGHT = 256 * DEPTH_MOST };

int fused(const uint32_t *a, const uint32_t *b, float *c, uint64_t count, const Fused *p) {
  static __thread Term left[MOST_LEFT], right[MOST_RIGHT];
  int lefts = p->rows * p->depth, rights = p->columns * p->depth;
  if (lefts > MOST_LEFT || rights > MOST_RIGHT || p->depth > DEPTH_MOST) return 0;
  for (uint64_t w = 0; w < count; w++) {
    const uint32_t *x = a + w * lefts, *y = b + w * rights;
    for (int n = 0; n < lefts; n++) left[n] = term_of(x[n], p->kind_a, 0);
    int same = w && !memcmp(y, y - rights, rights * sizeof *y);  /* warps of a group share it */
    for (int n = 0; n < rights && !same; n++) right[n] = term_of(y[n], p->kind_b, 0);
    products(left, right, c + w * p->rows * p->columns, p->rows, p->columns, p->depth, p->group,
             p->below, p->kept, p->half);
  }
  return 1;
}
