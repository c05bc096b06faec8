// Grids that meet and tiles of several warps, by cooperative groups; `a` and `b` are of one number for each thread.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define K(name) extern "C" __global__ void name(int* a, int* b)

K(mirrored) {  // each thread reads what one of another block wrote
  auto grid = cg::this_grid();
  int me = grid.thread_rank(), last = grid.size() - 1;
  a[me] += 1;
  grid.sync();
  b[me] = a[last - me];
}
K(mirrored_without_sync) {
  auto grid = cg::this_grid();
  int me = grid.thread_rank(), last = grid.size() - 1;
  a[me] += 1;
  __syncthreads();
  b[me] = a[last - me];
  if (!grid.is_valid()) b[me] = -1;
}
K(steps) {  // a few rounds of a neighbour's number, to and fro
  auto grid = cg::this_grid();
  int me = grid.thread_rank(), next = (me + 1) % (int)grid.size();
  for (int i = 0; i < 4; i++) {
    (i & 1 ? a : b)[me] = (i & 1 ? b : a)[next] + 1;
    grid.sync();
  }
}
K(one_block_leaves) {  // which never comes to where the others wait
  auto grid = cg::this_grid();
  if (blockIdx.x == 1) return;
  grid.sync();
  b[grid.thread_rank()] = a[grid.thread_rank()];
}
K(pairs_of_warps) {
  __shared__ int s[256];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  s[threadIdx.x] = a[threadIdx.x];
  tile.sync();
  b[threadIdx.x] = s[threadIdx.x ^ 63] + tile.meta_group_rank();
}
K(pairs_without_sync) {
  __shared__ int s[256];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  s[threadIdx.x] = a[threadIdx.x];
  tile.sync();
  b[threadIdx.x] = s[threadIdx.x ^ 127] + tile.meta_group_rank();
}
K(sums_of_tiles) {
  auto tile = cg::tiled_partition<128>(cg::this_thread_block());
  for (int i = 0; i < 2; i++) b[threadIdx.x] = cg::reduce(tile, a[threadIdx.x] + i, cg::plus<int>());
}
K(broadcast) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  b[threadIdx.x] = tile.shfl(a[threadIdx.x], 40);
}
K(dynamic_too) {  // the system's bytes stand in front of a block's own
  extern __shared__ int s[];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  s[threadIdx.x] = a[threadIdx.x];
  tile.sync();
  b[threadIdx.x] = s[threadIdx.x ^ 32];
}
