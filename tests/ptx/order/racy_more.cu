// Each kernel races, between the lines marked at their end.
#include "common.cuh"
K(failed_cas_publishes_nothing) {
  if (B == 0 && T == 0) { b[64] = 5; __threadfence(); VOLATILE(b[65]) = 1;
    b[0] = 3;  //!
    __threadfence(); atomicCAS(&b[64], 9, 1); __threadfence(); VOLATILE(b[66]) = 0; }
  if (B == 1 && T == 0) { while (!VOLATILE(b[65])); __threadfence(); atomicAdd(&b[64], 0); __threadfence();
    b[1] = b[0]; } }  //!
K(try_lock_entered_anyway) {
  if (T == 0) { if (atomicCAS(&b[64], 0, 1) == 0) __threadfence();
    b[0] += 1;  //!
    __threadfence(); atomicExch(&b[64], 0); } }
K(ticket_lock_no_fence) {
  if (T == 0) { int mine = atomicAdd(&b[64], 1); while (VOLATILE(b[65]) != mine);
    b[0] += 1;  //!
    atomicAdd(&b[65], 1); } }
K(ticket_lock_fence_after_only) {
  if (T == 0) { int mine = atomicAdd(&b[64], 1); while (VOLATILE(b[65]) != mine);
    b[0] += 1;  //!
    __threadfence(); atomicAdd(&b[65], 1); } }
K(readers_write_under_shared_lock) {
  if (T == 0) { int v; do { v = VOLATILE(b[64]); } while (v < 0 || atomicCAS(&b[64], v, v + 1) != v);
    __threadfence();
    b[0] += 1;  //!
    __threadfence(); atomicSub(&b[64], 1); } }
K(double_checked_init) {
  if (T == 0) {
    if (b[64] == 0) { while (atomicCAS(&b[65], 0, 1)); __threadfence();  //!
      if (b[64] == 0) { b[0] = 7;
        b[64] = 1; }  //!
      __threadfence(); atomicExch(&b[65], 0); }
    b[2 + B] = 1; } }
K(work_queue_item_before_publish) {
  if (B == 0 && T == 0) { int at = atomicAdd(&b[64], 1);
    b[at] = 42; }  //!
  if (B == 1 && T == 0) { while (VOLATILE(b[64]) == 0); __threadfence();
    b[100] = b[0]; } }  //!
K(termination_flag_plain) {
  if (B == 0 && T == 0) b[64] = 1;  //!
  if (B == 1 && T == 0) { int n = 0; while (n++ < 20 && !b[64]);  //!
    b[0] = n; } }
K(lookback_value_after_status) {
  if (T == 0) { if (B == 0) { put_release(&b[64], 1);
      b[0] = a[0]; }  //!
    else { while (get_acquire(&b[64]) == 0);
      b[B] = b[0] + a[B]; } } }  //!
K(compaction_two_counters) { __shared__ int count; if (T == 0) count = 0; SYNC;
  if (a[G] & 1) {
    int at = count++; b[B * 64 + at] = a[G]; } }  //!
K(compaction_ballot_overlap) { unsigned m = __ballot_sync(~0u, a[G] & 1); int at = __popc(m & ((1u << (T & 31)) - 1));
  if (a[G] & 1) b[B * 64 + at] = a[G]; }  //!
K(scan_of_warps_no_sync) { __shared__ int s[2]; int v = a[G];
  for (int k = 1; k < 32; k <<= 1) { int o = __shfl_up_sync(~0u, v, k); if ((T & 31) >= k) v += o; }
  if ((T & 31) == 31) s[T / 32] = v;  //!
  if (T >= 32) v += s[0];  //!
  b[G] = v; }
K(privatised_bins_by_lane) { __shared__ int s[8][16]; for (int i = T; i < 128; i += 64) s[0][i] = 0; SYNC;
  s[T & 7][a[G] & 15]++;  //!
  SYNC; if (T < 16) { int sum = 0; for (int i = 0; i < 8; i++) sum += s[i][T]; b[B * 16 + T] = sum; } }
K(bins_flushed_too_early) { __shared__ int s[16]; if (T < 16) s[T] = 0; SYNC;
  atomicAdd(&s[a[G] & 15], 1);  //!
  if (T < 16) atomicAdd(&b[T], s[T]); }  //!
