// Triton #7293: a tensor map that the kernel wrote is used without an acquire
// https://github.com/triton-lang/triton/pull/7293
// kind: proxy fence
// A kernel fills in a tensor map and puts it into global memory. A copy reads it there by a proxy of its
// own, which may still hold what was at that address before.
// mend: fence.proxy.tensormap with .acquire at the map's address, before its first use.
// launch: block 32
// before: missing fence; fences of tensor maps are missing
#include "tools.cuh"
K(fault) {
  __shared__ alignas(128) int map[32];
  __shared__ alignas(128) int box[32];
  __shared__ u64 full;
  map[T] = 0;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  __syncwarp();
  if (T == 0) map_fields(map, a);
  __syncwarp();
  map_publish(b + 1024, map);
  map_acquire(b + 1024);  //+
  __syncwarp();
  if (T == 0) {
    mb_expect(&full, sizeof box);
    tma_box(box, b + 1024, 8, 2, &full);  //!
  }
  mb_wait(&full, 0);
  b[T] = box[T];
}
