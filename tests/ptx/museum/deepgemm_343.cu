// DeepGEMM #343: a tensor map is rewritten while a copy may still read it
// https://github.com/deepseek-ai/DeepGEMM/pull/343
// kind: proxy fence
// For each group of a grouped matmul the kernel writes the tensor map anew, at the same address. Copies of
// the group before may be under way, and then fetch by a map that is half old and half new.
// mend: wait for the copies of the group before, then write the map.
// launch: block 32, n 2
// before: missing wait; nobody waits for the mbarrier's phase
#include "tools.cuh"
K(fault) {
  __shared__ alignas(128) int map[32];
  __shared__ alignas(128) int box[2][32];
  __shared__ u64 full[2];
  if (T == 0) { mb_init(full, 1), mb_init(full + 1, 1); INIT_FENCE; }
  for (int g = 0; g < n; g++) {
    if (g > 0) mb_wait(full, 0);  //+
    __syncwarp();
    map[T] = 0;
    __syncwarp();
    if (T == 0) map_fields(map, a + 4 * g);
    __syncwarp();
    map_publish(b + 1024, map);  //!
    map_acquire(b + 1024);
    __syncwarp();
    if (T == 0) {
      mb_expect(full + g, 128);
      tma_box(box[g], b + 1024, 8, 2, full + g);
    }
  }
  for (int g = 0; g < n; g++) {
    mb_wait(full + g, 0);
    b[32 * g + T] = box[g][T];
  }
}
