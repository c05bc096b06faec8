// No kernel here races; several look as if they did.
#include "common.cuh"
K(mirror) { __shared__ int s[64]; s[T] = a[G]; SYNC; b[G] = s[63 - T]; }
K(loop_with_both_syncs) { __shared__ int s[64]; int sum = 0;
  for (int i = 0; i < 3; i++) { s[T] = a[G + i]; SYNC; sum += s[T ^ 33]; SYNC; }
  b[G] = sum; }
K(reduction) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 32; k; k >>= 1) { if (T < k) s[T] += s[T + k]; SYNC; }
  if (T == 0) b[B] = s[0]; }
K(warp_tail) { __shared__ int s[64]; s[T] = a[G]; SYNC;
  if (T < 32) { int v = s[T] + s[T + 32];
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
    if (T == 0) b[B] = v; } }
K(warp_tail_syncwarp) { __shared__ int s[64]; s[T] = a[G]; SYNC;
  if (T < 32) { int v = s[T];
    v += s[T + 32]; __syncwarp(); s[T] = v; __syncwarp(); v += s[T + 16]; __syncwarp(); s[T] = v; __syncwarp(); v += s[(T + 8) & 31]; __syncwarp(); s[T] = v; }
  SYNC; b[G] = s[T]; }
K(warp_tail_volatile) { __shared__ int s[64]; s[T] = a[G]; SYNC; volatile int* v = s;
  if (T < 32) { v[T] = v[T] + v[T + 32]; v[T] = v[T] + v[T + 16]; } }
K(histogram_shared) { __shared__ int s[64]; s[T] = 0; SYNC; atomicAdd(&s[a[G] & 7], 1); SYNC; atomicAdd(&b[T], s[T]); }
K(histogram_global) { atomicAdd(&b[a[G] & 15], 1); }
K(counter) { atomicAdd(b, 1); }
K(ticket) { b[100 + atomicAdd(b, 1)] = G; }
K(flag_with_fences) {
  if (B == 0 && T == 0) { b[0] = 5; __threadfence(); VOLATILE(b[64]) = 1; }
  if (B == 1 && T == 0) { while (!VOLATILE(b[64])); __threadfence(); b[1] = b[0]; } }
K(flag_after_a_whole_block) { b[G] = a[G];
  SYNC;
  if (B == 0 && T == 0) { __threadfence(); atomicExch(&b[1000], 1); }
  if (B == 1) { if (T == 0) { while (atomicAdd(&b[1000], 0) == 0); __threadfence(); }
    SYNC;
    b[512 + T] = b[T]; } }
K(last_block) { __shared__ int last;
  if (T == 0) { b[B] = B + 1; __threadfence(); int old = atomicAdd(&b[64], 1); __threadfence(); last = old == gridDim.x - 1; }
  SYNC;
  if (last && T < gridDim.x) b[100 + T] = b[T]; }
K(last_block_all_threads_store) { __shared__ int last; b[G] = 3; __threadfence(); SYNC;
  if (T == 0) { __threadfence(); int old = atomicInc((unsigned*)&b[1000], gridDim.x); __threadfence(); last = old == gridDim.x - 1; }
  SYNC;
  if (last) b[512 + T] = b[T] + b[64 + T]; }
K(last_block_volatile) { __shared__ int last;
  if (T == 0) { VOLATILE(b[B]) = B + 1; __threadfence(); last = atomicAdd(&b[64], 1) == gridDim.x - 1; }
  SYNC;
  if (last && T < gridDim.x) b[100 + T] = VOLATILE(b[T]); }
K(lock) {
  if (T == 0) { while (atomicCAS(&b[64], 0, 1)); __threadfence(); b[0] += B + 1; __threadfence(); atomicExch(&b[64], 0); } }
K(lock_volatile_release) {
  if (T == 0) { while (atomicCAS(&b[64], 0, 1)); __threadfence(); b[0] += 1; __threadfence(); VOLATILE(b[64]) = 0; } }
K(lock_of_two_warps) {
  if ((T & 31) == 0) { while (atomicCAS(&b[64], 0, 1)); __threadfence(); b[0] += 1; __threadfence(); atomicExch(&b[64], 0); } }
K(block_scope_atomics) { __shared__ int s; if (T == 0) s = 0; SYNC; atomicAdd_block(&s, 1); atomicAdd_block(&b[B], 1); }
K(block_fence_in_block) {
  if (T == 0) { b[B] = 1; __threadfence_block(); VOLATILE(b[64 + B]) = 1; }
  if (T == 32) { while (!VOLATILE(b[64 + B])); __threadfence_block(); b[100 + B] = b[B]; } }
