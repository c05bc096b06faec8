// Three-element structures to three arrays, per warp.
// Launch: ((n + 127) // 128) blocks of 128 threads.
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void aos3(
    const int n,
    __global const float* restrict x,
    __global float* restrict y) {
  __local float exchange_f32[128];
  const int block_x = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int first = block_x * 128 + warp * 32;
  float a[3];
  float b[3];
  float c[3];
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int place = first * 3 + j * 32 + lane;
    a[j] = place < n * 3 ? x[place] : 0.0f;
  }
  const int b_by = lane % 3;
  float b_1[3];
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    b_1[j] = (b_by & 1) != 0 ? a[(j + 1) % 3] : a[j];
  }
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    b[j] = (b_by & 2) != 0 ? b_1[(j * 2 + 2) % 3] : b_1[j * 2 % 3];
  }
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    exchange_f32[thread] = b[j];
    barrier(CLK_LOCAL_MEM_FENCE);
    c[j] = exchange_f32[thread - lane + (3 * lane + j) % 32];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    if (first + lane < n) y[j * n + first + lane] = c[j];
  }
}
