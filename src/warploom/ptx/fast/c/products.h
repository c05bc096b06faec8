/* Sums of products as a tensor core makes them: a port of `machine/fused.py`, which says what that is
   and why doubles hold it exactly. Several columns are made at a time. */

#pragma once
#include "values.h"

#define DEPTH_MOST 64
#define ACROSS 8  /* columns */
#define NOWHERE (-4000)
typedef struct { double value; int exponent; } Term;

/* singles and what is narrower are normal numbers as doubles; of what is not finite nobody asks */
INLINE Term term(double value, int lowest) {
  int e = (int)(b64(value) >> 52 & 2047) - 1023;
  return (Term){value, value == 0 ? NOWHERE : e < lowest ? lowest : e};
}
INLINE double scaled(int power) { return f64((uint64_t)(power + 1023) << 52); }

/* c + the sum of a b over one group, cut off `below` bits under the largest exponent */
static double group_sum(const Term *a, const Term *b, int count, double c, int lowest, int below, int *wild) {
  double product[DEPTH_MOST], special = c;
  int top = NOWHERE, finite = __builtin_isfinite(c);
  for (int k = 0; k < count; k++) {
    double p = a[k].value * b[k].value;
    special += p;
    if (!__builtin_isfinite(p)) { finite = 0; p = 0; }
    int e = p == 0 ? NOWHERE : a[k].exponent + b[k].exponent;
    if (e > top) top = e;
    product[k] = p;
  }
  *wild = !finite;
  if (!finite) return special;
  int own = term(c, lowest).exponent;
  if (own > top) top = own;
  int shift = below - top;
  shift = shift < -1000 ? -1000 : shift > 1000 ? 1000 : shift;
  double scale = scaled(shift), total = __builtin_trunc(c * scale);
  for (int k = 0; k < count; k++) total += __builtin_trunc(product[k] * scale);
  return __builtin_ldexp(total, -shift);
}
INLINE float to_single(double x, int wild, int kept) {
  if (wild) return x != x ? f32(0x7FFFFFFFu) : (float)x;
  float r = (float)x;  /* to nearest: one less where that is away from zero, but of what is too large */
  uint32_t less = (__builtin_fabs((double)r) > __builtin_fabs(x)) & (__builtin_fabs(x) < 0x1p128);
  uint32_t low = kept ? (1u << (23 - kept)) - 1 : 0;
  return f32((b32(r) - less) & ~low) + 0.0f;
}
INLINE uint16_t to_half(double x, int wild) {
  uint16_t h = wild ? h16((float)x) : h16d(x);
  return h == 0x8000u ? 0 : h;
}
typedef double Doubles __attribute__((vector_size(8 * ACROSS)));
typedef int64_t Wholes __attribute__((vector_size(8 * ACROSS)));
typedef struct { Doubles value[DEPTH_MOST]; Wholes exponent[DEPTH_MOST]; } Columns;

#define chosen(if_, x, y) (((if_) & (x)) | (~(if_) & (y)))

static void columns_of(const Term *b, int count, int depth, Columns *o) {
  memset(o, 0, sizeof *o);
  for (int j = 0; j < count; j++)
    for (int k = 0; k < depth; k++) {
      o->value[k][j] = b[j * depth + k].value;
      o->exponent[k][j] = b[j * depth + k].exponent;
    }
}
/* adds the products of one group to sums; a zero product has an exponent below all others. What is
   cut off fits 64 bits, as nothing is above the largest exponent. */
static int group_sums(const Term *a, const Columns *b, int from, int count, const float *c, int lowest,
                      int below, double *o) {
  Doubles product[DEPTH_MOST], start;
  Wholes top, wild = {0};
  for (int j = 0; j < ACROSS; j++) {
    int e = (int)(b32(c[j]) >> 23 & 255) - 127;
    wild[j] = e == 128;
    top[j] = c[j] == 0 ? NOWHERE : e < lowest ? lowest : e;
    start[j] = c[j];
  }
  for (int k = 0; k < count; k++) {
    Doubles p = a[k].value * b->value[from + k], none = p - p;
    Wholes e = b->exponent[from + k] + a[k].exponent;
    product[k] = p;
    wild |= none != none;  /* infinite, or no number */
    top = chosen(e > top, e, top);
  }
  Wholes least = wild - 1000, most = wild + 1000, shift = below - top;
  for (int j = 0; j < ACROSS; j++) if (wild[j]) return 0;
  shift = chosen(shift < least, least, chosen(shift > most, most, shift));
  Doubles scale = (Doubles)((shift + 1023) << 52), back = (Doubles)((1023 - shift) << 52);
  Wholes total = __builtin_convertvector(start * scale, Wholes);
  for (int k = 0; k < count; k++) total += __builtin_convertvector(product[k] * scale, Wholes);
  Doubles sum = __builtin_convertvector(total, Doubles) * back;
  memcpy(o, &sum, sizeof sum);
  return 1;
}
/* some are not finite: one column at a time */
static void wild_sums(const Term *a, const Term *b, int columns, int depth, int count, float *c,
                      int below, int kept, int half) {
  for (int j = 0; j < columns; j++) {
    int wild;
    double sum = group_sum(a, b + j * depth, count, c[j], half ? -14 : -126, below, &wild);
    c[j] = half ? h32(to_half(sum, wild)) : to_single(sum, wild, kept);
  }
}
/* rows of a and b have k terms; c and d are singles, or halves held as singles */
static void products(const Term *a, const Term *b, float *c, int rows, int columns, int depth,
                     int group, int below, int kept, int half) {
  Columns right;
  for (int j = 0; j < columns; j += ACROSS) {
    int some = columns - j < ACROSS ? columns - j : ACROSS;
    columns_of(b + j * depth, some, depth, &right);
    for (int i = 0; i < rows; i++) {
      float total[ACROSS] = {0}, *own = c + i * columns + j;
      memcpy(total, own, some * sizeof *own);
      for (int k = 0; k < depth; k += group) {
        int count = group < depth - k ? group : depth - k;
        double sum[ACROSS];
        if (!group_sums(a + i * depth + k, &right, k, count, total, half ? -14 : -126, below, sum)) {
          wild_sums(a + i * depth + k, b + j * depth + k, some, depth, count, total, below, kept, half);
          continue;
        }
        for (int n = 0; n < ACROSS; n++)
          total[n] = half ? h32(to_half(sum[n], 0)) : to_single(sum[n], 0, kept);
      }
      memcpy(own, total, some * sizeof *own);
    }
  }
}

/* -- kinds of factors -- */

enum { OF_F16, OF_BF16, OF_TF32, OF_E4M3, OF_E5M2 };
static const int bits_of[] = {16, 16, 32, 8, 8};
INLINE double e4m3(uint32_t code) {
  int e = code >> 3 & 15, f = code & 7;
  double x = (code & 127) == 127 ? f32(0x7FFFFFFFu) : e ? __builtin_ldexp(8 + f, e - 10) : __builtin_ldexp(f, -9);
  return code & 128 ? -x : x;
}
static Term term_of(uint32_t code, int kind, int as_half) {
  switch (kind) {
    case OF_F16: return term(h32(code), -14);
    case OF_BF16: return term(bf32(code), -126);
    case OF_E4M3: return term(e4m3(code), as_half ? -14 : -6);
    case OF_E5M2: return term(h32(code << 8), -14);
    default: return term(f32(code & 0xFFFFE000u), -126);
  }
}
