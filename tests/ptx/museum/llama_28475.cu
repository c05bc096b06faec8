// llama.cpp #28475: a warp reads a list of its own lanes without __syncwarp
// https://github.com/ggml-org/llama.cpp/pull/28475
// kind: race
// Lanes append to a list in shared memory, take a sum by shuffles, and go through the list. Shuffles order
// no memory: a lane may read what another has not written.
// mend: __syncwarp() between the two loops.
// launch: block 32
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int list[32];
  list[LANE] = a[LANE] * 5;  //!
  int sum = LANE;
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  __syncwarp();  //+
  b[LANE] = list[31 - LANE] + sum;  //!
}
