// C = A · Bᵀ in bf16 by clusters of two blocks, one below the other. Both need the same columns:
// each copies half of them, and multicasts it to both. A stage is free when the consumers of both
// blocks have said so, in each block for itself.
#include "hopper.cuh"
#define BM 128
#define BN 64
#define BK 64
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define BYTES (A_BYTES + B_BYTES)
#define BLOCKS 2

extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(384, 1)
multicast(const __grid_constant__ Map A, const __grid_constant__ Map B, u32* C, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) u64 full[ST], empty[ST];
  int group = threadIdx.x / 128, across = N / BN, pairs = M / (BLOCKS * BM) * across, turns = K / BK;
  int rank = cluster_rank(), first = blockIdx.x / BLOCKS, step = gridDim.x / BLOCKS;
  if (threadIdx.x == 0) {
    for (int i = 0; i < ST; i++) {
      barrier_init(sm(full + i), 1);
      barrier_init(sm(empty + i), 2 * BLOCKS);
    }
    fence_barrier_init();
  }
  cluster_arrive();
  cluster_wait();
  int stage = 0, phase = 0;
  if (group == 0) {
    registers_less<40>();
    if (threadIdx.x == 0) {
      for (int t = first; t < pairs; t += step) {
        int m = (t / across * BLOCKS + rank) * BM, n = t % across * BN;
        for (int k = 0; k < turns; k++) {
          u32 f = sm(full + stage), to = sm(memory) + stage * BYTES;
          wait_cluster(sm(empty + stage), phase ^ 1);
          expect(f, BYTES);
          copy_in(to, &A, k * BK, m, f);
          int part = rank * (BN / BLOCKS);
          copy_in_all(to + A_BYTES + part * BK * 2, &B, k * BK, n + part, f, (1 << BLOCKS) - 1);
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
    for (int t = first; t < pairs; t += step) {
      int m = (t / across * BLOCKS + rank) * BM, n = t % across * BN, last = -1;
      float d[32];
      for (int k = 0; k < turns; k++) {
        wait_cluster(sm(full + stage), phase);
        u32 a = sm(memory) + stage * BYTES + own * 64 * BK * 2, b = sm(memory) + stage * BYTES + A_BYTES;
        mma_fence();
#pragma unroll
        for (int i = 0; i < BK / 16; i++) mma(d, tile(a) + 2 * i, tile(b) + 2 * i, k || i);
        mma_commit();
        mma_wait<1>();
        if (last >= 0 && thread < BLOCKS) arrive_at(sm(empty + last), thread);
        last = stage;
        if (++stage == ST) {
          stage = 0;
          phase ^= 1;
        }
      }
      mma_wait<0>();
      if (thread < BLOCKS) arrive_at(sm(empty + last), thread);
      int row = m + own * 64 + thread / 32 * 16 + thread % 32 / 4, column = n + thread % 4 * 2;
#pragma unroll
      for (int j = 0; j < BN / 8; j++) {
        C[(row * N + column + 8 * j) / 2] = pair(d[4 * j], d[4 * j + 1]);
        C[((row + 8) * N + column + 8 * j) / 2] = pair(d[4 * j + 2], d[4 * j + 3]);
      }
    }
  }
  cluster_arrive();
  cluster_wait();
}