K(bins_zeroed_without_sync) { __shared__ int s[16];
  if (T < 16) s[T] = 0;  //!
  atomicAdd(&s[a[G] & 15], 1);  //!
  SYNC; if (T < 16) atomicAdd(&b[T], s[T]); }
struct Bits { unsigned lo : 8, hi : 8; };
K(bitfields_of_one_word) { Bits* p = (Bits*)b;
  if (T == 0) p[B & 0].lo = 1;  //!
  if (T == 1) p[B & 0].hi = 2; }  //!
K(carve_up_overlaps_by_one) { extern __shared__ int room[]; int *x = room, *y = room + 63;
  x[T] = a[G];  //!
  y[T] = a[G] + 1;  //!
  SYNC; b[G] = x[T] + y[T]; }
K(union_reused) { __shared__ union { int s[64]; float f[64]; } u; u.s[T] = a[G]; SYNC;
  int x = u.s[63 - T];  //!
  u.f[T] = x * 2.0f;  //!
  SYNC; b[G] = u.f[63 - T]; }
K(block_scope_release) {
  if (B == 0 && T == 0) {
    b[0] = 1;  //!
    asm volatile("st.release.cta.global.u32 [%0], 1;" ::"l"(b + 64) : "memory"); }  //!
  if (B == 1 && T == 0) { while (get_acquire(&b[64]) == 0);  //!
    b[1] = b[0]; } }  //!
K(relaxed_chain) {
  if (B == 0 && T == 0) {
    b[0] = 3;  //!
    put_release(&b[64], 1); }
  if (B == 0 && T == 32) { while (get_relaxed(&b[64]) == 0); put_release(&b[65], 1); }
  if (B == 1 && T == 0) { while (get_acquire(&b[65]) == 0);
    b[1] = b[0]; } }  //!
K(atomic_and_plain_store) {
  if (T < 16) atomicAdd(&b[T], 1);  //!
  if (T >= 48) b[T - 48] = 0; }  //!
K(atomic_max_then_plain_test) {
  if (a[G] > b[0]) atomicMax(&b[0], a[G]); }  //!
K(vector_store_over_neighbour) {
  if (T < 16) ((int4*)b)[G / 64 * 16 + T] = make_int4(1, 2, 3, 4);  //!
  if (T == 20) b[G / 64 * 64 + 5] = 1; }  //!
K(ring_slot_reused) { __shared__ int s[32]; int sum = 0;
  if (T < 32) for (int i = 0; i < 3; i++) {
      s[T] = a[T + i];  //!
      BAR(1, 64); }
  else { for (int i = 0; i < 3; i++) { BAR(1, 64);
      sum += s[T - 32]; } b[G] = sum; } }  //!
K(sync_in_odd_rounds_only) { __shared__ int s[64]; int v = a[G];
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    s[T] = v;  //!
    if (i & 1) SYNC;
    v += s[63 - T]; }  //!
  b[G] = v; }
K(grid_barrier_without_fence) { b[G] = a[G];  //!
  SYNC;
  if (T == 0) { atomicAdd(&b[1000], 1); while (VOLATILE(b[1000]) < gridDim.x); }
  SYNC; b[512 + G] = b[127 - G]; }  //!
K(grid_barrier_of_one_warp) {
  b[G] = a[G];  //!
  if (T < 32) { __syncwarp(); if (T == 0) { __threadfence(); atomicAdd(&b[1000], 1); while (VOLATILE(b[1000]) < gridDim.x); __threadfence(); } }
  SYNC;
  b[512 + G] = b[127 - G]; }  //!
K(global_pingpong_no_grid_sync) {
  b[128 + G] = b[G] + 1;  //!
  SYNC; b[256 + G] = b[128 + (G ^ 64)]; }  //!
K(syncwarp_lanes_left_out) { __shared__ int s[64];
  s[T] = a[G];  //!
  if ((T & 31) < 24) __syncwarp(0xffffff);
  b[G] = s[T ^ 31]; }  //!
K(broadcast_by_divergent_lane) { __shared__ int s[2];
  if ((T & 31) == 5) { s[T / 32] = a[G];  //!
    __threadfence_block(); }
  b[G] = s[T / 32]; }  //!
K(async_stage_off_by_one) { __shared__ int s[3][64]; int sum = 0;
  for (int k = 0; k < 2; k++) { copy4(&s[k][T], a + k * 64 + T); COMMIT; }
#pragma unroll 1
  for (int k = 0; k < 6; k++) { WAIT(1); SYNC;
    sum += s[k % 3][63 - T];  //!
    copy4(&s[(k + 3) % 3][T], a + k * 64 + T);  //!
    COMMIT; }
  WAIT(0); b[G] = sum; }
