// No kernel here races.
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include "modern.cuh"
namespace cg = cooperative_groups;
K(tma_reads_own_fenced) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1);
  b[G] = T; asm volatile("fence.proxy.async;" ::: "memory"); SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, b + B * 64, 256, &m); }
  mb_wait(&m, 0); b[1024 + G] = s[63 - T]; }
K(bulk_expect_then_more) { __shared__ alignas(128) int s[2][64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(U32(&m)) : "memory"); tma_in(s[0], a, 256, &m); mb_expect(&m, 256); tma_in(s[1], a + 64, 256, &m); }
  mb_wait(&m, 0); b[G] = s[0][63 - T] + s[1][63 - T]; }
K(bulk_issued_before_expect) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { tma_in(s, a, 256, &m); mb_expect(&m, 256); }
  mb_wait(&m, 0); b[G] = s[63 - T]; }
K(bulk_round_trip) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); s[T] = a[G]; PROXY; SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); mb_expect(&m, 256); tma_in(s, b + B * 64, 256, &m); }
  mb_wait(&m, 0); b[1024 + G] = s[63 - T]; }
K(bulk_waited_then_named_barrier) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;  // block 96
  if (T == 64) { mb_expect(&m, 256); tma_in(s, a, 256, &m); mb_wait(&m, 0); }
  if (T >= 64) { __syncwarp(); ARRIVE(1, 96); } else { BAR(1, 96); b[G] = s[63 - T]; } }
K(cluster_group) { __shared__ int s[64]; auto c = cg::this_cluster(); int sum = 0;  // cluster 2
  for (int i = 0; i < 2; i++) { s[T] = a[G + i]; c.sync(); sum += *c.map_shared_rank(&s[T], c.block_rank() ^ 1); c.sync(); }
  b[G] = sum; }
K(cluster_barrier_arrival_token) { __shared__ int s[64]; auto c = cg::this_cluster(); s[T] = a[G]; auto t = c.barrier_arrive(); int x = a[G + 1]; c.barrier_wait(cuda::std::move(t)); b[G] = x + *c.map_shared_rank(&s[T], c.block_rank() ^ 1); c.sync(); }  // cluster 2
K(latch) { __shared__ int s[64]; __shared__ alignas(16) char room[64]; auto& l = *(cuda::latch<cuda::thread_scope_block>*)room; if (T == 0) { new (room) cuda::latch<cuda::thread_scope_block>(64); } SYNC;
  s[T] = a[G]; l.arrive_and_wait(); b[G] = s[63 - T]; }
K(semaphore) { auto* sem = (cuda::binary_semaphore<cuda::thread_scope_device>*)&b[64];
  if (T == 0 && B == 0) { new (sem) cuda::binary_semaphore<cuda::thread_scope_device>(1); __threadfence(); VOLATILE(b[80]) = 1; }
  if (T == 0) { while (!VOLATILE(b[80])); __threadfence(); sem->acquire(); b[0] += 1; sem->release(); } }
K(device_barrier) { auto* bar = (cuda::barrier<cuda::thread_scope_device>*)&b[1024];
  if (G == 0) { new (bar) cuda::barrier<cuda::thread_scope_device>(2); __threadfence(); VOLATILE(b[80]) = 1; }
  if (T == 0) { while (!VOLATILE(b[80])); __threadfence(); b[100 + B] = a[B]; bar->arrive_and_wait(); b[B] = b[100 + (B ^ 1)]; } }
K(group_scan) { auto w = cg::tiled_partition<16>(cg::this_thread_block()); __shared__ int s[64]; int v = cg::exclusive_scan(w, a[G] & 1); s[T] = v; w.sync(); b[G] = s[T ^ 15] + cg::inclusive_scan(w, v); }
K(labeled_partition) { auto w = cg::coalesced_threads(); auto g = cg::labeled_partition(w, a[G] & 1); __shared__ int s[64]; s[T] = a[G]; w.sync(); int first = g.shfl((int)T, 0); b[G] = s[first] + cg::reduce(g, 1, cg::plus<int>()); }
K(binary_partition) { auto t = cg::tiled_partition<32>(cg::this_thread_block()); auto g = cg::binary_partition(t, a[G] & 1); __shared__ int s[64]; s[T] = a[G]; g.sync(); b[G] = s[g.shfl((int)T, 0)]; }
K(grid_sync_by_hand_sense) { __shared__ int sense; if (T == 0) sense = 0; SYNC;
  for (int r = 0; r < 3; r++) { b[256 + r * 128 + G] = a[G] + r; SYNC;
    if (T == 0) { sense ^= 1; __threadfence(); if (atomicAdd(&b[0], 1) == gridDim.x - 1) { b[0] = 0; __threadfence(); VOLATILE(b[1]) = sense; } else while (VOLATILE(b[1]) != sense); __threadfence(); }
    SYNC; b[1024 + r * 128 + G] = b[256 + r * 128 + (G ^ 64)]; } }
