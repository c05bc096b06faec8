// Triton #10669: a block that is delayed misses a phase of a home-made cluster barrier
// https://github.com/triton-lang/triton/pull/10669
// kind: phase
// Blocks meet by arriving at each other's mbarrier. The faster one arrives a second time before the slower
// has asked for the first phase, whose parity then never comes back.
// mend: two mbarriers that take turns.
// launch: grid 2, cluster 2, n 4
// before: C3
#include "tools.cuh"
K(fault) {
  __shared__ u64 meet[2];
  if (T == 0) { mb_init(meet, 1), mb_init(meet + 1, 1); INIT_FENCE; }
  CLUSTER_SYNC;
  for (int i = 0; i < n; i++) {
    u64* here = meet;  //-
    u64* here = meet + (i & 1);  //+
    int parity = i & 1;  //-
    int parity = i >> 1 & 1;  //+
    SYNC;
    if (T == 0) mb_arrive_far(here, rank() ^ 1);
    mb_wait_cluster(here, parity);  //!
  }
  b[G] = a[G];
  CLUSTER_SYNC;
}
