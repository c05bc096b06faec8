/* C text that notes accesses: how often which addresses were asked for, and what may be a race.

   Counting: a warp's addresses, moved by a multiple of 128 bytes, are a pattern; the table says how
   often each came, and Python's rules are asked once for each (`notes.py`).

   Races: a cell of memory remembers when it was last read, written and updated, and by whom. Order is
   only what barriers of the whole block and of whole warps give, which is less than there is: where
   two accesses are apart by this order they are by the detector's, and where they are not the launch
   is left to the evaluator. */

#pragma once
#include "memory.h"

#if COUNTS || RACES
enum { READS, WRITES, UPDATES_IT };
static const struct { uint32_t width, what, constant, is_counted, is_screened; } site_of[] = { SITES };
enum { IN_SHARED = -1, IN_LOCAL = -2, ASYNCHRONOUS = -3 };  /* instead of the number of a region */
#endif

#if COUNTS
enum { PATTERNS = 4096 };
typedef struct { uint64_t times; uint32_t site, mask; int64_t region, at[LANES]; } Pattern;

APART int counted(Launch *L, uint32_t site, int64_t region, const uint64_t *a, uint64_t far, uint32_t m) {
  Pattern *table = L->patterns;
  int64_t at[LANES] = {0};
  uint64_t base = ~0ull, hash = site * 31 + m;
  ACTIVE(l, m) base = a[l] + far < base ? a[l] + far : base;
  base &= ~127ull;
  ACTIVE(l, m) at[l] = (int64_t)(a[l] + far - base);
  uint64_t k = L->latest[site];
  for (int again = 0;; again++) {
    Pattern *p = &table[k];
    if (p->times && p->site == site && p->mask == m && p->region == region && !memcmp(p->at, at, sizeof at)) {
      p->times++;
      L->latest[site] = (uint32_t)k;
      return 1;
    }
    if (again && !p->times) break;
    if (!again) {
      for (int l = 0; l < LANES; l++) hash = (hash ^ (uint64_t)at[l]) * 0x9E3779B97F4A7C15ull;
      k = hash >> 52;
    } else k = (k + 1) % PATTERNS;
  }
  if (L->different >= PATTERNS * 3 / 4) {
    uint64_t taken = 0;
    L->full(&taken);
    if (!taken) { L->lost = 1; return 0; }
    memset(table, 0, sizeof(Pattern) * PATTERNS);
    L->different = 0;
    k = hash >> 52;
  }
  table[k].times = 1; table[k].site = site; table[k].mask = m; table[k].region = region;
  memcpy(table[k].at, at, sizeof at);
  L->latest[site] = (uint32_t)k;
  L->different++;
  return 1;
}
/* what the asynchronous way does is no request of a warp: counted is who asks for it */
APART int noted_asynchronous(Launch *L, uint32_t site, uint32_t m) {
  static const uint64_t nowhere[LANES];
  return counted(L, site, ASYNCHRONOUS, nowhere, 0, m);
}
#define BRANCHED(number, taken) \
  do { L->branched[2 * number]++; L->branched[2 * number + 1] += (taken) && (taken) != m; } while (0)
#define TALLY(name, many) L->name += (many)
#else
#define BRANCHED(number, taken)
#define TALLY(name, many)
#endif

#if RACES
/* `who` is a thread of the block; or one of a warp of which several came, or of several warps */
enum { SEVERAL = 0x8000, WARPS_TOO = 0x4000, OTHER_BLOCKS = 0x2000, UNDER_WAY = 0x1000, THREAD = 0x3FF };
typedef struct { uint32_t stamp; uint16_t who, sync; } Slot;
typedef struct {
  Slot wrote, read;
#if UPDATED
  Slot updated;
#endif
} Cell;

/* a thread's groups of copies: how many it closed, how many it waited for, when for the last ones */
enum { GROUPS_KNOWN = 64 };
typedef struct { uint32_t closed, waited, when[GROUPS_KNOWN]; } Copies;

/* a copy is ordered before what its own thread does once it has waited, and before what others do
   after a barrier that comes after that; `sync` is its group */
INLINE int copy_before(Launch *L, const Slot *s, uint32_t me) {
  const Copies *of = (const Copies *)L->copies + (s->who & THREAD);
  uint32_t group = of->closed - (uint16_t)(of->closed - s->sync);
  if (group >= of->waited || of->waited - group > GROUPS_KNOWN) return 0;
  return (s->who & THREAD) == me || of->when[group % GROUPS_KNOWN] != L->stamp;
}

