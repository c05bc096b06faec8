/* The part of the C text that every kernel has: lanes, values of one lane, blocks.

   A register is an array of 32 lanes, a predicate one of zeros and ones. A warp keeps what must outlive
   a basic block in its own struct, so that it can stop at a barrier, or when its slice of time is over,
   and go on later. Whatever is not plainly allowed ends the launch with FAULT: the NumPy
   evaluator then runs it from the beginning and says what is wrong. */

#pragma once
#include <fenv.h>
#include "values.h"

/* What a text may say before: whether it watches uninitialised values, what it notes of accesses
   (sites, in units of bytes), which registers outlive a basic block. */
#ifndef WATCHED
#define WATCHED 0
#endif
#ifndef SITES
#define COUNTS 0
#define RACES 0
#define UPDATED 0
#define UNIT 4
#define SITES {0}
#endif
#ifndef WARP_REGISTERS
#define WARP_REGISTERS
#endif

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
  uint64_t missing;  /* an uninitialised value was met, by a text that does not watch them */
  void *patterns, *shared_shadow, *copies;  /* of a text that notes accesses (see `notes_text`) */
  uint32_t *latest;
  uint64_t *branched, different, barriers, shuffles, updates;
  void (*full)(uint64_t *);
  uint64_t stamp, first_stamp, suspect;
} Launch;

typedef struct Warp {
  uint32_t tid[3][LANES];
  WARP_REGISTERS
  uint32_t rank[LANES], mask[LANES];
  uint32_t alive, whole, block[3], syncs;
  int pending, state;
  int64_t at;
  uint64_t last, number, products;
  uint8_t *local;
  uint32_t yes, came, how, *joined;  /* of a barrier that reduces */
} __attribute__((aligned(64))) Warp;
