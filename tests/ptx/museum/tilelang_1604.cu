// TileLang #1604: what one warp wrote is read by all without a barrier
// https://github.com/tile-ai/tilelang/issues/1604
// kind: compiler
// The first warp fills a table under a guard; all threads read it. The generated barrier stood inside the
// guard, for the writers alone.
// mend: a barrier of the block behind the guard.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int table[32];
  if (T < 32) {
    table[T] = a[T] * 2;  //!
    __syncwarp();
  }
  SYNC;  //+
  b[T] = table[31 - T % 32];  //!
}
