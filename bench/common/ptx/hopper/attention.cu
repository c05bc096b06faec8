// O = softmax(Q · Kᵀ) · V of several heads in bf16, 64 columns each; the scale has log2 e in it.
// One warp group copies Q for each tile, K and V into rings; two have 64 rows each. S of the next
// keys is computed while P · V of those before still runs: two chains of products.
#include "hopper.cuh"
#define ST 2
#define SIDE 64
#define KEYS 64
#define ROWS 128
#define Q_BYTES (ROWS * SIDE * 2)
#define K_BYTES (KEYS * SIDE * 2)

DEVICE u64 tile_across(u32 at) { return (u64)((at & 0x3FFFF) >> 4) | 64ull << 16 | 64ull << 32 | 1ull << 62; }  // columns lie together
DEVICE void mma_registers(float (&d)[32], const u32* a, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : F16(d, 0), F16(d, 16) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

extern "C" __global__ void __launch_bounds__(384, 1)
attention(const __grid_constant__ Map Q, const __grid_constant__ Map K, const __grid_constant__ Map V, u32* O, int heads, int queries, int keys, float scale) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) u64 k_full[ST], k_empty[ST], v_full[ST], v_empty[ST], q_full, q_empty;
  int group = threadIdx.x / 128, high = queries / ROWS, tiles = heads * high, turns = keys / KEYS;
  u32 q_at = sm(memory), k_at = q_at + Q_BYTES, v_at = k_at + ST * K_BYTES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < ST; i++) {
      barrier_init(sm(k_full + i), 1);
      barrier_init(sm(v_full + i), 1);
      barrier_init(sm(k_empty + i), 2);
      barrier_init(sm(v_empty + i), 2);
    }
    barrier_init(sm(&q_full), 1);
    barrier_init(sm(&q_empty), 2);
    fence_barrier_init();
  }
  __syncthreads();
  int stage = 0, phase = 0, q_phase = 0;
  if (group == 0) {
    registers_less<40>();
    if (threadIdx.x == 0) {
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int head = t / high;
        wait(sm(&q_empty), q_phase ^ 1);
        expect(sm(&q_full), Q_BYTES);
        copy_in(q_at, &Q, 0, head * queries + t % high * ROWS, sm(&q_full));
        for (int j = 0; j < turns; j++) {
          wait(sm(k_empty + stage), phase ^ 1);
          expect(sm(k_full + stage), K_BYTES);
          copy_in(k_at + stage * K_BYTES, &K, 0, head * keys + j * KEYS, sm(k_full + stage));
          wait(sm(v_empty + stage), phase ^ 1);
          expect(sm(v_full + stage), K_BYTES);
          copy_in(v_at + stage * K_BYTES, &V, 0, head * keys + j * KEYS, sm(v_full + stage));
          if (++stage == ST) {
            stage = 0;
            phase ^= 1;
          }
        }
        q_phase ^= 1;
      }
    }
  } else {
    registers_more<232>();
    int own = group - 1, thread = threadIdx.x % 128;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      float o[32] = {}, s[32], top[2] = {-1e30f, -1e30f}, sum[2] = {};
      u32 p[16];
      int last = 0, last_phase = 0;
      wait(sm(&q_full), q_phase);
      for (int j = 0; j < turns; j++) {
        u32 k = k_at + stage * K_BYTES, v = v_at + last * K_BYTES;
        wait(sm(k_full + stage), phase);
        mma_fence();
#pragma unroll
        for (int i = 0; i < SIDE / 16; i++) mma(s, tile(q_at + own * 64 * SIDE * 2) + 2 * i, tile(k) + 2 * i, i);
        mma_commit();
        if (j > 0) {
          wait(sm(v_full + last), last_phase);
          mma_fence();
#pragma unroll
          for (int i = 0; i < KEYS / 16; i++) mma_registers(o, p + 4 * i, tile_across(v) + 128 * i);
          mma_commit();
          mma_wait<1>();  // S is there
        } else {
          mma_wait<0>();
        }
        if (thread == 0) arrive(sm(k_empty + stage));
        float less[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float highest = top[h];
#pragma unroll
          for (int i = 0; i < 16; i++) highest = fmaxf(highest, s[i / 2 * 4 + 2 * h + i % 2] * scale);
          highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
          highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
          less[h] = exp2f(top[h] - highest);
          top[h] = highest;
          sum[h] *= less[h];
#pragma unroll
          for (int i = 0; i < 16; i++) {
            float& x = s[i / 2 * 4 + 2 * h + i % 2];
            x = exp2f(x * scale - highest);
            sum[h] += x;
          }
        }
        mma_wait<0>();  // P · V is done
        if (j > 0 && thread == 0) arrive(sm(v_empty + last));
#pragma unroll
        for (int i = 0; i < 32; i++) o[i] *= less[i / 2 % 2];
#pragma unroll
        for (int i = 0; i < 16; i++) p[i] = pair(s[2 * i], s[2 * i + 1]);
        last = stage;
        last_phase = phase;
        if (++stage == ST) {
          stage = 0;
          phase ^= 1;
        }
      }
      if (thread == 0) arrive(sm(&q_empty));
      wait(sm(v_full + last), last_phase);
      mma_fence();
#pragma unroll
      for (int i = 0; i < KEYS / 16; i++) mma_registers(o, p + 4 * i, tile_across(v_at + last * K_BYTES) + 128 * i);
      mma_commit();
      mma_wait<0>();
      if (thread == 0) arrive(sm(v_empty + last));
      q_phase ^= 1;
      int row = t % high * ROWS + own * 64 + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
      for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
        u32* to = O + ((t / high * queries + row + 8 * h) * SIDE + thread % 4 * 2) / 2;
#pragma unroll
        for (int i = 0; i < SIDE / 8; i++) to[4 * i] = pair(o[4 * i + 2 * h] / sum[h], o[4 * i + 2 * h + 1] / sum[h]);
      }
    }
  }
}
