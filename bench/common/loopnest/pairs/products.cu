// Products and much arithmetic, several ways each. All take (a, b, c, m, n, k); c is what they store.
#define ARGS const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k
#define AT (int)(blockIdx.x * blockDim.x + threadIdx.x)

// c (m by n) = a (m by k) times b (k by n)
extern "C" __global__ void product_plain(ARGS) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; float s = 0;
  for (int j = 0; j < k; ++j) s += a[y * k + j] * b[j * n + x];
  c[y * n + x] = s;
}
extern "C" __global__ void product_across(ARGS) {  // neighbouring threads are in different rows
  int y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y; float s = 0;
  for (int j = 0; j < k; ++j) s += a[y * k + j] * b[j * n + x];
  c[y * n + x] = s;
}
extern "C" __global__ void product_tiles(ARGS) {
  __shared__ float p[16][16], q[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; float s = 0;
  for (int j = 0; j < k; j += 16) {
    p[threadIdx.y][threadIdx.x] = a[y * k + j + threadIdx.x];
    q[threadIdx.y][threadIdx.x] = b[(j + threadIdx.y) * n + x];
    __syncthreads();
    for (int i = 0; i < 16; ++i) s += p[threadIdx.y][i] * q[i][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = s;
}
extern "C" __global__ void product_registers(ARGS) {  // 64 by 64 by 16, four by four for each of 256
  __shared__ float p[16][68], q[16][64];
  int t = threadIdx.x, tx = t % 16, ty = t / 16; float s[4][4] = {};
  for (int j = 0; j < k; j += 16) {
    for (int i = t; i < 1024; i += 256) p[i % 16][i / 16] = a[(blockIdx.y * 64 + i / 16) * k + j + i % 16];
    for (int i = t; i < 1024; i += 256) q[i / 64][i % 64] = b[(j + i / 64) * n + blockIdx.x * 64 + i % 64];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
      float4 u = *(float4*)&p[i][ty * 4], v = *(float4*)&q[i][tx * 4];
      float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
      #pragma unroll
      for (int r = 0; r < 4; ++r)
        #pragma unroll
        for (int w = 0; w < 4; ++w) s[r][w] += us[r] * vs[w];
    }
    __syncthreads();
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) for (int w = 0; w < 4; ++w) c[(blockIdx.y * 64 + ty * 4 + r) * n + blockIdx.x * 64 + tx * 4 + w] = s[r][w];
}

// m products of 16 by 16 matrices
extern "C" __global__ void small_thread(ARGS) {  // a thread has a whole product
  int i = AT; if (i >= m) return;
  for (int y = 0; y < 16; ++y) for (int x = 0; x < 16; ++x) {
    float s = 0; for (int j = 0; j < 16; ++j) s += a[i * 256 + y * 16 + j] * b[i * 256 + j * 16 + x];
    c[i * 256 + y * 16 + x] = s;
  }
}
extern "C" __global__ void small_block(ARGS) {
  int y = threadIdx.x / 16, x = threadIdx.x % 16, i = blockIdx.x * 256; float s = 0;
  for (int j = 0; j < 16; ++j) s += a[i + y * 16 + j] * b[i + j * 16 + x];
  c[i + threadIdx.x] = s;
}
extern "C" __global__ void small_shared(ARGS) {
  __shared__ float p[256], q[256];
  int y = threadIdx.x / 16, x = threadIdx.x % 16, i = blockIdx.x * 256; float s = 0;
  p[threadIdx.x] = a[i + threadIdx.x]; q[threadIdx.x] = b[i + threadIdx.x]; __syncthreads();
  for (int j = 0; j < 16; ++j) s += p[y * 16 + j] * q[j * 16 + x];
  c[i + threadIdx.x] = s;
}

// how each of m bodies (numbers here) feels all k others
extern "C" __global__ void bodies_global(ARGS) {
  int i = AT; float s = 0, o = a[i];
  for (int j = 0; j < k; ++j) { float d = b[j] - o; s += d * (d * d + 1.0f); }
  c[i] = s;
}
extern "C" __global__ void bodies_shared(ARGS) {
  __shared__ float t[256]; int i = AT; float s = 0, o = a[i];
  for (int j = 0; j < k; j += 256) {
    t[threadIdx.x] = b[j + threadIdx.x]; __syncthreads();
    for (int u = 0; u < 256; ++u) { float d = t[u] - o; s += d * (d * d + 1.0f); }
    __syncthreads();
  }
  c[i] = s;
}
extern "C" __global__ void bodies_divided(ARGS) {  // each term is divided and multiplied again
  int i = AT; float s = 0, o = a[i];
  for (int j = 0; j < k; ++j) { float d = b[j] - o, r = d * d + 1.0f; s += d * r * r / r; }
  c[i] = s;
}

// a polynomial of degree 256 in each of m numbers
extern "C" __global__ void horner(ARGS) { int i = AT; float x = a[i], s = 0; for (int j = 0; j < 256; ++j) s = s * x + 0.25f; c[i] = s; }
extern "C" __global__ void horner_four(ARGS) {  // four sums in x^4
  int i = AT; float x = a[i], y = x * x * x * x, p = 0, q = 0, r = 0, s = 0;
  for (int j = 0; j < 64; ++j) { p = p * y + 0.25f; q = q * y + 0.25f; r = r * y + 0.25f; s = s * y + 0.25f; }
  c[i] = ((s * x + r) * x + q) * x + p;
}
extern "C" __global__ void powers(ARGS) { int i = AT; float x = a[i], s = 0; for (int j = 0; j < 256; ++j) s += 0.25f * exp2f(j * log2f(x)); c[i] = s; }

// 64 rounds of a block of 256 through shared memory, at 1 or 32 words from each other
extern "C" __global__ void rounds_straight(ARGS) {
  __shared__ float t[8192]; t[threadIdx.x] = a[AT]; __syncthreads();
  float s = 0; for (int j = 0; j < 64; ++j) s += t[(threadIdx.x + j) % 256]; c[AT] = s;
}
extern "C" __global__ void rounds_conflicts(ARGS) {
  __shared__ float t[8192]; t[threadIdx.x * 32] = a[AT]; __syncthreads();
  float s = 0; for (int j = 0; j < 64; ++j) s += t[(threadIdx.x + j) % 256 * 32]; c[AT] = s;
}
extern "C" __global__ void rounds_global(ARGS) { float s = 0; for (int j = 0; j < 64; ++j) s += a[blockIdx.x * 256 + (threadIdx.x + j) % 256]; c[AT] = s; }
