// Triton #9498: a whole warp arrives at an mbarrier that is made for one thread
// https://github.com/triton-lang/triton/pull/9498
// kind: phase
// Before it frees memory that two blocks share, a warp tells its peer. All 32 lanes arrive, and the mbarrier
// is initialised for one arrival: phases rush past the peer.
// mend: one lane arrives.
// launch: grid 2, cluster 2, block 32
// before: deadlock; 0 of 1 arrivals came
#include "tools.cuh"
K(fault) {
  __shared__ u64 freed;
  if (T == 0) { mb_init(&freed, 1); INIT_FENCE; }
  CLUSTER_SYNC;
  b[G] = a[G];
  mb_arrive_far(&freed, rank() ^ 1);  //-
  if (T == 0) mb_arrive_far(&freed, rank() ^ 1);  //+
  mb_wait_cluster(&freed, 0);  //!
  CLUSTER_SYNC;
}
