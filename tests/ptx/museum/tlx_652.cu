// TLX #652: an arrival reaches a peer whose mbarrier is not initialised yet
// https://github.com/facebookexperimental/triton/pull/652
// kind: cluster
// Each block initialises its mbarrier and passes its own barrier. Then it arrives at the peer's mbarrier,
// though the peer may not have begun.
// mend: a barrier of the cluster behind the initialisation.
// launch: grid 2, cluster 2
// before: missing fence; of the mbarrier's initialisation
#include "tools.cuh"
K(fault) {
  __shared__ u64 ready;
  if (T == 0) { mb_init(&ready, 1); INIT_FENCE; }
  SYNC;  //-
  CLUSTER_SYNC;  //+
  if (T == 0) mb_arrive_far(&ready, rank() ^ 1);  //!
  mb_wait_cluster(&ready, 0);
  b[G] = a[G];
  CLUSTER_SYNC;
}
