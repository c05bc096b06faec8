// Warp and block collectives of CUB, as kernels over T = int or float; what each computes is in test_cub.py.
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_histogram.cuh>
using T = COLLECTED;
#define K(name) extern "C" __global__ void name

template <int W> __device__ void warp_reduce(const T* x, T* out, int n) {
  using R = cub::WarpReduce<T, W>;
  __shared__ typename R::TempStorage t[128 / W];
  int i = blockIdx.x * 128 + threadIdx.x;
  T v = i < n ? x[i] : T(0);
  T sum = R(t[threadIdx.x / W]).Sum(v);
  if (threadIdx.x % W == 0) out[i / W] = sum;
}
K(warp_reduce_32)(const T* x, T* out, int n) { warp_reduce<32>(x, out, n); }
K(warp_reduce_16)(const T* x, T* out, int n) { warp_reduce<16>(x, out, n); }
K(warp_reduce_8)(const T* x, T* out, int n) { warp_reduce<8>(x, out, n); }
K(warp_reduce_5)(const T* x, T* out, int n) {  // logical warps of five lanes: one in each warp, as CUB has it
  using R = cub::WarpReduce<T, 5>;
  __shared__ typename R::TempStorage t[4];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane >= 5) return;
  int at = (blockIdx.x * 4 + warp) * 5 + lane;
  T v = at < n ? x[at] : T(0);
  T sum = R(t[warp]).Sum(v);
  if (lane == 0) out[at / 5] = sum;
}
template <int W> __device__ void warp_scan(const T* x, T* out, int n) {
  using S = cub::WarpScan<T, W>;
  __shared__ typename S::TempStorage t[128 / W];
  int i = blockIdx.x * 128 + threadIdx.x;
  T v = i < n ? x[i] : T(0), r;
  S(t[threadIdx.x / W]).InclusiveSum(v, r);
  if (i < n) out[i] = r;
}
K(warp_scan_32)(const T* x, T* out, int n) { warp_scan<32>(x, out, n); }
K(warp_scan_8)(const T* x, T* out, int n) { warp_scan<8>(x, out, n); }
K(warp_exchange)(const T* x, T* out, int n) {  // four items a lane: striped to blocked
  using E = cub::WarpExchange<T, 4, 16>;
  __shared__ typename E::TempStorage t[8];
  int lane = threadIdx.x % 16, group = threadIdx.x / 16, first = (blockIdx.x * 8 + group) * 64;
  T v[4];
  for (int k = 0; k < 4; k++) v[k] = first + k * 16 + lane < n ? x[first + k * 16 + lane] : T(0);
  E(t[group]).StripedToBlocked(v, v);
  for (int k = 0; k < 4; k++) if (first + lane * 4 + k < n) out[(first + k * 16 + lane)] = v[k];
}
struct Less { __device__ bool operator()(const T& a, const T& b) const { return a < b; } };
K(warp_sort)(const T* x, T* out, int n) {
  using S = cub::WarpMergeSort<T, 2, 16>;
  __shared__ typename S::TempStorage t[8];
  int lane = threadIdx.x % 16, group = threadIdx.x / 16, first = (blockIdx.x * 8 + group) * 32;
  T v[2];
  for (int k = 0; k < 2; k++) v[k] = first + lane * 2 + k < n ? x[first + lane * 2 + k] : T(1000);
  S(t[group]).Sort(v, Less());
  for (int k = 0; k < 2; k++) out[first + lane * 2 + k] = v[k];
}
template <cub::BlockReduceAlgorithm A> __device__ void block_reduce(const T* x, T* out, int n) {
  using R = cub::BlockReduce<T, 128, A>;
  __shared__ typename R::TempStorage t;
  int i = blockIdx.x * 128 + threadIdx.x;
  T sum = R(t).Sum(i < n ? x[i] : T(0));
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
K(block_reduce)(const T* x, T* out, int n) { block_reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x, out, n); }
K(block_reduce_raking)(const T* x, T* out, int n) { block_reduce<cub::BLOCK_REDUCE_RAKING>(x, out, n); }
K(block_reduce_part)(const T* x, T* out, int n) {  // only the first items count
  using R = cub::BlockReduce<T, 128>;
  __shared__ typename R::TempStorage t;
  int i = blockIdx.x * 128 + threadIdx.x, left = n - blockIdx.x * 128;
  T v; if (i < n) v = x[i];
  T sum = R(t).Sum(v, left < 128 ? left : 128);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
template <cub::BlockScanAlgorithm A> __device__ void block_scan(const T* x, T* out, int n) {
  using S = cub::BlockScan<T, 128, A>;
  __shared__ typename S::TempStorage t;
  int first = blockIdx.x * 512 + threadIdx.x * 4;
  T v[4];
  for (int k = 0; k < 4; k++) v[k] = first + k < n ? x[first + k] : T(0);
  S(t).ExclusiveSum(v, v);
  for (int k = 0; k < 4; k++) if (first + k < n) out[first + k] = v[k];
}
K(block_scan)(const T* x, T* out, int n) { block_scan<cub::BLOCK_SCAN_WARP_SCANS>(x, out, n); }
K(block_scan_raking)(const T* x, T* out, int n) { block_scan<cub::BLOCK_SCAN_RAKING>(x, out, n); }
K(block_exchange)(const T* x, T* out, int n) {
  using E = cub::BlockExchange<T, 128, 4>;
  __shared__ typename E::TempStorage t;
  int first = blockIdx.x * 512;
  T v[4];
  for (int k = 0; k < 4; k++) { int i = first + threadIdx.x * 4 + k; v[k] = i < n ? x[i] : T(0); }
  E(t).BlockedToStriped(v, v);
  for (int k = 0; k < 4; k++) { int i = first + k * 128 + threadIdx.x; if (i < n) out[i] = v[k]; }
}
K(block_radix_sort)(const T* x, T* out, int n) {
  using S = cub::BlockRadixSort<T, 128, 4>;
  __shared__ typename S::TempStorage t;
  int first = blockIdx.x * 512 + threadIdx.x * 4;
  T v[4];
  for (int k = 0; k < 4; k++) v[k] = first + k < n ? x[first + k] : T(1000);
  S(t).Sort(v);
  for (int k = 0; k < 4; k++) out[first + k] = v[k];
}
K(block_merge_sort)(const T* x, T* out, int n) {
  using S = cub::BlockMergeSort<T, 128, 4>;
  __shared__ typename S::TempStorage t;
  int first = blockIdx.x * 512 + threadIdx.x * 4;
  T v[4];
  for (int k = 0; k < 4; k++) v[k] = first + k < n ? x[first + k] : T(1000);
  S(t).Sort(v, Less());
  for (int k = 0; k < 4; k++) out[first + k] = v[k];
}
template <cub::BlockHistogramAlgorithm A> __device__ void histogram(const T* x, int* bins, int n) {
  using H = cub::BlockHistogram<unsigned char, 128, 4, 64, A>;
  __shared__ typename H::TempStorage t;
  __shared__ unsigned int counts[64];
  int first = blockIdx.x * 512 + threadIdx.x * 4;
  unsigned char v[4];
  for (int k = 0; k < 4; k++) v[k] = first + k < n ? (unsigned char)(x[first + k]) : 63;
  H(t).Histogram(v, counts);
  __syncthreads();
  if (threadIdx.x < 64) bins[blockIdx.x * 64 + threadIdx.x] = counts[threadIdx.x];
}
K(block_histogram)(const T* x, int* bins, int n) { histogram<cub::BLOCK_HISTO_ATOMIC>(x, bins, n); }
K(block_histogram_sort)(const T* x, int* bins, int n) { histogram<cub::BLOCK_HISTO_SORT>(x, bins, n); }
