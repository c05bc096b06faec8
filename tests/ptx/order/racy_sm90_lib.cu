// Each kernel races, between the lines marked at their end.
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include "modern.cuh"
namespace cg = cooperative_groups;
K(tma_reads_what_others_write) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1);
  if (B == 0) b[T] = T;  //!
  SYNC;
  if (B == 1 && T == 0) { mb_expect(&m, 256); tma_in(s, b, 256, &m); }  //!
  if (B == 1) { mb_wait(&m, 0); b[1024 + T] = s[T]; } }
K(tma_reads_own_unfenced) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1);
  b[G] = T;  //!
  SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, b + B * 64, 256, &m); }  //!
  mb_wait(&m, 0); b[1024 + G] = s[63 - T]; }
K(bulk_no_expect) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) {
    tma_in(s, a, 256, &m);  //!
    mb_arrive(&m); }
  mb_wait(&m, 0);
  b[G] = s[63 - T]; }  //!
K(bulk_expect_too_few) { __shared__ alignas(128) int s[2][64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256);
    tma_in(s[0], a, 256, &m);
    tma_in(s[1], a + 64, 256, &m); }  //!
  mb_wait(&m, 0);
  b[G] = s[0][63 - T] + s[1][63 - T]; }  //!
K(bulk_wait_before_issue_phase) { __shared__ alignas(128) int s[64]; __shared__ u64 m; int sum = 0; if (T == 0) mb_init(&m, 1); SYNC;
  for (int k = 0; k < 2; k++) { if (T == 0) { mb_expect(&m, 256);
      tma_in(s, a + 64 * k, 256, &m); }  //!
    mb_wait(&m, 0);
    sum += s[63 - T]; SYNC; }  //!
  b[G] = sum; }
K(generic_over_tma_data) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, a, 256, &m); }  //!
  s[T] = 0;  //!
  mb_wait(&m, 0); SYNC; b[G] = s[T]; }
K(named_full_empty_swapped) { __shared__ int s[32]; int sum = 0;
  if (T < 32) for (int i = 0; i < 3; i++) {
      s[T] = a[T + i];  //!
      ARRIVE(1, 64); BAR(2, 64); }
  else { for (int i = 0; i < 3; i++) { BAR(1, 64); ARRIVE(2, 64);
      sum += s[T - 32]; } b[G] = sum; } }  //!
K(cluster_group_sync_missing) { __shared__ int s[64]; auto c = cg::this_cluster();  // cluster 2
  s[T] = a[G];  //!
  cg::this_thread_block().sync();
  b[G] = *c.map_shared_rank(&s[T], c.block_rank() ^ 1);  //!
  c.sync(); }
K(cluster_reused_too_early) { __shared__ int s[64]; auto c = cg::this_cluster(); int sum = 0;  // cluster 2
  for (int i = 0; i < 2; i++) {
    s[T] = a[G + i];  //!
    c.sync();
    sum += *c.map_shared_rank(&s[T], c.block_rank() ^ 1); }  //!
  c.sync(); b[G] = sum; }
K(latch_not_waited) { __shared__ int s[64]; __shared__ alignas(16) char room[64]; auto& l = *(cuda::latch<cuda::thread_scope_block>*)room; if (T == 0) { new (room) cuda::latch<cuda::thread_scope_block>(64); } SYNC;
  s[T] = a[G];  //!
  l.count_down();
  b[G] = s[63 - T]; }  //!
K(semaphore_two_permits) { auto* sem = (cuda::counting_semaphore<cuda::thread_scope_device, 2>*)&b[64];
  if (T == 0 && B == 0) { new (sem) cuda::counting_semaphore<cuda::thread_scope_device, 2>(2); __threadfence(); VOLATILE(b[80]) = 1; }
  if (T == 0) { while (!VOLATILE(b[80])); __threadfence(); sem->acquire();
    b[0] += 1;  //!
    sem->release(); } }
K(exclusive_scan_group_no_sync) { __shared__ int s[64]; auto w = cg::tiled_partition<32>(cg::this_thread_block());
  int v = cg::exclusive_scan(w, a[G] & 1);
  s[(T & 32) + v] = T;  //!
  b[G] = s[(T & 32)] + v; }  //!
