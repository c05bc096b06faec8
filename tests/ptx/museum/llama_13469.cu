// llama.cpp #13469: a barrier that some warps pass once more than others
// https://github.com/ggml-org/llama.cpp/pull/13469
// kind: race
// A barrier stands in a branch that only some warps take. From there on these warps are one barrier ahead:
// they meet the others at their next one, and read what those have not written.
// mend: the barrier stands behind the branch, for all.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int tile[64];
  for (int i = 0; i < n; i++) {
    tile[T] = a[64 * i + T];  //!
    SYNC;
    b[64 * i + T] = tile[63 - T];  //!
    if (WARP == 0) SYNC;  //-
    SYNC;
  }
}
