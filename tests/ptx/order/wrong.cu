// Each kernel is an error that is no race; the comment has words of it.
#include "modern.cuh"
K(sync_in_both_branches) { __shared__ int s[64]; s[T] = a[G];  // error: by different instructions
  if (T & 1) { SYNC; b[G] = s[T ^ 1]; } else { SYNC; b[G] = s[T ^ 1] + 1; } }
K(one_more_sync_for_some) { for (unsigned i = 0; i <= T / 32; i++) { SYNC; b[G] += i; } if (T < 32) { b[G] = 1; } SYNC; b[G] += 1; }  // error: not all threads of the block come to this barrier
K(named_barrier_too_few) { if (T < 32) BAR(1, 64); b[G] = 1; }  // error: barrier 1 is never complete
K(named_barrier_odd_count) { BAR(1, 48); b[G] = 1; }  // error: no multiple of 32
K(shuffle_in_a_branch) { int v = a[G]; if (T & 1) v = __shfl_sync(~0u, v, 0); else v += a[G + 64]; b[G] = v; }  // error: names lane
K(syncwarp_in_a_branch) { __shared__ int s[64]; s[T] = a[G]; if ((T & 31) < 16) { __syncwarp(); b[G] = s[T ^ 1]; } else b[G] = a[G + 1] * a[G + 7]; }  // error: names lane
K(shared_not_written) { __shared__ int s[64]; if (T < 32) s[T] = a[G]; SYNC; b[G] = s[T]; }  // error: never written
K(shared_halo_not_written) { __shared__ int s[66]; s[T + 1] = a[G]; SYNC; b[G] = s[T] + s[T + 1] + s[T + 2]; }  // error: never written
K(shared_index_not_written) { __shared__ int s[64]; if (T) s[T] = T; SYNC; b[s[T] & 63] = 1; }  // error: never written
K(shared_count_not_zeroed) { __shared__ int s; atomicAdd(&s, 1); SYNC; b[G] = s; }  // error: never written
K(mbarrier_not_initialised) { __shared__ u64 m; mb_arrive(&m); mb_wait(&m, 0); }  // error: nobody initialised it
K(mbarrier_used_after_inval) { __shared__ u64 m; if (T == 0) { mb_init(&m, 64); mb_inval(&m); } SYNC; mb_arrive(&m); }  // error: nobody initialised it
K(wgmma_sums_too_early) { __shared__ alignas(128) uint16_t x[64 * 16], y[8 * 16]; float d[4] = {};  // block 128 error: has not been waited for
  for (int i = T; i < 1024; i += 128) x[i] = i & 3;
  y[T] = T; PROXY; SYNC; WG_FENCE; wgmma8(d, descriptor(x), descriptor(y)); WG_COMMIT; b[G] = d[0]; WG_WAIT(0); }
K(cluster_left_too_early) { __shared__ int s[64]; s[T] = a[G]; CLUSTER_SYNC;  // cluster 2 error: which has ended
  if (RANK == 0) return; for (int i = 0; i < 3; i++) b[G] += *far(&s[T], 0); }
K(cp_async_misaligned) { __shared__ int s[64]; copy16(&s[T & 1], a + T); COMMIT; WAIT(0); b[G] = s[0]; }  // error: misaligned
K(mbarrier_not_made_invalid) { __shared__ union { u64 m; int s[2]; } u; if (T == 0) mb_init(&u.m, 64); SYNC;  // error: must be made invalid first
  mb_arrive(&u.m); mb_wait(&u.m, 0); SYNC; if (T == 0) u.s[0] = 1; SYNC; b[G] = u.s[0]; }
