// Moves and maps, several ways each. All take (a, b, c, m, n, k); c is what they store.
#define ARGS const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k
#define AT (int)(blockIdx.x * blockDim.x + threadIdx.x)

// c = a + 0.5 b, m numbers
extern "C" __global__ void axpy_plain(ARGS) { int i = AT; if (i < m) c[i] = a[i] + 0.5f * b[i]; }
extern "C" __global__ void axpy_wide(ARGS) {
  int i = AT;
  if (i < m / 4) {
    float4 x = ((const float4*)a)[i], y = ((const float4*)b)[i];
    ((float4*)c)[i] = make_float4(x.x + 0.5f * y.x, x.y + 0.5f * y.y, x.z + 0.5f * y.z, x.w + 0.5f * y.w);
  }
}
extern "C" __global__ void axpy_own(ARGS) {  // each thread has 16 neighbours
  int i = AT * 16;
  if (i < m) for (int j = 0; j < 16; ++j) c[i + j] = a[i + j] + 0.5f * b[i + j];
}
extern "C" __global__ void axpy_apart(ARGS) {  // neighbouring threads are 64 numbers apart
  int i = AT, rows = m / 64, at = i % rows * 64 + i / rows;
  if (i < m) c[at] = a[at] + 0.5f * b[at];
}
extern "C" __global__ void axpy_crowded(ARGS) {  // few blocks have room
  __shared__ float held[11000];
  held[threadIdx.x] = 0.5f;
  __syncthreads();
  int i = AT;
  if (i < m) c[i] = a[i] + held[threadIdx.x ^ 1] * b[i];
}

// c = aT, m rows of n
extern "C" __global__ void transpose_reads(ARGS) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  c[x * m + y] = a[y * n + x];
}
extern "C" __global__ void transpose_writes(ARGS) {
  int y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y;
  c[x * m + y] = a[y * n + x];
}
extern "C" __global__ void transpose_tile(ARGS) {
  __shared__ float t[32][32];
  for (int j = threadIdx.y; j < 32; j += 8) t[j][threadIdx.x] = a[(blockIdx.y * 32 + j) * n + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8) c[(blockIdx.x * 32 + j) * m + blockIdx.y * 32 + threadIdx.x] = t[threadIdx.x][j];
}
extern "C" __global__ void transpose_padded(ARGS) {
  __shared__ float t[32][33];
  for (int j = threadIdx.y; j < 32; j += 8) t[j][threadIdx.x] = a[(blockIdx.y * 32 + j) * n + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8) c[(blockIdx.x * 32 + j) * m + blockIdx.y * 32 + threadIdx.x] = t[threadIdx.x][j];
}

// one of 8 fields of m structures, doubled; b has the same fields as 8 arrays
extern "C" __global__ void field_of_structures(ARGS) { int i = AT; if (i < m) c[i] = 2.0f * a[i * 8]; }
extern "C" __global__ void field_of_arrays(ARGS) { int i = AT; if (i < m) c[i] = 2.0f * b[i]; }
// all 8 fields added up
extern "C" __global__ void fields_of_structures(ARGS) {
  int i = AT;
  if (i < m) { float s = 0; for (int j = 0; j < 8; ++j) s += a[i * 8 + j]; c[i] = s; }
}
extern "C" __global__ void fields_of_arrays(ARGS) {
  int i = AT;
  if (i < m) { float s = 0; for (int j = 0; j < 8; ++j) s += b[i + j * m]; c[i] = s; }
}
extern "C" __global__ void fields_wide(ARGS) {
  int i = AT;
  if (i < m) {
    float4 x = ((const float4*)a)[i * 2], y = ((const float4*)a)[i * 2 + 1];
    c[i] = ((((((x.x + x.y) + x.z) + x.w) + y.x) + y.y) + y.z) + y.w;
  }
}
extern "C" __global__ void fields_staged(ARGS) {  // by way of shared memory, blocks of 128
  __shared__ float t[128 * 9];
  for (int j = threadIdx.x; j < 1024; j += 128) t[j / 8 * 9 + j % 8] = a[blockIdx.x * 1024 + j];
  __syncthreads();
  float s = 0;
  for (int j = 0; j < 8; ++j) s += t[threadIdx.x * 9 + j];
  c[AT] = s;
}

// outer product of a (m) and b (n)
extern "C" __global__ void outer_rows(ARGS) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  c[y * n + x] = a[y] * b[x];
}
extern "C" __global__ void outer_columns(ARGS) {
  int y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y;
  c[y * n + x] = a[y] * b[x];
}
extern "C" __global__ void outer_thread(ARGS) { int y = AT; if (y < m) for (int x = 0; x < n; ++x) c[y * n + x] = a[y] * b[x]; }

// each row of a (m rows of n) scaled by b
extern "C" __global__ void scaled_rows(ARGS) { for (int x = threadIdx.x; x < n; x += blockDim.x) c[blockIdx.x * n + x] = a[blockIdx.x * n + x] * b[blockIdx.x]; }
extern "C" __global__ void scaled_thread(ARGS) { int y = AT; if (y < m) for (int x = 0; x < n; ++x) c[y * n + x] = a[y * n + x] * b[y]; }
extern "C" __global__ void scaled_each(ARGS) { int i = AT; if (i < m * n) c[i] = a[i] * b[i / n]; }
