// llama.cpp #13438: partial sums are read back before all of them are written
// https://github.com/ggml-org/llama.cpp/pull/13438
// kind: race
// Each warp of an attention kernel writes its maximum into shared memory, and combines those of all warps
// straight away.
// mend: a barrier between the writes and the reads.
// launch: block 128
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int maxima[4];
  int most = a[T];
  for (int d = 16; d; d /= 2) most = max(most, __shfl_xor_sync(~0u, most, d));
  if (LANE == 0) maxima[WARP] = most;  //!
  SYNC;  //+
  for (int w = 0; w < 4; w++) most = max(most, maxima[w]);  //!
  b[T] = most;
}
