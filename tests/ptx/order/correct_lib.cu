// libcu++ and cooperative groups: none races.
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
K(pipeline_of_the_block) { __shared__ int s[2][64]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block(); auto pipe = cuda::make_pipeline(block, &state); int sum = 0;
  for (int k = 0, f = 0; k < 4; k++) {
    for (; f < 4 && f < k + 2; f++) { pipe.producer_acquire(); cuda::memcpy_async(&s[f & 1][T], &a[f * 64 + T], sizeof(int), pipe); pipe.producer_commit(); }
    pipe.consumer_wait(); sum += s[k & 1][63 - T]; pipe.consumer_release(); }
  b[G] = sum; }
K(pipeline_producers_and_consumers) { __shared__ int s[2][32]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block(); auto role = T < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role); int sum = 0;
  for (int k = 0; k < 4; k++) {
    if (T < 32) { pipe.producer_acquire(); cuda::memcpy_async(&s[k & 1][T], &a[k * 32 + T], sizeof(int), pipe); pipe.producer_commit(); }
    else { pipe.consumer_wait(); sum += s[k & 1][63 - T]; pipe.consumer_release(); } }
  if (T >= 32) b[G] = sum; }
K(pipeline_of_a_thread) { __shared__ int s[2][64]; auto pipe = cuda::make_pipeline(); int sum = 0;
  for (int k = 0; k < 3; k++) { pipe.producer_acquire(); cuda::memcpy_async(&s[k & 1][T], &a[k * 64 + T], sizeof(int), pipe); pipe.producer_commit();
    pipe.consumer_wait(); SYNC; sum += s[k & 1][63 - T]; pipe.consumer_release(); SYNC; }
  b[G] = sum; }
K(barrier_of_the_block) { __shared__ int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (T == 0) init(&bar, 64); SYNC; int sum = 0;
  for (int k = 0; k < 3; k++) { s[T] = a[G + k]; bar.arrive_and_wait(); sum += s[63 - T]; bar.arrive_and_wait(); }
  b[G] = sum; }
K(barrier_with_copies) { __shared__ int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (T == 0) init(&bar, 64); SYNC;
  cuda::memcpy_async(&s[T], &a[G], sizeof(int), bar); bar.arrive_and_wait(); b[G] = s[63 - T]; }
K(barrier_split) { __shared__ int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (T == 0) init(&bar, 64); SYNC;
  s[T] = a[G]; auto t = bar.arrive(); int x = a[G + 1]; bar.wait(cuda::std::move(t)); b[G] = x + s[63 - T]; }
K(group_copy) { __shared__ alignas(16) int s[64]; auto g = cg::this_thread_block(); cg::memcpy_async(g, s, a + B * 64, sizeof(int) * 64); cg::wait(g); b[G] = s[63 - T]; }
K(tiles) { __shared__ int s[64]; auto g = cg::tiled_partition<8>(cg::this_thread_block()); s[T] = a[G]; g.sync(); int v = s[T ^ 7]; g.sync(); s[T] = v; g.sync(); b[G] = s[T ^ 3] + cg::reduce(g, v, cg::plus<int>()); }
K(tiles_and_block) { __shared__ int s[2]; auto w = cg::tiled_partition<32>(cg::this_thread_block()); int v = cg::reduce(w, a[G], cg::plus<int>()); if (w.thread_rank() == 0) s[w.meta_group_rank()] = v; cg::this_thread_block().sync(); b[G] = s[0] + s[1]; }
K(coalesced) { __shared__ int s[64]; s[T] = -1; __syncwarp(); if (a[G] & 1) { auto g = cg::coalesced_threads(); s[T] = a[G]; g.sync(); b[G] = s[T / 32 * 32] + g.shfl(a[G], 0); } }
K(flag_release_acquire) { Ref<cuda::thread_scope_device> f(b[64]);
  if (B == 0 && T == 0) { b[0] = 5; f.store(1, memory_order_release); }
  if (B == 1 && T == 0) { while (!f.load(memory_order_acquire)); b[1] = b[0]; } }
K(flag_seq_cst) { Ref<cuda::thread_scope_device> f(b[64]);
  if (B == 0 && T == 0) { b[0] = 5; f.store(1); }
  if (B == 1 && T == 0) { while (!f.load()); b[1] = b[0]; } }
K(flag_fences) { Ref<cuda::thread_scope_device> f(b[64]);
  if (B == 0 && T == 0) { b[0] = 5; cuda::atomic_thread_fence(memory_order_release, cuda::thread_scope_device); f.store(1, memory_order_relaxed); }
  if (B == 1 && T == 0) { while (!f.load(memory_order_relaxed)); cuda::atomic_thread_fence(memory_order_acquire, cuda::thread_scope_device); b[1] = b[0]; } }
K(flag_block_scope) { __shared__ int x; __shared__ int f0; if (T == 0) f0 = 0; SYNC; Ref<cuda::thread_scope_block> f(f0);
  if (T == 0) { x = 5; f.store(1, memory_order_release); }
  if (T == 32) { while (!f.load(memory_order_acquire)); b[B] = x; } }
K(lock_by_exchange) { Ref<cuda::thread_scope_device> l(b[64]);
  if (T == 0) { while (l.exchange(1, memory_order_acquire)); b[0] += 1; l.store(0, memory_order_release); } }
K(lock_by_compare) { Ref<cuda::thread_scope_device> l(b[64]);
  if (T == 0) { int free = 0; while (!l.compare_exchange_weak(free, 1, memory_order_acquire, memory_order_relaxed)) free = 0; b[0] += 1; l.store(0, memory_order_release); } }
K(last_block_acq_rel) { __shared__ bool last; Ref<cuda::thread_scope_device> m(b[64]);
  if (T == 0) { b[100 + B] = a[B]; last = m.fetch_add(1, memory_order_acq_rel) == gridDim.x - 1; } SYNC;
  if (last && T == 0) b[0] = b[100] + b[101]; }
K(wait_and_notify) { Ref<cuda::thread_scope_device> f(b[64]);
  if (B == 0 && T == 0) { b[0] = 5; f.store(1, memory_order_release); f.notify_all(); }
  if (B == 1 && T == 0) { f.wait(0, memory_order_acquire); b[1] = b[0]; } }