K(release_acquire) {
  if (T == 0 && B == 0) { b[0] = 3; put_release(&b[64], 1); }
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0); b[1] = b[0]; } }
K(release_acquire_cumulative) {
  if (T == 0 && B == 0) { b[0] = 3; put_release(&b[64], 1); }
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0); put_release(&b[65], 1); }
  if (T == 32 && B == 1) { while (get_acquire(&b[65]) == 0); b[1] = b[0]; } }
K(release_then_relaxed_store) {
  if (T == 0 && B == 0) { b[0] = 3; put_release(&b[64], 1); put_relaxed(&b[64], 2); }
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) != 2); b[1] = b[0]; } }
K(fence_then_relaxed) {
  if (T == 0 && B == 0) { b[0] = 3; __threadfence(); put_relaxed(&b[64], 1); }
  if (T == 0 && B == 1) { while (get_relaxed(&b[64]) == 0); __threadfence(); b[1] = b[0]; } }
K(chain_of_atomics) {
  if (T == 0 && B == 0) { b[0] = 3; put_release(&b[64], 1); }
  if (T == 32 && B == 0) { while (atomicCAS(&b[64], 1, 2) != 1); }
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) != 2); b[1] = b[0]; } }
K(handed_back) {
  if (T == 0 && B == 0) { b[0] = 3; put_release(&b[64], 1); while (get_acquire(&b[65]) == 0); b[0] += 1; }
  if (T == 0 && B == 1) { while (get_acquire(&b[64]) == 0); b[0] += 2; put_release(&b[65], 1); } }
K(out_of_place_stencil) { b[G] = a[G] + a[G + 1] + a[G + 2]; }
K(shift_through_shared) { __shared__ int s[65]; s[T] = a[B * 65 + T]; if (T == 0) s[64] = a[B * 65 + 64]; SYNC; a[B * 65 + T] = s[T + 1]; }
K(own_cell_again) { a[G] += 1; a[G] *= 2; a[G] -= a[G] & 1; }
K(transpose_blockwise) { __shared__ int s[8][9]; s[T / 8][T % 8] = a[G]; SYNC; a[G] = s[T % 8][T / 8]; }
K(scan_two_buffers) { __shared__ int s[2][64]; int w = 0; s[0][T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 64; k <<= 1) { w ^= 1; s[w][T] = s[w ^ 1][T] + (T >= k ? s[w ^ 1][T - k] : 0); SYNC; }
  b[G] = s[w][T]; }
K(scan_one_buffer) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 64; k <<= 1) { int v = T >= k ? s[T - k] : 0; SYNC; s[T] += v; SYNC; }
  b[G] = s[T]; }
K(broadcast) { __shared__ int s; if (T == 0) s = a[B]; SYNC; int x = s; SYNC; if (T == 0) s = x + 1; SYNC; b[G] = x + s; }
K(broadcast_in_warp) { __shared__ int s[2]; if ((T & 31) == 0) s[T / 32] = a[G]; __syncwarp(); b[G] = s[T / 32]; }
K(half_warps) { __shared__ int s[64]; s[T] = a[G]; __syncwarp((T & 31) < 16 ? 0xffffu : 0xffff0000u); b[G] = s[T ^ 8]; }
K(each_lane_its_own) { __shared__ int s[64]; s[T] = a[G]; s[T] += 1; b[G] = s[T]; }
K(two_phases_of_flags) { __shared__ int s[64]; s[T] = a[G] > 32; SYNC; int any = 0; for (int i = 0; i < 64; i++) any |= s[i]; b[G] = any; }
K(syncthreads_or) { __shared__ int s[64]; s[T] = a[G]; int any = __syncthreads_or(a[G] > 60); b[G] = s[T ^ 5] + any; }
K(syncthreads_count) { __shared__ int s[64]; s[T] = a[G]; int c = __syncthreads_count(a[G] & 1); b[G] = s[T ^ 5] + c; }
K(atomic_and_volatile) { atomicAdd(&b[0], 1); b[100 + G] = VOLATILE(b[0]); }
K(initialised_by_each) { b[G] = -1; SYNC; atomicMax(&b[B * 64 + (T ^ 7)], a[G]); }
K(windows_side_by_side) { for (int i = 0; i < 3; i++) b[G * 3 + i] = G; }
K(bytes_side_by_side) { char* c = (char*)b; c[G] = G; }
K(bytes_then_words) { __shared__ int s[16]; char* c = (char*)s; c[T] = T; SYNC; if (T < 16) b[G] = s[T]; }
K(matmul_tile) { __shared__ int s[64]; int sum = 0;
  for (int k = 0; k < 4; k++) { s[T] = a[k * 64 + T]; SYNC; for (int i = 0; i < 8; i++) sum += s[(T & 56) + i] * a[i]; SYNC; }
  b[G] = sum; }
K(double_buffer_one_sync) { __shared__ int s[2][64]; int sum = 0; s[0][T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 1; k < 6; k++) { s[k & 1][T] = a[G + k]; sum += s[(k & 1) ^ 1][63 - T]; SYNC; }
  b[G] = sum; }
