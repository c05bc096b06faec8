// Windows and neighbours, several ways each. All take (a, b, c, m, n, k); c is what they store.
#define ARGS const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k
#define AT (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define IN(y, x) a[min(max(y, 0), m - 1) * n + min(max(x, 0), n - 1)]

// five points of m rows of n
extern "C" __global__ void five_rows(ARGS) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  c[y * n + x] = IN(y, x) + IN(y - 1, x) + IN(y + 1, x) + IN(y, x - 1) + IN(y, x + 1);
}
extern "C" __global__ void five_columns(ARGS) {
  int y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y;
  c[y * n + x] = IN(y, x) + IN(y - 1, x) + IN(y + 1, x) + IN(y, x - 1) + IN(y, x + 1);
}
extern "C" __global__ void five_shared(ARGS) {
  __shared__ float t[10][34];
  int x = blockIdx.x * 32, y = blockIdx.y * 8, u = threadIdx.x, v = threadIdx.y;
  for (int i = v * 32 + u; i < 340; i += 256) t[i / 34][i % 34] = IN(y + i / 34 - 1, x + i % 34 - 1);
  __syncthreads();
  c[(y + v) * n + x + u] = t[v + 1][u + 1] + t[v][u + 1] + t[v + 2][u + 1] + t[v + 1][u] + t[v + 1][u + 2];
}
extern "C" __global__ void five_thread(ARGS) {  // a thread has a row
  int y = AT; if (y < m) for (int x = 0; x < n; ++x) c[y * n + x] = IN(y, x) + IN(y - 1, x) + IN(y + 1, x) + IN(y, x - 1) + IN(y, x + 1);
}
extern "C" __global__ void five_small(ARGS) {  // blocks of one warp
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y;
  c[y * n + x] = IN(y, x) + IN(y - 1, x) + IN(y + 1, x) + IN(y, x - 1) + IN(y, x + 1);
}

// sums of 64 neighbours, m + 64 numbers
extern "C" __global__ void window_global(ARGS) { int i = AT; float s = 0; for (int j = 0; j < 64; ++j) s += a[i + j]; c[i] = s; }
extern "C" __global__ void window_shared(ARGS) {
  __shared__ float t[320]; int i = AT; for (int j = threadIdx.x; j < 320; j += 256) t[j] = a[blockIdx.x * 256 + j];
  __syncthreads(); float s = 0; for (int j = 0; j < 64; ++j) s += t[threadIdx.x + j]; c[i] = s;
}
extern "C" __global__ void window_runs(ARGS) {  // each thread has eight neighbours, from one sum to the next
  int i = AT * 8; float s = 0; for (int j = 0; j < 64; ++j) s += a[i + j];
  for (int j = 0; j < 8; ++j) { c[i + j] = s; s += a[i + j + 64] - a[i + j]; }
}

// seven points of k planes, m rows, n columns: threads along columns, or along planes
#define P(z, y, x) a[(min(max(z, 0), k - 1) * m + min(max(y, 0), m - 1)) * n + min(max(x, 0), n - 1)]
#define SEVEN(z, y, x) (P(z, y, x) + P(z - 1, y, x) + P(z + 1, y, x) + P(z, y - 1, x) + P(z, y + 1, x) + P(z, y, x - 1) + P(z, y, x + 1))
extern "C" __global__ void seven_columns(ARGS) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z; c[(z * m + y) * n + x] = SEVEN(z, y, x);
}
extern "C" __global__ void seven_planes(ARGS) {
  int z = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, x = blockIdx.z; c[(z * m + y) * n + x] = SEVEN(z, y, x);
}
extern "C" __global__ void seven_march(ARGS) {  // a thread goes through the planes
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  for (int z = 0; z < k; ++z) c[(z * m + y) * n + x] = SEVEN(z, y, x);
}

// odd numbers take 64 steps, even ones 8: neighbours, or apart by half of the block
__device__ float steps(float x, int many) { for (int j = 0; j < many; ++j) x = x * 1.01f + 0.5f; return x; }
extern "C" __global__ void parting_lanes(ARGS) { int i = AT; c[i] = i % 2 ? steps(a[i], 512) : steps(a[i], 64); }
extern "C" __global__ void parting_warps(ARGS) {
  int t = threadIdx.x, i = blockIdx.x * 256 + t % 128 * 2 + t / 128; c[i] = t / 128 ? steps(a[i], 512) : steps(a[i], 64);
}

// mean of 2 by 2, of m rows of n
extern "C" __global__ void halved(ARGS) {
  int i = AT, w = n / 2, y = i / w, x = i % w; if (i < m / 2 * w) c[i] = 0.25f * (a[2 * y * n + 2 * x] + a[2 * y * n + 2 * x + 1] + a[(2 * y + 1) * n + 2 * x] + a[(2 * y + 1) * n + 2 * x + 1]);
}
extern "C" __global__ void halved_wide(ARGS) {
  int i = AT, w = n / 2, y = i / w, x = i % w;
  if (i < m / 2 * w) { float2 p = ((const float2*)a)[y * n + x], q = ((const float2*)a)[y * n + w + x]; c[i] = 0.25f * (p.x + p.y + q.x + q.y); }
}
extern "C" __global__ void halved_columns(ARGS) {
  int i = AT, h = m / 2, w = n / 2, x = i / h, y = i % h; if (i < h * w) c[y * w + x] = 0.25f * (a[2 * y * n + 2 * x] + a[2 * y * n + 2 * x + 1] + a[(2 * y + 1) * n + 2 * x] + a[(2 * y + 1) * n + 2 * x + 1]);
}
