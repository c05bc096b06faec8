// Triton #11731: the result of an atomic is read from a block that has returned
// https://github.com/triton-lang/triton/pull/11731
// kind: cluster
// The first block of a cluster computes a value, and the others read it from its shared memory. The first
// block returns meanwhile; on some GPUs the launch fails.
// mend: a barrier of the cluster before every return.
// launch: grid 2, cluster 2
// before: exit; may have ended
#include "tools.cuh"
K(fault) {
  __shared__ int result;
  if (rank() == 0 && T == 0) result = a[5] + 1;
  CLUSTER_SYNC;
  b[G] = *far(&result, 0);  //!
  CLUSTER_SYNC;  //+
}