K(lookback_partial_overwritten) {
  if (T == 0 && B == 0) { b[0] = a[0]; put_release(&b[64], 1); while (get_relaxed(&b[65]) == 0);
    b[0] += 100; put_release(&b[64], 2); }  //!
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0); put_relaxed(&b[65], 1);
    b[1] = b[0]; } }  //!
K(volatile_tail_read_plainly) { __shared__ int s[64]; volatile int* v = s; s[T] = a[G]; SYNC;
  if (T < 32) v[T] = s[T + 32];  //!
  if (T < 16) v[T] = s[T] + s[T + 16]; }  //!
K(counter_set_back_unseen) {
  if (T == 0 && B == 0) { atomicAdd(&b[64], 1); __threadfence(); }  //!
  if (T == 0 && B == 1) b[64] = 0; }  //!
K(reader_frees_before_it_reads) {
  if (T == 0 && B == 0) { b[0] = 1; put_release(&b[64], 1); while (get_acquire(&b[65]) == 0);
    b[0] = 2; }  //!
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0); put_release(&b[65], 1);
    b[1] = b[0]; } }  //!
K(hash_value_beside_key) { int key = a[G] + 1, at = key & 63; while (true) { int old = atomicCAS(&b[at], 0, key); if (old == 0 || old == key) break; at = (at + 1) & 63; }
  b[64 + at] += 1; }  //!
__device__ __forceinline__ int inner_get(int* p) { return *p; }
__device__ __forceinline__ void inner_put(int* p, int v) { *p = v; }
__device__ __forceinline__ void outer_put(int* p, int v) { inner_put(p, v); }
__device__ __forceinline__ int outer_get(int* p) { return inner_get(p); }
K(helpers_of_helpers) { __shared__ int s[2][64];
  outer_put(&s[0][T], a[G]);  //!
  outer_put(&s[1][T], a[G + 1]);
  __syncwarp();
  int x = outer_get(&s[0][63 - T]);  //!
  int y = outer_get(&s[1][T]);
  b[G] = x + y; }
K(stencil2d_missing_sync) { __shared__ int s[10][10]; int x = T % 8 + 1, y = T / 8 + 1;
  s[y][x] = a[T];  //!
  if (x == 1) { s[y][0] = a[T]; s[y][9] = a[T + 7]; }  //!
  if (y == 1) { s[0][x] = a[T]; s[9][x] = a[T + 8]; }  //!
  b[G] = s[y - 1][x] + s[y + 1][x] + s[y][x - 1] + s[y][x + 1]; }  //!
K(game_of_life_in_place) { int l = a[(G + 127) & 127], r = a[(G + 1) & 127];  //!
  a[G] = (l + r) == 2; }  //!
K(reverse_in_place_global) { int o = 127 - G; int v = a[o];  //!
  a[G] = v; }  //!
K(prefix_global_hillis) {
#pragma unroll 1
  for (int k = 1; k < 64; k <<= 1) { int v = T >= k ? a[G - k] : 0; a[G] += v; SYNC; } }  //!
K(softmax_one_max_cell) { __shared__ float mx; if (T == 0) mx = -1e30f; SYNC;
  if (a[G] > mx) mx = a[G];  //!
  SYNC; b[G] = mx; }
K(matrix_col_sums) { __shared__ int s[8];
  if (T < 8) s[T] = 0;
  SYNC;
  s[T % 8] += a[G];  //!
  SYNC; if (T < 8) b[B * 8 + T] = s[T]; }
K(two_tiles_one_sync) { __shared__ int x[64], y[64]; int sum = 0;
  for (int k = 0; k < 3; k++) {
    x[T] = a[k * 64 + T];  //!
    y[T] = a[k * 64 + 63 - T];  //!
    SYNC;
    for (int i = 0; i < 4; i++) sum += x[T & ~3 | i] * y[(T * 5 + i) & 63]; }  //!
  b[G] = sum; }
K(double_buffer_missing_sync) { __shared__ int s[2][64]; int sum = 0; s[0][T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 4; k++) {
    s[k & 1][T] = a[G + k];  //!
    sum += s[(k & 1) ^ 1][63 - T]; }  //!
  b[G] = sum; }
