// TileLang #2410: a slot of the scheduler is given back before it is read
// https://github.com/tile-ai/tilelang/issues/2410
// kind: race
// A scheduler writes the next tile into a slot. Consumers arrive at the mbarrier that frees the slot first,
// and read it then: the scheduler may have written the tile after next.
// mend: read the slot, then arrive.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int slot;
  __shared__ u64 full, empty;
  if (T == 0) { mb_init(&full, 1), mb_init(&empty, 32); INIT_FENCE; }
  SYNC;
  for (int i = 0; i < n; i++)
    if (WARP == 0) {
      if (LANE == 0) {
        mb_wait(&empty, (i & 1) ^ 1);
        slot = 32 * i;  //!
        mb_arrive(&full);
      }
      __syncwarp();
    } else {
      mb_wait(&full, i & 1);
      mb_arrive(&empty);  //-
      int tile = slot;  //!
      mb_arrive(&empty);  //+
      b[32 * i + LANE] = tile;
    }
}
