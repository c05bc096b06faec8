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
"""