/* whether all accesses that a slot remembers are ordered before one that thread `me` makes now */
INLINE int before(Launch *L, const Slot *s, uint32_t me, uint32_t sync, int own) {
  if (!s->stamp) return 1;
  if (s->stamp < L->first_stamp) return own;
  if (s->who & OTHER_BLOCKS) return 0;
  if (s->who & UNDER_WAY) return copy_before(L, s, me);
  if (s->stamp != L->stamp) return 1;
  if (s->who & WARPS_TOO) return 0;
  if (s->who == me) return 1;
  return (s->who & THREAD) / LANES == me / LANES && s->sync < sync;
}
INLINE void enter(Launch *L, Slot *s, uint32_t me, uint32_t sync, int own) {
  uint32_t others = s->who & OTHER_BLOCKS, who = s->who;
  if (s->stamp && s->stamp < L->first_stamp) others = own ? 0 : OTHER_BLOCKS;
  if (s->stamp != L->stamp || (who & THREAD) / LANES != me / LANES || (who & WARPS_TOO))
    who = s->stamp == L->stamp ? WARPS_TOO | me : me;
  else if (s->sync < sync) who = me;
  else if ((who & THREAD) != me) who |= SEVERAL;
  s->stamp = (uint32_t)L->stamp; s->who = (uint16_t)(who | others); s->sync = (uint16_t)sync;
}
INLINE int apart(Launch *L, Warp *S, Cell *c, uint32_t site, uint32_t l, int own) {
  uint32_t me = (uint32_t)S->number * LANES + l, what = site_of[site].what;
  if (site_of[site].constant) {  /* no write of the launch may come to it, ordered or not */
    if (c->wrote.stamp) return 0;
#if UPDATED
    if (c->updated.stamp) return 0;
#endif
    enter(L, &c->read, me, S->syncs, own);
    c->read.who |= OTHER_BLOCKS;
    return 1;
  }
  if (!before(L, &c->wrote, me, S->syncs, own)) return 0;
  if (what != READS && !before(L, &c->read, me, S->syncs, own)) return 0;
#if UPDATED
  if (what != UPDATES_IT && !before(L, &c->updated, me, S->syncs, own)) return 0;
  if (what == UPDATES_IT) { enter(L, &c->updated, me, S->syncs, own); return 1; }
#endif
  if (what == READS) enter(L, &c->read, me, S->syncs, own);
  else c->wrote = (Slot){(uint32_t)L->stamp, (uint16_t)me, (uint16_t)S->syncs};
  return 1;
}
INLINE int screened(Launch *L, Warp *S, void *shadow, uint64_t from, uint32_t site, uint32_t l, int own) {
  Cell *cells = (Cell *)shadow + from / UNIT;
  for (uint32_t n = 0; n < site_of[site].width / UNIT; n++) {
    if (!apart(L, S, cells + n, site, l, own)) { L->suspect = 1; return 0; }
  }
  return 1;
}
/* what a copy reads no write of the launch may come to: nobody looks when it has read it */
static int screened_copy(Launch *L, Warp *S, uint32_t from, uint32_t to, uint64_t source, uint64_t target,
                         uint32_t kept, uint32_t l) {
  if (kept && !found(L, S, source, kept, ~0ull, 0)) return 0;
  Region *r = &L->region[S->last];
  Cell *cells = (Cell *)r->shadow + (source - r->base) / UNIT;
  for (uint32_t n = 0; kept && r->shadow && n < (kept + UNIT - 1) / UNIT; n++) {
    if (!apart(L, S, cells + n, from, l, 0)) { L->suspect = 1; return 0; }
    cells[n].read.who |= OTHER_BLOCKS;
  }
  if (!screened(L, S, L->shared_shadow, target, to, l, 1)) return 0;
  uint32_t me = (uint32_t)S->number * LANES + l;
  cells = (Cell *)L->shared_shadow + target / UNIT;
  for (uint32_t n = 0; n < site_of[to].width / UNIT; n++) {
    cells[n].wrote.who = (uint16_t)(me | UNDER_WAY);
    cells[n].wrote.sync = (uint16_t)((Copies *)L->copies)[me].closed;
  }
  return 1;
}
APART int closed_copies(Launch *L, Warp *S, uint32_t m) {
  ACTIVE(l, m) ((Copies *)L->copies)[S->number * LANES + l].closed++;
  return 1;
}
/* all groups but so many of the newest are there */
APART int waited_copies(Launch *L, Warp *S, uint32_t newest, uint32_t m) {
  ACTIVE(l, m) {
    Copies *own = (Copies *)L->copies + S->number * LANES + l;
    for (; own->waited + newest < own->closed; own->waited++) {
      own->when[own->waited % GROUPS_KNOWN] = (uint32_t)L->stamp;
    }
  }
  return 1;
}
uint64_t cell_bytes(void) { return sizeof(Cell); }
uint64_t copies_bytes(void) { return sizeof(Copies); }
#else
uint64_t cell_bytes(void) { return 0; }
uint64_t copies_bytes(void) { return 0; }
#endif

