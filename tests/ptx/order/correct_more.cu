// No kernel here races; several look as if they did.
#include "common.cuh"
K(failed_cas_reads_only) { if (T == 0 && B == 0) b[0] = 5; if (B == 0) { SYNC; atomicCAS(&b[0], 9, 1); int x = b[0]; b[64 + T] = x; } }
K(try_lock) {
  if (T == 0) { if (atomicCAS(&b[64], 0, 1) == 0) { __threadfence(); b[0] += 1; __threadfence(); atomicExch(&b[64], 0); } } }
K(lock_with_backoff) {
  if (T == 0) { unsigned ns = 8; while (atomicCAS(&b[64], 0, 1)) { __nanosleep(ns); if (ns < 256) ns *= 2; }
    __threadfence(); b[0] += 1; __threadfence(); atomicExch(&b[64], 0); } }
K(lock_test_and_test_and_set) {
  if (T == 0) { do { while (VOLATILE(b[64])); } while (atomicCAS(&b[64], 0, 1)); __threadfence(); b[0] += 1; __threadfence(); atomicExch(&b[64], 0); } }
K(lock_by_every_lane) { bool done = false;  // block 32
  while (!done) { if (atomicCAS(&b[64], 0, 1) == 0) { __threadfence(); b[0] += 1; __threadfence(); atomicExch(&b[64], 0); done = true; } } }
K(ticket_lock) {
  if (T == 0) { int mine = atomicAdd(&b[64], 1); while (VOLATILE(b[65]) != mine); __threadfence(); b[0] += 1; __threadfence(); atomicAdd(&b[65], 1); } }
K(ticket_lock_volatile_owner) {
  if (T == 0) { int mine = atomicAdd(&b[64], 1); while (VOLATILE(b[65]) != mine); __threadfence(); b[0] += 1; __threadfence(); VOLATILE(b[65]) = mine + 1; } }
K(readers_and_writer) {
  if (T == 0) { if (B == 0) { while (atomicCAS(&b[64], 0, -1) != 0); __threadfence(); b[0] += 1; __threadfence(); atomicExch(&b[64], 0); }
    else { int v; do { v = VOLATILE(b[64]); } while (v < 0 || atomicCAS(&b[64], v, v + 1) != v);
      __threadfence(); b[1 + B] = b[0]; __threadfence(); atomicSub(&b[64], 1); } } }
K(seqlock_volatile_data) {
  if (B == 0 && T == 0) { VOLATILE(b[64]) = 1; __threadfence(); VOLATILE(b[0]) = 5; VOLATILE(b[1]) = 6; __threadfence(); VOLATILE(b[64]) = 2; }
  if (B == 1 && T == 0) { int s, x; do { s = VOLATILE(b[64]); __threadfence(); x = VOLATILE(b[0]) + VOLATILE(b[1]); __threadfence(); } while ((s & 1) || s != VOLATILE(b[64]));
    b[2] = x; } }
K(double_checked_init) {
  if (T == 0) { if (get_acquire(&b[64]) == 0) { while (atomicCAS(&b[65], 0, 1)); __threadfence();
      if (get_relaxed(&b[64]) == 0) { b[0] = 7; put_release(&b[64], 1); }
      __threadfence(); atomicExch(&b[65], 0); }
    b[2 + B] = b[0]; } }
K(work_queue) {
  if (B == 0 && T == 0) for (int i = 0; i < 4; i++) { b[i] = 42 + i; __threadfence(); VOLATILE(b[64]) = i + 1; }
  if (B == 1 && T == 0) for (int i = 0; i < 4; i++) { while (VOLATILE(b[64]) <= i); __threadfence(); b[100 + i] = b[i]; } }
K(persistent_blocks) { __shared__ int tile;
  while (true) { if (T == 0) tile = atomicAdd(&b[0], 1); SYNC; int t = tile; SYNC; if (t >= 6) break; b[64 + t * 64 + T] = a[t * 64 + T]; } }
