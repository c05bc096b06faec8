// TVM #20074: an arrival in its local form is given the address of a peer
// https://github.com/apache/tvm/pull/20074
// kind: cluster
// The address of a peer's mbarrier is made by mapa, and then used by an arrival that is defined for the own
// block alone.
// mend: the form for shared::cluster.
// launch: grid 2, cluster 2
// before: fault; belongs to no shared memory
#include "tools.cuh"
K(fault) {
  __shared__ u64 ready;
  if (T == 0) { mb_init(&ready, 1); INIT_FENCE; }
  CLUSTER_SYNC;
  if (T == 0) mb_arrive_local_form(&ready, rank() ^ 1);  //-!
  if (T == 0) mb_arrive_far(&ready, rank() ^ 1);  //+
  mb_wait_cluster(&ready, 0);
  b[G] = a[G];
  CLUSTER_SYNC;
}
