// FlashKDA #24: a tile is stored by TMA straight behind its writes
// https://github.com/MoonshotAI/FlashKDA/issues/24
// kind: proxy fence
// Threads write a tile of shared memory, meet at a barrier, and one thread stores it by a bulk copy.
// The barrier does not tell the asynchronous proxy of the writes, so that the copy may store old bytes.
// mend: each writer executes fence.proxy.async before the barrier.
// before: missing fence; fence.proxy.async is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[64];
  tile[T] = a[T] * 3;
  PROXY;  //+
  SYNC;
  if (T == 0) {
    tma_out(b, tile, sizeof tile);  //!
    BULK_COMMIT;
    BULK_WAIT(0);
  }
}
