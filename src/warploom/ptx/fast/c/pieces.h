/* Pieces of a kernel that only compute, for the evaluator: its registers go in and out of a warp. */

#pragma once
#include "warp.h"
#include "floats.h"

typedef struct {  /* the warps of a batch: who is active, the first thread, and how many there are */
  uint64_t count;
  const uint32_t *active;
  const uint64_t *first;
  const uint32_t *lanes;
} Rows;
typedef struct { void *data; uint64_t uniform; } Value;  /* an element for each thread, or for all */

#define MOVED(bits, T, P)                                                                        \
  INLINE void take_##bits(P *o, const Value *v, uint64_t first, uint32_t lanes) {                \
    const T *x = (const T *)v->data;                                                             \
    if (v->uniform) { EACH o[l] = *x; return; }                                                  \
    x += first;                                                                                  \
    if (lanes == LANES) { EACH o[l] = x[l]; return; }                                            \
    for (uint32_t l = 0; l < lanes; l++) o[l] = x[l];                                            \
  }                                                                                              \
  INLINE void give_##bits(const P *x, const Value *v, uint64_t first, uint32_t m) {              \
    T *o = (T *)v->data + first;                                                                 \
    if (m == ALL) { EACH o[l] = (T)x[l]; return; }                                               \
    for (; m; m &= m - 1) o[__builtin_ctz(m)] = (T)x[__builtin_ctz(m)];                          \
  }
MOVED(1, uint8_t, uint32_t)
MOVED(8, uint8_t, uint8_t)
MOVED(16, uint16_t, uint16_t)
MOVED(32, uint32_t, uint32_t)
MOVED(64, uint64_t, uint64_t)

#define WARPS(w) for (uint64_t w = 0; w < rows->count; w++) if (rows->active[w])
