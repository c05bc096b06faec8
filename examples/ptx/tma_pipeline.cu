// A Hopper pipeline of two stages: warp 1 copies tiles by TMA, warp 0 adds them up.
// It has a race: lane 0 hands a stage back while other lanes may still read it (no __syncwarp).
typedef unsigned long long barrier;
#define AT(p) "r"((unsigned)__cvta_generic_to_shared(p))
#define INIT(b, count) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::AT(b), "r"(count) : "memory")
#define ARRIVE(b) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::AT(b) : "memory")
#define EXPECT(b, bytes) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::AT(b), "r"(bytes) : "memory")
#define WAIT(b, parity) asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra again; }" ::AT(b), "r"(parity) : "memory")
#define TMA_LOAD(to, from, bytes, b) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::AT(to), "l"(from), "r"(bytes), AT(b) : "memory")

extern "C" __global__ void sum_tiles(const float* x, float* sums, int tiles) {
  __shared__ alignas(128) float stage[2][32];
  __shared__ barrier full[2], empty[2];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0;
  if (threadIdx.x < 2) { INIT(&full[threadIdx.x], 1); INIT(&empty[threadIdx.x], 1); }
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < tiles; k++) {
    const int s = k % 2, phase = k / 2 % 2;
    if (warp == 1 && lane == 0) {
      WAIT(&empty[s], phase ^ 1);
      EXPECT(&full[s], 128);
      TMA_LOAD(stage[s], x + 32 * k, 128, &full[s]);
    } else if (warp == 0) {
      WAIT(&full[s], phase);
      sum += stage[s][lane];
      if (lane == 0) ARRIVE(&empty[s]);
    }
  }
  if (warp == 0) sums[lane] = sum;
}
