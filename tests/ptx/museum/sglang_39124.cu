// sglang #39124: operands are written by threads, and read by the tensor cores
// https://github.com/sgl-project/sglang/pull/39124
// kind: proxy fence
// Threads widen a tile into shared memory and meet. The product reads it by the asynchronous proxy,
// which has not been told of the writes. (There tcgen05, here wgmma.)
// mend: fence.proxy.async behind the writes, before the barrier.
// launch: block 128
// before: missing fence; fence.proxy.async is missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(128) int left[512], right[64];
  for (int i = T; i < 512; i += 128) left[i] = 0x3c003c00;
  if (T < 64) right[T] = 0x3c003c00;
  PROXY;  //+
  SYNC;
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; i++) asm volatile("" : "+f"(d[i]));
  WG_FENCE;
  wgmma8(d, descriptor(left), descriptor(right));  //!
  WG_COMMIT;
  WG_WAIT(0);
  for (int i = 0; i < 4; i++) b[4 * T + i] = (int)d[i];
}
