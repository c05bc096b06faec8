// TensorRT-LLM #18339: a leader rewrites a value that the block is still reading
// https://github.com/NVIDIA/TensorRT-LLM/pull/18339
// kind: race
// A leader publishes a bound, all threads read it after a barrier, and the leader writes the next bound at
// once. Late readers see another bound than the rest, and take another number of turns.
// mend: a barrier between the reads and the next write.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int bound;
  int mine = 0;
  for (int i = 0; i < n; i++) {
    if (T == 0) bound = 7 * i;  //!
    SYNC;
    mine += bound;
    SYNC;  //+
  }
  b[T] = mine;
}
