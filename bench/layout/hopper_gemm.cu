// C[M,N] = A · B in bf16 with sums in f32, on Hopper: tensor copies into a ring of stages, one warp
// group that copies and WG that multiply (64 rows each), persistent tiles. How A, B and C lie in
// shared memory is not written here: what the solver found is put before this text.
//
//   A_DESC, A_STARTS       the descriptor of A without its start; where each step of k starts
//   A_WARPS                bytes from the 64 rows of one warp group to those of the next
//   A_COPY(f), B_COPY(f)   the tensor copies that fill a stage: f(byte, column, row)
//   A_TURNED, B_TURNED     1 where m or n lies together
//   C_COPY(f), place(r,c)  the tensor copies that take a warp group's tile; where its elements lie
typedef unsigned int u32;
typedef unsigned long long u64;
struct __align__(64) Map { char bytes[128]; };
#define BK 64
#define BM (64 * WG)
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define C_BYTES (64 * BN * 2)
__device__ __forceinline__ u32 sm(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u32 b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n)); }
__device__ __forceinline__ void expect(u32 b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n) : "memory"); }
__device__ __forceinline__ void arrive(u32 b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); }
__device__ __forceinline__ void wait(u32 b, int phase) {
  asm volatile("{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(b), "r"(phase) : "memory");
}
__device__ __forceinline__ void copy_in(u32 to, const Map* m, int x, int y, u32 b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(m), "r"(x), "r"(y), "r"(b) : "memory");
}
__device__ __forceinline__ void copy_out(const Map* m, int x, int y, u32 from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(m), "r"(x), "r"(y), "r"(from) : "memory");
}
#define R4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(d, i) R4(d, i), R4(d, i + 4), R4(d, i + 8), R4(d, i + 12)
#define R64(d, i) R16(d, i), R16(d, i + 16), R16(d, i + 32), R16(d, i + 48)
__device__ __forceinline__ void multiply(float* d, u64 a, u64 b, int adds) {
#if BN == 256
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, p, 1, 1, %131, %132;\n}"
               : R64(d, 0), R64(d, 64) : "l"(a), "l"(b), "r"(adds), "n"(A_TURNED), "n"(B_TURNED));
#else
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p, 1, 1, %67, %68;\n}"
               : R64(d, 0) : "l"(a), "l"(b), "r"(adds), "n"(A_TURNED), "n"(B_TURNED));
#endif
}
__device__ __forceinline__ u32 pair(float low, float high) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
__device__ __forceinline__ void store(u32 at, const float* v) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(pair(v[0], v[1])), "r"(pair(v[2], v[3])), "r"(pair(v[4], v[5])), "r"(pair(v[6], v[7])) : "memory");
}
extern "C" __global__ void __launch_bounds__(128 * (WG + 1), 1)
gemm(const __grid_constant__ Map A, const __grid_constant__ Map B, const __grid_constant__ Map C, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) u64 full[ST], empty[ST];
  const u32 a_starts[] = A_STARTS, b_starts[] = B_STARTS;
  int group = threadIdx.x / 128, tn = (N + BN - 1) / BN, tiles = (M + BM - 1) / BM * tn, turns = (K + BK - 1) / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < ST; i++) { init(sm(full + i), 1); init(sm(empty + i), WG); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  u32 base = sm(memory);
  int stage = 0, phase = 0;
  if (group == 0) {
    if (WG > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");  // one consumer has enough
    if (threadIdx.x == 0)
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int m = tile / tn * BM, n = tile % tn * BN;
        for (int k = 0; k < turns; k++) {
          wait(sm(empty + stage), phase ^ 1);
          u32 f = sm(full + stage), to = base + stage * (A_BYTES + B_BYTES);
          expect(f, A_BYTES + B_BYTES);
#define IN_A(byte, x, y) copy_in(to + byte, &A, (A_TURNED ? m : k * BK) + x, (A_TURNED ? k * BK : m) + y, f);
#define IN_B(byte, x, y) copy_in(to + A_BYTES + byte, &B, (B_TURNED ? n : k * BK) + x, (B_TURNED ? k * BK : n) + y, f);
          A_COPY(IN_A)
          B_COPY(IN_B)
          if (++stage == ST) stage = 0, phase ^= 1;
        }
      }
  } else {
    if (WG > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(WG == 2 ? 232 : 152));
    int own = group - 1, thread = threadIdx.x % 128, lane = thread % 32;
    u32 out = base + ST * (A_BYTES + B_BYTES) + own * C_BYTES;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      int m = tile / tn * BM, n = tile % tn * BN, last = -1;
      float d[BN / 2];
      for (int k = 0; k < turns; k++) {
        wait(sm(full + stage), phase);
        u32 a = base + stage * (A_BYTES + B_BYTES) + own * A_WARPS, b = base + stage * (A_BYTES + B_BYTES) + A_BYTES;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < BK / 16; i++)
          multiply(d, A_DESC | (a + a_starts[i]) >> 4, B_DESC | (b + b_starts[i]) >> 4, k || i);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (last >= 0 && thread == 0) arrive(sm(empty + last));
        last = stage;
        if (++stage == ST) stage = 0, phase ^= 1;
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (thread == 0) arrive(sm(empty + last));
      // The tile that was copied out before must have left; then sums go there as bf16.
      if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
#pragma unroll
      for (int j = 0; j < BN / 16; j++)
        store(out + 2 * place(thread / 32 * 16 + lane % 16, 16 * j + lane / 16 * 8), d + 8 * j);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
      if (thread == 0) {
#define OUT(byte, x, y) copy_out(&C, n + x, m + 64 * own + y, out + byte);
        C_COPY(OUT)
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
