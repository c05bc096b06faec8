// CUTLASS #3597: the scratch memory of a reduction is used again too early
// https://github.com/NVIDIA/cutlass/issues/3597
// kind: race
// Four warps reduce maxima through scratch memory, and then sums through the same. A warp writes its sum
// while another still reads the maxima.
// mend: a barrier between the two reductions.
// launch: block 128
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int scratch[4];
  if (LANE == 0) scratch[WARP] = a[T];
  SYNC;
  int most = 0, sum = 0;
  for (int w = 0; w < 4; w++) most = max(most, scratch[w]);  //!
  SYNC;  //+
  if (LANE == 0) scratch[WARP] = a[T] - most;  //!
  SYNC;
  for (int w = 0; w < 4; w++) sum += scratch[w];
  b[T] = sum;
}
