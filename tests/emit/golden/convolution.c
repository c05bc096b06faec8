// y = w * x, four outputs per thread.
// Launch: ((n + 255) // 256) blocks of 64 threads.
// Requires: n >= 4 and n % 4 == 0.
// Compile with: -std=c11 -fwrapv -frounding-math -ffp-contract=off -lm
#include <math.h>
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

static inline int convolution_floor_mod(int x, int y) {
  return y == -1 ? 0 : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);
}

void convolution(
    const int n,
    const float* restrict x,
    float* restrict y,
    const float* restrict w) {
  for (int block_x = 0; block_x < (n + 255) / 256; ++block_x) {
    for (int thread = 0; thread < 64; ++thread) {
      const int i = (block_x * 64 + thread) * 4;
      float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      float v;
      // neighbours wrap around
      for (int d = 0; d < 3; ++d) {
        for (int j = 0; j < 4; ++j) {
          v = i < n ? x[convolution_floor_mod(i + j + d - 1, n)] : 0.0f;
          r[j] = fmaf(w[d], v, r[j]);
        }
      }
      if (i < n) y[i] = r[0];
      if (i < n) y[i + 1] = r[1];
      if (i < n) y[i + 2] = r[2];
      if (i < n) y[i + 3] = r[3];
    }
  }
}
