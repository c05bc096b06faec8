// CUTLASS #3643: the leader never waits for the copy of its peer
// https://github.com/NVIDIA/cutlass/issues/3643
// kind: cluster
// Two blocks load one half each, tracked by mbarriers of their own. The leader reads both halves, but waits
// for its own mbarrier alone.
// mend: the peer waits for its copy, and tells the leader at a second mbarrier.
// launch: grid 2, cluster 2
// before: data race; the asynchronous write
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int half[64];
  __shared__ u64 full, peer;
  if (T == 0) { mb_init(&full, 1), mb_init(&peer, 1); INIT_FENCE; }
  CLUSTER_SYNC;
  if (T == 0) {
    mb_expect(&full, sizeof half);
    tma_in(half, a + 64 * rank(), sizeof half, &full);
  }
  if (rank() == 1) {
    if (T == 0) mb_wait(&full, 0);  //+
    if (T == 0) mb_arrive_far(&peer, 0);  //+
  } else {
    mb_wait(&full, 0);
    mb_wait_cluster(&peer, 0);  //+
    b[T] = half[T] + *far(&half[T], 1);  //!
  }
  if (T == 0) mb_wait(&full, 0);
  CLUSTER_SYNC;
}
