// TileLang #2567: loader and consumer wait for each other from the first iteration on
// https://github.com/tile-ai/tilelang/issues/2567
// kind: deadlock
// The loader waits until a buffer is given back before it fills it for the first time. For an unaligned
// length, the consumer's arrival stood behind work that needs this buffer: each waits for the other.
// mend: the first wait for an empty buffer passes at once, by its parity.
// launch: n 2
// before: deadlock; 0 of 32 arrivals came
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[32];
  __shared__ u64 full, empty;
  if (T == 0) { mb_init(&full, 1), mb_init(&empty, 32); INIT_FENCE; }
  SYNC;
  for (int i = 0; i < n; i++)
    if (WARP == 0) {
      if (LANE == 0) {
        mb_wait(&empty, i & 1);  //-!
        mb_wait(&empty, (i & 1) ^ 1);  //+
        mb_expect(&full, sizeof tile);
        tma_in(tile, a + 32 * i, sizeof tile, &full);
      }
      __syncwarp();
    } else {
      mb_wait(&full, i & 1);
      b[32 * i + LANE] = tile[LANE];
      PROXY;
      mb_arrive(&empty);
    }
}
