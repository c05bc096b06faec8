// DeepEP #632: data of a peer are polled for by loads, then fetched by TMA
// https://github.com/deepseek-ai/DeepEP/pull/632
// kind: proxy fence
// One block writes data and sets a flag. The other sees the flag with an acquire, and fetches the data
// with a bulk copy. The acquire covers plain loads alone: the copy may still see old data.
// mend: fence.proxy.async between the flag and the copy.
// launch: grid 2
// before: missing fence; fence.proxy.async is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(16) int tile[64];
  __shared__ u64 full;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  SYNC;
  if (B == 0) {
    b[T] = a[T] + 1;
    SYNC;
    if (T == 0) put_release(b + 1024, 1);
  } else {
    if (T == 0) {
      while (get_acquire(b + 1024) == 0);
      PROXY_ALL;  //+
      mb_expect(&full, sizeof tile);
      tma_in(tile, b, sizeof tile, &full);  //!
    }
    mb_wait(&full, 0);
    b[64 + T] = tile[T];
  }
}
