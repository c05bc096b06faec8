// Each kernel races, between the lines marked at their end.
#include "modern.cuh"
K(bulk_not_waited) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256);
    tma_in(s, a, 256, &m); }  //!
  SYNC;
  b[G] = s[63 - T]; }  //!
K(bulk_waited_by_one_only) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256);
    tma_in(s, a, 256, &m);  //!
    mb_wait(&m, 0); }
  b[G] = s[63 - T]; }  //!
K(bulk_wrong_parity) { __shared__ alignas(128) int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 1); SYNC;
  if (T == 0) { mb_expect(&m, 256);
    tma_in(s, a, 256, &m); }  //!
  mb_wait(&m, 1);
  b[G] = s[63 - T]; }  //!
K(bulk_waits_for_the_other_stage) { __shared__ alignas(128) int s[2][64]; __shared__ u64 m[2]; if (T < 2) mb_init(&m[T], 1); SYNC;
  if (T == 0) { mb_expect(&m[0], 256);
    tma_in(s[0], a, 256, &m[0]);  //!
    mb_expect(&m[1], 256); tma_in(s[1], a + 64, 256, &m[1]); }
  mb_wait(&m[1], 0);
  b[G] = s[0][T] + s[1][T]; }  //!
K(bulk_over_data_in_use) { __shared__ alignas(128) int s[64]; __shared__ u64 m; int sum = 0; if (T == 0) mb_init(&m, 1); SYNC;
#pragma unroll 1
  for (int k = 0; k < 3; k++) { if (T == 0) { mb_expect(&m, 256);
      tma_in(s, a + k * 64, 256, &m); }  //!
    mb_wait(&m, k & 1);
    sum += s[63 - T]; }  //!
  b[G] = sum; }
K(pipeline_without_empty_barrier) { __shared__ alignas(128) int s[2][64]; __shared__ u64 full[2]; int sum = 0; if (T < 2) mb_init(&full[T], 1); SYNC;
  if (T == 32) for (int k = 0; k < 4; k++) { mb_expect(&full[k & 1], 256);
      tma_in(s[k & 1], a + k * 64, 256, &full[k & 1]); mb_wait(&full[k & 1], k >> 1 & 1); }  //!
  else if (T < 32) for (int k = 0; k < 4; k += 4) { mb_wait(&full[k & 1], 0);
      sum += s[k & 1][T]; }  //!
  b[G] = sum; }
K(mbarrier_init_not_published) { __shared__ u64 m;
  if (T == 0) mb_init(&m, 64);  //!
  mb_arrive(&m);  //!
  mb_wait(&m, 0); }  //!
K(mbarrier_store_after_arrival) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  mb_arrive(&m);
  s[T] = a[G];  //!
  mb_wait(&m, 0);
  b[G] = s[63 - T]; }  //!
K(mbarrier_relaxed_arrival) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  s[T] = a[G];  //!
  mb_arrive_relaxed(&m); mb_wait(&m, 0);
  b[G] = s[63 - T]; }  //!
K(mbarrier_relaxed_wait) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  s[T] = a[G];  //!
  mb_arrive(&m); while (!mb_test_relaxed(&m, 0));
  b[G] = s[63 - T]; }  //!
K(mbarrier_second_phase_forgotten) { __shared__ int s[64]; __shared__ u64 m; int sum = 0; if (T == 0) mb_init(&m, 64); SYNC;
#pragma unroll 1
  for (int k = 0; k < 3; k++) {
    s[T] = a[G + k];  //!
    mb_arrive(&m); mb_wait(&m, k & 1);
    sum += s[63 - T]; }  //!
  b[G] = sum; }
K(mbarrier_invalidated_too_early) { __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  mb_arrive(&m);
  mb_wait(&m, 0);  //!
  if (T == 0) mb_inval(&m); }  //!
K(mbarrier_memory_reused) { __shared__ union { u64 m; int s[2]; } u; if (T == 0) mb_init(&u.m, 64); SYNC;
  mb_arrive(&u.m);
  mb_wait(&u.m, 0);  //!
  if (T == 0) { mb_inval(&u.m); u.s[0] = 1; }  //!
  SYNC; b[G] = u.s[0]; }
K(async_tracked_not_waited) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  copy4(&s[T], a + G);  //!
  copy_arrive_noinc(&m); SYNC;
  b[G] = s[63 - T]; }  //!
K(async_tracked_own_too_early) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  copy4(&s[T], a + G);  //!
  copy_arrive_noinc(&m);
  b[G] = s[T]; }  //!
