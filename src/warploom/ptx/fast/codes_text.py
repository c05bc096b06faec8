"""C functions that make numbers of few bits: any value, in any rounding, as the bits of a format.

The evaluator's counterparts are `encode` and `to_scale` of `machine/narrow.py`, and `narrow` of
`machine/rounding.py`. Values come as doubles, which hold all but integers of 64 bits exactly; those
are rounded to odd, after which a rounding to fewer bits is the only one that counts.
"""

from __future__ import annotations

CODES = r"""
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
/* of a double that is no number: the sign and the upper bits of the fraction, made quiet */
INLINE uint16_t upper_nan(double x, int fraction) {
  uint64_t bits = b64(x), exponent = (1u << (15 - fraction)) - 1;
  uint64_t some = (bits >> (52 - fraction) & ((1u << fraction) - 1)) | 1u << (fraction - 1);
  return (bits >> 63) << 15 | exponent << fraction | some;
}
INLINE double not_negative(double x) { return x <= 0 ? 0.0 : x; }
INLINE double saturated_d(double x) { return x > 0 ? (x > 1 ? 1.0 : x) : 0.0; }

/* the power of two at or above (RP) or at or below a magnitude, which is a single's */
INLINE uint32_t power_code(double x, int mode, int finite) {
  uint64_t bits = b64(x) & ~(1ull << 63);
  if (x != x) return 0xFF;
  int code = (int)(bits >> 52) - 1023 + (mode == RP && (bits & ((1ull << 52) - 1))) + 127;
  code = code < 0 ? 0 : code > 255 || __builtin_isinf(x) ? 255 : code;
  return finite && code > 254 ? 254 : code;
}

/* 19 bits of a single; RNA alone keeps the upper bits of a NaN */
INLINE uint32_t tf32_code(float x, int mode) {
  uint32_t bits = b32(x), nearest = 0xFFFu + ((bits >> 13) & 1u);
  uint32_t more = mode == RZ ? 0 : mode == RNA ? 0x1000u : nearest;
  if ((bits & 0x7F800000u) != 0x7F800000u) return (bits + more) & 0xFFFFE000u;
  return mode != RNA && (bits & 0x7FFFFFu) ? 0x7FFFE000u : bits & 0xFFFFE000u;
}

/* -- integers of 64 bits: a magnitude and a sign -- */

INLINE double odd_long(uint64_t size, int minus) {
  double x = size >> 53 ? (double)(size >> 11 | ((size & 0x7FF) != 0)) * 2048.0 : (double)size;
  return minus ? -x : x;
}
APART double double_of(uint64_t size, int minus, int mode) {
  int drop = size >> 53 ? 11 - __builtin_clzll(size) : 0;
  int inexact = (size & ((1ull << drop) - 1)) != 0;
  uint64_t kept = (size >> drop) + (inexact && mode == (minus ? RM : RP));
  double x = (double)kept * (double)(1ull << drop);
  return minus ? -x : x;
}
"""
