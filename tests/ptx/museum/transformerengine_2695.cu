// TransformerEngine #2695: the next stage of a ring is fetched over loads of this one
// https://github.com/NVIDIA/TransformerEngine/pull/2695
// kind: proxy fence
// Two stages take turns. While all threads reduce one of them, the other is fetched. A barrier alone
// stands between the loads of a stage and the copy that fills it again.
// mend: fence.proxy.async behind the loads of each stage.
// launch: model ptx
// before: missing fence; fence.proxy.async is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int stage[2][64];
  __shared__ u64 full[2];
  if (T == 0) {
    mb_init(full, 1), mb_init(full + 1, 1);
    INIT_FENCE;
    mb_expect(full, 256);
    tma_in(stage[0], a, 256, full);
  }
  SYNC;
  int most = 0;
  for (int i = 0; i < n; i++) {
    int next = (i + 1) & 1;
    if (T == 0 && i + 1 < n) {
      mb_expect(full + next, 256);
      tma_in(stage[next], a + 64 * (i + 1), 256, full + next);  //!
    }
    mb_wait(full + (i & 1), i >> 1 & 1);
    most = max(most, stage[i & 1][T]);
    PROXY;  //+
    SYNC;
  }
  b[T] = most;
}
