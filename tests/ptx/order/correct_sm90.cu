// No kernel here races; several look as if they did.
#include "modern.cuh"
K(bulk) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, a, 256, &m); }
  mb_wait(&m, 0); b[G] = s[63 - T]; }
K(bulk_waited_by_one_then_sync) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, a, 256, &m); mb_wait(&m, 0); }
  SYNC; b[G] = s[63 - T]; }
K(bulk_many_arrivals) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, a, 256, &m); } else mb_arrive(&m);
  mb_wait(&m, 0); b[G] = s[63 - T]; }
K(bulk_two_stages) { __shared__ alignas(128) int s[2][64]; __shared__ u64 full[2], empty[2]; int sum = 0;  // block 96
  if (T < 2) { mb_init(&full[T], 1); mb_init(&empty[T], 64); } SYNC;
  if (T == 64) for (int k = 0; k < 6; k++) { mb_wait(&empty[k & 1], (k >> 1 & 1) ^ 1); mb_expect(&full[k & 1], 256); tma_in(s[k & 1], a + k * 64, 256, &full[k & 1]); }
  else if (T < 64) { for (int k = 0; k < 6; k++) { mb_wait(&full[k & 1], k >> 1 & 1); sum += s[k & 1][63 - T]; mb_arrive(&empty[k & 1]); }
    b[G] = sum; } }
K(bulk_two_stages_syncthreads) { __shared__ alignas(128) int s[2][64]; __shared__ u64 m[2]; int sum = 0; if (T < 2) mb_init(&m[T], 1); SYNC;
  if (T == 0) { mb_expect(&m[0], 256); tma_in(s[0], a, 256, &m[0]); }
#pragma unroll 1
  for (int k = 0; k < 5; k++) { if (T == 0 && k < 4) { mb_expect(&m[k + 1 & 1], 256); tma_in(s[k + 1 & 1], a + 64 * (k + 1), 256, &m[k + 1 & 1]); }
    mb_wait(&m[k & 1], k >> 1 & 1); sum += s[k & 1][63 - T]; SYNC; }
  b[G] = sum; }
K(bulk_two_copies_one_phase) { __shared__ alignas(128) int s[2][64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 512); tma_in(s[0], a, 256, &m); tma_in(s[1], a + 64, 256, &m); }
  mb_wait(&m, 0); b[G] = s[0][63 - T] + s[1][T]; }
K(bulk_then_generic_stores) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256); tma_in(s, a, 256, &m); }
  mb_wait(&m, 0); s[T] += 1; PROXY; SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }
K(bulk_store_each_fenced) { __shared__ alignas(128) int s[64]; s[T] = a[G]; PROXY; SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }
K(bulk_store_fenced_by_the_issuer) { __shared__ alignas(128) int s[64]; s[T] = a[G]; SYNC;
  if (T == 0) { PROXY; tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }
K(bulk_store_source_reused_after_read) { __shared__ alignas(128) int s[64];
  for (int k = 0; k < 2; k++) { s[T] = a[G] + k; PROXY; SYNC;
    if (T == 0) { tma_out(b + k * 1024 + B * 64, s, 256); BULK_COMMIT; BULK_WAIT_READ(0); }
    SYNC; } }
K(mbarrier_as_block_barrier) { __shared__ int s[64]; __shared__ u64 m; int sum = 0; if (T == 0) mb_init(&m, 64); SYNC;
#pragma unroll 1
  for (int k = 0; k < 4; k++) { s[T] = a[G + k]; mb_arrive(&m); mb_wait(&m, 0); sum += s[63 - T]; mb_arrive(&m); mb_wait(&m, 1); }
  b[G] = sum; }
K(mbarrier_producer_warp) { __shared__ int s[2][32]; __shared__ u64 full[2], empty[2]; int sum = 0;
  if (T < 2) { mb_init(&full[T], 32); mb_init(&empty[T], 32); } SYNC;
  if (T < 32) for (int k = 0; k < 5; k++) { mb_wait(&empty[k & 1], (k >> 1 & 1) ^ 1); s[k & 1][T] = a[k * 32 + T]; mb_arrive(&full[k & 1]); }
  else { for (int k = 0; k < 5; k++) { mb_wait(&full[k & 1], k >> 1 & 1); sum += s[k & 1][63 - T]; mb_arrive(&empty[k & 1]); } b[G] = sum; } }
K(mbarrier_relaxed_with_fences) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  s[T] = a[G]; __threadfence_block(); mb_arrive_relaxed(&m); while (!mb_test_relaxed(&m, 0)); __threadfence_block(); b[G] = s[63 - T]; }
K(mbarrier_one_arrival_a_warp) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 2); SYNC;
  s[T] = a[G]; __syncwarp(); if ((T & 31) == 0) mb_arrive(&m);
  mb_wait(&m, 0); b[G] = s[63 - T]; }
K(mbarrier_waited_by_one_lane) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  s[T] = a[G]; mb_arrive(&m); if ((T & 31) == 0) mb_wait(&m, 0);
  __syncwarp(); b[G] = s[63 - T]; }
K(mbarrier_invalidated_and_reused) { __shared__ union { u64 m; int s[2]; } u; if (T == 0) mb_init(&u.m, 64); SYNC;
  mb_arrive(&u.m); mb_wait(&u.m, 0); SYNC;
  if (T == 0) { mb_inval(&u.m); u.s[0] = 1; }
  SYNC; b[G] = u.s[0]; }
