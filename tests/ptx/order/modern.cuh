// What kernels for sm_90a need beside common.cuh: mbarriers, bulk copies, clusters, products of warpgroups.
#include "common.cuh"
#include <stdint.h>
#define D __device__ __forceinline__
#define U32(p) ((unsigned)__cvta_generic_to_shared(p))
typedef unsigned long long u64;
D void mb_init(u64* m, int n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(U32(m)), "r"(n) : "memory"); }
D void mb_inval(u64* m) { asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(U32(m)) : "memory"); }
D void mb_arrive(u64* m) { asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(U32(m)) : "memory"); }
D void mb_arrive_relaxed(u64* m) { asm volatile("{ .reg .b64 t; mbarrier.arrive.relaxed.cta.shared::cta.b64 t, [%0]; }" ::"r"(U32(m)) : "memory"); }
D void mb_expect(u64* m, int n) { asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1; }" ::"r"(U32(m)), "r"(n) : "memory"); }
D bool mb_try(u64* m, int p) { unsigned ok; asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(U32(m)), "r"(p) : "memory"); return ok; }
D bool mb_test_relaxed(u64* m, int p) { unsigned ok; asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(U32(m)), "r"(p) : "memory"); return ok; }
D void mb_wait(u64* m, int p) { while (!mb_try(m, p)); }
D void mb_arrive_far(u64* m, int rank) { asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" ::"r"(U32(m)), "r"(rank) : "memory"); }
D void mb_wait_cluster(u64* m, int p) { unsigned ok = 0; while (!ok) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(U32(m)), "r"(p) : "memory"); }
D void tma_in(void* to, const void* from, int n, u64* m) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(U32(to)), "l"(from), "r"(n), "r"(U32(m)) : "memory"); }
D void tma_out(void* to, const void* from, int n) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(U32(from)), "r"(n) : "memory"); }
#define BULK_COMMIT asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define BULK_WAIT(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")
#define BULK_WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")
#define PROXY asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
D void copy_arrive_noinc(u64* m) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(U32(m)) : "memory"); }
D void copy_arrive(u64* m) { asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(U32(m)) : "memory"); }
D void copy16(void* to, const void* from) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(U32(to)), "l"(from) : "memory"); }
#define CLUSTER_ARRIVE asm volatile("barrier.cluster.arrive.aligned;" ::: "memory")
#define CLUSTER_ARRIVE_RELAXED asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define CLUSTER_WAIT asm volatile("barrier.cluster.wait.aligned;" ::: "memory")
#define CLUSTER_SYNC { CLUSTER_ARRIVE; CLUSTER_WAIT; }
D int* far(int* p, int rank) { int* q; asm volatile("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(rank)); return q; }
#define RANK ({ unsigned r_; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r_)); r_; })
#define WG_FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WG_COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WG_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
D u64 descriptor(const void* p) { return ((u64)(U32(p) & 0x3ffff) >> 4) | (8ull << 16) | (16ull << 32); }
D void wgmma8(float* d, u64 x, u64 y) { asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(x), "l"(y)); }
D void ldsm4(unsigned* r, const void* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(U32(p)) : "memory"); }
