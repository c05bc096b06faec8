// TileLang #2566: with one iteration the copy's arrival is left out
// https://github.com/tile-ai/tilelang/issues/2566
// kind: bytes
// The mbarrier is initialised for one arrival. In a loop of one iteration the compiler emits expect_tx
// without an arrival: the bytes come, but the phase is never complete.
// mend: arrive and expect in one.
// before: deadlock; 256 of 256 expected bytes came
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[64];
  __shared__ u64 full;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  SYNC;
  if (T == 0) {
    mb_expect_only(&full, sizeof tile);  //-
    mb_expect(&full, sizeof tile);  //+
    tma_in(tile, a, sizeof tile, &full);
  }
  mb_wait(&full, 0);  //!
  b[T] = tile[T];
}
