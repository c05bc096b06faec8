/* How basic blocks follow each other: lanes enter, branch, leave, wait at a barrier. */

#pragma once
#include "warp.h"

#define ENTER(rank_, count) \
  L->executed[rank_] += __builtin_popcount(m); \
  if ((L->fuel -= count) <= 0) { \
    L->executed[rank_] -= __builtin_popcount(m); push(S, rank_, m); return AGAIN; } \
  int32_t on[LANES]; EACH on[l] = -(int32_t)((m >> l) & 1u);
#define NEXT(rank_, lanes) \
  do { uint32_t x_ = (lanes); \
       if (!S->pending || S->rank[S->pending - 1] > rank_) { m = x_; goto B##rank_; } \
       push(S, rank_, x_); goto dispatch; } while (0)
#define BRANCH(taken, yes, no) \
  do { if (taken == m) NEXT(yes, m); if (!taken) NEXT(no, m); \
       push(S, no, m & ~taken); push(S, yes, taken); goto dispatch; } while (0)
#define LEAVE(lanes) do { S->alive &= ~(lanes); goto dispatch; } while (0)
#define LEAVE_SOME(taken, after) \
  do { S->alive &= ~taken; if (taken == m) goto dispatch; NEXT(after, m & ~taken); } while (0)
#define BARRIER(rank_, after) \
  do { if (m != S->alive || S->pending) return FAULT; \
       push(S, after, m); S->at = rank_; return AT_BARRIER; } while (0)
#define LAST(L) ((uint64_t)L->grid[0] * L->grid[1] * L->grid[2])
