// Ways to move n structures of S words to S arrays of n, and back, to learn which are worth having.
// Defined by whoever compiles this: S, BLOCK, PER, A, ROWS, LD (load), ST (store).
//   A     planes are stored from multiples of A words on, wherever they begin
//   PER   structures per thread     ROWS  tiles of 32 structures per warp

#define WARP 32
#ifndef LD
#define LD(p) (*(p))
#endif
#ifndef ST
#define ST(p, v) (*(p) = (v))
#endif

constexpr int ODD = S | 1;
constexpr int T = BLOCK * PER;

// Each thread moves its own structures, as many words at a time as divide them.
extern "C" __global__ void __launch_bounds__(BLOCK)
direct(const int n, const float* __restrict__ x, float* __restrict__ y) {
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int i = (int)blockIdx.x * T + k * BLOCK + (int)threadIdx.x;
    if (i >= n) return;
    float r[S];
    if constexpr (S % 4 == 0) {
      #pragma unroll
      for (int f = 0; f < S / 4; ++f) {
        const float4 v = LD(reinterpret_cast<const float4*>(x) + (long long)i * (S / 4) + f);
        r[4 * f] = v.x; r[4 * f + 1] = v.y; r[4 * f + 2] = v.z; r[4 * f + 3] = v.w;
      }
    } else if constexpr (S % 2 == 0) {
      #pragma unroll
      for (int f = 0; f < S / 2; ++f) {
        const float2 v = LD(reinterpret_cast<const float2*>(x) + (long long)i * (S / 2) + f);
        r[2 * f] = v.x; r[2 * f + 1] = v.y;
      }
    } else {
      #pragma unroll
      for (int f = 0; f < S; ++f) r[f] = LD(x + (long long)i * S + f);
    }
    #pragma unroll
    for (int f = 0; f < S; ++f) ST(y + (f * n + i), r[f]);
  }
}

// Through shared memory: T structures, rows of an odd length, planes stored as they begin.
extern "C" __global__ void __launch_bounds__(BLOCK)
staged(const int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[T * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * T;
  float v[S * PER];
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int at = first * S + j * BLOCK + thread;
    if (at < n * S) v[j] = LD(x + at);
  }
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int w = j * BLOCK + thread;
    tile[w / S * ODD + w % S] = v[j];
  }
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int local = k * BLOCK + thread, i = first + local;
    if (i < n) {
      #pragma unroll
      for (int f = 0; f < S; ++f) ST(y + (f * n + i), tile[local * ODD + f]);
    }
  }
}

