// TLX #1105: a block arrives at the mbarrier of a peer that has ended
// https://github.com/facebookexperimental/triton/pull/1105
// kind: cluster
// One block loads for two, and each tells it when a stage is free. Nobody waits for the last of these
// arrivals, and nothing holds the cluster together: the loader's shared memory may be another block's by then.
// mend: a barrier of the cluster before the end.
// launch: grid 2, cluster 2, n 3
// before: exit; may have ended
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int stage[64];
  __shared__ u64 full, empty;
  if (T == 0) { mb_init(&full, 1), mb_init(&empty, 2); INIT_FENCE; }
  CLUSTER_SYNC;
  for (int i = 0; i < n; i++) {
    if (T == 0) mb_expect(&full, sizeof stage);
    if (T == 0 && rank() == 0) {
      mb_wait_cluster(&empty, (i & 1) ^ 1);
      tma_all(stage, a + 64 * i, sizeof stage, &full, 3);
    }
    mb_wait(&full, i & 1);
    b[128 * i + G] = stage[T];
    PROXY;
    SYNC;
    if (T == 0) mb_arrive_far(&empty, 0);  //!
  }
  CLUSTER_SYNC;  //+
}
