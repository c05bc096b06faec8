/* What the C text of machine values uses besides C's operators: bits and numbers, halves, roundings.
   `text.py` writes such text; `evaluate.py` says what each of these functions gives. */

#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
/* what is large is compiled once, and takes its vectors by address */
#define APART static __attribute__((noinline))

INLINE float f32(uint32_t x) { float y; memcpy(&y, &x, sizeof y); return y; }
INLINE uint32_t b32(float x) { uint32_t y; memcpy(&y, &x, sizeof y); return y; }
INLINE double f64(uint64_t x) { double y; memcpy(&y, &x, sizeof y); return y; }
INLINE uint64_t b64(double x) { uint64_t y; memcpy(&y, &x, sizeof y); return y; }

/* the n-th set bit from a base, upwards or downwards; the base itself for 0; else all ones */
static uint32_t nth_set(uint32_t mask, uint32_t base, int64_t n) {
  if (base > 31) return ~0u;
  if (n == 0) return (mask >> base) & 1 ? base : ~0u;
  int64_t left = n < 0 ? -n : n;
  for (int k = base; k >= 0 && k < 32; k += n < 0 ? -1 : 1) {
    left -= (mask >> k) & 1;
    if (!left && ((mask >> k) & 1)) return k;
  }
  return ~0u;
}
static uint64_t reversed(uint64_t x, int bits) {
  uint64_t out = 0;
  for (int k = 0; k < bits; k++) out |= ((x >> k) & 1) << (bits - 1 - k);
  return out;
}

/* -- halves and bf16 -- */

enum { RN, RZ, RM, RP };

INLINE float h32(uint32_t h) {
  uint32_t sign = (h & 0x8000u) << 16, e = (h >> 10) & 31u, f = h & 0x3FFu;
  float small = (float)f * 0x1p-24f;  /* of a subnormal half */
  uint32_t bits = e == 31 ? 0x7F800000u | f << 13 : e ? (e + 112) << 23 | f << 13 : b32(small);
  return f32(sign | bits);
}
/* the bits of a NaN stay as they are, as NumPy leaves them */
INLINE double h64(uint32_t h) {
  uint64_t nan = (uint64_t)(h & 0x8000u) << 48 | 0x7FFull << 52 | (uint64_t)(h & 0x3FFu) << 42;
  return (h & 0x7FFFu) > 0x7C00u ? f64(nan) : (double)h32(h);
}
/* to nearest; the one NaN */
INLINE uint16_t h16(float x) {
  uint32_t u = b32(x), sign = (u >> 16) & 0x8000u, a = u & 0x7FFFFFFFu;
  uint32_t normal = (a - (112u << 23) + 0xFFFu + ((a >> 13) & 1u)) >> 13;
  uint32_t tiny = b32(f32(a) + 0.5f) - b32(0.5f);  /* the sum rounds at the last bit of a half */
  uint32_t out = a < (113u << 23) ? tiny : a >= 0x477FF000u ? 0x7C00u : normal;
  return a > 0x7F800000u ? 0x7FFFu : sign | out;
}
INLINE float bf32(uint32_t b) { return f32(b << 16); }
INLINE uint16_t bf16(float x) {
  uint32_t u = b32(x);
  return x != x ? 0x7FFFu : (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
}
INLINE uint16_t bf16_rz(float x) { return x != x ? 0x7FFFu : b32(x) >> 16; }

/* -- roundings -- */

INLINE float narrow(double x, int mode) {
  float r = (float)x;
  double back = r;
  if (mode == RN) return r;
  int wrong = mode == RZ ? __builtin_fabs(back) > __builtin_fabs(x) : mode == RM ? back > x : back < x;
  return wrong ? __builtin_nextafterf(r, mode == RZ ? 0.0f : mode == RM ? -__builtin_inff() : __builtin_inff()) : r;
}
/* a double as a single rounded to odd: a later rounding to fewer bits is the only one that counts */
INLINE float odd_single(double x) {
  float r = narrow(x, RZ);
  return f32(b32(r) | (__builtin_isfinite(x) & ((double)r != x)));
}
INLINE uint16_t h16d(double x) { return h16(odd_single(x)); }
INLINE uint16_t bf16d(double x) { return x != x ? 0x7FFFu : bf16(odd_single(x)); }
INLINE uint16_t h16_rz(float x) {
  uint16_t h = h16(x);
  return x == x && __builtin_fabsf(h32(h)) > __builtin_fabsf(x) ? h - 1 : h;
}

enum { RS = RP + 1, RNA };  /* RS: random bits, sixteen of them, are added before truncating */

/* `lowest` is the exponent of the smallest normal number; above `largest` lies `beyond` */
APART uint32_t coded(double x, int lowest, int fraction, uint32_t largest, uint32_t beyond,
                     uint32_t nan, uint32_t sign, int mode, uint32_t random) {
  if (x != x) return nan;
  uint64_t bits = b64(x), size = bits & ((1ull << 52) - 1);
  int minus = bits >> 63, field = bits >> 52 & 0x7FF, e = field - 1023, up = 0;
  if (!minus) sign = 0;
  if (field == 0x7FF) return sign | beyond;
  if (field) size |= 1ull << 52;
  int drop = 52 - fraction + (e < lowest ? lowest - e : 0);
  uint64_t kept = drop > 63 ? 0 : size >> drop;
  uint64_t rest = drop > 63 ? size : size & ((1ull << drop) - 1), half = 1ull << ((drop - 1) & 63);
  switch (mode) {
    case RN: up = drop < 55 && (rest > half || (rest == half && (kept & 1))); break;
    case RM: up = rest && minus; break;
    case RP: up = rest && !minus; break;
    case RS: up = (drop > 79 ? 0 : rest >> (drop - 16)) + random >= 65536; break;
  }
  uint32_t code = kept + up + ((e > lowest ? (uint32_t)(e - lowest) : 0) << fraction);
  int inwards = mode == RZ || mode == (minus ? RP : RM);
  return sign | (code <= largest ? code : inwards ? largest : beyond);
}
