// Triton #10035: one warp gives a stage back before another has seen it full
// https://github.com/triton-lang/triton/pull/10035
// kind: phase
// Two consumer warps wait for a stage; the first arrives for both of them. The producer fills the stage
// again, and the second warp, still asking for the old phase, waits for ever.
// mend: the consumers meet before one of them arrives.
// launch: block 96
// before: C3
#include "tools.cuh"
K(fault) {
  __shared__ u64 full, empty;
  if (T == 0) { mb_init(&full, 1), mb_init(&empty, 1); INIT_FENCE; }
  SYNC;
  for (int i = 0; i < n; i++)
    if (WARP == 2) {
      if (LANE == 0) {
        mb_wait(&empty, (i & 1) ^ 1);
        mb_arrive(&full);
      }
      __syncwarp();
    } else {
      mb_wait(&full, i & 1);  //!
      b[64 * i + T] = a[64 * i + T];
      BAR(1, 64);  //+
      if (T == 0) mb_arrive(&empty);
    }
}
