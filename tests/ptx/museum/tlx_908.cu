// TLX #908: bytes come to both blocks, and one of them expects none
// https://github.com/facebookexperimental/triton/pull/908
// kind: bytes
// A multicast writes into both blocks of a cluster and completes an mbarrier in each. Only the first block
// arrives with expected bytes, so that the second waits for ever.
// mend: each block arrives at its own mbarrier with the bytes that it expects.
// launch: grid 2, cluster 2
// before: deadlock; bring 256 bytes more than expect_tx names
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int reply[64];
  __shared__ u64 full;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  CLUSTER_SYNC;
  if (T == 0 && rank() == 0) mb_expect(&full, sizeof reply);  //-
  if (T == 0) mb_expect(&full, sizeof reply);  //+
  CLUSTER_SYNC;
  if (T == 0 && rank() == 0) tma_all(reply, a, sizeof reply, &full, 3);
  mb_wait(&full, 0);  //!
  b[G] = reply[T];
  CLUSTER_SYNC;
}
