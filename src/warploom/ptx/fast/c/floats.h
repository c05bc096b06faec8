/* C functions for what a C compiler has no operator for: halves, roundings, functions of numbers.

   Each is a port of the evaluator's (`machine/rounding.py`), which says why it is right. Functions
   such as 2^x are the C library's, where its value and NumPy's must round to one single; where a tie
   is so close that they may not, NumPy is asked. */

#pragma once
#include "warp.h"

INLINE uint16_t flush_h(uint32_t h) { return h & 0x7C00u ? h : h & 0x8000u; }
INLINE uint16_t saturated_h(uint32_t h) {
  float x = h32(h); return x > 0.0f ? (x > 1.0f ? 0x3C00u : h) : 0u;
}
INLINE double odd_sum(double a, double b) {
  double s = a + b, t = s - a, error = (a - (s - t)) + (b - t);
  uint64_t u = b64(s);
  int fix = (error != 0) & __builtin_isfinite(s) & __builtin_isfinite(error) & !(u & 1);
  return fix ? f64(u + ((error > 0) == (s > 0) ? 1 : -1)) : s;
}
INLINE float signed_zero(float s, double a, double b, int mode) {
  return mode == RM && s == 0 && a == -b && (__builtin_signbit(a) || __builtin_signbit(b)) ? -0.0f : s;
}
INLINE float sum_to(float a, float b, int mode) {
  return signed_zero(narrow(odd_sum(a, b), mode), a, b, mode);
}
INLINE float fma_to(float a, float b, float c, int mode) {
  double p = (double)a * b;
  return signed_zero(narrow(odd_sum(p, c), mode), p, c, mode);
}
INLINE float directed(float s, double error, int mode) {
  int wrong = mode == RZ ? (error != 0) & ((error > 0) != (s > 0)) & (s != 0) : mode == RM ? error < 0 : error > 0;
  if (!wrong || !__builtin_isfinite(s)) return s;
  return __builtin_nextafterf(s, mode == RZ ? 0.0f : mode == RM ? -__builtin_inff() : __builtin_inff());
}
INLINE float divided(float a, float b, int mode) {
  float q = a / b;
  double error = (double)a - (double)q * (double)b;
  q = directed(q, b < 0 ? -error : error, mode);
  int inwards = __builtin_isinf(q) && (mode == RZ || (mode == RM ? q > 0 : q < 0));
  if (inwards && __builtin_isfinite(a) && b != 0 && __builtin_isfinite(b)) return __builtin_copysignf(3.4028234663852886e38f, q);
  return q;
}
INLINE float root(float a, int mode) {
  float q = __builtin_sqrtf(a);
  return directed(q, (double)a - (double)q * (double)q, mode);
}
/* a times 1 / b, which is flushed to zero where it is too small for a normal single */
INLINE float quotient(float a, float b) {
  double x = a, y = b, reciprocal = 1.0 / y;
  int lost = __builtin_fabs(reciprocal) < 0x1p-126 && reciprocal != 0;
  return (float)(lost ? x * __builtin_copysign(0.0, y) : x / y);
}
INLINE float lesser(float x, float y, int least, int keep_nan) {
  if (keep_nan && (x != x || y != y)) return f32(0x7FFFFFFFu);
  return least ? least_f32(x, y) : most_f32(x, y);
}

INLINE uint16_t flush_bf(uint32_t b) { return b & 0x7F80u ? b : b & 0x8000u; }
INLINE double flush_d(double x) { return b64(x) & 0x7FFull << 52 ? x : f64(b64(x) & 1ull << 63); }
INLINE double upper_half(double x) { return f64(b64(x) & ~0xFFFFFFFFull); }

/* of doubles, by the processor: what is volatile is read and written between the two settings */
enum { SUM, DIFFERENCE, PRODUCT, QUOTIENT, ROOT, FUSED };
APART double rounded(int what, double a, double b, double c, int mode) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  volatile double x = a, y = b, z = c, r;
  fesetround(modes[mode]);
  switch (what) {
    case SUM: r = x + y; break;
    case DIFFERENCE: r = x - y; break;
    case PRODUCT: r = x * y; break;
    case QUOTIENT: r = x / y; break;
    case ROOT: r = __builtin_sqrt(x); break;
    default: r = fma(x, y, z);
  }
  fesetround(FE_TONEAREST);
  return r;
}

/* -- functions of numbers -- */

enum { EX2, LG2, TANH, SIN, COS };
static double revolutions(double x) {  /* in single precision, towards zero; too few for a normal one are none */
  return (double)flush(narrow(x * (double)f32(0x3E22F983u), RZ));
}
APART float approximate(Launch *L, int which, float given) {
  double x = given, y;
  if (which == EX2) y = __builtin_exp2(x);
  else if (which == LG2) y = __builtin_log2(x);
  else if (which == TANH) y = __builtin_tanh(x);
  else {
    double t = revolutions(x), angle = 2 * 3.141592653589793 * __builtin_fmod(t, 1.0);
    if (which == SIN && t == 0) return (float)t;
    x = angle;
    y = which == SIN ? __builtin_sin(angle) : __builtin_cos(angle);
  }
  double size = __builtin_fabs(y);
  if (y != y || __builtin_isinf(y) || size < 0x1p-151) return (float)y;
  uint32_t below = b64(y) & 0x1FFFFFFFu;
  int close = below > 0x10000000u - 64 && below < 0x10000000u + 64;
  return (float)(close || size < 0x1p-125 ? asked(L, which, x) : y);
}
/* a half, or a bf16: where NumPy's value may lie on the other side of a tie, it is asked */
APART uint16_t approximate_half(Launch *L, int which, float given, int brain) {
  double x = given, y = which == EX2 ? __builtin_exp2(x) : __builtin_tanh(x);
  double less = y * (1 - 0x1p-45), more = y * (1 + 0x1p-45);
  uint16_t low = brain ? bf16d(less) : h16d(less), high = brain ? bf16d(more) : h16d(more);
  if (low == high) return low;
  y = asked(L, which, x);
  return brain ? bf16d(y) : h16d(y);
}
