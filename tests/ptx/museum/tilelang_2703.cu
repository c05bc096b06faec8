// TileLang #2703: a tile is cleared by one thread, and filled by all without a barrier
// https://github.com/tile-ai/tilelang/issues/2703
// kind: compiler
// The clear became one bulk store of a single thread, which the pass that places barriers did not take for
// a write. The fill may come before the clear.
// mend: a barrier between them.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int tile[64];
  if (T == 0)
    for (int k = 0; k < 64; k++) tile[k] = 0;  //!
  SYNC;  //+
  tile[T] += a[T];  //!
  SYNC;
  b[T] = tile[63 - T];
}
