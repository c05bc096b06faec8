// Transposes a height by width matrix.
// Launch: ((width + 31) // 32 x (height + 31) // 32) blocks of 32 x 8 threads.
// Requires: height >= 1 and width >= 1.
__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void transpose(
    const int height,
    const int width,
    __global const float* restrict x,
    __global float* restrict y) {
  const int block_x = (int)get_group_id(0);
  const int block_y = (int)get_group_id(1);
  const int thread_x = (int)get_local_id(0);
  const int thread_y = (int)get_local_id(1);
  __local float tile[1056];
  float v;
  const int column = block_x * 32 + thread_x;
  #pragma unroll
  for (int r = 0; r < 32; r += 8) {
    const int row = block_y * 32 + thread_y + r;
    v = row < height && column < width ? x[row * width + column] : 0.0f;
    tile[(thread_y + r) * 33 + thread_x] = v;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const int out_column = block_y * 32 + thread_x;
  #pragma unroll
  for (int s = 0; s < 32; s += 8) {
    const int out_row = block_x * 32 + thread_y + s;
    v = tile[thread_x * 33 + thread_y + s];
    if (out_row < width && out_column < height) y[out_row * height + out_column] = v;
  }
}
