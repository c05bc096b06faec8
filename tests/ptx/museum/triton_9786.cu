// Triton #9786: a barrier of the block in front of warps that never come to it
// https://github.com/triton-lang/triton/pull/9786
// kind: deadlock
// An instrumentation begins with a barrier of the whole block. It was put into the main warps alone; the
// worker warps wait for these at an mbarrier.
// mend: the barrier stands before the warps part.
// before: deadlock; for the others
#include "tools.cuh"
K(fault) {
  __shared__ u64 go;
  if (T == 0) { mb_init(&go, 1); INIT_FENCE; }
  SYNC;
  SYNC;  //+
  if (WARP == 0) {
    SYNC;  //-!
    if (LANE == 0) mb_arrive(&go);
  } else {
    mb_wait(&go, 0);
  }
  b[T] = a[T];
}
