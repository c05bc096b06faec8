// Each kernel races, between the lines marked at their end.
#include "common.cuh"
K(mirror_without_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  b[G] = s[63 - T]; }  //!
K(loop_without_second_sync) { __shared__ int s[64]; int sum = 0;
  for (int i = 0; i < 3; i++) {
    s[T] = a[G + i];  //!
    SYNC;
    sum += s[T ^ 33]; }  //!
  b[G] = sum; }
K(reduction_without_sync) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 32; k; k >>= 1)
    if (T < k) s[T] += s[T + k];  //!
  if (T == 0) b[B] = s[0]; }
K(warp_tail_without_syncwarp) { __shared__ int s[64]; s[T] = a[G]; SYNC;
  if (T < 32) {
    s[T] += s[T + 32];
    s[T] += s[T + 16]; }  //!
  SYNC; b[G] = s[T]; }
K(histogram_shared) { __shared__ int s[64]; s[T] = 0; SYNC;
  s[a[G] & 7]++;  //!
  SYNC; b[G] = s[T]; }
K(histogram_global) {
  b[a[G] & 15] += 1; }  //!
K(counter) {
  *b = *b + 1; }  //!
K(volatile_flag_no_fence) {
  if (B == 0 && T == 0) {
    b[0] = 5;  //!
    VOLATILE(b[64]) = 1; }
  if (B == 1 && T == 0) { while (!VOLATILE(b[64])); 
    b[1] = b[0]; } }  //!
K(last_block_no_fence) { __shared__ int last;
  if (T == 0) {
    b[B] = B + 1;  //!
    last = atomicAdd(&b[64], 1) == gridDim.x - 1; }
  SYNC;
  if (last && T < gridDim.x)
    b[100 + T] = b[T]; }  //!
K(last_block_fence_after_only) { __shared__ int last;
  if (T == 0) {
    b[B] = B + 1;  //!
    int old = atomicAdd(&b[64], 1); __threadfence(); last = old == gridDim.x - 1; }
  SYNC;
  if (last && T < gridDim.x)
    b[100 + T] = b[T]; }  //!
K(last_block_no_sync_before_fence) { __shared__ int last;
  b[G] = 3;  //!
  if (T == 0) { __threadfence(); int old = atomicAdd(&b[1000], 1); __threadfence(); last = old == gridDim.x - 1; }
  SYNC;
  if (last)
    b[512 + T] = b[T] + b[64 + T]; }  //!
K(lock_no_fence) {
  if (T == 0) { while (atomicCAS(&b[64], 0, 1));
    b[0] += B + 1;  //!
    atomicExch(&b[64], 0); } }
K(lock_released_by_plain_store) {
  if (T == 0) {
    while (atomicCAS(&b[64], 0, 1));  //!
    __threadfence(); b[0] += 1;  //!
    __threadfence();
    b[64] = 0; } }  //!
K(lock_no_fence_on_release) {
  if (T == 0) { while (atomicCAS(&b[64], 0, 1)); __threadfence();
    b[0] += 1;  //!
    atomicExch(&b[64], 0); } }
K(lock_no_fence_on_acquire) {
  if (T == 0) { while (atomicCAS(&b[64], 0, 1));
    b[0] += 1;  //!
    __threadfence(); atomicExch(&b[64], 0); } }
K(block_scope_atomics_between_blocks) {
  atomicAdd_block(&b[0], 1); }  //!
K(block_fence_between_blocks) {
  if (B == 0 && T == 0) {
    b[0] = 1;  //!
    __threadfence_block(); VOLATILE(b[64]) = 1; }
  if (B == 1 && T == 0) { while (!VOLATILE(b[64])); __threadfence();
    b[1] = b[0]; } }  //!
K(stencil_in_place) {
  int left = a[G];  //!
  a[G + 1] = left + 1; }  //!
K(shift_in_place) {
  int next = a[G + 1];  //!
  a[G] = next; }  //!
K(transpose_in_place) { int r = G / 16, c = G % 16;
  int v = a[c * 16 + r];  //!
  a[r * 16 + c] = v; }  //!
K(scan_one_buffer) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 64; k <<= 1) {
    if (T >= k) s[T] += s[T - k];  //!
    SYNC; }
  b[G] = s[T]; }
K(sync_too_early) { __shared__ int s[64]; SYNC;
  s[T] = a[G];  //!
  b[G] = s[T ^ 32]; }  //!
