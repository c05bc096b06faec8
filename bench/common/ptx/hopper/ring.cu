// C = A · Bᵀ in bf16: tensor copies into a ring of ST stages, one warp group that copies, two that
// multiply 64 rows each, persistent tiles. A stage is given back one turn later, as its products
// are waited for only when the next ones are under way.
#include "hopper.cuh"
#define BM 128
#define BN 64
#define BK 64
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define BYTES (A_BYTES + B_BYTES)

extern "C" __global__ void __launch_bounds__(384, 1)
ring(const __grid_constant__ Map A, const __grid_constant__ Map B, u32* C, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) u64 full[ST], empty[ST];
  int group = threadIdx.x / 128, across = N / BN, tiles = M / BM * across, turns = K / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < ST; i++) {
      barrier_init(sm(full + i), 1);
      barrier_init(sm(empty + i), 2);
    }
    fence_barrier_init();
  }
  __syncthreads();
  int stage = 0, phase = 0;
  if (group == 0) {
    registers_less<40>();
    if (threadIdx.x == 0) {
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int m = t / across * BM, n = t % across * BN;
        for (int k = 0; k < turns; k++) {
          u32 f = sm(full + stage), to = sm(memory) + stage * BYTES;
          wait(sm(empty + stage), phase ^ 1);
          expect(f, BYTES);
          copy_in(to, &A, k * BK, m, f);
          copy_in(to + A_BYTES, &B, k * BK, n, f);
          if (++stage == ST) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
    }
  } else {
    registers_more<232>();
    int own = group - 1, thread = threadIdx.x % 128;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      int m = t / across * BM, n = t % across * BN, last = -1;
      float d[32];
      for (int k = 0; k < turns; k++) {
        wait(sm(full + stage), phase);
        u32 a = sm(memory) + stage * BYTES + own * 64 * BK * 2, b = sm(memory) + stage * BYTES + A_BYTES;
        mma_fence();
#pragma unroll
        for (int i = 0; i < BK / 16; i++) mma(d, tile(a) + 2 * i, tile(b) + 2 * i, k || i);
        mma_commit();
        mma_wait<1>();
        if (last >= 0 && thread == 0) arrive(sm(empty + last));
        last = stage;
        if (++stage == ST) {
          stage = 0;
          phase ^= 1;
        }
      }
      mma_wait<0>();
      if (thread == 0) arrive(sm(empty + last));
      int row = m + own * 64 + thread / 32 * 16 + thread % 32 / 4, column = n + thread % 4 * 2;
#pragma unroll
      for (int j = 0; j < BN / 8; j++) {
        C[(row * N + column + 8 * j) / 2] = pair(d[4 * j], d[4 * j + 1]);
        C[((row + 8) * N + column + 8 * j) / 2] = pair(d[4 * j + 2], d[4 * j + 3]);
      }
    }
  }
}
