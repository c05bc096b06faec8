// libcu++ and cooperative groups: each races, between the lines marked at their end.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include "common.cuh"
namespace cg = cooperative_groups;
using cuda::std::memory_order_relaxed; using cuda::std::memory_order_acquire; using cuda::std::memory_order_release; using cuda::std::memory_order_acq_rel;
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
K(pipeline_read_after_release) { __shared__ int s[2][64]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block(); auto pipe = cuda::make_pipeline(block, &state); int sum = 0;
  for (int k = 0, f = 0; k < 4; k++) {
    for (; f < 4 && f < k + 2; f++) { pipe.producer_acquire();
      cuda::memcpy_async(&s[f & 1][T], &a[f * 64 + T], sizeof(int), pipe);  //!
      pipe.producer_commit(); }
    pipe.consumer_wait(); pipe.consumer_release();
    sum += s[k & 1][63 - T]; }  //!
  b[G] = sum; }
K(pipeline_not_waited) { __shared__ int s[64]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
  auto block = cg::this_thread_block(); auto pipe = cuda::make_pipeline(block, &state);
  pipe.producer_acquire();
  cuda::memcpy_async(&s[T], &a[T], sizeof(int), pipe);  //!
  pipe.producer_commit(); SYNC;
  b[G] = s[63 - T];  //!
  pipe.consumer_wait(); pipe.consumer_release(); }
K(barrier_copy_not_waited) { __shared__ int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (T == 0) init(&bar, 64); SYNC;
  cuda::memcpy_async(&s[T], &a[G], sizeof(int), bar);  //!
  auto t = bar.arrive(); SYNC;
  b[G] = s[63 - T];  //!
  bar.wait(cuda::std::move(t)); }
K(barrier_arrived_not_waited) { __shared__ int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (T == 0) init(&bar, 64); SYNC;
  s[T] = a[G];  //!
  auto t = bar.arrive();
  b[G] = s[63 - T];  //!
  bar.wait(cuda::std::move(t)); }
K(group_copy_not_waited) { __shared__ alignas(16) int s[64]; auto g = cg::this_thread_block();
  cg::memcpy_async(g, s, a + B * 64, sizeof(int) * 64);  //!
  g.sync();
  b[G] = s[63 - T]; }  //!
K(tile_too_small) { __shared__ int s[64]; auto g = cg::tiled_partition<8>(cg::this_thread_block());
  s[T] = a[G];  //!
  g.sync();
  b[G] = s[T ^ 15]; }  //!
K(tile_reduce_as_sync) { __shared__ int s[64]; auto g = cg::tiled_partition<32>(cg::this_thread_block());
  s[T] = a[G];  //!
  int v = cg::reduce(g, a[G], cg::plus<int>());
  b[G] = s[T ^ 1] + v; }  //!
K(coalesced_not_synced) { __shared__ int s[64]; s[T] = -1; __syncwarp(); if (T & 1) { auto g = cg::coalesced_threads();
    s[T] = a[G];  //!
    b[G] = s[T ^ 2] + g.shfl(a[G], 0); } }  //!
K(tile_sync_for_the_block) { __shared__ int s[2]; auto w = cg::tiled_partition<32>(cg::this_thread_block()); int v = cg::reduce(w, a[G], cg::plus<int>());
  if (w.thread_rank() == 0) s[w.meta_group_rank()] = v;  //!
  w.sync();
  b[G] = s[0] + s[1]; }  //!
K(flag_relaxed) { Ref<cuda::thread_scope_device> f(b[64]);
  if (B == 0 && T == 0) {
    b[0] = 5;  //!
    f.store(1, memory_order_relaxed); }
  if (B == 1 && T == 0) { while (!f.load(memory_order_relaxed));
    b[1] = b[0]; } }  //!
K(flag_block_scope_between_blocks) { Ref<cuda::thread_scope_block> f(b[64]);
  if (B == 0 && T == 0) {
    b[0] = 5;  //!
    f.store(1, memory_order_release); }  //!
  if (B == 1 && T == 0) { while (!f.load(memory_order_acquire));  //!
    b[1] = b[0]; } }  //!
K(flag_fence_of_the_block) { Ref<cuda::thread_scope_device> f(b[64]);
  if (B == 0 && T == 0) {
    b[0] = 5;  //!
    cuda::atomic_thread_fence(memory_order_release, cuda::thread_scope_block); f.store(1, memory_order_relaxed); }
  if (B == 1 && T == 0) { while (!f.load(memory_order_relaxed)); cuda::atomic_thread_fence(memory_order_acquire, cuda::thread_scope_device);
    b[1] = b[0]; } }  //!
K(lock_relaxed_exchange) { Ref<cuda::thread_scope_device> l(b[64]);
  if (T == 0) { while (l.exchange(1, memory_order_relaxed));
    b[0] += 1;  //!
    l.store(0, memory_order_release); } }
K(lock_relaxed_unlock) { Ref<cuda::thread_scope_device> l(b[64]);
  if (T == 0) { while (l.exchange(1, memory_order_acquire));
    b[0] += 1;  //!
    l.store(0, memory_order_relaxed); } }
K(last_block_release_only) { __shared__ bool last; Ref<cuda::thread_scope_device> m(b[64]);
  if (T == 0) {
    b[100 + B] = a[B];  //!
    last = m.fetch_add(1, memory_order_release) == gridDim.x - 1; } SYNC;
  if (last && T == 0) b[0] = b[100] + b[101]; }  //!
K(ref_and_plain) { Ref<cuda::thread_scope_device> m(b[0]);
  if (B == 0) m.fetch_add(1, memory_order_relaxed);  //!
  else b[64 + T] = b[0]; }  //!
