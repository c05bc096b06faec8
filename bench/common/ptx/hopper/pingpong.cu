// C = A · Bᵀ in bf16, ping-pong: two warp groups multiply whole tiles of 64 rows in turn. While one
// multiplies, the other stores. Whose turn it is to multiply, and whose to store, order[0] and
// order[1] say; both groups store through one place in shared memory.
#include "hopper.cuh"
#define BM 64
#define BN 64
#define BK 64
#define A_BYTES (BM * BK * 2)
#define BYTES (A_BYTES + BN * BK * 2)

struct Ring {  // a stage, and the parity of its round
  int stage, phase;
  DEVICE void next() {
    if (++stage == ST) {
      stage = 0;
      phase ^= 1;
    }
  }
  DEVICE void skip(int turns) {
    phase ^= (stage + turns) / ST & 1;
    stage = (stage + turns) % ST;
  }
};

extern "C" __global__ void __launch_bounds__(384, 1)
pingpong(const __grid_constant__ Map A, const __grid_constant__ Map B, const __grid_constant__ Map C, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) u64 full[ST], empty[ST], order[2][2];
  int group = threadIdx.x / 128, across = N / BN, tiles = M / BM * across, turns = K / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < ST; i++) {
      barrier_init(sm(full + i), 1);
      barrier_init(sm(empty + i), 1);
    }
    for (int what = 0; what < 2; what++)
      for (int i = 0; i < 2; i++) barrier_init(sm(&order[what][i]), 128);
    fence_barrier_init();
  }
  __syncthreads();
  Ring at = {0, 0};
  if (group == 0) {
    registers_less<40>();
    if (threadIdx.x == 0) {
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int m = t / across * BM, n = t % across * BN;
        for (int k = 0; k < turns; k++) {
          u32 f = sm(full + at.stage), to = sm(memory) + at.stage * BYTES;
          wait(sm(empty + at.stage), at.phase ^ 1);
          expect(f, BYTES);
          copy_in(to, &A, k * BK, m, f);
          copy_in(to + A_BYTES, &B, k * BK, n, f);
          at.next();
        }
      }
    }
  } else {
    registers_more<232>();
    int own = group - 1, thread = threadIdx.x % 128, lane = thread % 32;
    int turn = own ^ 1;  // the first group goes first
    u32 out = sm(memory) + ST * BYTES;
    if (own == 1) at.skip(turns);
    for (int t = blockIdx.x + own * gridDim.x; t < tiles; t += 2 * gridDim.x) {
      int m = t / across * BM, n = t % across * BN, last = -1;
      float d[32];
      wait(sm(&order[0][own]), turn);
      for (int k = 0; k < turns; k++) {
        wait(sm(full + at.stage), at.phase);
        u32 a = sm(memory) + at.stage * BYTES, b = a + A_BYTES;
        mma_fence();
#pragma unroll
        for (int i = 0; i < BK / 16; i++) mma(d, tile(a) + 2 * i, tile(b) + 2 * i, k || i);
        mma_commit();
        mma_wait<1>();
        if (last >= 0 && thread == 0) arrive(sm(empty + last));
        last = at.stage;
        at.next();
      }
      arrive(sm(&order[0][own ^ 1]));
      mma_wait<0>();
      if (thread == 0) arrive(sm(empty + last));
      wait(sm(&order[1][own]), turn);
#pragma unroll
      for (int j = 0; j < BN / 16; j++) {
        int row = thread / 32 * 16 + lane % 16, chunk = 2 * j + lane / 16;
        store_matrix(out + row * 128 + (chunk ^ row & 7) * 16, d + 8 * j);
      }
      fence_async();
      sync(group, 128);
      if (thread == 0) {
        copy_out(&C, n, m, out);
        copies_commit();
        copies_wait_read<0>();
      }
      arrive(sm(&order[1][own ^ 1]));
      turn ^= 1;
      at.skip(turns);
    }
    if (thread == 0) copies_wait<0>();
  }
}