K(async_issued_after_tracking) { __shared__ int s[2][64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  copy4(&s[0][T], a + G); copy_arrive_noinc(&m);
  copy4(&s[1][T], a + G);  //!
  mb_wait(&m, 0);
  b[G] = s[0][63 - T] + s[1][63 - T]; }  //!
K(bulk_store_not_fenced) { __shared__ alignas(128) int s[64];
  s[T] = a[G];  //!
  SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }  //!
K(bulk_store_fenced_by_one_too_early) { __shared__ alignas(128) int s[64];
  s[T] = a[G];  //!
  if (T == 0) PROXY;
  SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }  //!
K(bulk_store_fenced_before_the_data) { __shared__ alignas(128) int s[64];
  PROXY;
  s[T] = a[G];  //!
  SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }  //!
K(bulk_store_source_reused) { __shared__ alignas(128) int s[64];
  s[T] = a[G]; PROXY; SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; }  //!
  SYNC;
  s[T] = 0; }  //!
K(bulk_store_read_back) { __shared__ alignas(128) int s[64];
  s[T] = a[G]; PROXY; SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT_READ(0); }  //!
  SYNC;
  b[1024 + G] = b[G]; }  //!
K(cluster_remote_not_synced) { __shared__ int s[64];  // cluster 2
  s[T] = a[G];  //!
  SYNC;
  b[G] = *far(&s[T], RANK ^ 1); CLUSTER_SYNC; }  //!
K(cluster_relaxed_arrival) { __shared__ int s[64];  // cluster 2
  s[T] = a[G];  //!
  CLUSTER_ARRIVE_RELAXED; CLUSTER_WAIT;
  b[G] = *far(&s[T], RANK ^ 1); CLUSTER_SYNC; }  //!
K(cluster_store_between_arrive_and_wait) { __shared__ int s[64];  // cluster 2
  CLUSTER_ARRIVE;
  s[T] = a[G];  //!
  CLUSTER_WAIT;
  b[G] = *far(&s[T], RANK ^ 1); CLUSTER_SYNC; }  //!
K(cluster_remote_histogram_read) { __shared__ int s[8]; if (T < 8) s[T] = 0; CLUSTER_SYNC;  // cluster 2
  atomicAdd(far(&s[a[G] & 7], a[G] & 1), 1);  //!
  SYNC;
  if (T < 8) b[B * 8 + T] = s[T];  //!
  CLUSTER_SYNC; }
K(cluster_remote_zeroed_late) { __shared__ int s[8];  // cluster 2
  if (T < 8) s[T] = 0;  //!
  SYNC;
  atomicAdd(far(&s[a[G] & 7], a[G] & 1), 1);  //!
  CLUSTER_SYNC; if (T < 8) b[B * 8 + T] = s[T]; }
K(cluster_flag_block_scope) { __shared__ int s, f; if (T == 0) f = 0; CLUSTER_SYNC;  // cluster 2
  if (RANK == 0 && T == 0) {
    *far(&s, 1) = 7;  //!
    __threadfence_block(); VOLATILE(*far(&f, 1)) = 1; }
  if (RANK == 1 && T == 0) { while (!VOLATILE(f)); __threadfence_block();
    b[0] = s; }  //!
  CLUSTER_SYNC; }
K(wgmma_tile_not_fenced) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; float d[4] = {};  // block 128
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;  //!
  y[T] = T;  //!
  SYNC; WG_FENCE;
  wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; WG_WAIT(0);  //!
  b[G] = d[0] + d[1] + d[2] + d[3]; }
K(wgmma_tile_not_synced) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; float d[4] = {};  // block 128
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;  //!
  y[T] = T;  //!
  PROXY; WG_FENCE;
  wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; WG_WAIT(0);  //!
  b[G] = d[0] + d[1] + d[2] + d[3]; }
K(wgmma_tile_overwritten) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; float d[4] = {};  // block 128
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;
  y[T] = T; PROXY; SYNC; WG_FENCE;
  wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; SYNC;  //!
  y[T] = 1;  //!
  WG_WAIT(0);
  b[G] = d[0] + d[1] + d[2] + d[3]; }
K(wgmma_stage_freed_too_early) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; __shared__ u64 full, empty; float d[4] = {};  // block 160
  if (T == 0) { mb_init(&full, 1); mb_init(&empty, 128); }
  for (int i = T; i < 1024; i += 160) x[i] = i & 3;
  PROXY; SYNC;
  if (T == 128) for (int k = 0; k < 2; k++) { if (k) mb_wait(&empty, 0); mb_expect(&full, 256);
      tma_in(y, a + 64 * k, 256, &full); }  //!
  if (T < 128) { for (int k = 0; k < 2; k++) { mb_wait(&full, k); WG_FENCE;
      wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT;  //!
      mb_arrive(&empty); }
    WG_WAIT(0); b[G] = d[0] + d[1] + d[2] + d[3]; } }
