// llama.cpp #20507: a transposing copy loads the next tile over the one it writes out
// https://github.com/ggml-org/llama.cpp/pull/20507
// kind: race
// Tiles go through shared memory one after the other. There is a barrier behind the load, and none behind
// the store, so that a fast warp loads over elements that a slow one has yet to write out.
// mend: a barrier behind the store.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int tile[8][9];
  for (int i = 0; i < n; i++) {
    tile[T / 8][T % 8] = a[64 * i + T];  //!
    SYNC;
    b[64 * i + T] = tile[T % 8][T / 8];
    SYNC;  //+
  }
}