K(barrier_drop) { __shared__ int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (T == 0) init(&bar, 64); SYNC;
  s[T] = a[G]; if (T >= 32) { bar.arrive_and_drop(); return; }
  bar.arrive_and_wait(); int v = s[63 - T]; bar.arrive_and_wait(); s[T] = v; bar.arrive_and_wait(); b[G] = s[31 - T]; }
K(thread_scope_atomic) { cuda::atomic_ref<int, cuda::thread_scope_thread> x(b[G]); x.fetch_add(1); b[512 + G] = x.load(); }
K(system_scope_flag) { cuda::atomic_ref<int, cuda::thread_scope_system> f(b[64]);
  if (B == 0 && T == 0) { b[0] = 5; f.store(1, cuda::std::memory_order_release); }
  if (B == 1 && T == 0) { while (!f.load(cuda::std::memory_order_acquire)); b[1] = b[0]; } }
K(spin_with_membar_gl) { if (G == 0) { b[0] = 1; __threadfence_system(); atomicExch_system(&b[64], 1); } if (G == 64) { while (atomicAdd_system(&b[64], 0) == 0); __threadfence_system(); b[1] = b[0]; } }
K(stmatrix) { __shared__ alignas(16) uint16_t x[2][64]; unsigned r = a[G];
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(U32(&x[T / 32][(T & 7) * 8])), "r"(r) : "memory");
  __syncwarp(); b[G] = x[T / 32][T & 31]; }
K(elected_store) { __shared__ int s[2]; unsigned p;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(p));
  if (p) s[T / 32] = a[G];
  __syncwarp(); b[G] = s[T / 32]; }
K(wgmma_one_thread_frees) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; __shared__ u64 full, empty; float d[4] = {};  // block 160
  if (T == 0) { mb_init(&full, 1); mb_init(&empty, 1); }
  for (int i = T; i < 1024; i += 160) x[i] = i & 3;
  PROXY; SYNC;
  if (T == 128) for (int k = 0; k < 3; k++) { if (k) mb_wait(&empty, (k - 1) & 1); mb_expect(&full, 256); tma_in(y, a + 64 * k, 256, &full); }
  if (T < 128) { for (int k = 0; k < 3; k++) { mb_wait(&full, k & 1); WG_FENCE; wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; WG_WAIT(0);
      if (T == 77) mb_arrive(&empty); }
    b[G] = d[0] + d[1] + d[2] + d[3]; } }
K(wgmma_two_warpgroups) { __shared__ alignas(128) uint16_t x[2][64 * 16], y[2][8 * 16]; __shared__ u64 full[2], empty[2]; float d[4] = {};  // block 288
  if (T < 2) { mb_init(&full[T], 1); mb_init(&empty[T], 2); }
  for (int i = T; i < 2048; i += 288) x[0][i] = i & 3;
  PROXY; SYNC;
  if (T == 256) for (int k = 0; k < 4; k++) { mb_wait(&empty[k & 1], (k >> 1 & 1) ^ 1); mb_expect(&full[k & 1], 256); tma_in(y[k & 1], a + 64 * k, 256, &full[k & 1]); }
  if (T < 256) { for (int k = 0; k < 4; k++) { mb_wait(&full[k & 1], k >> 1 & 1); WG_FENCE; wgmma8(d, descriptor(x[T / 128]), descriptor(y[k & 1])); WG_COMMIT; WG_WAIT(0);
      if ((T & 127) == 0) mb_arrive(&empty[k & 1]); }
    b[G] = d[0] + d[1] + d[2] + d[3]; } }
K(epilogue_by_bulk_store) { __shared__ alignas(128) int s[2][64];
  for (int k = 0; k < 4; k++) { if (T == 0) BULK_WAIT_READ(1); SYNC; s[k & 1][T] = a[G] + k; PROXY; SYNC; if (T == 0) { tma_out(b + k * 512 + B * 64, s[k & 1], 256); BULK_COMMIT; } }
  if (T == 0) BULK_WAIT(0); }
K(cluster_multicast) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) { mb_init(&m, 1); mb_expect(&m, 256); } CLUSTER_SYNC;  // cluster 2
  if (RANK == 0 && T == 0) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(U32(s)), "l"(a), "r"(U32(&m)), "h"((short)3) : "memory");
  mb_wait(&m, 0); b[G] = s[63 - T]; CLUSTER_SYNC; }
K(async_zero_fill) { __shared__ int s[64]; asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(U32(&s[T])), "l"(a + G), "r"(T < 40 ? 4 : 0) : "memory"); COMMIT; WAIT(0); SYNC; b[G] = s[63 - T]; }
