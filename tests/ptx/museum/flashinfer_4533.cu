// FlashInfer #4533: two pairs of warps meet at a barrier of the same number
// https://github.com/flashinfer-ai/flashinfer/pull/4533
// kind: deadlock
// Each pair of warps reduces through its own scratch memory, behind a named barrier for two warps. Both use
// the same number, so that warps of different pairs complete it for each other.
// mend: a number of its own for each pair.
// launch: block 128
// before: barrier; may come before all have come
#include "tools.cuh"
K(fault) {
  __shared__ int scratch[128];
  int pair = T / 64;
  scratch[T] = a[T];
  BAR(1, 64);  //-!
  BAR(1 + pair, 64);  //+
  b[T] = scratch[T ^ 32];
}
