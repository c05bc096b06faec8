// TileLang #2613: the barrier at the end of the loop is missing
// https://github.com/tile-ai/tilelang/issues/2613
// kind: compiler
// All threads stage a tile, and two groups of warps read it in branches of their own. The compiler saw no
// reuse across the branches: the next tile is written while a group still reads this one.
// mend: a barrier at the end of each iteration.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int tile[64];
  int sum = 0;
  for (int i = 0; i < n; i++) {
    tile[T] = a[64 * i + T];  //!
    SYNC;
    if (WARP == 0)
      for (int k = 0; k < 64; k++) sum += tile[k];
    else
      for (int k = 0; k < 64; k++) sum -= tile[k];
    SYNC;  //+
  }
  b[T] = sum;
}