K(halo) { __shared__ int s[66]; s[T + 1] = a[G + 1]; if (T < 2) s[T * 65] = a[B * 64 + T * 65]; SYNC; b[G] = s[T] + s[T + 1] + s[T + 2]; }
K(async_copy) { __shared__ int s[64]; copy4(&s[T], a + G); COMMIT; WAIT(0); SYNC; b[G] = s[63 - T]; }
K(async_own_data) { __shared__ int s[64]; copy4(&s[T], a + G); COMMIT; WAIT(0); b[G] = s[T]; }
K(async_two_stages) { __shared__ int s[2][64]; int sum = 0; copy4(&s[0][T], a + G); COMMIT;
#pragma unroll 1
  for (int k = 1; k < 5; k++) { copy4(&s[k & 1][T], a + G + k); COMMIT; WAIT(1); SYNC; sum += s[(k & 1) ^ 1][63 - T]; SYNC; }
  WAIT(0); b[G] = sum; }
K(arrive_after_store) { __shared__ int s[32];
  if (T < 32) { s[T] = a[T]; __threadfence_block(); ARRIVE(1, 64); } else { BAR(1, 64); b[G] = s[T - 32]; } }
K(third_warp_elsewhere) { __shared__ int s[64];  // block 96
  if (T < 64) { s[T] = a[T]; BAR(1, 64); b[G] = s[T ^ 32]; } else b[G] = a[T]; }
K(full_and_empty) { __shared__ int s[32]; int sum = 0;
  if (T < 32) for (int i = 0; i < 3; i++) { if (i) BAR(2, 64); s[T] = a[T + i]; ARRIVE(1, 64); }
  else { for (int i = 0; i < 3; i++) { BAR(1, 64); sum += s[T - 32]; if (i < 2) ARRIVE(2, 64); } b[G] = sum; } }
K(queue_with_fences) {
  if (B == 0 && T == 0) { b[0] = 42; __threadfence(); atomicAdd(&b[64], 1); }
  if (B == 1 && T == 0) { while (atomicAdd(&b[64], 0) == 0); __threadfence(); b[1] = b[0]; } }
K(slots_by_ticket) { int at = atomicAdd(&b[0], 1); b[64 + at] = G; __threadfence(); atomicAdd(&b[1], 1); }
K(grid_barrier) { b[G] = a[G]; SYNC;
  if (T == 0) { __threadfence(); atomicAdd(&b[1000], 1); while (VOLATILE(b[1000]) < gridDim.x); __threadfence(); }
  SYNC; b[512 + G] = b[127 - G]; }
K(grid_barrier_twice) { for (int r = 1; r < 3; r++) { b[r * 128 + G] = a[G] + r; SYNC;
    if (T == 0) { __threadfence(); atomicAdd(&b[1000], 1); while (get_acquire(&b[1000]) < r * gridDim.x); }
    SYNC; b[512 + r * 128 + G] = b[r * 128 + 127 - G]; } }
K(read_only_data) { b[G] = __ldg(&a[G]) + __ldg(&a[G ^ 1]); }
K(partials) { if (T == 0) b[B] = a[B]; }
K(bitonic) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int k = 2; k <= 64; k <<= 1)
#pragma unroll 1
    for (int j = k >> 1; j; j >>= 1) { int o = T ^ j; if (o > T) { int x = s[T], y = s[o]; if ((x > y) == !(T & k)) { s[T] = y; s[o] = x; } } SYNC; }
  b[G] = s[T]; }
K(lookback) {
  if (T == 0) { int sum = a[B]; if (B) { while (get_acquire(&b[64 + B - 1]) == 0); sum += b[B - 1]; } b[B] = sum; put_release(&b[64 + B], 1); } }
K(early_exit) { __shared__ int s[64]; if (T >= 48) return; s[T] = a[G]; SYNC; b[G] = s[47 - T]; }
K(odd_even) { __shared__ int s[64]; s[T] = a[G]; SYNC;
#pragma unroll 1
  for (int r = 0; r < 8; r++) { int i = 2 * T + (r & 1); if (i < 63) { int x = s[i], y = s[i + 1]; s[i] = min(x, y); s[i + 1] = max(x, y); } SYNC; }
  b[G] = s[T]; }
K(atomic_float_by_cas) { int old = VOLATILE(b[0]), seen; do { seen = old; old = atomicCAS(&b[0], seen, seen + a[G]); } while (old != seen); }
K(block_sums_by_shuffles) { __shared__ int s[2]; int v = a[G];
  for (int k = 16; k; k >>= 1) v += __shfl_xor_sync(~0u, v, k);
  if ((T & 31) == 0) s[T / 32] = v;
  SYNC;
  if (T == 0) atomicAdd(b, s[0] + s[1]); }
