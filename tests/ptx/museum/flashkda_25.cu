// FlashKDA #25: copies complete an mbarrier whose initialisation nobody told them of
// https://github.com/MoonshotAI/FlashKDA/pull/25
// kind: proxy fence
// One thread initialises an mbarrier, all meet at a barrier, and a bulk copy reports its bytes to it.
// The initialisation is a generic write; the copy reaches the mbarrier by the asynchronous proxy.
// mend: fence.mbarrier_init behind the initialisation.
// launch: model ptx
// before: missing fence; no fence tells of the mbarrier's initialisation
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[64];
  __shared__ u64 full;
  if (T == 0) mb_init(&full, 1);
  if (T == 0) INIT_FENCE;  //+
  SYNC;
  if (T == 0) {
    mb_expect(&full, sizeof tile);
    tma_in(tile, a, sizeof tile, &full);  //!
  }
  mb_wait(&full, 0);
  b[T] = tile[T];
}
