// Arithmetic on 128 bits, which the compiler makes of carries: quotients and remainders.
typedef unsigned __int128 wide;

extern "C" __global__ void divide128(const unsigned long long *a, unsigned long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    wide x = ((wide)a[4 * i + 1] << 64) | a[4 * i], y = ((wide)a[4 * i + 3] << 64) | a[4 * i + 2];
    wide results[4] = {x / y, x % y, (wide)((__int128)x / (__int128)y), (wide)((__int128)x % (__int128)y)};
    for (int j = 0; j < 4; ++j) {
        out[8 * i + 2 * j] = (unsigned long long)results[j];
        out[8 * i + 2 * j + 1] = (unsigned long long)(results[j] >> 64);
    }
}
