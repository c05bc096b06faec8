// FlashInfer #4742: a counter overtakes the partial sums that it counts
// https://github.com/flashinfer-ai/flashinfer/pull/4742
// kind: scope
// Blocks of a split-K product write partial sums, and one thread counts them. The block that sees the full
// count adds them up. The count is a relaxed atomic: it publishes nothing.
// mend: __threadfence() before the count.
// launch: grid 2
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  b[1024 + G] = a[G] * 2;  //!
  SYNC;
  if (T == 0) {
    __threadfence();  //+
    atomicAdd(b + 2048, 1);
  }
  if (B == 1) {
    if (T == 0)
      while (get_acquire(b + 2048) < 2);
    SYNC;
    b[T] = b[1024 + T] + b[1088 + T];  //!
  }
}
