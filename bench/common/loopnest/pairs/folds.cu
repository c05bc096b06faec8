// Folds, several ways each. All take (a, b, c, m, n, k); c is what they store.
#define ARGS const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k
#define AT (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define ALL 0xffffffffu

// sums of m rows of n
extern "C" __global__ void rows_thread(ARGS) { int y = AT; float s = 0; if (y < m) { for (int x = 0; x < n; ++x) s += a[y * n + x]; c[y] = s; } }
extern "C" __global__ void rows_warp(ARGS) {
  int y = AT / 32, l = threadIdx.x % 32; float s = 0;
  for (int x = l; x < n; x += 32) s += a[y * n + x];
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(ALL, s, d);
  if (l == 0) c[y] = s;
}
extern "C" __global__ void rows_block(ARGS) {
  __shared__ float t[256]; float s = 0;
  for (int x = threadIdx.x; x < n; x += 256) s += a[blockIdx.x * n + x];
  t[threadIdx.x] = s; __syncthreads();
  for (int d = 128; d; d /= 2) { if (threadIdx.x < d) t[threadIdx.x] += t[threadIdx.x + d]; __syncthreads(); }
  if (threadIdx.x == 0) c[blockIdx.x] = t[0];
}
extern "C" __global__ void rows_one(ARGS) {  // one thread adds up what a block has loaded
  __shared__ float t[256]; float s = 0;
  for (int x = threadIdx.x; x < n; x += 256) s += a[blockIdx.x * n + x];
  t[threadIdx.x] = s; __syncthreads();
  if (threadIdx.x == 0) { s = 0; for (int x = 0; x < 256; ++x) s += t[x]; c[blockIdx.x] = s; }
}

// sums of n columns of m
extern "C" __global__ void columns_thread(ARGS) { int x = AT; float s = 0; if (x < n) { for (int y = 0; y < m; ++y) s += a[y * n + x]; c[x] = s; } }
extern "C" __global__ void columns_warp(ARGS) {  // lanes are in different rows
  int x = AT / 32, l = threadIdx.x % 32; float s = 0;
  for (int y = l; y < m; y += 32) s += a[y * n + x];
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(ALL, s, d);
  if (l == 0) c[x] = s;
}
extern "C" __global__ void columns_block(ARGS) {  // 32 columns by 32 parts
  __shared__ float t[32][33]; float s = 0;
  for (int y = threadIdx.y; y < m; y += 32) s += a[y * n + blockIdx.x * 32 + threadIdx.x];
  t[threadIdx.y][threadIdx.x] = s; __syncthreads();
  if (threadIdx.y == 0) { s = 0; for (int j = 0; j < 32; ++j) s += t[j][threadIdx.x]; c[blockIdx.x * 32 + threadIdx.x] = s; }
}

// c = a b, matrix (m rows of n) times vector
extern "C" __global__ void matvec_thread(ARGS) { int y = AT; float s = 0; if (y < m) { for (int x = 0; x < n; ++x) s += a[y * n + x] * b[x]; c[y] = s; } }
extern "C" __global__ void matvec_warp(ARGS) {
  int y = AT / 32, l = threadIdx.x % 32; float s = 0;
  for (int x = l; x < n; x += 32) s += a[y * n + x] * b[x];
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(ALL, s, d);
  if (l == 0) c[y] = s;
}
extern "C" __global__ void matvec_wide(ARGS) {
  int y = AT / 32, l = threadIdx.x % 32; float s = 0;
  for (int x = l; x < n / 4; x += 32) {
    float4 p = ((const float4*)(a + y * n))[x], q = ((const float4*)b)[x];
    s += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
  }
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(ALL, s, d);
  if (l == 0) c[y] = s;
}

