// GiMMiK #23: the consumer laps the producer
// https://github.com/PyFR/GiMMiK/pull/23
// kind: phase
// A warp publishes the number of the next piece of work and arrives; the others take it. With one mbarrier
// for both, a warp may come back and ask for a phase while the one before is still answered for.
// mend: a second mbarrier, by which the consumers give the slot back.
// before: deadlock; 0 of 1 arrivals came
#include "tools.cuh"
K(fault) {
  __shared__ int work;
  __shared__ u64 full, empty;
  if (T == 0) { mb_init(&full, 1), mb_init(&empty, 32); INIT_FENCE; }
  SYNC;
  for (int i = 0; i < n; i++)
    if (WARP == 0) {
      if (LANE == 0) {
        mb_wait(&empty, (i & 1) ^ 1);  //+
        atomicExch(&work, i);
        mb_arrive(&full);
      }
      __syncwarp();
    } else {
      mb_wait(&full, i & 1);  //!
      b[32 * i + LANE] = a[32 * i + LANE];
      mb_arrive(&empty);  //+
    }
}
