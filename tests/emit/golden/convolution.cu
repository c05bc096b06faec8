// y = w * x, four outputs per thread.
// Launch: ((n + 255) // 256) blocks of 64 threads.
// Requires: n >= 4 and n % 4 == 0.
static __device__ __forceinline__ int convolution_floor_mod(int x, int y) {
  return y == -1 ? 0 : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);
}

struct convolution_w_values {
  float at[3];
};

extern "C" __global__ void __launch_bounds__(64, 4)
convolution(
    const int n,
    const float* __restrict__ x,
    float* __restrict__ y,
    const __grid_constant__ convolution_w_values w) {
  const int block_x = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  const int i = (block_x * 64 + thread) * 4;
  float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float v;
  // neighbours wrap around
  #pragma unroll
  for (int d = 0; d < 3; ++d) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      v = i < n ? x[convolution_floor_mod(i + j + d - 1, n)] : 0.0f;
      r[j] = fmaf(w.at[d], v, r[j]);
    }
  }
  if (i < n) __stcs(reinterpret_cast<float4*>(&y[i]), make_float4(r[0], r[1], r[2], r[3]));
}