// softmax without its maximum, m rows of n
extern "C" __global__ void softmax_thread(ARGS) {
  int y = AT; float s = 0;
  if (y < m) { for (int x = 0; x < n; ++x) s += __expf(a[y * n + x]); for (int x = 0; x < n; ++x) c[y * n + x] = __expf(a[y * n + x]) / s; }
}
extern "C" __global__ void softmax_warp(ARGS) {
  int y = AT / 32, l = threadIdx.x % 32; float s = 0;
  for (int x = l; x < n; x += 32) s += __expf(a[y * n + x]);
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(ALL, s, d);
  for (int x = l; x < n; x += 32) c[y * n + x] = __expf(a[y * n + x]) / s;
}
extern "C" __global__ void softmax_block(ARGS) {
  __shared__ float t[256]; float s = 0;
  for (int x = threadIdx.x; x < n; x += 256) s += __expf(a[blockIdx.x * n + x]);
  t[threadIdx.x] = s; __syncthreads();
  for (int d = 128; d; d /= 2) { if (threadIdx.x < d) t[threadIdx.x] += t[threadIdx.x + d]; __syncthreads(); }
  for (int x = threadIdx.x; x < n; x += 256) c[blockIdx.x * n + x] = __expf(a[blockIdx.x * n + x]) / t[0];
}

// sums of the 256 before each in a block of 256, m numbers
extern "C" __global__ void scan_thread(ARGS) { float s = 0; for (int j = 0; j <= threadIdx.x; ++j) s += a[blockIdx.x * 256 + j]; c[AT] = s; }
extern "C" __global__ void scan_shared(ARGS) {
  __shared__ float t[256]; t[threadIdx.x] = a[AT]; __syncthreads();
  for (int d = 1; d < 256; d *= 2) { float o = threadIdx.x >= d ? t[threadIdx.x - d] : 0; __syncthreads(); t[threadIdx.x] += o; __syncthreads(); }
  c[AT] = t[threadIdx.x];
}
extern "C" __global__ void scan_shuffles(ARGS) {
  __shared__ float t[8]; int l = threadIdx.x % 32, w = threadIdx.x / 32; float s = a[AT];
  for (int d = 1; d < 32; d *= 2) { float o = __shfl_up_sync(ALL, s, d); if (l >= d) s += o; }
  if (l == 31) t[w] = s; __syncthreads();
  for (int j = 0; j < 8; ++j) if (j < w) s += t[j];
  c[AT] = s;
}
extern "C" __global__ void scan_one(ARGS) {
  __shared__ float t[256]; t[threadIdx.x] = a[AT]; __syncthreads();
  if (threadIdx.x == 0) for (int j = 1; j < 256; ++j) t[j] += t[j - 1];
  __syncthreads(); c[AT] = t[threadIdx.x];
}

// how many of each block's 4096 numbers (of m) fall into each of 32 classes
extern "C" __global__ void classes_shared(ARGS) {
  __shared__ int t[32]; if (threadIdx.x < 32) t[threadIdx.x] = 0; __syncthreads();
  for (int j = threadIdx.x; j < 4096; j += 256) atomicAdd(&t[(int)(a[blockIdx.x * 4096 + j] * 31.0f) & 31], 1);
  __syncthreads(); if (threadIdx.x < 32) c[blockIdx.x * 32 + threadIdx.x] = t[threadIdx.x];
}
extern "C" __global__ void classes_own(ARGS) {  // each thread has counts of its own
  __shared__ int t[32 * 256]; for (int j = 0; j < 32; ++j) t[j * 256 + threadIdx.x] = 0;
  for (int j = threadIdx.x; j < 4096; j += 256) t[((int)(a[blockIdx.x * 4096 + j] * 31.0f) & 31) * 256 + threadIdx.x]++;
  __syncthreads();
  if (threadIdx.x < 32) { int s = 0; for (int j = 0; j < 256; ++j) s += t[threadIdx.x * 256 + (j + threadIdx.x) % 256]; c[blockIdx.x * 32 + threadIdx.x] = s; }
}
extern "C" __global__ void classes_again(ARGS) {  // every class looks at all numbers
  int s = 0, w = threadIdx.x / 8, l = threadIdx.x % 8;
  for (int j = l; j < 4096; j += 8) s += (((int)(a[blockIdx.x * 4096 + j] * 31.0f) & 31) == w);
  for (int d = 4; d; d /= 2) s += __shfl_xor_sync(ALL, s, d);
  if (l == 0) c[blockIdx.x * 32 + w] = s;
}
