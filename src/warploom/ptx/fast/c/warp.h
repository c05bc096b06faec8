/* What a warp does beside computing: pack predicates, push groups of lanes that wait; values of one lane. */

#pragma once
#include "launch.h"

/* by bits: of a choice compilers make masked stores, which the next loads wait for */
#define KEEP(place, value) (place) ^= ((place) ^ (value)) & on[l]

#ifdef __AVX2__
typedef float Eight __attribute__((vector_size(32)));
INLINE uint32_t packed(const uint32_t *p) {
  uint32_t out = 0, high[LANES];
  EACH high[l] = p[l] << 31;
  for (int g = 0; g < 4; g++) {
    Eight some; memcpy(&some, high + 8 * g, sizeof some);
    out |= (uint32_t)__builtin_ia32_movmskps256(some) << 8 * g;
  }
  return out;
}
#else
INLINE uint32_t packed(const uint32_t *p) {
  uint32_t out = 0;
  EACH out |= p[l] << l;
  return out;
}
#endif

static void push(Warp *S, uint32_t rank, uint32_t mask) {
  int at = S->pending;
  while (at > 0 && S->rank[at - 1] < rank) at--;  /* the first in running order stands last */
  if (at > 0 && S->rank[at - 1] == rank) { S->mask[at - 1] |= mask; return; }
  for (int k = S->pending; k > at; k--) { S->rank[k] = S->rank[k - 1]; S->mask[k] = S->mask[k - 1]; }
  S->rank[at] = rank;
  S->mask[at] = mask;
  S->pending++;
}

/* -- values of one lane -- */

INLINE int nobody_gave(Launch *L) { L->missing = 1; return 0; }
static double asked(Launch *L, int which, double x) {
  double answer[2] = {0, 0};
  L->ask(which, x, answer);
  if (!answer[1]) L->lost = 1;
  return answer[0];
}

/* by bits: of a choice some compilers make jumps, and then no vectors */
INLINE float clean(float x) {
  uint32_t bits = b32(x), nan = -(uint32_t)(x != x);
  return f32(bits ^ ((bits ^ 0x7FFFFFFFu) & nan));
}
INLINE float flush(float x) { return f32(b32(x) & (b32(x) & 0x7F800000u ? ~0u : 0x80000000u)); }
INLINE float saturated(float x) { return x > 0.0f ? (x > 1.0f ? 1.0f : x) : 0.0f; }
/* of two NaNs the first is kept; a compiler may exchange what it adds */
INLINE double made_nan(double x) { return x != x ? f64(0xFFF8ull << 48) : x; }
INLINE double quiet_or(double a, double x) { return a != a ? f64(b64(a) | 1ull << 51) : x; }
INLINE double first_nan(double a, double b, double x) {
  return quiet_or(a, quiet_or(b, made_nan(x)));
}
/* -0 is less than +0, and a NaN loses */
#define EXTREME(name, T, F, B, join, sign)                                         \
  INLINE T name(T x, T y) {                                                        \
    T zero = F(B(x) join B(y)), one = x sign y ? x : y;                            \
    one = (x == 0) & (y == 0) ? zero : one;                                        \
    return x != x ? y : y != y ? x : one;                                          \
  }
EXTREME(least_f32, float, f32, b32, |, <)
EXTREME(most_f32, float, f32, b32, &, >)
EXTREME(least_f64, double, f64, b64, |, <)
EXTREME(most_f64, double, f64, b64, &, >)

#define CLIPPED(name, T, LOW, HIGH)                                                \
  INLINE T name(int64_t x) { return x < (LOW) ? (LOW) : x > (HIGH) ? (HIGH) : (T)x; }
CLIPPED(clipped_s32, int32_t, INT32_MIN, INT32_MAX)
