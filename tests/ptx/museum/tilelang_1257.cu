// TileLang #1257: an atomic sum is read before it is complete
// https://github.com/tile-ai/tilelang/issues/1257
// kind: compiler
// Threads add to elements of shared memory and then read those of others. No barrier was generated behind
// the atomics.
// mend: barriers before and behind the sums.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int sums[64];
  sums[T] = 0;
  SYNC;
  atomicAdd(&sums[T / 2], a[T]);  //!
  SYNC;  //+
  b[T] = sums[63 - T];  //!
}
