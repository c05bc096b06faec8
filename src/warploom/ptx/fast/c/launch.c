/* A launch: blocks one after the other, their warps from barrier to barrier. */

#pragma once
#include "blocks.h"
#include "lanes.h"
#include "warpgroup.h"

#ifndef ENTRY  /* alone, for a compiler's warnings: a kernel that does nothing */
#define ENTRY 0
#define NOBODY_WROTE(S)
static int run(Launch *L, Warp *S) { (void)L; (void)S; return DONE; }
#endif

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
