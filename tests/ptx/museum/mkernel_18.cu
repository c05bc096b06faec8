// mKernel #18: a stage that also holds the output is loaded before the output is stored
// https://github.com/uccl-project/mKernel/pull/18
// kind: wait
// One stage of the ring holds an input during the product, and the output behind it. The wait for the store
// of the output stood at a fixed iteration, and not before the first load of the next task.
// mend: wait for the store at the start of each task.
// before: missing wait; cp.async.bulk.wait_group
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int stage[2][64];
  __shared__ u64 full[2];
  if (T == 0) { mb_init(full, 1), mb_init(full + 1, 1); INIT_FENCE; }
  SYNC;
  for (int task = 0; task < 2; task++) {
    int sum = 0;
    for (int k = 0; k < 3; k++) {
      int at = 3 * task + k, s = at & 1;
      if (T == 0) {
        if (k == 0) BULK_WAIT_READ(0);  //+
        if (k == 2) BULK_WAIT_READ(0);  //-
        mb_expect(full + s, 256);
        tma_in(stage[s], a + 64 * at, 256, full + s);  //!
      }
      mb_wait(full + s, at >> 1 & 1);
      sum += stage[s][T];
      PROXY;
      SYNC;
    }
    int last = (3 * task + 3) & 1;
    stage[last][T] = sum;
    PROXY;
    SYNC;
    if (T == 0) {
      tma_out(b + 64 * task, stage[last], 256);
      BULK_COMMIT;
    }
  }
  if (T == 0) BULK_WAIT(0);
}
