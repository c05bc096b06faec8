// C = A · Bᵀ in bf16, whose tiles leave through shared memory by tensor copies. One warp group
// copies into a ring of three stages, two multiply 64 rows each; each has a slab of 64×64 for C.
#include "hopper.cuh"
#define ST 3
#define BM 128
#define BN 64
#define BK 64
#define A_BYTES (BM * BK * 2)
#define BYTES (A_BYTES + BN * BK * 2)
#define SLAB (64 * BN * 2)

extern "C" __global__ void __launch_bounds__(384, 1)
store_epilogue(const __grid_constant__ Map A, const __grid_constant__ Map B, const __grid_constant__ Map C, int M, int N, int K) {
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
        for (int k = 0; k < turns; k++) {
          u32 f = sm(full + stage), to = sm(memory) + stage * BYTES;
          wait(sm(empty + stage), phase ^ 1);
          expect(f, BYTES);
          copy_in(to, &A, k * BK, t / across * BM, f);
          copy_in(to + A_BYTES, &B, k * BK, t % across * BN, f);
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
    int row = thread % 16, half = thread % 32 / 16;
    u32 slab = sm(memory) + ST * BYTES + own * SLAB;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      float d[32];
      for (int k = 0; k < turns; k++) {
        wait(sm(full + stage), phase);
        u32 a = sm(memory) + stage * BYTES + own * 64 * BK * 2, b = sm(memory) + stage * BYTES + A_BYTES;
        mma_fence();
#pragma unroll
        for (int i = 0; i < BK / 16; i++) mma(d, tile(a) + 2 * i, tile(b) + 2 * i, k || i);
        mma_commit();
        mma_wait<0>();
        if (thread == 0) arrive(sm(empty + stage));
        if (++stage == ST) {
          stage = 0;
          phase ^= 1;
        }
      }
      if (thread == 0) copies_wait_read<0>();  // the tile before has been read
      sync(1 + own, 128);
#pragma unroll
      for (int j = 0; j < BN / 16; j++) store_matrix(slab + (thread / 32 * 16 + row) * 128 + (2 * j + half ^ row % 8) * 16, d + 8 * j);
      fence_async();
      sync(1 + own, 128);
      if (thread == 0) {
        copy_out(&C, t % across * BN, t / across * BM + own * 64, slab);
        copies_commit();
      }
    }
    if (thread == 0) copies_wait_read<0>();
  }
}
