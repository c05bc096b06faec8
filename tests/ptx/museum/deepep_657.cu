// DeepEP #657: a stage is loaded again while its own store is the one group left pending
// https://github.com/deepseek-ai/DeepEP/issues/657
// kind: wait
// One thread copies through a ring of two stages. Before it loads into a stage it waits until one group of
// stores is pending. The pending one is the store that reads this very stage.
// mend: wait until none is pending.
// launch: block 32
// before: missing wait; cp.async.bulk.wait_group.read is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int stage[2][64];
  __shared__ u64 full[2];
  if (T == 0) {
    mb_init(full, 1), mb_init(full + 1, 1);
    INIT_FENCE;
    for (int i = 0; i < 2; i++) {
      mb_expect(full + i, 256);
      tma_in(stage[i], a + 64 * i, 256, full + i);
    }
    for (int i = 0; i < n; i++) {
      int s = i & 1;
      mb_wait(full + s, i >> 1 & 1);
      tma_out(b + 64 * i, stage[s], 256);
      BULK_COMMIT;
      if (i + 2 < n) {
        BULK_WAIT_READ(1);  //-
        BULK_WAIT_READ(0);  //+
        mb_expect(full + s, 256);
        tma_in(stage[s], a + 64 * (i + 2), 256, full + s);  //!
      }
    }
    BULK_WAIT(0);
  }
}
