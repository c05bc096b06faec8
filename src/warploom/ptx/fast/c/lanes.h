/* C functions for what goes across the lanes of a warp: groups, shuffles, reductions, matches. */

#pragma once
#include "notes.h"

/* all that a lane names must be here, those that live of them, and name the same lanes */
APART int named(Warp *S, const uint32_t *members, uint32_t m) {
  uint32_t left = m;
  while (left) {
    uint32_t first = members[__builtin_ctz(left)], group = first & S->alive, different = 0;
    if ((group & left) != group || !((group >> __builtin_ctz(left)) & 1)) return 0;
    ACTIVE(l, group) different |= members[l] ^ first;
    if (different) return 0;
    left &= ~group;
  }
  return 1;
}

#define REDUCED(name, start, expression)                                           \
  APART uint32_t name(const uint32_t *x, uint32_t m, int is_signed) {              \
    uint32_t out = x[__builtin_ctz(m)]; m &= m - 1;                                \
    ACTIVE(l, m) { uint32_t v = x[l]; int less = is_signed ? (int32_t)v < (int32_t)out : v < out; \
                   (void)less; out = (expression); }                               \
    return out;                                                                    \
  }
REDUCED(reduced_add, 0, out + v)
REDUCED(reduced_and, 0, out & v)
REDUCED(reduced_or, 0, out | v)
REDUCED(reduced_xor, 0, out ^ v)
REDUCED(reduced_min, 0, less ? v : out)
REDUCED(reduced_max, 0, less || v == out ? out : v)

/* the least or greatest of singles, by their bits as numbers in that order */
APART uint32_t extreme_lane(const uint32_t *x, uint32_t m, int least, int magnitude, int keep_nan) {
  int64_t best = 0; int any = 0;
  ACTIVE(l, m) {
    uint32_t u = magnitude ? x[l] & 0x7FFFFFFFu : x[l];
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) { if (keep_nan) return 0x7FFFFFFFu; continue; }
    int64_t key = (int32_t)u < 0 ? -(int64_t)(u & 0x7FFFFFFFu) - 1 : (int64_t)u;
    if (!any || (least ? key < best : key > best)) best = key;
    any = 1;
  }
  if (!any) return 0x7FFFFFFFu;
  return best < 0 ? (uint32_t)(-best - 1) | 0x80000000u : (uint32_t)best;
}

APART void matched(const uint64_t *x, const uint32_t *members, uint32_t m, int every, uint32_t *o,
                   uint32_t *p) {
  ACTIVE(l, m) {
    uint32_t same = 0, group = m & members[l];
    ACTIVE(k, group) same |= (uint32_t)(x[k] == x[l]) << k;
    p[l] = same == group;
    o[l] = every && same != group ? 0 : same;
  }
}
/* one value for each group of lanes that name each other */
#define EACH_GROUP(members, m, o, value)                                           \
  for (uint32_t left_ = (m), group; left_; left_ &= ~group) {                      \
    group = (m) & members[__builtin_ctz(left_)];                                   \
    uint32_t value_ = (value);                                                     \
    ACTIVE(l, group) o[l] = value_;                                                \
  }

APART int shuffle(Launch *L, int mode, const uint32_t *x, const uint32_t *y, const uint32_t *z,
                  const uint32_t *members, uint32_t m, uint32_t *o, uint32_t *p,
                  const uint32_t *own, uint32_t *none) {
  uint32_t silent = 0, from[LANES];
  EACH {
    int segment = (z[l] >> 8) & 31, clamp = z[l] & 31, n = y[l] & 31;
    int last = (l & segment) | (clamp & ~segment), lane, good;
    if (mode == 0) { lane = l - n; good = lane >= last; }
    else if (mode == 1) { lane = l + n; good = lane <= last; }
    else if (mode == 2) { lane = l ^ n; good = lane <= last; }
    else { lane = (l & segment) | (n & ~segment); good = lane <= last; }
    lane = (good ? lane : l) & 31;
    silent |= (m >> l) & ~((m & members[l]) >> lane) & 1u;
    from[l] = lane;
    o[l] = x[lane];
    p[l] = good;
  }
  if (WATCHED) EACH none[l] = (~((m & members[l]) >> from[l]) & 1u) | (own ? own[from[l]] : 0);
  return WATCHED || !silent || nobody_gave(L);
}