K(lookback_two_states) {  // grid 4
  if (T == 0) { int own = a[B], before = 0; b[128 + B] = own; put_release(&b[64 + B], 1);
    for (int i = (int)B - 1; i >= 0; i--) { int f; while ((f = get_acquire(&b[64 + i])) == 0);
      if (f == 2) { before += b[192 + i]; break; } before += b[128 + i]; }
    b[192 + B] = before + own; put_release(&b[64 + B], 2); } }
K(lookback_packed) { unsigned long long* w = (unsigned long long*)b;  // grid 4
  if (T == 0) { unsigned long long sum = a[B]; if (B) { unsigned long long v; do { v = *(volatile unsigned long long*)&w[B - 1]; } while (v >> 32 == 0); sum += (unsigned)v; }
    *(volatile unsigned long long*)&w[B] = 1ull << 32 | sum; } }
K(compaction_by_atomics) { __shared__ int count, base; if (T == 0) count = 0; SYNC; int at = -1;
  if (a[G] & 1) at = atomicAdd(&count, 1);
  SYNC; if (T == 0) base = atomicAdd(&b[0], count); SYNC;
  if (at >= 0) b[64 + base + at] = a[G]; }
K(compaction_aggregated) { bool keep = a[G] & 1; unsigned m = __ballot_sync(~0u, keep); int base = 0;
  if ((T & 31) == 0) base = atomicAdd(&b[0], __popc(m));
  base = __shfl_sync(~0u, base, 0); if (keep) b[64 + base + __popc(m & ((1u << (T & 31)) - 1))] = a[G]; }
K(compaction_active_lanes) { if (a[G] & 1) { unsigned m = __activemask(); int lead = __ffs(m) - 1, base = 0;
    if ((T & 31) == lead) base = atomicAdd(&b[0], __popc(m));
    base = __shfl_sync(m, base, lead); b[64 + base + __popc(m & ((1u << (T & 31)) - 1))] = a[G]; } }
K(scan_of_warps) { __shared__ int s[2]; int v = a[G];
  for (int k = 1; k < 32; k <<= 1) { int o = __shfl_up_sync(~0u, v, k); if ((T & 31) >= k) v += o; }
  if ((T & 31) == 31) s[T / 32] = v;
  SYNC; if (T >= 32) v += s[0]; b[G] = v; }
K(privatised_bins_by_thread) { __shared__ unsigned char s[16][64]; for (int i = 0; i < 16; i++) s[i][T] = 0;
  for (int i = 0; i < 4; i++) s[a[G + i] & 15][T]++;
  SYNC; if (T < 16) { int sum = 0; for (int i = 0; i < 64; i++) sum += s[T][i]; b[B * 16 + T] = sum; } }
K(bytes_of_one_word) { unsigned char* p = (unsigned char*)b; p[G] = a[G]; if (T == 0) p[2048 + B] = 7; }
K(halves_of_one_word) { __shared__ short s[128]; s[2 * T] = a[G]; s[2 * T + 1] = a[G] + 1; SYNC; b[G] = ((int*)s)[63 - T]; }
K(struct_fields_apart) { struct P { int x; short y; char z, w; }; __shared__ P p; if (T == 0) p.x = 1; if (T == 1) p.y = 2; if (T == 2) p.z = 3; if (T == 33) p.w = 4; SYNC; b[G] = p.x + p.y + p.z + p.w; }
K(carve_up) { extern __shared__ int room[]; int *x = room, *y = room + 64; x[T] = a[G]; y[T] = a[G] + 1; SYNC; b[G] = x[63 - T] + y[63 - T]; }
K(union_in_turn) { __shared__ union { int s[64]; float f[64]; } u; u.s[T] = a[G]; SYNC; int x = u.s[63 - T]; SYNC; u.f[T] = x; SYNC; b[G] = u.f[63 - T]; }
__constant__ int table[64] = {1, 2, 3};
K(constant_table) { b[G] = table[a[G] & 63] + table[T]; }
K(own_stack) { int x[8]; for (int i = 0; i < 8; i++) x[i] = a[G + i]; b[G] = x[a[G] & 7] + x[T & 7]; }
K(early_exit_then_two_syncs) { __shared__ int s[64]; if (G >= 96) return; s[T] = a[G]; SYNC; int v = s[T & 31]; SYNC; s[T] = v; b[G] = s[T]; }
K(whole_warp_leaves) { __shared__ int s[64]; if (T >= 32) return; s[T] = a[G]; SYNC; b[G] = s[31 - T]; }
K(named_barriers_ping_pong) { __shared__ int s[64];  // block 128
  for (int i = 0; i < 3; i++)
    if (T < 64) { s[T] = a[T + i]; ARRIVE(1, 128); BAR(2, 128); } else { BAR(1, 128); b[i * 256 + G] = s[T - 64]; ARRIVE(2, 128); } }
