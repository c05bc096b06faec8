// CUTLASS #3324: an mbarrier between two blocks is used in the scope of one
// https://github.com/NVIDIA/cutlass/issues/3324
// kind: scope
// A block fills its shared memory and arrives at the mbarrier of its leader, which then reads it. Release
// and acquire have the scope of a block, so that the leader may read what was there before.
// mend: .release.cluster for the arrival, and .acquire.cluster for the wait.
// launch: grid 2, cluster 2
// before: scope too small; in the scope of one
#include "tools.cuh"
K(fault) {
  __shared__ int tile[64];
  __shared__ u64 ready;
  if (T == 0) { mb_init(&ready, 64); INIT_FENCE; }
  CLUSTER_SYNC;
  if (rank() == 1) {
    tile[T] = a[T];
    mb_arrive_far_narrow(&ready, 0);  //-
    mb_arrive_far(&ready, 0);  //+
  } else {
    mb_wait(&ready, 0);  //-
    mb_wait_cluster(&ready, 0);  //+
    b[T] = *far(&tile[T], 1);  //!
  }
  CLUSTER_SYNC;
}
