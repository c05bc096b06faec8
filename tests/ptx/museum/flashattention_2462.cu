// flash-attention #2462: a stage is given back to the loader without a fence
// https://github.com/Dao-AILab/flash-attention/pull/2462
// kind: proxy fence
// Consumers read a small vector of a stage with plain loads, and arrive at the mbarrier that gives the
// stage back. The loading warp waits for them and copies the next tile over what they read.
// mend: each consumer executes fence.proxy.async before it arrives.
// launch: model ptx
// before: missing fence; fence.proxy.async is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int stage[32];
  __shared__ u64 full, empty;
  if (T == 0) {
    mb_init(&full, 1), mb_init(&empty, 32);
    INIT_FENCE;
  }
  SYNC;
  if (WARP == 0) {
    for (int i = 0; i < n; i++) {
      if (LANE == 0) {
        mb_wait(&empty, (i & 1) ^ 1);
        mb_expect(&full, sizeof stage);
        tma_in(stage, a + 32 * i, sizeof stage, &full);  //!
      }
      __syncwarp();
    }
  } else {
    for (int i = 0; i < n; i++) {
      mb_wait(&full, i & 1);
      b[32 * i + LANE] = stage[LANE];
      PROXY;  //+
      mb_arrive(&empty);
    }
  }
}