K(two_groups_of_warps) { __shared__ int s[128];  // block 128
  int g = T / 64; s[T] = a[G]; BAR(1 + g, 64); int v = s[T ^ 33]; BAR(1 + g, 64); s[T] = v; BAR(1 + g, 64); b[G] = s[T ^ 33]; }
K(async_three_stages) { __shared__ int s[3][64]; int sum = 0;
  for (int k = 0; k < 2; k++) { copy4(&s[k][T], a + k * 64 + T); COMMIT; }
#pragma unroll 1
  for (int k = 0; k < 6; k++) { WAIT(1); SYNC;
    sum += s[k % 3][63 - T]; copy4(&s[(k + 2) % 3][T], a + k * 64 + T); COMMIT; }
  WAIT(0); b[G] = sum; }
K(counter_wraps_by_itself) { __shared__ int last; if (T == 0) { b[100 + B] = a[B]; __threadfence(); last = atomicInc((unsigned*)&b[64], gridDim.x - 1) == gridDim.x - 1; } SYNC;
  if (last && T == 0) { __threadfence(); b[0] = b[100] + b[101]; } }
K(counter_reset_by_last_block) { __shared__ int last; if (T == 0) { b[100 + B] = 1; __threadfence(); last = atomicAdd(&b[64], 1) == gridDim.x - 1; __threadfence();
    if (last) { b[0] = b[100] + b[101]; b[64] = 0; } } }
K(hash_insert) { int key = a[G] + 1, at = key & 127; while (true) { int old = atomicCAS(&b[at], 0, key); if (old == 0 || old == key) break; at = (at + 1) & 127; } }
K(linked_list_push) { b[256 + G] = atomicExch(&b[0], G + 1); }
K(union_find_by_atomics) { int x = T; for (int i = 0; i < 3; i++) { int y = atomicMin(&b[128 + x], a[G]); x = (x + y) & 63; } }
K(spin_until_all_warps) { __shared__ int m; __shared__ int s[64]; if (T == 0) m = 0; SYNC; s[T] = a[G]; __syncwarp();
  if ((T & 31) == 0) { __threadfence_block(); atomicAdd(&m, 1); while (VOLATILE(m) < 2); __threadfence_block(); }
  __syncwarp(); b[G] = s[63 - T]; }
K(same_lane_other_iteration) { __shared__ int s[64]; for (int i = 0; i < 4; i++) { s[T] = a[G + i]; __syncwarp(); int v = s[T ^ 1]; __syncwarp(); b[i * 128 + G] = v; } }
K(double_words_as_words) { __shared__ double d[32]; if (T < 32) d[T] = a[G]; SYNC; b[G] = ((int*)d)[T]; }
K(atomic_then_sync_then_plain) { __shared__ int s; if (T == 0) s = 0; SYNC; atomicAdd(&s, a[G]); SYNC; b[G] = s; SYNC; if (T == 0) s = 0; SYNC; atomicMax(&s, a[G]); SYNC; b[512 + G] = s; }
K(counter_set_back_without_a_fence_after) { if (T == 0) { __threadfence(); if (atomicAdd(&b[64], 1) == gridDim.x - 1) b[64] = 0; } }
K(plain_read_of_a_seen_flag) {
  if (T == 0 && B == 0) { __threadfence(); VOLATILE(b[64]) = 5; }
  if (T == 0 && B == 1) { while (!VOLATILE(b[64])); b[1] = b[64]; } }
