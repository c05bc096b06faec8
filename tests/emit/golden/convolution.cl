// y = w * x, four outputs per thread.
// Launch: ((n + 255) // 256) blocks of 64 threads.
// Requires: n >= 4 and n % 4 == 0.
#pragma OPENCL FP_CONTRACT OFF
static int convolution_floor_mod(int x, int y) {
  return y == -1 ? 0 : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void convolution(
    const int n,
    __global const float* restrict x,
    __global float* restrict y,
    __constant float* w) {
  const int block_x = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  const int i = (block_x * 64 + thread) * 4;
  float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float v;
  // neighbours wrap around
  #pragma unroll
  for (int d = 0; d < 3; ++d) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      v = i < n ? x[convolution_floor_mod(i + j + d - 1, n)] : 0.0f;
      r[j] = fma(w[d], v, r[j]);
    }
  }
  if (i < n) y[i] = r[0];
  if (i < n) y[i + 1] = r[1];
  if (i < n) y[i + 2] = r[2];
  if (i < n) y[i + 3] = r[3];
}
