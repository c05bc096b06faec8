// TileLang #2556: a barrier is dropped where 48 of 64 threads take part
// https://github.com/tile-ai/tilelang/issues/2556
// kind: compiler
// A guard leaves 48 threads active. The compiler planned a barrier between a write and the read of another
// thread's element, could not express it for one and a half warps, and left it out.
// mend: the guard is split, and all threads meet in between.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int row[64];
  if (T < 48) row[T] = a[T];  //!
  SYNC;  //+
  if (T < 48) b[T] = row[47 - T];  //!
}