K(async_tracked) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  copy4(&s[T], a + G); copy_arrive_noinc(&m); mb_wait(&m, 0); b[G] = s[63 - T]; }
K(async_tracked_inc) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  copy4(&s[T], a + G); copy_arrive(&m); mb_arrive(&m); mb_wait(&m, 0); b[G] = s[63 - T]; }
K(async_tracked_and_waited) { __shared__ int s[64]; __shared__ u64 m; int own; if (T == 0) mb_init(&m, 64); SYNC;
  copy4(&s[T], a + G); copy_arrive_noinc(&m); COMMIT; WAIT(0); own = s[T]; mb_wait(&m, 0); b[G] = own + s[63 - T]; }
K(async_tracked_stages) { __shared__ int s[2][64]; __shared__ u64 full[2], empty[2]; int sum = 0;  // block 128
  if (T < 2) { mb_init(&full[T], 64); mb_init(&empty[T], 64); } SYNC;
  if (T < 64) for (int k = 0; k < 5; k++) { mb_wait(&empty[k & 1], (k >> 1 & 1) ^ 1); copy4(&s[k & 1][T], a + k * 64 + T); copy_arrive_noinc(&full[k & 1]); }
  else { for (int k = 0; k < 5; k++) { mb_wait(&full[k & 1], k >> 1 & 1); sum += s[k & 1][127 - T]; mb_arrive(&empty[k & 1]); } b[G] = sum; } }
K(cluster_remote) { __shared__ int s[64]; s[T] = a[G]; CLUSTER_SYNC; b[G] = *far(&s[T], RANK ^ 1); CLUSTER_SYNC; }  // cluster 2
K(cluster_split_barrier) { __shared__ int s[64]; s[T] = a[G]; CLUSTER_ARRIVE; int x = a[G + 1]; CLUSTER_WAIT; b[G] = x + *far(&s[T], RANK ^ 1); CLUSTER_SYNC; }  // cluster 2
K(cluster_relaxed_with_fence) { __shared__ int s[64]; s[T] = a[G];  // cluster 2
  asm volatile("fence.acq_rel.cluster;" ::: "memory"); CLUSTER_ARRIVE_RELAXED; CLUSTER_WAIT; b[G] = *far(&s[T], RANK ^ 1); CLUSTER_SYNC; }
K(cluster_histogram) { __shared__ int s[8]; if (T < 8) s[T] = 0; CLUSTER_SYNC;  // cluster 2
  atomicAdd(far(&s[a[G] & 7], a[G] & 1), 1); CLUSTER_SYNC; if (T < 8) b[B * 8 + T] = s[T]; }
K(cluster_arrive_far) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); CLUSTER_SYNC;  // cluster 2
  *far(&s[T], RANK ^ 1) = a[G]; mb_arrive_far(&m, RANK ^ 1); mb_wait_cluster(&m, 0); b[G] = s[63 - T]; CLUSTER_SYNC; }
K(cluster_flag) { __shared__ int s, f; if (T == 0) f = 0; CLUSTER_SYNC;  // cluster 2
  if (RANK == 0 && T == 0) { *far(&s, 1) = 7; __threadfence(); VOLATILE(*far(&f, 1)) = 1; }
  if (RANK == 1 && T == 0) { while (!VOLATILE(f)); __threadfence(); b[0] = s; }
  CLUSTER_SYNC; }
K(wgmma) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; float d[4] = {};  // block 128
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;
  y[T] = T; PROXY; SYNC; WG_FENCE; wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; WG_WAIT(0);
  SYNC; y[T] = 1; b[G] = d[0] + d[1] + d[2] + d[3]; }
K(wgmma_in_stages) { __shared__ alignas(128) uint16_t x[64 * 16], y[2][8 * 16]; __shared__ u64 full[2], empty[2]; float d[4] = {};  // block 160
  if (T < 2) { mb_init(&full[T], 1); mb_init(&empty[T], 128); }
  for (int i = T; i < 1024; i += 160) x[i] = i & 3;
  PROXY; SYNC;
  if (T == 128) for (int k = 0; k < 4; k++) { mb_wait(&empty[k & 1], (k >> 1 & 1) ^ 1); mb_expect(&full[k & 1], 256); tma_in(y[k & 1], a + 64 * k, 256, &full[k & 1]); }
  if (T < 128) {
#pragma unroll
    for (int k = 0; k < 4; k++) { mb_wait(&full[k & 1], k >> 1 & 1); WG_FENCE; wgmma8(d, descriptor(x), descriptor(y[k & 1])); WG_COMMIT;
      if (k) { WG_WAIT(1); mb_arrive(&empty[k - 1 & 1]); } }
    WG_WAIT(0); b[G] = d[0] + d[1] + d[2] + d[3]; } }
K(ldmatrix) { __shared__ alignas(128) uint16_t x[512]; unsigned r[4];
  copy16(&x[T * 8], a + T * 4); COMMIT; WAIT(0); SYNC; ldsm4(r, &x[(T / 32) * 256 + (T & 31) * 8]); b[G] = r[0] + r[1] + r[2] + r[3]; }
K(ldmatrix_own_warp) { __shared__ alignas(128) uint16_t x[512]; unsigned r[4];
  for (int i = 0; i < 8; i++) x[T * 8 + i] = a[i + T];
  __syncwarp(); ldsm4(r, &x[(T / 32) * 256 + (T & 31) * 8]); b[G] = r[0] + r[1] + r[2] + r[3]; }
