// One function for each instruction of Hopper that the kernels of this folder use.
#pragma once
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;
struct __align__(64) Map { char bytes[128]; };
#define DEVICE __device__ __forceinline__

DEVICE u32 sm(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// -- mbarriers: `b` is an address in shared memory
DEVICE void barrier_init(u32 b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(count) : "memory"); }
DEVICE void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void expect(u32 b, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory"); }
DEVICE void arrive(u32 b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); }
DEVICE void wait(u32 b, int parity) {
  asm volatile("{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(b), "r"(parity) : "memory");
}

// -- barriers of threads
DEVICE void sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void announce(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// -- clusters
DEVICE u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void arrive_at(u32 b, u32 rank) {
  asm volatile("{\n.reg .b32 far;\nmapa.shared::cluster.u32 far, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [far];\n}" ::"r"(b), "r"(rank) : "memory");
}
DEVICE void arrive_at_narrowly(u32 b, u32 rank) {  // without words: in the scope of a block
  asm volatile("{\n.reg .b32 far;\nmapa.shared::cluster.u32 far, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [far];\n}" ::"r"(b), "r"(rank) : "memory");
}
DEVICE void wait_cluster(u32 b, int parity) {
  asm volatile("{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(b), "r"(parity) : "memory");
}

// -- copies
DEVICE void copy_in(u32 to, const Map* m, int x, int y, u32 b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(m), "r"(x), "r"(y), "r"(b) : "memory");
}
DEVICE void copy_in_all(u32 to, const Map* m, int x, int y, u32 b, u16 blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(m), "r"(x), "r"(y), "r"(b), "h"(blocks) : "memory");
}
DEVICE void copy_out(const Map* m, int x, int y, u32 from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(m), "r"(x), "r"(y), "r"(from) : "memory");
}
DEVICE void copies_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> DEVICE void copies_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
template <int N> DEVICE void copies_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void prefetch(const Map* m) { asm volatile("prefetch.tensormap [%0];" ::"l"(m) : "memory"); }

// -- products of a warp group: 64 rows, 128-byte swizzle, k lies together
DEVICE u64 tile(u32 at) { return (u64)((at & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
DEVICE void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void mma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
template <int N> DEVICE void registers_less() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void registers_more() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
#define F4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(d, i) F4(d, i), F4(d, i + 4), F4(d, i + 8), F4(d, i + 12)
DEVICE void mma(float (&d)[32], u64 a, u64 b, int adds) {  // 64 columns
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
               : F16(d, 0), F16(d, 16) : "l"(a), "l"(b), "r"(adds));
}

// -- numbers
DEVICE u32 pair(float low, float high) { u32 d; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low)); return d; }
DEVICE void store_matrix(u32 at, const float* v) {  // 16 rows, 16 columns
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(pair(v[0], v[1])), "r"(pair(v[2], v[3])), "r"(pair(v[4], v[5])), "r"(pair(v[6], v[7])) : "memory");
}
