// vLLM #26026: warps without work arrive at a barrier, and come round before the others
// https://github.com/vllm-project/vllm/pull/26026
// kind: deadlock
// Computing warps with an empty tile arrive at a named barrier and go on. They may arrive for the next tile
// before the loading warp has come for this one: the barrier counts them twice, and the loader hangs.
// mend: they arrive and wait.
// before: barrier
#include "tools.cuh"
K(fault) {
  for (int i = 0; i < n; i++)
    if (WARP == 0) {
      b[32 * i + LANE] = a[32 * i + LANE];
      BAR(1, 64);
    } else {
      ARRIVE(1, 64);  //-!
      BAR(1, 64);  //+
    }
}