K(ldmatrix_before_barrier) { __shared__ alignas(128) uint16_t x[2][256]; unsigned r[4];
  for (int i = T; i < 512; i += 64) x[0][i] = a[i];  //!
  ldsm4(r, &x[T / 32][(T & 31) * 8]);  //!
  b[G] = r[0] + r[1] + r[2] + r[3]; }
K(ldmatrix_before_copies_end) { __shared__ alignas(128) uint16_t x[512]; unsigned r[4];
  copy16(&x[T * 8], a + T * 4);  //!
  COMMIT; SYNC;
  ldsm4(r, &x[(T / 32) * 256 + (T & 31) * 8]);  //!
  WAIT(0); b[G] = r[0] + r[1] + r[2] + r[3]; }
K(tma_store_before_all_wrote) { __shared__ alignas(128) int s[64];
  s[T] = a[G]; PROXY;  //!
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; BULK_WAIT(0); } }  //!
K(tma_store_buffer_one_short) { __shared__ alignas(128) int s[2][64];
  for (int k = 0; k < 4; k++) { if (T == 0) BULK_WAIT_READ(2); SYNC;
    s[k & 1][T] = a[G] + k; PROXY; SYNC;  //!
    if (T == 0) { tma_out(b + k * 512 + B * 64, s[k & 1], 256); BULK_COMMIT; } }  //!
  if (T == 0) BULK_WAIT(0); }
K(wait_group_read_by_other_thread) { __shared__ alignas(128) int s[64]; s[T] = a[G]; PROXY; SYNC;
  if (T == 0) { tma_out(b + B * 64, s, 256); BULK_COMMIT; }  //!
  if (T == 32) BULK_WAIT_READ(0);
  SYNC; s[T] = 1; }  //!
K(cp_async_then_syncwarp) { __shared__ int s[64]; copy4(&s[T], a + G); COMMIT; WAIT(0);  //!
  __syncwarp(); b[G] = s[T ^ 32]; }  //!
K(cp_async_wait_after_sync) { __shared__ int s[64]; copy4(&s[T], a + G); COMMIT; SYNC; WAIT(0);  //!
  b[G] = s[63 - T]; }  //!
K(cp_async_and_plain_store) { __shared__ int s[64]; copy4(&s[T], a + G); COMMIT;  //!
  if (T < 8) s[T] = 0;  //!
  WAIT(0); SYNC; b[G] = s[63 - T]; }
K(cp_async_source_written) { __shared__ int s[64];
  copy4(&s[T], a + G); COMMIT;  //!
  a[G ^ 1] = 5;  //!
  WAIT(0); SYNC; b[G] = s[63 - T]; }
K(consumer_arrives_before_reading) { __shared__ int s[2][32]; __shared__ u64 full[2], empty[2]; int sum = 0;
  if (T < 2) { mb_init(&full[T], 32); mb_init(&empty[T], 32); } SYNC;
  if (T < 32) for (int k = 0; k < 5; k++) { mb_wait(&empty[k & 1], (k >> 1 & 1) ^ 1);
      s[k & 1][T] = a[k * 32 + T];  //!
      mb_arrive(&full[k & 1]); }
  else { for (int k = 0; k < 5; k++) { mb_wait(&full[k & 1], k >> 1 & 1); mb_arrive(&empty[k & 1]);
      sum += s[k & 1][63 - T]; } b[G] = sum; } }  //!
K(one_lane_arrives_for_the_warp) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 2); SYNC;
  s[T] = a[G];  //!
  if ((T & 31) == 0) mb_arrive(&m);
  mb_wait(&m, 0);
  b[G] = s[63 - T]; }  //!
K(one_lane_waits_for_the_warp) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); SYNC;
  s[T] = a[G];  //!
  mb_arrive(&m); if ((T & 31) == 0) mb_wait(&m, 0);
  b[G] = s[63 - T]; }  //!
K(remote_arrive_block_scope) { __shared__ int s[64]; __shared__ u64 m; if (T == 0) mb_init(&m, 64); CLUSTER_SYNC;  // cluster 2
  *far(&s[T], RANK ^ 1) = a[G];  //!
  asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [a]; }" ::"r"(U32(&m)), "r"(RANK ^ 1) : "memory");
  mb_wait_cluster(&m, 0);
  b[G] = s[63 - T]; CLUSTER_SYNC; }  //!
K(ldmatrix_other_warps_rows) { __shared__ alignas(128) uint16_t x[512]; unsigned r[4];
  for (int i = 0; i < 8; i++) x[T * 8 + i] = a[i + T];  //!
  __syncwarp(); ldsm4(r, &x[((T + 32) & 63) * 8]);  //!
  b[G] = r[0] + r[1]; }
