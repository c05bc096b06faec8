// Transposes a height by width matrix.
// Launch: ((width + 31) // 32 x (height + 31) // 32) blocks of 32 x 8 threads.
// Requires: height >= 1 and width >= 1.
extern "C" __global__ void __launch_bounds__(256)
transpose(
    const int height,
    const int width,
    const float* __restrict__ x,
    float* __restrict__ y) {
  const int block_x = (int)blockIdx.x;
  const int block_y = (int)blockIdx.y;
  const int thread_x = (int)threadIdx.x;
  const int thread_y = (int)threadIdx.y;
  __shared__ float tile[1056];
  float v;
  const int column = block_x * 32 + thread_x;
  #pragma unroll
  for (int r = 0; r < 32; r += 8) {
    const int row = block_y * 32 + thread_y + r;
    v = row < height && column < width ? x[row * width + column] : 0.0f;
    tile[(thread_y + r) * 33 + thread_x] = v;
  }
  __syncthreads();
  const int out_column = block_y * 32 + thread_x;
  #pragma unroll
  for (int s = 0; s < 32; s += 8) {
    const int out_row = block_x * 32 + thread_y + s;
    v = tile[thread_x * 33 + thread_y + s];
    if (out_row < width && out_column < height) y[out_row * height + out_column] = v;
  }
}