// The same, but each plane's share begins at a multiple of A words: A structures more are loaded.
extern "C" __global__ void __launch_bounds__(BLOCK)
aligned(const int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[(T + A) * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * T - A;
  constexpr int LOADS = ((T + A) * S + BLOCK - 1) / BLOCK;
  float v[LOADS];
  #pragma unroll
  for (int j = 0; j < LOADS; ++j) {
    const int w = j * BLOCK + thread, at = first * S + w;
    if (w < (T + A) * S && at >= 0 && at < n * S) v[j] = LD(x + at);
  }
  #pragma unroll
  for (int j = 0; j < LOADS; ++j) {
    const int w = j * BLOCK + thread;
    if (w < (T + A) * S) tile[w / S * ODD + w % S] = v[j];
  }
  __syncthreads();
  #pragma unroll
  for (int f = 0; f < S; ++f) {
    const int shift = f * n % A;
    #pragma unroll
    for (int k = 0; k < PER; ++k) {
      const int local = A - shift + k * BLOCK + thread, i = first + local;
      if (i >= 0 && i < n) ST(y + (f * n + i), tile[local * ODD + f]);
    }
  }
}

// The same with 16-byte loads and stores; shared memory by planes, each turned to its own start.
extern "C" __global__ void __launch_bounds__(BLOCK)
aligned_wide(const int n, const float* __restrict__ x, float* __restrict__ y) {
  constexpr int ROW = T + A + 4 + (S % 2 == 0 ? 1 : 0);
  __shared__ float tile[S * ROW];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * T - A;
  constexpr int VECTORS = (T + A) * S / 4, LOADS = (VECTORS + BLOCK - 1) / BLOCK;
  float4 v[LOADS];
  #pragma unroll
  for (int j = 0; j < LOADS; ++j) {
    const int w = j * BLOCK + thread, at = first * S + 4 * w;
    if (w < VECTORS && at >= 0) {
      if (at + 3 < n * S) v[j] = LD(reinterpret_cast<const float4*>(x + at));
      else {
        v[j].x = at < n * S ? x[at] : 0.0f;
        v[j].y = at + 1 < n * S ? x[at + 1] : 0.0f;
        v[j].z = at + 2 < n * S ? x[at + 2] : 0.0f;
      }
    }
  }
  #pragma unroll
  for (int j = 0; j < LOADS; ++j) {
    const int w = 4 * (j * BLOCK + thread);
    if (w < (T + A) * S) {
      tile[w % S * ROW + w / S] = v[j].x;
      tile[(w + 1) % S * ROW + (w + 1) / S] = v[j].y;
      tile[(w + 2) % S * ROW + (w + 2) / S] = v[j].z;
      tile[(w + 3) % S * ROW + (w + 3) / S] = v[j].w;
    }
  }
  __syncthreads();
  constexpr int STORES = S * T / 4;
  #pragma unroll
  for (int j = 0; j < (STORES + BLOCK - 1) / BLOCK; ++j) {
    const int at = j * BLOCK + thread, f = at / (T / 4), k = at % (T / 4);
    if (at >= STORES) break;
    const int local = A - f * n % A + 4 * k, i = first + local;
    const float* from = tile + f * ROW + local;
    float* to = y + (f * n + i);
    if (i >= 0 && i + 3 < n) {
      ST(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
    } else {
      for (int e = 0; e < 4; ++e) if (i + e >= 0 && i + e < n) to[e] = from[e];
    }
  }
}

// In registers, a warp to ROWS tiles one after the other; planes are turned by one more shuffle.
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
turned(const int n, const float* __restrict__ x, float* __restrict__ y) {
  constexpr int C = gcd(S, WARP), U = S / C, B = WARP / C;
  const int lane = (int)threadIdx.x % WARP;
  const int first = ((int)blockIdx.x * (BLOCK / WARP) + (int)threadIdx.x / WARP) * (ROWS * WARP);
  float d[S], e[S], kept[S], next[S];
  #pragma unroll
  for (int i = 0; i < S; ++i) {
    const int at = first * S + i * WARP + lane;
    next[i] = at < n * S ? LD(x + at) : 0.0f;
  }
  #pragma unroll 1
  for (int row = 0; row < ROWS; ++row) {
    #pragma unroll
    for (int i = 0; i < S; ++i) d[i] = next[i];
    if (row + 1 < ROWS) {
      #pragma unroll
      for (int i = 0; i < S; ++i) {
        const int at = (first + (row + 1) * WARP) * S + i * WARP + lane;
        next[i] = at < n * S ? LD(x + at) : 0.0f;
      }
    }
    #pragma unroll
    for (int i = 0; i < S; ++i) e[(i * WARP - i / U + S) % S] = d[i];
    rotate<S>(e, (S - lane % S) % S);
    #pragma unroll
    for (int i = 0; i < S; ++i) {
      const int source = ((i + lane / B) % S + lane * S) % WARP;
      d[i] = __shfl_sync(0xffffffffu, e[i], source);
    }
    if (C > 1) rotate<S>(d, (S - lane / B % S) % S);
    #pragma unroll
    for (int f = 0; f < S; ++f) {
      const int shift = f * n % A;
      const float came = __shfl_sync(0xffffffffu, d[f], (lane - shift) & 31);
      const float out = lane < shift ? kept[f] : came;
      kept[f] = came;
      const int i = first + row * WARP + lane - shift;
      if (i < n && (row > 0 || lane >= shift)) ST(y + (f * n + i), out);
    }
  }
  #pragma unroll
  for (int f = 0; f < S; ++f) {
    const int shift = f * n % A, i = first + ROWS * WARP + lane - shift;
    if (lane < shift && i < n) ST(y + (f * n + i), kept[f]);
  }
}

// -- back: S arrays of n to n structures of S words -----------------------------------------------

extern "C" __global__ void __launch_bounds__(BLOCK)
back_direct(const int n, const float* __restrict__ x, float* __restrict__ y) {
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int i = (int)blockIdx.x * T + k * BLOCK + (int)threadIdx.x;
    if (i >= n) return;
    float r[S];
    #pragma unroll
    for (int f = 0; f < S; ++f) r[f] = LD(x + (f * n + i));
    if constexpr (S % 4 == 0) {
      #pragma unroll
      for (int f = 0; f < S / 4; ++f)
        ST(reinterpret_cast<float4*>(y) + (long long)i * (S / 4) + f,
           make_float4(r[4 * f], r[4 * f + 1], r[4 * f + 2], r[4 * f + 3]));
    } else if constexpr (S % 2 == 0) {
      #pragma unroll
      for (int f = 0; f < S / 2; ++f)
        ST(reinterpret_cast<float2*>(y) + (long long)i * (S / 2) + f,
           make_float2(r[2 * f], r[2 * f + 1]));
    } else {
      #pragma unroll
      for (int f = 0; f < S; ++f) ST(y + (long long)i * S + f, r[f]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
back_staged(const int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[T * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * T;
  float v[S * PER];
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int i = first + k * BLOCK + thread;
    #pragma unroll
    for (int f = 0; f < S; ++f) if (i < n) v[k * S + f] = LD(x + (f * n + i));
  }
  #pragma unroll
  for (int k = 0; k < PER; ++k) {
    #pragma unroll
    for (int f = 0; f < S; ++f) tile[(k * BLOCK + thread) * ODD + f] = v[k * S + f];
  }
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int w = j * BLOCK + thread, at = first * S + w;
    if (at < n * S) ST(y + at, tile[w / S * ODD + w % S]);
  }
}

// Planes loaded from multiples of A words on: a few words that the block before has too.
extern "C" __global__ void __launch_bounds__(BLOCK)
back_aligned(const int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[(T + 2 * A) * ODD];
  const int thread = (int)threadIdx.x, first = (int)blockIdx.x * T;
  constexpr int TURNS = (T + A + BLOCK - 1) / BLOCK;
  #pragma unroll
  for (int f = 0; f < S; ++f) {
    const int shift = f * n % A;
    #pragma unroll
    for (int k = 0; k < TURNS; ++k) {
      const int local = k * BLOCK + thread - shift, i = first + local;
      if (local < T && i >= 0 && i < n) {
        const float v = LD(x + (f * n + i));
        if (local >= 0) tile[local * ODD + f] = v;
      }
    }
  }
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < S * PER; ++j) {
    const int w = j * BLOCK + thread, at = first * S + w;
    if (at < n * S) ST(y + at, tile[w / S * ODD + w % S]);
  }
}