K(broadcast_no_sync) { __shared__ int s;
  if (T == 0) s = a[B];  //!
  b[G] = s; }  //!
K(broadcast_reused) { __shared__ int s;
  if (T == 0) s = a[B];
  SYNC;
  int x = s;  //!
  if (T == 0) s = x + 1;  //!
  SYNC; b[G] = x + s; }
K(syncwarp_for_block) { __shared__ int s[64];
  s[T] = a[G];  //!
  __syncwarp();
  b[G] = s[T ^ 32]; }  //!
K(shuffle_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  int k = __shfl_xor_sync(~0u, T, 1);
  b[G] = s[k]; }  //!
K(ballot_as_sync) { __shared__ int s[64];
  s[T] = a[G];  //!
  unsigned m = __ballot_sync(~0u, T & 1);
  b[G] = s[T ^ 1] + m; }  //!
K(half_syncwarp) { __shared__ int s[64];
  s[T] = a[G];  //!
  __syncwarp((T & 31) < 16 ? 0xffffu : 0xffff0000u);
  b[G] = s[T ^ 16]; }  //!
K(reduce_sync_as_barrier) { __shared__ int s[64];
  s[T] = a[G];  //!
  int m = __reduce_max_sync(~0u, T & 31);
  b[G] = s[T ^ 1] + m; }  //!
K(two_write_one_cell) {
  b[G / 2] = G; }  //!
K(all_write_one_cell) {
  b[0] = G; }  //!
K(found_flag) {
  if (a[G] >= 0) b[0] = 1; }  //!
K(plain_read_of_atomic) {
  atomicAdd(&b[0], 1);  //!
  b[100 + G] = b[0]; }  //!
K(init_by_one_block) {
  if (B == 0) b[T] = -1;  //!
  SYNC;
  atomicMax(&b[T], a[G]); }  //!
K(table_by_one_block) {
  if (B == 0) b[T] = T * T;  //!
  SYNC;
  b[256 + G] = b[a[G] & 63]; }  //!
K(zeroed_by_another) {
  b[G] = 0;  //!
  atomicAdd(&b[a[G]], 1); }  //!
K(windows_overlap) {
  for (int i = 0; i < 3; i++) b[G * 2 + i] = G; }  //!
K(bytes_and_words) { __shared__ int s[16]; char* c = (char*)s;
  c[T] = T;  //!
  if (T < 16) b[G] = s[T]; }  //!
K(matmul_no_second_sync) { __shared__ int s[64]; int sum = 0;  // block 64
  for (int k = 0; k < 4; k++) {
    s[T] = a[k * 64 + T];  //!
    SYNC;
    for (int i = 0; i < 8; i++) sum += s[(T & 56) + i] * a[i]; }  //!
  b[G] = sum; }
K(matmul_no_first_sync) { __shared__ int s[64]; int sum = 0;
  for (int k = 0; k < 4; k++) {
    s[T] = a[k * 64 + T];  //!
    for (int i = 0; i < 8; i++) sum += s[(T + i) & 63];  //!
    SYNC; }
  b[G] = sum; }
K(halo_no_sync) { __shared__ int s[66];
  s[T + 1] = a[G + 1];  //!
  if (T < 2) s[T * 65] = a[B * 64 + T * 65];  //!
  b[G] = s[T] + s[T + 1] + s[T + 2]; }  //!
K(tile_transposed_no_sync) { __shared__ int s[8][9];
  s[T / 8][T % 8] = a[G];  //!
  b[G] = s[T % 8][T / 8]; }  //!
K(async_not_waited) { __shared__ int s[64];
  copy4(&s[T], a + G);  //!
  SYNC;
  b[G] = s[63 - T]; }  //!
K(async_waited_alone) { __shared__ int s[64];
  copy4(&s[T], a + G);  //!
  COMMIT; WAIT(0);
  b[G] = s[63 - T]; }  //!
K(async_wrong_group) { __shared__ int s[2][64]; copy4(&s[0][T], a + G); COMMIT;
  copy4(&s[1][T], a + 64 + G);  //!
  COMMIT; WAIT(1); SYNC;
  b[G] = s[0][63 - T] + s[1][63 - T]; }  //!
K(async_own_data_too_early) { __shared__ int s[64];
  copy4(&s[T], a + G);  //!
  COMMIT;
  b[G] = s[T]; }  //!
