# ruff: noqa: E501 - macros end where their lines end
"""The part of the C text that every kernel has: lanes, memory with its checks, blocks.

A register is an array of 32 lanes, a predicate one of zeros and ones. A warp keeps what must outlive
a basic block in its own struct, so that it can stop at a barrier, or when its slice of time is over,
and go on later. Whatever is not plainly allowed ends the launch with FAULT: the NumPy
evaluator then runs it from the beginning and says what is wrong.
"""

from __future__ import annotations

HEAD = r"""
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 32
#define ALL 0xFFFFFFFFu
#define INLINE static inline __attribute__((always_inline))
/* what is large is compiled once, and takes its vectors by address */
#define APART static __attribute__((noinline))
#define EACH for (int l = 0; l < LANES; l++)
enum { DONE, AT_BARRIER, AGAIN, FAULT };
enum { GLOBAL_SPACE = 1, CONST_SPACE = 2, PARAM_SPACE = 4, READ_ONLY = 8 };

typedef struct {
  uint64_t base, size;
  uint8_t *data;
  uint64_t kind;
} Region;

typedef struct {
  uint64_t regions;
  Region *region;
  uint64_t shared_size, local_size, local_stride, check;
  uint8_t *shared, *marks, *local, *params;
  const uint64_t *symbols;
  uint64_t *executed;
  uint32_t grid[3], block[3];
  uint64_t threads, warps, dynamic_shared;
  uint64_t next, running;  /* the block that runs, and whether it has begun */
  int64_t fuel;
  struct Warp *warp;
  double (*ask)(int, double);  /* NumPy's value of a function */
} Launch;
"""

