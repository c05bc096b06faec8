// TransformerEngine #3417: only the thread that began a store can wait for it
// https://github.com/NVIDIA/TransformerEngine/pull/3417
// kind: wait
// All threads write a tile, one of them stores it, and all of them wait for bulk groups. The groups of the
// others are empty, so they go on and write the next tile over bytes that are being stored.
// mend: a barrier behind the wait of the storing thread.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[64];
  for (int i = 0; i < n; i++) {
    tile[T] = a[64 * i + T] + i;  //!
    PROXY;
    SYNC;
    if (T == 0) {
      tma_out(b + 64 * i, tile, sizeof tile);
      BULK_COMMIT;
    }
    BULK_WAIT_READ(0);
    SYNC;  //+
  }
  BULK_WAIT(0);
}
