// Stream-K, C = A · Bᵀ in bf16: the turns of all tiles are dealt out evenly, so that a tile may be
// of several blocks. Those that begin inside it leave their sums in global memory, through shared
// memory, and count up the tile's lock. The block of its first turn waits, adds, and sets it back.
#include "hopper.cuh"
#define ST 2
#define BM 64
#define BN 64
#define BK 64
#define A_BYTES (BM * BK * 2)
#define BYTES (A_BYTES + BN * BK * 2)

DEVICE u32 load_acquire(const u32* p) { u32 v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory"); return v; }
DEVICE u32 load_relaxed(const u32* p) { u32 v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory"); return v; }
DEVICE void add_release(u32* p, u32 v) { asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory"); }
DEVICE void add_relaxed(u32* p, u32 v) { asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory"); }
DEVICE void store_relaxed(u32* p, u32 v) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory"); }
DEVICE void copy_out_flat(void* to, u32 from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)), "r"(from), "r"(bytes) : "memory");
}

struct Work {  // the turns that one block has
  int turns, at, end;
  __device__ Work(int all, int each, int turns) : turns(turns) { at = min(all, (int)blockIdx.x * each), end = min(all, at + each); }
  __device__ bool left() const { return at < end; }
  __device__ int tile() const { return at / turns; }
  __device__ int first() const { return at % turns; }
  __device__ int last() const { return min(turns, first() + end - at); }
  __device__ void next() { at += last() - first(); }
};

extern "C" __global__ void __launch_bounds__(256, 1)
stream_k(const __grid_constant__ Map A, const __grid_constant__ Map B, u32* C, float* partial, u32* locks, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) u64 full[ST], empty[ST];
  int group = threadIdx.x / 128, across = N / BN, turns = K / BK, all = M / BM * across * turns;
  int each = (all + gridDim.x - 1) / gridDim.x;
  if (threadIdx.x == 0) {
    for (int i = 0; i < ST; i++) {
      barrier_init(sm(full + i), 1);
      barrier_init(sm(empty + i), 1);
    }
    fence_barrier_init();
  }
  __syncthreads();
  int stage = 0, phase = 0;
  Work work(all, each, turns);
  if (group == 0) {
    if (threadIdx.x == 0) {
      for (; work.left(); work.next()) {
        int t = work.tile();
        for (int k = work.first(); k < work.last(); k++) {
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
    int thread = threadIdx.x % 128;
    float4* sums = (float4*)(memory + ST * BYTES);
    for (; work.left(); work.next()) {
      int t = work.tile(), first = work.first(), last = work.last();
      float d[32];
      for (int k = first; k < last; k++) {
        wait(sm(full + stage), phase);
        u32 a = sm(memory) + stage * BYTES;
        mma_fence();
#pragma unroll
        for (int i = 0; i < BK / 16; i++) mma(d, tile(a) + 2 * i, tile(a + A_BYTES) + 2 * i, k > first || i);
        mma_commit();
        mma_wait<0>();
        if (thread == 0) arrive(sm(empty + stage));
        if (++stage == ST) {
          stage = 0;
          phase ^= 1;
        }
      }
      if (first > 0) {  // the tile is another block's
#pragma unroll
        for (int j = 0; j < BN / 8; j++) sums[128 * j + thread] = make_float4(d[4 * j], d[4 * j + 1], d[4 * j + 2], d[4 * j + 3]);
        fence_async();
        sync(1, 128);
        if (thread == 0) {
          copy_out_flat(partial + blockIdx.x * BM * BN, sm(sums), BM * BN * 4);
          copies_commit();
          copies_wait<0>();
          add_release(locks + t, 1);
        }
        continue;
      }
      if (last < turns) {  // others have the rest of it
        int others = (t * turns + turns - 1) / each - (int)blockIdx.x;
        if (thread == 0) {
          while (load_acquire(locks + t) < others) {
          }
        }
        sync(1, 128);
        for (int o = 1; o <= others; o++) {
          const float4* theirs = (const float4*)(partial + (blockIdx.x + o) * BM * BN) + thread;
#pragma unroll
          for (int j = 0; j < BN / 8; j++) {
            float4 s = theirs[128 * j];
            d[4 * j] += s.x, d[4 * j + 1] += s.y, d[4 * j + 2] += s.z, d[4 * j + 3] += s.w;
          }
        }
        if (thread == 0) store_relaxed(locks + t, 0);
      }
      int row = t / across * BM + thread / 32 * 16 + thread % 32 / 4, column = t % across * BN + thread % 4 * 2;
#pragma unroll
      for (int j = 0; j < BN / 8; j++) {
        C[(row * N + column + 8 * j) / 2] = pair(d[4 * j], d[4 * j + 1]);
        C[((row + 8) * N + column + 8 * j) / 2] = pair(d[4 * j + 2], d[4 * j + 3]);
      }
    }
  }
}