# After the warp's struct, which depends on the kernel.
BODY = r"""
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

INLINE float f32(uint32_t x) { float y; memcpy(&y, &x, sizeof y); return y; }
INLINE uint32_t b32(float x) { uint32_t y; memcpy(&y, &x, sizeof y); return y; }
INLINE double f64(uint64_t x) { double y; memcpy(&y, &x, sizeof y); return y; }
INLINE uint64_t b64(double x) { uint64_t y; memcpy(&y, &x, sizeof y); return y; }
INLINE float clean(float x) { return x == x ? x : f32(0x7FFFFFFFu); }
INLINE float flush(float x) { return f32(b32(x) & (b32(x) & 0x7F800000u ? ~0u : 0x80000000u)); }
INLINE float saturated(float x) { return x > 0.0f ? (x > 1.0f ? 1.0f : x) : 0.0f; }
/* of two NaNs the first is kept, as NumPy does; a compiler may exchange what it adds */
INLINE double first_nan(double a, double b, double x) {
  return a != a ? f64(b64(a) | 1ull << 51) : b != b ? f64(b64(b) | 1ull << 51) : x;
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
CLIPPED(clipped_s16, int16_t, INT16_MIN, INT16_MAX)
CLIPPED(clipped_s32, int32_t, INT32_MIN, INT32_MAX)

/* the highest bit that is no copy of the sign, or how far it is from the top; else all ones */
static uint32_t highest(uint64_t x, int bits, int is_signed, int distance) {
  if (is_signed && (x >> (bits - 1))) x = ~x & (bits == 64 ? ~0ull : (1ull << bits) - 1);
  if (!x) return ~0u;
  uint32_t found = 63 - __builtin_clzll(x);
  return distance ? bits - 1 - found : found;
}
static uint64_t reversed(uint64_t x, int bits) {
  uint64_t out = 0;
  for (int k = 0; k < bits; k++) out |= ((x >> k) & 1) << (bits - 1 - k);
  return out;
}
static uint32_t permuted(uint32_t x, uint32_t y, uint32_t chosen) {
  uint64_t both = ((uint64_t)y << 32) | x;
  uint32_t out = 0;
  for (int k = 0; k < 4; k++) {
    uint32_t nibble = (chosen >> (4 * k)) & 15, byte = (both >> (8 * (nibble & 7))) & 0xFF;
    if (nibble & 8) byte = (byte >> 7) * 0xFF;
    out |= byte << (8 * k);
  }
  return out;
}
/* a position or length: its lowest byte; of 64-bit fields the assembler makes shifts, which clamp */
INLINE uint32_t amount(uint32_t given, uint32_t bits) {
  return bits == 64 ? (given > 255 ? 255 : given) : given & 255;
}
INLINE uint64_t ones(uint32_t count) { return count < 64 ? (1ull << count) - 1 : ~0ull; }
static uint64_t extracted(uint64_t x, uint32_t at, uint32_t many, uint32_t bits, int is_signed) {
  uint32_t pos = amount(at, bits), count = amount(many, bits);
  uint64_t out = (pos < 64 ? x >> pos : 0) & ones(count);
  if (is_signed && count > 0) {
    uint32_t top = pos + count - 1 < bits - 1 ? pos + count - 1 : bits - 1;
    uint32_t known = pos < bits ? (bits - pos < count ? bits - pos : count) : 0;
    if ((x >> top) & 1) out |= ~ones(known);
  }
  return out;
}
static uint64_t inserted(uint64_t x, uint64_t y, uint32_t at, uint32_t many, uint32_t bits) {
  uint32_t pos = amount(at, bits), count = amount(many, bits);
  uint64_t mask = pos < bits ? ones(count < bits ? count : bits) << pos : 0;
  return (y & ~mask) | (pos < bits ? (x << pos) & mask : 0);
}
/* a whole number given as a double, as the nearest of an integer type */
#define CLAMPED(name, T, LOW, HIGH)                                                \
  INLINE T name(double x, T nan) {                                                 \
    return x != x ? nan : x <= (double)LOW ? LOW : x >= (double)HIGH ? HIGH : (T)x; \
  }
CLAMPED(clamped_u8, uint8_t, 0, UINT8_MAX)
CLAMPED(clamped_s8, int8_t, INT8_MIN, INT8_MAX)
CLAMPED(clamped_u16, uint16_t, 0, UINT16_MAX)
CLAMPED(clamped_s16, int16_t, INT16_MIN, INT16_MAX)
CLAMPED(clamped_u32, uint32_t, 0, UINT32_MAX)
CLAMPED(clamped_s32, int32_t, INT32_MIN, INT32_MAX)
CLAMPED(clamped_u64, uint64_t, 0, UINT64_MAX)
CLAMPED(clamped_s64, int64_t, INT64_MIN, INT64_MAX)

/* -- memory: addresses and values are arrays over the lanes -- */

#define SHARED_WINDOW (1ull << 60)
#define LOCAL_WINDOW (1ull << 61)
#define ACTIVE(l, m) for (uint32_t r_ = (m), l; r_ && (l = __builtin_ctz(r_), 1); r_ &= r_ - 1)

static uint8_t *found(Launch *L, Warp *S, uint64_t at, uint64_t span, uint64_t spaces, int writes) {
  Region *r = &L->region[S->last];
  if (at - r->base >= r->size) {
    uint64_t k = 0;
    while (k < L->regions && at - L->region[k].base >= L->region[k].size) k++;
    if (k == L->regions) return 0;
    S->last = k;
    r = &L->region[k];
  }
  if (span > r->size || at - r->base > r->size - span) return 0;
  if (!(r->kind & spaces) || (writes && (r->kind & READ_ONLY))) return 0;
  return r->data + (at - r->base);
}

/* of the eight lanes from g on: 1, one after the other; 2, all the same; 0, anyhow. Blocks are often
   16 or 8 threads wide, so that a warp has several rows. */
#define GROUP 8
#define GROUPS for (int g = 0; g < LANES; g += GROUP)
#define EIGHT for (int l = g; l < g + GROUP; l++)
INLINE int pattern(const uint64_t *a, int g, uint32_t m, uint64_t step) {
  if (((m >> g) & 255) != 255 || (a[g] & (step - 1))) return 0;
  uint64_t row = 0, same = 0;
  EIGHT { uint64_t d = a[l] - a[g]; row |= d ^ (uint64_t)(l - g) * step; same |= d; }
  return row == 0 ? 1 : same == 0 ? 2 : 0;
}

/* where the bytes of a lane lie, among generic addresses; 0 if it may not be there */
static uint8_t *place(Launch *L, Warp *S, uint64_t at, int l, uint64_t width, uint64_t spaces,
                      int writes) {
  if (at & (width - 1)) return 0;
  if (at < SHARED_WINDOW) return found(L, S, at, width, spaces, writes);
  at -= LOCAL_WINDOW;  /* shared memory by a generic address: its marks are not kept here */
  if (!(spaces & CONST_SPACE) || width > L->local_size || at > L->local_size - width) return 0;
  return S->local + l * L->local_stride + at;
}

INLINE uint8_t *own_place(Launch *L, Warp *S, uint64_t at, int l, uint64_t width) {
  if ((at & (width - 1)) || width > L->local_size || at > L->local_size - width) return 0;
  return S->local + l * L->local_stride + at;
}

INLINE int in_shared(Launch *L, uint64_t at, uint64_t width) {
  return !(at & (width - 1)) && width <= L->shared_size && at <= L->shared_size - width;
}

#define MARKED 0x0101010101010101ull  /* of eight bytes that were written */
#define ACCESS(bits, T)                                                            \
  enum { ROW_##bits = GROUP * sizeof(T) };                                         \
  INLINE int is_marked_##bits(Launch *L, uint64_t at) {                            \
    T k; memcpy(&k, L->marks + at, sizeof k);                                      \
    return k == (T)MARKED || !L->check;                                             \
  }                                                                                \
  INLINE void spread_##bits(T *o, const uint8_t *p) {                              \
    T x; memcpy(&x, p, sizeof x);                                                  \
    for (int l = 0; l < GROUP; l++) o[l] = x;                                      \
  }                                                                                \
  APART int load_##bits(Launch *L, Warp *S, const uint64_t *restrict a, uint32_t m, \
                        uint64_t spaces, T *restrict o) {                          \
    uint8_t *p;                                                                    \
    GROUPS {                                                                       \
      int how = a[g] < SHARED_WINDOW ? pattern(a, g, m, sizeof(T)) : 0;            \
      if (how) {                                                                   \
        if (!(p = found(L, S, a[g], how == 1 ? ROW_##bits : sizeof(T), spaces, 0))) return 0; \
        if (how == 1) memcpy(o + g, p, ROW_##bits); else spread_##bits(o + g, p);  \
        continue;                                                                  \
      }                                                                            \
      EIGHT if ((m >> l) & 1) {                                                    \
        if (!(p = place(L, S, a[l], l, sizeof(T), spaces, 0))) return 0;           \
        memcpy(&o[l], p, sizeof(T));                                               \
      }                                                                            \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int store_##bits(Launch *L, Warp *S, const uint64_t *restrict a, uint32_t m, \
                         uint64_t spaces, const T *restrict x) {                   \
    uint8_t *p;                                                                    \
    GROUPS {                                                                       \
      if (a[g] < SHARED_WINDOW && pattern(a, g, m, sizeof(T)) == 1) {              \
        if (!(p = found(L, S, a[g], ROW_##bits, spaces, 1))) return 0;             \
        memcpy(p, x + g, ROW_##bits);                                              \
        continue;                                                                  \
      }                                                                            \
      EIGHT if ((m >> l) & 1) {                                                    \
        if (!(p = place(L, S, a[l], l, sizeof(T), spaces, 1))) return 0;           \
        memcpy(p, &x[l], sizeof(T));                                               \
      }                                                                            \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  INLINE uint64_t marks_##bits(Launch *L, uint64_t at, uint64_t size) {            \
    uint64_t all = MARKED, some;                                                   \
    for (uint64_t n = 0; n < size; n += 8) { memcpy(&some, L->marks + at + n, 8); all &= some; } \
    return all;                                                                    \
  }                                                                                \
  APART void shape_##bits(const uint64_t *restrict a, uint32_t m, uint8_t *restrict how) { \
    GROUPS how[g / GROUP] = pattern(a, g, m, sizeof(T));                           \
  }                                                                                \
  /* how the addresses lie is known; all are `far` bytes further */                \
  APART int load_shared_##bits(Launch *L, const uint64_t *restrict a,              \
                               const uint8_t *restrict how, uint64_t far, uint32_t m, T *restrict o) { \
    const uint8_t *data = L->shared; uint64_t all = MARKED, size = L->shared_size; \
    GROUPS {                                                                       \
      uint64_t at = a[g] + far;                                                    \
      if (how[g / GROUP] == 1 && size >= ROW_##bits && at <= size - ROW_##bits) {  \
        memcpy(o + g, data + at, ROW_##bits);                                      \
        all &= marks_##bits(L, at, ROW_##bits);                                    \
      } else if (how[g / GROUP] == 2 && in_shared(L, at, sizeof(T))) {             \
        spread_##bits(o + g, data + at);                                           \
        all &= is_marked_##bits(L, at) ? MARKED : 0;                               \
      } else {                                                                     \
        EIGHT if ((m >> l) & 1) {                                                  \
          at = a[l] + far;                                                         \
          if (!in_shared(L, at, sizeof(T))) return 0;                              \
          all &= is_marked_##bits(L, at) ? MARKED : 0;                             \
          memcpy(&o[l], data + at, sizeof(T));                                     \
        }                                                                          \
      }                                                                            \
    }                                                                              \
    return all == MARKED || !L->check;                                             \
  }                                                                                \
  APART int store_shared_##bits(Launch *L, const uint64_t *restrict a, uint32_t m, \
                                const T *restrict x) {                             \
    GROUPS {                                                                       \
      if (pattern(a, g, m, sizeof(T)) == 1 && in_shared(L, a[g], sizeof(T))        \
          && in_shared(L, a[g + GROUP - 1], sizeof(T))) {                          \
        memcpy(L->shared + a[g], x + g, ROW_##bits);                               \
        memset(L->marks + a[g], 1, ROW_##bits);                                    \
        continue;                                                                  \
      }                                                                            \
      EIGHT if ((m >> l) & 1) {                                                    \
        if (!in_shared(L, a[l], sizeof(T))) return 0;                              \
        memcpy(L->shared + a[l], &x[l], sizeof(T));                                \
        memset(L->marks + a[l], 1, sizeof(T));                                     \
      }                                                                            \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int load_local_##bits(Launch *L, Warp *S, const uint64_t *a, uint32_t m, T *o) { \
    ACTIVE(l, m) {                                                                 \
      uint8_t *p = own_place(L, S, a[l], l, sizeof(T));                            \
      if (!p) return 0;                                                            \
      memcpy(&o[l], p, sizeof(T));                                                 \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int store_local_##bits(Launch *L, Warp *S, const uint64_t *a, uint32_t m, const T *x) { \
    ACTIVE(l, m) {                                                                 \
      uint8_t *p = own_place(L, S, a[l], l, sizeof(T));                            \
      if (!p) return 0;                                                            \
      memcpy(p, &x[l], sizeof(T));                                                 \
    }                                                                              \
    return 1;                                                                      \
  }
ACCESS(8, uint8_t)
ACCESS(16, uint16_t)
ACCESS(32, uint32_t)
ACCESS(64, uint64_t)

/* the alignment of a whole vector access; its parts are then as good as the whole */
INLINE int aligned(const uint64_t *a, uint32_t m, uint64_t width) {
  uint64_t all = 0;
  ACTIVE(l, m) all |= a[l];
  return !(all & (width - 1));
}

#define UPDATE(name, T, expression)                                                \
  APART int name(Launch *L, Warp *S, const uint64_t *a, uint32_t m, const T *x) {  \
    ACTIVE(l, m) {                                                                 \
      uint8_t *p = place(L, S, a[l], l, sizeof(T), GLOBAL_SPACE, 1);               \
      if (!p) return 0;                                                            \
      T old, now = x[l]; memcpy(&old, p, sizeof old);                              \
      old = (T)(expression); memcpy(p, &old, sizeof old);                          \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int name##_shared(Launch *L, const uint64_t *a, uint32_t m, const T *x) {  \
    ACTIVE(l, m) {                                                                 \
      T old, k, now = x[l];                                                        \
      if (!in_shared(L, a[l], sizeof(T))) return 0;                                \
      memcpy(&k, L->marks + a[l], sizeof k);                                       \
      if (k != (T)0x0101010101010101ull && L->check) return 0;                     \
      memcpy(&old, L->shared + a[l], sizeof old);                                  \
      old = (T)(expression); memcpy(L->shared + a[l], &old, sizeof old);           \
    }                                                                              \
    return 1;                                                                      \
  }
#define UPDATES(K, T)                                                              \
  UPDATE(red_add_##K, T, old + now) UPDATE(red_min_##K, T, now < old ? now : old)  \
  UPDATE(red_max_##K, T, now > old ? now : old) UPDATE(red_and_##K, T, old & now)  \
  UPDATE(red_or_##K, T, old | now) UPDATE(red_xor_##K, T, old ^ now)
UPDATES(u32, uint32_t)
UPDATES(s32, int32_t)
UPDATES(u64, uint64_t)
UPDATES(s64, int64_t)

/* a copy of 4, 8 or 16 bytes from global to shared memory; what is not kept of it is zero */
APART int copied(Launch *L, Warp *S, const uint64_t *to, const uint64_t *from, const uint32_t *kept,
                 uint32_t m, uint64_t width) {
  ACTIVE(l, m) {
    uint8_t buffer[16] = {0};
    uint64_t size = kept[l] < width ? kept[l] : width;
    if (size) {
      if (from[l] & (width - 1)) return 0;
      uint8_t *p = from[l] < SHARED_WINDOW ? found(L, S, from[l], size, GLOBAL_SPACE | PARAM_SPACE, 0) : 0;
      if (!p) return 0;
      memcpy(buffer, p, size);
    }
    if (!in_shared(L, to[l], width)) return 0;
    memcpy(L->shared + to[l], buffer, width);
    memset(L->marks + to[l], 1, width);
  }
  return 1;
}
"""

