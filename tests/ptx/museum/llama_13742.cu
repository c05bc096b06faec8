// llama.cpp #13742: warps decide by a mask that others already overwrite
// https://github.com/ggml-org/llama.cpp/pull/13742
// kind: race
// All warps look at a mask in shared memory to see whether a piece can be skipped. One that skips it writes
// the next mask, while another still looks at this one.
// mend: a barrier before the next mask is written.
// after: this data
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int mask[64];
  int sum = 0;
  for (int i = 0; i < n; i++) {
    SYNC;  //+
    mask[T] = a[64 * i + T] & 1;  //!
    SYNC;
    bool skip = true;
    for (int k = 0; k < 64; k += 32) skip = skip && !mask[k + LANE];
    if (__all_sync(~0u, skip)) continue;
    sum += i;
  }
  b[T] = sum;
}