K(stencil2d) { __shared__ int s[10][10]; int x = T % 8 + 1, y = T / 8 + 1; s[y][x] = a[T];
  if (x == 1) { s[y][0] = a[T]; s[y][9] = a[T + 7]; }
  if (y == 1) { s[0][x] = a[T]; s[9][x] = a[T + 8]; }
  SYNC; b[G] = s[y - 1][x] + s[y + 1][x] + s[y][x - 1] + s[y][x + 1]; }
K(register_tiling) { __shared__ int x[64], y[64]; int sum = 0;
  for (int k = 0; k < 3; k++) { int u = a[k * 64 + T], v = a[k * 64 + 63 - T]; SYNC; x[T] = u; y[T] = v; SYNC; for (int i = 0; i < 4; i++) sum += x[T & ~3 | i] * y[(T * 5 + i) & 63]; }
  b[G] = sum; }
K(ping_pong_pointer_swap) { __shared__ int u[64], v[64]; int *x = u, *y = v; x[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 0; k < 3; k++) { y[T] = x[(T + 1) & 63] + 1; int* t = x; x = y; y = t; SYNC; }
  b[G] = x[T]; }
K(tree_reduce_interleaved) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 64; k *= 2) { if (T % (2 * k) == 0) s[T] += s[T + k]; SYNC; }
  if (T == 0) b[B] = s[0]; }
K(blelloch) { __shared__ int s[64]; s[T] = a[G]; SYNC; int off = 1;
#pragma unroll 1
  for (int d = 32; d; d >>= 1) { SYNC; if (T < d) s[off * (2 * T + 2) - 1] += s[off * (2 * T + 1) - 1]; off *= 2; }
  if (T == 0) s[63] = 0;
#pragma unroll 1
  for (int d = 1; d < 64; d *= 2) { off >>= 1; SYNC; if (T < d) { int i = off * (2 * T + 1) - 1, j = off * (2 * T + 2) - 1, t = s[i]; s[i] = s[j]; s[j] += t; } }
  SYNC; b[G] = s[T]; }
K(warp_specialised_three_roles) { __shared__ int x[32], y[32];  // block 96
  for (int i = 0; i < 3; i++) {
    if (T < 32) { if (i) BAR(3, 64); x[T] = a[T + i]; ARRIVE(1, 64); }
    else if (T < 64) { BAR(1, 64); int v = x[T - 32] * 2; if (i < 2) ARRIVE(3, 64); if (i) BAR(4, 64); y[T - 32] = v; ARRIVE(2, 64); }
    else { BAR(2, 64); b[i * 64 + T - 64 + B * 32] = y[T - 64]; if (i < 2) ARRIVE(4, 64); } } }
K(volatile_shared_with_fences) { __shared__ volatile int f; __shared__ int s[64]; if (T == 0) f = 0; SYNC;
  if (T < 32) { s[T] = a[G]; __syncwarp(); if (T == 0) { __threadfence_block(); f = 1; } }
  else { while (!f); __threadfence_block(); b[G] = s[T - 32]; } }
K(single_producer_ring) { int* full = b + 64; int* empty = b + 65;
  if (T == 0 && B == 0) for (int i = 0; i < 5; i++) { while (get_acquire(empty) < i - 1); b[i & 1] = a[i]; put_release(full, i + 1); }
  if (T == 0 && B == 1) for (int i = 0; i < 5; i++) { while (get_acquire(full) <= i); b[100 + i] = b[i & 1]; put_release(empty, i + 1); } }