#if COUNTS || RACES
/* shared memory of the block: `a` are places in it */
APART int noted_shared(Launch *L, Warp *S, uint32_t site, const uint64_t *a, uint64_t far, uint32_t m) {
  if (!m) return 1;
#if RACES
  if (site_of[site].is_screened) ACTIVE(l, m) {
    if (!screened(L, S, L->shared_shadow, a[l] + far, site, l, 1)) return 0;
  }
#endif
#if COUNTS
  return !site_of[site].is_counted || counted(L, site, IN_SHARED, a, far, m);
#else
  return 1;
#endif
}
APART int noted_local(Launch *L, Warp *S, uint32_t site, const uint64_t *a, uint64_t far, uint32_t m) {
#if COUNTS
  return !m || counted(L, site, IN_LOCAL, a, far, m);
#else
  return 1;
#endif
}
/* all other memory, by generic addresses: each region that lanes come to is asked by itself */
APART int noted(Launch *L, Warp *S, uint32_t site, const uint64_t *a, uint64_t far, uint32_t m) {
  while (m) {
    uint64_t at = a[__builtin_ctz(m)] + far;
    uint32_t here = 0;
    if (at >= LOCAL_WINDOW) {
      ACTIVE(l, m) if (a[l] + far >= LOCAL_WINDOW) here |= 1u << l;
      uint64_t own[LANES];
      EACH own[l] = a[l] - LOCAL_WINDOW;
      if (!noted_local(L, S, site, own, far, here)) return 0;
      m &= ~here;
      continue;
    }
    if (!found(L, S, at, 1, ~0ull, 0)) return 0;
    Region *r = &L->region[S->last];
    ACTIVE(l, m) if (a[l] + far - r->base < r->size) here |= 1u << l;
#if RACES
    if (r->shadow) ACTIVE(l, here) {
      if (!screened(L, S, r->shadow, a[l] + far - r->base, site, l, 0)) return 0;
    }
#endif
#if COUNTS
    if (!counted(L, site, (int64_t)S->last, a, far, here)) return 0;
#endif
    m &= ~here;
  }
  return 1;
}
/* a copy to shared memory: what is not read of its source is not asked for */
APART int noted_copy(Launch *L, Warp *S, uint32_t from, uint32_t to, const uint64_t *source,
                     const uint64_t *target, const uint32_t *kept, uint32_t m) {
  uint32_t whole = 0;
  ACTIVE(l, m) {
#if RACES
    if (!screened_copy(L, S, from, to, source[l], target[l], kept[l], l)) return 0;
#endif
    if (kept[l] == site_of[from].width) whole |= 1u << l;
    else if (kept[l] && COUNTS) return 0;
  }
#if COUNTS
  while (whole) {
    if (!found(L, S, source[__builtin_ctz(whole)], 1, ~0ull, 0)) return 0;
    Region *r = &L->region[S->last];
    uint32_t here = 0;
    ACTIVE(l, whole) if (source[l] - r->base < r->size) here |= 1u << l;
    if (!counted(L, from, (int64_t)S->last, source, 0, here)) return 0;
    whole &= ~here;
  }
  return counted(L, to, IN_SHARED, target, 0, m);
#else
  return 1;
#endif
}
#endif

#if RACES
/* lanes of a whole warp, all of which name all others, have passed bar.warp.sync */
INLINE int warp_met(Warp *S, const uint32_t *members, uint32_t m) {
  if (m != S->whole) return 1;
  ACTIVE(l, m) if ((members[l] & m) != m) return 1;
  return ++S->syncs < 0xFFFF;
}
#endif