TAIL = r"""
static void begin(Launch *L, uint64_t block) {
  if (L->shared_size) { memset(L->shared, 0, L->shared_size); memset(L->marks, 0, L->shared_size); }
  if (L->local_size) memset(L->local, 0, L->warps * LANES * L->local_stride);
  for (uint64_t w = 0; w < L->warps; w++) {
    Warp *S = &L->warp[w];
    uint64_t first = w * LANES, count = L->threads - first < LANES ? L->threads - first : LANES;
    S->alive = count == LANES ? ALL : (1u << count) - 1;
    S->pending = 0; S->state = AGAIN; S->last = 0;
    S->local = L->local + w * LANES * L->local_stride;
    S->block[0] = block % L->grid[0];
    S->block[1] = block / L->grid[0] % L->grid[1];
    S->block[2] = block / L->grid[0] / L->grid[1];
    if (!L->next) EACH {  /* the same in every block */
      uint64_t t = first + l;
      S->tid[0][l] = t % L->block[0];
      S->tid[1][l] = t / L->block[0] % L->block[1];
      S->tid[2][l] = t / L->block[0] / L->block[1];
    }
    S->number = w;
    push(S, ENTRY, S->alive);
  }
}

static int block(Launch *L) {
  for (;;) {
    int waits = 0;
    for (uint64_t w = 0; w < L->warps; w++) {
      Warp *S = &L->warp[w];
      if (S->state == AGAIN) {
        int status = run(L, S);
        if (status == FAULT || status == AGAIN) return status;
        S->state = status;
      }
      waits += S->state == AT_BARRIER;
    }
    if (!waits) return DONE;
    int64_t where = -1;
    for (uint64_t w = 0; w < L->warps; w++) {
      Warp *S = &L->warp[w];
      if (S->state != AT_BARRIER) continue;
      if (where >= 0 && where != S->at) return FAULT;
      where = S->at;
      S->state = AGAIN;
    }
  }
}

int launch(Launch *L) {
  while (L->next < LAST(L)) {
    if (!L->running) { begin(L, L->next); L->running = 1; }
    int status = block(L);
    if (status != DONE) return status;
    L->running = 0;
    L->next++;
    if (L->fuel <= 0) return AGAIN;
  }
  return DONE;
}
uint64_t warp_bytes(void) { return sizeof(Warp); }
"""