K(atomic_ref_mixed_scopes) { cuda::atomic_ref<int, cuda::thread_scope_block> x(b[0]); cuda::atomic_ref<int, cuda::thread_scope_device> y(b[0]);
  if (B == 0) x.fetch_add(1, cuda::std::memory_order_relaxed);  //!
  else y.fetch_add(1, cuda::std::memory_order_relaxed); }  //!
K(histogram_of_bytes) { __shared__ unsigned char s[64]; s[T] = 0; SYNC;
  s[a[G] & 7]++;  //!
  SYNC; b[G] = s[T]; }
K(int2_halves) { int2* p = (int2*)b;
  if (T & 1) p[G / 2].x = 1;  //!
  else p[G / 2] = make_int2(2, 3); }  //!
K(reduction_two_rounds_one_buffer) { __shared__ int s[2]; int v = a[G], w = a[G + 1];
  for (int k = 16; k; k >>= 1) { v += __shfl_xor_sync(~0u, v, k); w += __shfl_xor_sync(~0u, w, k); }
  if ((T & 31) == 0) s[T / 32] = v;
  SYNC;
  v = s[0] + s[1];  //!
  if ((T & 31) == 0) s[T / 32] = w;  //!
  SYNC; b[G] = v + s[0] + s[1]; }
K(flag_array_per_warp_no_fence) { __shared__ int f[2], s[64]; if (T < 2) f[T] = 0; SYNC;
  s[T] = a[G];  //!
  __syncwarp(); if ((T & 31) == 0) VOLATILE(f[T / 32]) = 1;
  while (!VOLATILE(f[(T / 32) ^ 1]));
  b[G] = s[T ^ 32]; }  //!
K(red_then_plain_read) {
  atomicAdd(&b[T & 3], 1);  //!
  SYNC; __threadfence();
  if (T < 4) b[100 + B * 4 + T] = b[T]; }  //!
K(stmatrix_then_read) { __shared__ alignas(16) uint16_t x[2][64]; unsigned r = a[G];
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(U32(&x[T / 32][(T & 7) * 8])), "r"(r) : "memory");  //!
  b[G] = x[T / 32][T & 31]; }  //!
K(elected_store_no_syncwarp) { __shared__ int s[2]; unsigned p;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(p));
  if (p) s[T / 32] = a[G];  //!
  b[G] = s[T / 32]; }  //!
K(wgmma_two_tiles_one_wait) { __shared__ alignas(128) uint16_t x[64 * 16], y[2][8 * 16]; float d[4] = {}, e[4] = {};  // block 128
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;
  y[0][T] = T; y[1][T] = T; PROXY; SYNC; WG_FENCE; wgmma8(d, descriptor(x), descriptor(y[0])); WG_COMMIT;
  wgmma8(e, descriptor(x), descriptor(y[1])); WG_COMMIT;  //!
  WG_WAIT(1); SYNC; y[0][T] = 1;
  y[1][T] = 1;  //!
  WG_WAIT(0); b[G] = d[0] + e[0]; }
K(wgmma_after_bulk_unwaited) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; __shared__ u64 m; float d[4] = {};  // block 128
  if (T == 0) mb_init(&m, 1);
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;
  PROXY; SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(y, a, 256, &m); }  //!
  SYNC; WG_FENCE;
  wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; WG_WAIT(0);  //!
  b[G] = d[0]; }
K(bulk_store_then_global_read_other_block) { __shared__ alignas(128) int s[64]; s[T] = a[G]; PROXY; SYNC;
  if (B == 0 && T == 0) { tma_out(b, s, 256); BULK_COMMIT; BULK_WAIT_READ(0);  //!
    put_release(&b[2000], 1); }
  if (B == 1 && T == 0) { while (!get_acquire(&b[2000]));
    b[1024] = b[5]; } }  //!
K(two_bulk_stores_overlap) { __shared__ alignas(128) int s[64]; s[T] = a[G]; PROXY; SYNC;
  if (T == 0) { tma_out(b, s, 256); BULK_COMMIT; BULK_WAIT(0); } }  //!
