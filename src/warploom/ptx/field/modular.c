/* Products modulo a prime below 2^63, as `prime.py` says them, sooner. `inverse` is that of -p modulo
   2^64, `square` is 2^128 modulo p: products are reduced as Montgomery does it. */
typedef unsigned long long u64;
typedef unsigned __int128 u128;

static u64 reduced(u64 x, u64 y, u64 p, u64 inverse) {
  const u128 product = (u128)x * y;
  const u64 times = (u64)product * inverse;
  const u64 found = (u64)((product + (u128)times * p) >> 64); /* below 2p */
  return found >= p ? found - p : found;
}

static u64 times(u64 x, u64 y, u64 p, u64 inverse, u64 square) {
  return reduced(reduced(x, y, p, inverse), square, p, inverse);
}

void multiply(const u64 *x, const u64 *y, u64 *out, u64 count, const u64 *given) {
  const u64 p = given[0], inverse = given[1], square = given[2];
  for (u64 i = 0; i < count; i++) out[i] = times(x[i], y[i], p, inverse, square);
}

/* table[k][n] is the base to n · 256^k. */
void power(const u64 *table, const u64 *exponent, u64 *out, u64 count, const u64 *given) {
  const u64 p = given[0], inverse = given[1], square = given[2];
  for (u64 i = 0; i < count; i++) {
    u64 made = 1;
    for (int k = 0; k < 8; k++) {
      const u64 n = exponent[i] >> 8 * k & 255;
      if (n) made = times(made, table[256 * k + n], p, inverse, square);
    }
    out[i] = made;
  }
}

/* out[b][i][j] = Σ a[b][i][k] · b[b][j][k]; sizes: batches, rows, columns, depth. */
void products(const u64 *a, const u64 *b, u64 *out, const u64 *sizes, const u64 *given) {
  const u64 p = given[0], inverse = given[1], square = given[2];
  const u64 rows = sizes[1], columns = sizes[2], depth = sizes[3];
  for (u64 n = 0; n < sizes[0]; n++)
    for (u64 i = 0; i < rows; i++)
      for (u64 j = 0; j < columns; j++) {
        const u64 *x = a + (n * rows + i) * depth, *y = b + (n * columns + j) * depth;
        u64 sum = 0;
        for (u64 k = 0; k < depth; k++) {
          sum += reduced(x[k], y[k], p, inverse);
          if (sum >= p) sum -= p;
        }
        out[(n * rows + i) * columns + j] = reduced(sum, square, p, inverse);
      }
}
