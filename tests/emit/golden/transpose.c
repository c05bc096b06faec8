// Transposes a height by width matrix.
// Launch: ((width + 31) // 32 x (height + 31) // 32) blocks of 32 x 8 threads.
// Requires: height >= 1 and width >= 1.
// Compile with: -std=c11 -fwrapv
void transpose(
    const int height,
    const int width,
    const float* restrict x,
    float* restrict y) {
  for (int block_y = 0; block_y < (height + 31) / 32; ++block_y) {
    for (int block_x = 0; block_x < (width + 31) / 32; ++block_x) {
      float tile[1056];
      for (int thread = 0; thread < 256; ++thread) {
        const int thread_x = thread % 32;
        const int thread_y = thread / 32;
        float v;
        const int column = block_x * 32 + thread_x;
        for (int r = 0; r < 32; r += 8) {
          const int row = block_y * 32 + thread_y + r;
          v = row < height && column < width ? x[row * width + column] : 0.0f;
          tile[(thread_y + r) * 33 + thread_x] = v;
        }
      }
      for (int thread = 0; thread < 256; ++thread) {
        const int thread_x = thread % 32;
        const int thread_y = thread / 32;
        float v;
        const int out_column = block_y * 32 + thread_x;
        for (int s = 0; s < 32; s += 8) {
          const int out_row = block_x * 32 + thread_y + s;
          v = tile[thread_x * 33 + thread_y + s];
          if (out_row < width && out_column < height) y[out_row * height + out_column] = v;
        }
      }
    }
  }
}