K(mpmc_tickets) { int me = atomicAdd(&b[0], 1); if (me < 32) { b[128 + me] = a[G]; __threadfence(); atomicExch(&b[256 + me], 1); } else if (me < 64) { while (atomicAdd(&b[256 + me - 32], 0) == 0); __threadfence(); b[512 + me] = b[128 + me - 32]; } }
K(hazard_of_neighbours) { if (T % 2 == 0) b[G] = a[G]; SYNC; if (T % 2) b[G - 1] += 1; SYNC; b[512 + G] = b[G & ~1]; }
K(any_sync_for_loop) { int v = a[G]; while (__any_sync(~0u, v > 0)) { if (v > 0) v -= 16; } b[G] = v; }
K(sub_warp_sync_in_branch) { __shared__ int s[64]; s[T] = a[G]; __syncwarp(); if ((T & 31) < 16) { s[T] += 1; __syncwarp(0xffff); b[G] = s[T ^ 1]; } else { s[T] += 2; __syncwarp(0xffff0000); b[G] = s[T ^ 1]; } }
K(syncthreads_and_early_out) { __shared__ int s[64]; for (int i = 0; i < 8; i++) { s[T] = a[G] - i * 16; if (__syncthreads_and(s[T] <= 0)) break; int v = s[63 - T]; SYNC; b[G] = v; } }
K(sync_in_uniform_branch) { __shared__ int s[64]; if (n > 10) { s[T] = a[G]; SYNC; b[G] = s[63 - T]; } else b[G] = 1; }
K(block_dependent_syncs) { __shared__ int s[64]; for (unsigned i = 0; i <= B; i++) { s[T] = a[G + i]; SYNC; b[i * 128 + G] = s[63 - T]; SYNC; } }
K(reduce_into_own_slots) { __shared__ int s[2]; int v = __reduce_add_sync(~0u, a[G]); if ((T & 31) == 0) s[T / 32] = v; SYNC; if (T < 2) b[B * 2 + T] = s[T]; }
K(shuffle_then_store) { int v = a[G]; v = __shfl_down_sync(~0u, v, 1); b[G] = v; }
K(shared_as_scratch_per_warp) { __shared__ int s[2][32]; int w = T / 32, l = T % 32; for (int i = 0; i < 3; i++) { s[w][l] = a[G + i]; __syncwarp(); int v = s[w][31 - l]; __syncwarp(); b[i * 128 + G] = v; } }
K(lock_per_bucket) { bool done = false; int k = a[G] & 3;  // block 32
  while (!done) { if (atomicCAS(&b[64 + k], 0, 1) == 0) { __threadfence(); b[k] += 1; __threadfence(); atomicExch(&b[64 + k], 0); done = true; } } }
K(atomic_min_then_fence_flag) { atomicMin(&b[1], (int)a[G] - 100); __threadfence(); if (atomicAdd(&b[2], 1) == 127) { __threadfence(); b[3] = b[1]; } }
K(float_atomics) { __shared__ float f; if (T == 0) f = 0; SYNC; atomicAdd(&f, (float)a[G]); SYNC; if (T == 0) atomicAdd((float*)b, f); }
K(double_cas_loop) { unsigned long long* p = (unsigned long long*)b; unsigned long long old = *(volatile unsigned long long*)p, seen; do { seen = old; old = atomicCAS(p, seen, seen + a[G]); } while (seen != old); }
K(bool_flags_synced) { __shared__ bool f[64]; f[T] = false; SYNC; if (a[G] & 1) f[(T + 1) & 63] = true; SYNC; b[G] = f[T]; }
K(dynamic_queue_in_shared) { __shared__ int head, tail, q[128]; if (T == 0) { head = 0; tail = 1; q[0] = 1; } SYNC;
  for (int r = 0; r < 4; r++) { int h = head, t = tail; SYNC; if (T == 0) head = t; if (T < t - h) { int v = q[h + T]; if (2 * v < 16) { int at = atomicAdd(&tail, 2); q[at] = 2 * v; q[at + 1] = 2 * v + 1; } } SYNC; }
  b[G] = tail; }
K(counter_set_back_without_any_fence) { if (T == 0) { if (atomicAdd(&b[64], 1) == gridDim.x - 1) b[64] = 0; } }
K(shared_counter_set_back) { __shared__ int m; if (T == 0) m = 0; SYNC; if (atomicAdd(&m, 1) == 63) { m = 0; } SYNC; b[G] = m; }
K(seen_flag_read_plainly_without_any_fence) { if (T == 0 && B == 0) VOLATILE(b[64]) = 5; if (T == 0 && B == 1) { while (!VOLATILE(b[64])); b[1] = b[64]; } }
