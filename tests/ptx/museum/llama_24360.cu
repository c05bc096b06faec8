// llama.cpp #24360: a scan overwrites what the iteration before still reads
// https://github.com/ggml-org/llama.cpp/pull/24360
// kind: race
// In each step of a scan two short vectors are put into shared memory, and all threads go through them. A
// fast warp puts in those of the next step.
// mend: a barrier at the end of the step.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int left[16], right[16];
  int state = 0;
  for (int i = 0; i < n; i++) {
    if (T < 16) left[T] = a[32 * i + T];  //!
    if (T >= 48) right[T - 48] = a[32 * i + T - 32];
    SYNC;
    for (int k = 0; k < 16; k++) state = state * 3 + left[k] * right[k];
    b[64 * i + T] = state;
    SYNC;  //+
  }
}
