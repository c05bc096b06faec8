// Three-element structures to three arrays, per warp.
// Launch: ((n + 127) // 128) blocks of 128 threads.
// Compile with: -std=c11 -fwrapv
void aos3(const int n, const float* restrict x, float* restrict y) {
  for (int block_x = 0; block_x < (n + 127) / 128; ++block_x) {
    float c[3][128];
    float b[3][128];
    float exchange_f32[128];
    for (int thread = 0; thread < 128; ++thread) {
      const int lane = thread % 32;
      const int warp = thread / 32;
      const int first = block_x * 128 + warp * 32;
      float a[3];
      for (int j = 0; j < 3; ++j) {
        const int place = first * 3 + j * 32 + lane;
        a[j] = place < n * 3 ? x[place] : 0.0f;
      }
      const int b_by = lane % 3;
      float b_1[3];
      for (int j = 0; j < 3; ++j) {
        b_1[j] = (b_by & 1) != 0 ? a[(j + 1) % 3] : a[j];
      }
      for (int j = 0; j < 3; ++j) {
        b[j][thread] = (b_by & 2) != 0 ? b_1[(j * 2 + 2) % 3] : b_1[j * 2 % 3];
      }
    }
    for (int j = 0; j < 3; ++j) {
      for (int thread = 0; thread < 128; ++thread) {
        exchange_f32[thread] = b[j][thread];
      }
      for (int thread = 0; thread < 128; ++thread) {
        const int lane = thread % 32;
        c[j][thread] = exchange_f32[thread - lane + (3 * lane + j) % 32];
      }
    }
    for (int thread = 0; thread < 128; ++thread) {
      const int lane = thread % 32;
      const int warp = thread / 32;
      const int first = block_x * 128 + warp * 32;
      for (int j = 0; j < 3; ++j) {
        if (first + lane < n) y[j * n + first + lane] = c[j][thread];
      }
    }
  }
}
