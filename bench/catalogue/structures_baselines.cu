// What ours are measured against: structures of S elements of type T moved to S arrays of n, moved
// back, and summed; each thread on its own, with accesses as wide as divide a structure, or through
// shared memory with rows of an odd length. Whoever compiles this defines S, T (an unsigned integer
// for what only moves), F (a type to add up) and PER (structures per thread).

#define BLOCK 256
constexpr int ODD = S | 1;
constexpr int OWN = BLOCK * PER;
constexpr int MOST = 16 / sizeof(T);
constexpr int W = S % 4 == 0 && MOST >= 4 ? 4 : S % 2 == 0 && MOST >= 2 ? 2 : 1;

struct alignas(sizeof(T) * W) Part { T at[W]; };

extern "C" __global__ void __launch_bounds__(BLOCK)
direct_to_arrays(const int n, const T* __restrict__ x, T* __restrict__ y) {
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int i = (int)blockIdx.x * OWN + k * BLOCK + (int)threadIdx.x;
    if (i >= n) return;
    Part r[S / W];
    #pragma unroll
    for (int f = 0; f < S / W; ++f)
      r[f] = reinterpret_cast<const Part*>(x)[(long long)i * (S / W) + f];
    #pragma unroll
    for (int f = 0; f < S; ++f) y[(long long)f * n + i] = r[f / W].at[f % W];
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
direct_to_structures(const int n, const T* __restrict__ x, T* __restrict__ y) {
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int i = (int)blockIdx.x * OWN + k * BLOCK + (int)threadIdx.x;
    if (i >= n) return;
    Part r[S / W];
    #pragma unroll
    for (int f = 0; f < S; ++f) r[f / W].at[f % W] = x[(long long)f * n + i];
    #pragma unroll
    for (int f = 0; f < S / W; ++f)
      reinterpret_cast<Part*>(y)[(long long)i * (S / W) + f] = r[f];
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
shared_to_arrays(const int n, const T* __restrict__ x, T* __restrict__ y) {
  __shared__ T tile[OWN * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * OWN;
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int w = j * BLOCK + thread, at = first * S + w;
    if (at < n * S) tile[w / S * ODD + w % S] = x[at];
  }
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int local = k * BLOCK + thread, i = first + local;
    if (i >= n) return;
    #pragma unroll
    for (int f = 0; f < S; ++f) y[f * n + i] = tile[local * ODD + f];
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
shared_to_structures(const int n, const T* __restrict__ x, T* __restrict__ y) {
  __shared__ T tile[OWN * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * OWN;
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int local = k * BLOCK + thread, i = first + local;
    #pragma unroll
    for (int f = 0; f < S; ++f) if (i < n) tile[local * ODD + f] = x[f * n + i];
  }
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int w = j * BLOCK + thread, at = first * S + w;
    if (at < n * S) y[at] = tile[w / S * ODD + w % S];
  }
}

struct alignas(sizeof(F) * W) Summands { F at[W]; };

extern "C" __global__ void __launch_bounds__(BLOCK)
direct_sums(const int n, const F* __restrict__ x, F* __restrict__ y) {
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int i = (int)blockIdx.x * OWN + k * BLOCK + (int)threadIdx.x;
    if (i >= n) return;
    F total = 0;
    #pragma unroll
    for (int f = 0; f < S / W; ++f) {
      const Summands r = reinterpret_cast<const Summands*>(x)[(long long)i * (S / W) + f];
      #pragma unroll
      for (int e = 0; e < W; ++e) total += r.at[e];
    }
    y[i] = total;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
shared_sums(const int n, const F* __restrict__ x, F* __restrict__ y) {
  __shared__ F tile[OWN * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * OWN;
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int w = j * BLOCK + thread, at = first * S + w;
    if (at < n * S) tile[w / S * ODD + w % S] = x[at];
  }
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int local = k * BLOCK + thread, i = first + local;
    if (i >= n) return;
    F total = 0;
    #pragma unroll
    for (int f = 0; f < S; ++f) total += tile[local * ODD + f];
    y[i] = total;
  }
}
