// What the exhibits need beside ../order/modern.cuh: forms that are right or wrong by a single word.
#include "../order/modern.cuh"
#define INIT_FENCE asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define LAUNCH_DEPENDENTS asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define GRID_WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
#define PROXY_ALL asm volatile("fence.proxy.async;" ::: "memory")
#define WARP (threadIdx.x / 32)
#define LANE (threadIdx.x % 32)
D int rank() { int r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
D void mb_arrive_far_narrow(u64* m, int rank) { asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.release.cta.shared::cluster.b64 _, [a]; }" ::"r"(U32(m)), "r"(rank) : "memory"); }
D void mb_arrive_local_form(u64* m, int rank) { asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.shared::cta.b64 _, [a]; }" ::"r"(U32(m)), "r"(rank) : "memory"); }
D void mb_expect_only(u64* m, int n) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(U32(m)), "r"(n) : "memory"); }
D void tma_all(void* to, const void* from, int n, u64* m, int mask) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(U32(to)), "l"(from), "r"(n), "r"(U32(m)), "h"((short)mask) : "memory"); }
D void tma_box(void* to, const void* map, int column, int row, u64* m) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(U32(to)), "l"(map), "r"(column), "r"(row), "r"(U32(m)) : "memory"); }
// A tensor map of 4 × 8 boxes in a matrix of 32-bit words, 64 rows of 64, written from nothing.
D void map_fields(void* map, const void* base) {
  unsigned at = U32(map);
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at), "l"(base) : "memory");
  asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, 8;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, 4;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, 64;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, 64;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, 256;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 1;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 2;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(at) : "memory");
}
D void map_publish(void* to, void* map) { asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to), "r"(U32(map)) : "memory"); }
D void map_acquire(const void* map) { asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory"); }
