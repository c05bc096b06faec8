// DeepEP #642: a copy fills a stage that threads have only just read
// https://github.com/deepseek-ai/DeepEP/pull/642
// kind: proxy fence
// All threads read a stage with plain loads, meet, and one thread starts the next copy into it.
// Without a fence between the two proxies, the copy may overtake loads that were issued before it.
// mend: fence.proxy.async behind the loads, before the barrier.
// launch: model ptx
// before: missing fence; fence.proxy.async is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int stage[64];
  __shared__ u64 full;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  SYNC;
  for (int i = 0; i < n; i++) {
    if (T == 0) {
      mb_expect(&full, sizeof stage);
      tma_in(stage, a + 64 * i, sizeof stage, &full);  //!
    }
    mb_wait(&full, i & 1);
    b[64 * i + T] = stage[T];
    PROXY;  //+
    SYNC;
  }
}