K(async_over_data_in_use) { __shared__ int s[64]; int sum = 0;
#pragma unroll 1
  for (int k = 0; k < 3; k++) { copy4(&s[T], a + G + k); COMMIT; WAIT(0); SYNC;  //!
    sum += s[T ^ 32]; }  //!
  b[G] = sum; }
K(arrive_before_store) { __shared__ int s[32];
  if (T < 32) { ARRIVE(1, 64);
    s[T] = a[T]; }  //!
  else { BAR(1, 64);
    b[G] = s[T - 32]; } }  //!
K(third_warp_reads) { __shared__ int s[64];  // block 96
  if (T < 64) {
    s[T] = a[T];  //!
    BAR(1, 64); }
  else
    b[G] = s[T - 64]; }  //!
K(queue_no_fence) {
  if (B == 0 && T == 0) {
    b[0] = 42;  //!
    atomicAdd(&b[64], 1); }
  if (B == 1 && T == 0) { while (atomicAdd(&b[64], 0) == 0);
    b[1] = b[0]; } }  //!
K(ring_volatile) { __shared__ int ring[4]; __shared__ int head; if (T == 0) head = 0; SYNC;
  if (T == 0) {
    ring[0] = a[B];  //!
    VOLATILE(head) = 1; }
  if (T == 32) { while (VOLATILE(head) == 0);
    b[B] = ring[0]; } }  //!
K(read_only_way) {
  a[G] = 1;  //!
  SYNC;
  b[G] = __ldg(&a[G ^ 1]); }  //!
K(atomics_of_two_sizes) { unsigned long long* w = (unsigned long long*)b;
  if (B == 0) atomicAdd(&b[0], 1);  //!
  else atomicAdd(w, 1ull); }  //!
K(partials_modulo) {
  if (T == 0) b[B & 0] = a[B]; }  //!
K(bitonic_no_sync) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int j = 32; j; j >>= 1) { int o = T ^ j;
    int x = s[T], y = s[o];  //!
    s[T] = (T < o) == (x < y) ? x : y; }  //!
  b[G] = s[T]; }
K(lookback_plain_status) {
  if (T == 0 && B == 0) { b[0] = 7; __threadfence();
    b[64] = 1; }  //!
  if (T == 0 && B == 1) { while (VOLATILE(b[64]) == 0);  //!
    b[2] = 1; } }
K(stack_push_relaxed) {
  if (T == 0 && B == 0) {
    b[0] = 3;  //!
    put_relaxed(&b[64], 1); }
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0);
    b[1] = b[0]; } }  //!
K(release_without_acquire) {
  if (T == 0 && B == 0) {
    b[0] = 3;  //!
    put_release(&b[64], 1); }
  if (T == 0 && B == 1) { while (get_relaxed(&b[64]) == 0);
    b[1] = b[0]; } }  //!
K(store_after_release) {
  if (T == 0 && B == 0) { put_release(&b[64], 1);
    b[0] = 3; }  //!
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0);
    b[1] = b[0]; } }  //!
K(running_minimum) {
  if (a[G] < b[0] + 100) b[0] = a[G]; }  //!
K(odd_even_no_sync) { __shared__ int s[65]; s[T] = a[G]; if (T == 0) s[64] = 99; SYNC;
#pragma unroll 1
  for (int r = 0; r < 4; r++) { int i = 2 * T + (r & 1); if (i < 63) {
    int x = s[i], y = s[i + 1];  //!
    s[i] = min(x, y); s[i + 1] = max(x, y); } }  //!
  SYNC; b[G] = s[T]; }
K(rows_accumulate) {
  b[G % 8] += a[G]; }  //!
K(jacobi_in_place) { if (G > 0)
  a[G] = (a[G - 1] + a[G + 1]) / 2; }  //!
K(one_fence_at_the_reader) {
  if (T == 0 && B == 0) {
    b[0] = 3;  //!
    atomicExch(&b[64], 1); }
  if (T == 0 && B == 1) { while (atomicAdd(&b[64], 0) == 0); __threadfence();
    b[1] = b[0]; } }  //!
K(sync_in_one_branch_only_orders_it) { __shared__ int s[64]; s[T] = 0; SYNC;
  if (T < 32) {
    s[T] = 1; BAR(1, 32); }  //!
  else
    b[G] = s[T - 32]; }  //!
