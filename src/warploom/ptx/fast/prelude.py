# ruff: noqa: E501 - macros end where their lines end
"""The part of the C text that every kernel has: lanes, values of one lane, blocks.

A register is an array of 32 lanes, a predicate one of zeros and ones. A warp keeps what must outlive
a basic block in its own struct, so that it can stop at a barrier, or when its slice of time is over,
and go on later. Whatever is not plainly allowed ends the launch with FAULT: the NumPy
evaluator then runs it from the beginning and says what is wrong.
"""

from __future__ import annotations

HEAD = r"""
#include <fenv.h>

#define LANES 32
#define ALL 0xFFFFFFFFu
#define EACH for (int l = 0; l < LANES; l++)
enum { DONE, AT_BARRIER, AGAIN, FAULT };
enum { COUNTED, EVERY, SOME };  /* what a barrier that reduces makes of predicates */
enum { GLOBAL_SPACE = 1, CONST_SPACE = 2, PARAM_SPACE = 4, READ_ONLY = 8 };

typedef struct {
  uint64_t base, size;
  uint8_t *data;
  uint64_t kind;
  uint8_t *touched;  /* a byte for each word, where cores share the launch out; else none */
  void *shadow;  /* who came to each of its cells, where races are looked for and it may be written */
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
  uint64_t *taken, chunk;  /* blocks that some core has taken; how many it takes at once */
  uint64_t next, stop, running, ready;  /* the block that runs, up to where, whether it has begun */
  int64_t fuel;
  struct Warp *warp;
  void (*ask)(int, double, double *);  /* NumPy's value of a function, and that it came */
  uint64_t lost;  /* Python was asked and gave no answer: what was made since then is nothing */
  uint64_t missing;  /* a value that nobody gave was met, by a text that does not watch them */
  void *patterns, *shared_shadow, *copies;  /* of a text that notes accesses (see `notes_text`) */
  uint32_t *latest;
  uint64_t *branched, different, barriers, shuffles, updates;
  void (*full)(uint64_t *);
  uint64_t stamp, first_stamp, suspect;
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

"""

TAIL = r"""
static void begin(Launch *L, uint64_t block) {
  if (L->shared_size) { memset(L->shared, 0, L->shared_size); memset(L->marks, 0, L->shared_size); }
  if (L->local_size) memset(L->local, 0, L->warps * LANES * L->local_stride);
  for (uint64_t w = 0; w < L->warps; w++) {
    Warp *S = &L->warp[w];
    uint64_t first = w * LANES, count = L->threads - first < LANES ? L->threads - first : LANES;
    S->alive = S->whole = count == LANES ? ALL : (1u << count) - 1;
    S->pending = 0; S->state = AGAIN; S->last = S->products = S->syncs = 0;
    S->joined = 0;
    S->local = L->local + w * LANES * L->local_stride;
    S->block[0] = block % L->grid[0];
    S->block[1] = block / L->grid[0] % L->grid[1];
    S->block[2] = block / L->grid[0] / L->grid[1];
    if (!L->ready) EACH {  /* the same in every block */
      uint64_t t = first + l;
      S->tid[0][l] = t % L->block[0];
      S->tid[1][l] = t / L->block[0] % L->block[1];
      S->tid[2][l] = t / L->block[0] / L->block[1];
    }
    S->number = w;
    NOBODY_WROTE(S)
    push(S, ENTRY, S->alive);
  }
  L->ready = 1;
  L->first_stamp = ++L->stamp;
  if (RACES) memset(L->copies, 0, L->threads * copies_bytes());
}

/* a barrier: what came before it is ordered before what comes after, if all threads are there */
static int passed(Launch *L) {
  for (uint64_t w = 0; w < L->warps; w++) {
    Warp *S = &L->warp[w];
    if (S->alive != S->whole) return 0;
    S->syncs = 0;
  }
  return ++L->stamp < UINT32_MAX;
}

/* all that wait have come to the same barrier: if it reduces, each is given what they made */
static void join(Launch *L) {
  uint32_t yes = 0, came = 0;
  for (uint64_t w = 0; w < L->warps; w++)
    if (L->warp[w].state == AT_BARRIER) { yes += L->warp[w].yes; came += L->warp[w].came; }
  for (uint64_t w = 0; w < L->warps; w++) {
    Warp *S = &L->warp[w];
    if (S->state != AT_BARRIER || !S->joined) continue;
    uint32_t made = S->how == COUNTED ? yes : S->how == EVERY ? yes == came : yes > 0;
    ACTIVE(l, S->mask[S->pending - 1]) S->joined[l] = made;
    S->joined = 0;
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
    if (!waits) return together(L) ? DONE : FAULT;
    join(L);
    int64_t where = -1;
    for (uint64_t w = 0; w < L->warps; w++) {
      Warp *S = &L->warp[w];
      if (S->state != AT_BARRIER) continue;
      if (where >= 0 && where != S->at) return FAULT;
      where = S->at;
      S->state = AGAIN;
    }
    TALLY(barriers, 1);
    if (RACES && !passed(L)) return FAULT;
  }
}

/* blocks are taken in order, by this core and by others */
static int takes(Launch *L) {
  if (L->next < L->stop) return 1;
  L->next = __atomic_fetch_add(L->taken, L->chunk, __ATOMIC_RELAXED);
  L->stop = L->next + L->chunk < LAST(L) ? L->next + L->chunk : LAST(L);
  return L->next < L->stop;
}

int launch(Launch *L) {
  while (takes(L)) {
    if (!L->running) { begin(L, L->next); L->running = 1; }
    int status = block(L);
    if (status != DONE) return status;
    L->running = 0;
    L->next++;
    if (L->fuel <= 0) return AGAIN;
  }
  return DONE;
}

/* who is still running: the block, the thread, and the part of the text that comes next */
int still(Launch *L, uint64_t *place) {
  for (uint64_t w = 0; L->running && w < L->warps; w++) {
    Warp *S = &L->warp[w];
    if (S->state != AGAIN || !S->pending) continue;
    place[0] = L->next;
    place[1] = w * LANES + __builtin_ctz(S->mask[S->pending - 1]);
    place[2] = S->rank[S->pending - 1];
    return 1;
  }
  return 0;
}

/* whether a word that one core wrote was touched by another */
int clash(uint8_t *const *maps, uint64_t cores, uint64_t words) {
  enum { PIECE = 4096 };
  for (uint64_t from = 0; from < words; from += PIECE) {
    uint64_t some = words - from < PIECE ? words - from : PIECE;
    uint8_t seen[PIECE] = {0}, bad = 0;
    for (uint64_t c = 0; c < cores; c++) {
      const uint8_t *map = maps[c] + from;
      for (uint64_t k = 0; k < some; k++) {
        bad |= (map[k] & seen[k] >> 1) | (map[k] >> 1 & seen[k]);
        seen[k] |= map[k];
      }
    }
    if (bad & 1) return 1;
  }
  return 0;
}
uint64_t warp_bytes(void) { return sizeof(Warp); }
"""
