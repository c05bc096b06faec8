// What our kernels are measured against: n structures of S words become S arrays of n.
// S is defined by whoever compiles this.

#define WARP 32
#define BLOCK 256

// Each thread moves its own structure; loads of a warp lie S words apart.
extern "C" __global__ void __launch_bounds__(BLOCK)
direct(const int n, const float* __restrict__ x, float* __restrict__ y) {
  const int i = (int)(blockIdx.x * BLOCK + threadIdx.x);
  if (i >= n) return;
  float r[S];
  #pragma unroll
  for (int f = 0; f < S; ++f) r[f] = x[(long long)i * S + f];
  #pragma unroll
  for (int f = 0; f < S; ++f) y[(long long)f * n + i] = r[f];
}

// Through shared memory as it is: coalesced on both sides, banks as the size S has it.
extern "C" __global__ void __launch_bounds__(BLOCK)
shared_memory(const int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[BLOCK * S];
  const int thread = (int)threadIdx.x;
  const int first = (int)blockIdx.x * BLOCK;
  #pragma unroll
  for (int j = 0; j < S; ++j) {
    const int at = first * S + j * BLOCK + thread;
    if (at < n * S) tile[j * BLOCK + thread] = x[at];
  }
  __syncthreads();
  const int i = first + thread;
  if (i >= n) return;
  #pragma unroll
  for (int f = 0; f < S; ++f) y[f * n + i] = tile[thread * S + f];
}

// The in-register transposition of Catanzaro, Keller and Garland (2014), from its mathematics:
// an S by 32 matrix, row i in register i, column j in lane j; c = gcd(S, 32), a = S/c, b = 32/c.
// Its column operations are a rotation by the lane and a fixed permutation of the rows,
//   s_j(i) = (j + 32 i - i/a) mod S = (q(i) + j) mod S,
// its row operation takes d_i(j) = ((i + j/b) mod S + j S) mod 32.

__host__ __device__ constexpr int gcd(int u, int v) { return v == 0 ? u : gcd(v, u % v); }

template <int N>
__device__ __forceinline__ void rotate(float (&r)[N], int by) {
  #pragma unroll
  for (int step = 1; step < N; step *= 2) {
    float t[N];
    #pragma unroll
    for (int i = 0; i < N; ++i) t[i] = (by & step) ? r[(i + step) % N] : r[i];
    #pragma unroll
    for (int i = 0; i < N; ++i) r[i] = t[i];
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
in_register(const int n, const float* __restrict__ x, float* __restrict__ y) {
  constexpr int C = gcd(S, WARP), A = S / C, B = WARP / C;
  const int lane = (int)threadIdx.x % WARP;
  const int first = (int)blockIdx.x * BLOCK + (int)threadIdx.x / WARP * WARP;
  float d[S], e[S];
  #pragma unroll
  for (int i = 0; i < S; ++i) {
    const int at = first * S + i * WARP + lane;
    d[i] = at < n * S ? x[at] : 0.0f;
  }
  #pragma unroll
  for (int i = 0; i < S; ++i) e[(i * WARP - i / A + S) % S] = d[i];
  rotate<S>(e, (S - lane % S) % S);
  #pragma unroll
  for (int i = 0; i < S; ++i) {
    const int source = ((i + lane / B) % S + lane * S) % WARP;
    d[i] = __shfl_sync(0xffffffffu, e[i], source);
  }
  if (C > 1) rotate<S>(d, (S - lane / B % S) % S);
  const int i = first + lane;
  if (i >= n) return;
  #pragma unroll
  for (int f = 0; f < S; ++f) y[f * n + i] = d[f];
}
