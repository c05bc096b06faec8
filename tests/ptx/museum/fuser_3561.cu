// Fuser #3561: an operand is given back while the product still reads it
// https://github.com/NVIDIA/Fuser/issues/3561
// kind: wait
// A warpgroup issues a product and arrives at the mbarrier that gives its operand back. It did not wait for
// the product, so that the loading thread copies the next operand over one that is being read.
// mend: wgmma.commit_group and wgmma.wait_group before the arrival.
// launch: block 160, n 2
// before: missing wait; wgmma.wait_group is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(128) int left[512], right[64];
  __shared__ u64 full, empty;
  if (T == 0) { mb_init(&full, 1), mb_init(&empty, 128); INIT_FENCE; }
  if (T < 128) {
    for (int i = T; i < 512; i += 128) left[i] = 0x3c003c00;
    PROXY;
  }
  SYNC;
  if (T >= 128) {
    if (LANE == 0)
      for (int i = 0; i < n; i++) {
        mb_wait(&empty, (i & 1) ^ 1);
        mb_expect(&full, sizeof right);
        tma_in(right, b, sizeof right, &full);  //!
      }
  } else {
    float d[4] = {0, 0, 0, 0};
    for (int i = 0; i < n; i++) {
      mb_wait(&full, i & 1);
      WG_FENCE;
      wgmma8(d, descriptor(left), descriptor(right));
      WG_COMMIT;
      WG_WAIT(0);  //+
      mb_arrive(&empty);
    }
    WG_WAIT(0);
    for (int i = 0; i < 4; i++) b[256 + 4 * T + i] = (int)d[i];
  }
}
