// TileLang #3087: a wait asks for a parity that an older phase has answered already
// https://github.com/tile-ai/tilelang/pull/3087
// kind: wait
// An mbarrier flips in each iteration. The wait was written for a ring, and asks for the parity of the
// iteration divided by the number of stages. From the second iteration on it passes at once.
// mend: ask for the parity of the iteration.
// launch: n 2
// before: missing wait; nobody waits for the mbarrier's phase
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[64];
  __shared__ u64 full;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  SYNC;
  for (int i = 0; i < n; i++) {
    if (T == 0) {
      mb_expect(&full, sizeof tile);
      tma_in(tile, a + 64 * i, sizeof tile, &full);
    }
    mb_wait(&full, i / 3 & 1);  //-
    mb_wait(&full, i & 1);  //+
    b[64 * i + T] = tile[T];  //!
    PROXY;
    SYNC;
  }
}