K(ping_pong_pointer_swap) { __shared__ int u[64], v[64]; int *x = u, *y = v; x[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 0; k < 3; k++) {
    y[T] = x[(T + 1) & 63] + 1;  //!
    int* t = x; x = y; y = t; }
  SYNC; b[G] = x[T]; }
K(tree_reduce_wrong_stride) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 64; k *= 2) {
    if (T + k < 64) s[T] += s[T + k];  //!
    SYNC; }
  if (T == 0) b[B] = s[0]; }
K(radix_scatter_collides) { __shared__ int s[64]; int d = a[G] & 3;
  s[d * 16 + (T & 15)] = a[G];  //!
  SYNC; b[G] = s[T]; }
K(warp_aggregated_wrong_leader) { __shared__ int base[2]; unsigned m = __ballot_sync(~0u, a[G] & 1);
  if ((T & 31) == __ffs(m) - 1) base[T / 32] = atomicAdd(&b[0], __popc(m));  //!
  if (a[G] & 1) b[64 + base[T / 32] + __popc(m & ((1u << (T & 31)) - 1))] = a[G]; }  //!
K(match_any_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  unsigned m = __match_any_sync(~0u, a[G] & 3);
  b[G] = s[(T & 32) + __ffs(m) - 1]; }  //!
K(all_sync_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  int ok = __all_sync(~0u, a[G] >= 0);
  b[G] = s[T ^ 8] + ok; }  //!
K(activemask_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  unsigned m = __activemask();
  b[G] = s[T ^ 8] + __popc(m); }  //!
K(nanosleep_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  __nanosleep(1000);
  b[G] = s[63 - T]; }  //!
K(threadfence_block_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  __threadfence_block();
  b[G] = s[63 - T]; }  //!
K(volatile_shared_both) { __shared__ volatile int f; __shared__ int s[64]; if (T == 0) f = 0; SYNC;
  if (T < 32) { s[T] = a[G];  //!
    f = 1; }
  else { while (!f);
    b[G] = s[T - 32]; } }  //!
K(global_volatile_data_two_sizes) { if (B == 0) *(volatile short*)&b[T] = 1;  //!
  else b[512 + T] = *(volatile int*)&b[T]; }  //!
K(producer_overwrites_slot) { int* slot = b; int* full = b + 64;
  if (T == 0 && B == 0) for (int i = 0; i < 3; i++) {
      slot[0] = i;  //!
      __threadfence(); atomicExch(full, i + 1); while (get_relaxed(b + 65) <= i); }
  if (T == 0 && B == 1) for (int i = 0; i < 3; i++) { while (atomicAdd(full, 0) <= i); __threadfence();
      b[100 + i] = slot[0];  //!
      put_relaxed(b + 65, i + 1); } }
K(block_barrier_counter_reset) { __shared__ int m; if (T == 0) m = 0; SYNC;
  if ((T & 31) == 0) { atomicAdd(&m, 1); while (VOLATILE(m) < 2); }  //!
  if (T == 0) m = 0; }  //!
K(cas_lock_different_locks) {
  if (T == 0) { while (atomicCAS(&b[64 + B], 0, 1)); __threadfence();
    b[0] += 1;  //!
    __threadfence(); atomicExch(&b[64 + B], 0); } }
K(lock_freed_before_write) {
  if (T == 0) { while (atomicCAS(&b[64], 0, 1)); __threadfence(); int v = b[0];  //!
    __threadfence(); atomicExch(&b[64], 0);
    b[0] = v + 1; } }  //!
K(exit_then_shared_read) { __shared__ int s[64];
  if (T >= 32) { s[T] = a[G]; return; }  //!
  __syncwarp(); b[G] = s[T + 32]; }  //!
K(texture_like_ldg_of_output) { b[G] = a[G];  //!
  SYNC; int v; asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(b + (G ^ 1))); b[512 + G] = v; }  //!
K(float4_and_float) { float4* v = (float4*)b;
  if (T < 16) v[T + B * 16] = make_float4(1, 2, 3, 4);  //!
  else if (T < 32) ((float*)b)[B * 64 + (T - 16) * 4 + 3] = 5; }  //!
K(bool_flags_packed) { __shared__ bool f[64]; f[T] = false; SYNC;
  if (a[G] & 1) f[(T + 1) & 63] = true;  //!
  b[G] = f[T]; }  //!
