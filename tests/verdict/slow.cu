// Kernels for `tests/verdict/test_hindered.py`; slow.ptx is what nvcc 13 makes of them for sm_80.
// Of each computation there are two: one that something holds back, and one with the remedy.
#include <cuda_bf16.h>
#define K extern "C" __global__ void
#define A const float *__restrict__ x, float *__restrict__ y, int n
#define T threadIdx.x
#define B blockIdx.x

// transposed tiles of 32 × 32, by way of shared memory: 32 lanes in one bank
template <int ROW> __device__ void turned(A) {
    __shared__ float s[32 * ROW];
    for (int r = threadIdx.y; r < 32; r += 8) s[r * ROW + T] = x[B * 1024 + r * 32 + T];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8) y[B * 1024 + r * 32 + T] = s[T * ROW + r];
}
K column(A) { turned<32>(x, y, n); }
K column_fast(A) { turned<33>(x, y, n); }

// sums of neighbours that lie EACH apart in shared memory: several lanes in one bank
template <int EACH, int PAD> __device__ void combed(A) {
    __shared__ float s[EACH * 128 + PAD * EACH * 4];
    int to = T + PAD * (T / 32), from = T * EACH + PAD * (T * EACH / 32);
    for (int k = 0; k < EACH; k++) s[to + k * (128 + PAD * 4)] = x[(B * EACH + k) * 128 + T];
    __syncthreads();
    float v = 0;
    for (int k = 0; k < EACH; k++) v += s[from + k];
    y[B * 128 + T] = v;
}
K comb(A) { combed<8, 0>(x, y, n); }
K comb_fast(A) { combed<8, 1>(x, y, n); }
K wide_comb(A) { combed<32, 0>(x, y, n); }
K wide_comb_fast(A) { combed<32, 1>(x, y, n); }

// a transposition of n × n: lanes write a row apart
K naive(A) {
    int c = B * 32 + T, r = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[c * n + r + k] = x[(r + k) * n + c];
}
K naive_fast(A) {
    __shared__ float s[32][33];
    int c = B * 32 + T, r = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) s[threadIdx.y + k][T] = x[(r + k) * n + c];
    __syncthreads();
    c = blockIdx.y * 32 + T, r = B * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[(r + k) * n + c] = s[T][threadIdx.y + k];
}

// sums of rows of n, a thread for each row: lanes read a row apart
K rows(A) {
    float s = 0;
    for (int k = 0; k < n; k++) s += x[(B * 128 + T) * n + k];
    y[B * 128 + T] = s;
}
K rows_fast(A) {
    for (int r = T / 32; r < 128; r += 4) {
        float s = 0;
        for (int k = T % 32; k < n; k += 32) s += x[(B * 128 + r) * n + k];
        for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
        if (T % 32 == 0) y[B * 128 + r] = s;
    }
}

// every eighth element: the rest of each sector is thrown away; taken by those who need it together
K field(A) { y[B * 128 + T] = x[(B * 128 + T) * 8] + x[(B * 128 + T) * 8 + 1024 * n]; }
K field_fast(A) { y[B * 128 + T] = x[B * 128 + T] + x[B * 128 + T + 128 * n]; }

// four elements of a thread, one after another
K scalars(A) {
    int i = (B * 128 + T) * 4;
    float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
    y[i] = 2 * a, y[i + 1] = 2 * b, y[i + 2] = 2 * c, y[i + 3] = 2 * d;
}
K scalars_fast(A) {
    int i = B * 128 + T;
    float4 v = ((const float4 *)x)[i];
    ((float4 *)y)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

// numbers of sixteen bits, two of a thread
K halves(const __nv_bfloat16 *x, __nv_bfloat16 *y, int n) {
    int i = (B * 128 + T) * 2;
    __nv_bfloat16 a = x[i], b = x[i + 1];
    y[i] = __hmul(a, a), y[i + 1] = __hmul(b, b);
}
K halves_fast(const __nv_bfloat16 *x, __nv_bfloat16 *y, int n) {
    int i = B * 128 + T;
    __nv_bfloat162 v = ((const __nv_bfloat162 *)x)[i];
    ((__nv_bfloat162 *)y)[i] = __hmul2(v, v);
}

// each other lane has much to do: a warp waits for its longest lane
__device__ float long_way(float v, int n) {
    for (int k = 0; k < n; k++) v = v * v - 0.5f;
    return v;
}
K tails(A) {
    int i = B * 128 + T;
    float v = x[i];
    if (i % 2 == 0) v = long_way(v, n);
    else v = long_way(-v, n + 1) + 1;
    y[i] = v;
}
K tails_fast(A) {
    int warp = T / 32, i = B * 128 + warp / 2 * 64 + T % 32 * 2 + warp % 2;
    float v = x[i];
    if (warp % 2 == 0) v = long_way(v, n);
    else v = long_way(-v, n + 1) + 1;
    y[i] = v;
}

// a block of one warp that meets at barriers of the block, and takes more shared memory than it uses
template <int ROOM> __device__ void crowded(A) {
    __shared__ float s[ROOM];
    float v = 0;
    for (int k = 0; k < n; k++) {
        s[T] = x[(B * n + k) * 64 + T];
        __syncthreads();
        v += s[(T + 1) % 64];
        __syncthreads();
    }
    if (T == 63) s[ROOM - 1] = v;
    y[B * 64 + T] = v;
}
K crowd(A) { crowded<12000>(x, y, n); }
K crowd_fast(A) { crowded<64>(x, y, n); }
