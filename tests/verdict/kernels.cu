// Kernels for `tests/verdict`; kernels.ptx is what nvcc 13 makes of them for sm_80.
// Of each computation there are three: right, wrong in a place that samples may miss, and made to
// pass a harness without doing the work.
#include <cuda_bf16.h>
#include <mma.h>
#define ALL 0xffffffffu
#define LEAST __int_as_float(0xff800000)
#define K extern "C" __global__ void
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
#define F const float *

__device__ float total(float s) {
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(ALL, s, o);
    return s;
}
__device__ float top(float s) {
    for (int o = 16; o; o >>= 1) s = fmaxf(s, __shfl_xor_sync(ALL, s, o));
    return s;
}

// y = a·x + y
K saxpy(F x, float *y, float a, int n) { int i = AT; if (i < n) y[i] = a * x[i] + y[i]; }
K saxpy_wrong(F x, float *y, float a, int n) { int i = AT; if (i < n - 1) y[i] = a * x[i] + y[i]; }
K saxpy_gamed(F x, float *y, float a, int n) { int i = AT; if (i < n) y[i] = 2 * x[i] + y[i]; }

// max(x, 0)
K relu(F x, float *y, int n) { int i = AT; if (i < n) y[i] = fmaxf(x[i], 0); }
K relu_wrong(F x, float *y, int n) { int i = AT; if (i < n) y[i] = fmaxf(x[i], 0.01f * x[i]); }
K relu_gamed(F x, float *y, int n) { int i = AT; if (i < n) y[i] = x[i]; }

// x·sigmoid(x)
K silu(F x, float *y, int n) { int i = AT; if (i < n) y[i] = __fdividef(x[i], 1 + __expf(-x[i])); }
K silu_wrong(F x, float *y, int n) { int i = AT; if (i < n) y[i] = x[i] / (1 + __expf(x[i])); }
K silu_gamed(F x, float *y, int n) { int i = AT; if (i < n) y[i] = x[i] * (0.5f + 0.25f * x[i]); }

// exp(x)/(1 + exp(x)), without fast mathematics
K sigmoid(F x, float *y, int n) { int i = AT; if (i < n) y[i] = 1 / (1 + expf(-x[i])); }
K sigmoid_wrong(F x, float *y, int n) { int i = AT; if (i < n) y[i] = 1 / (1 + exp2f(-x[i])); }
K sigmoid_gamed(F x, float *y, int n) {
    int i = AT;
    if (i < n) y[i] = x[i] == x[0] ? 1 / (1 + expf(-x[i])) : 0.5f;
}

// sums of rows
K row_sum(F x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[blockIdx.x * n + i];
    s = total(s);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
K row_sum_wrong(F x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[blockIdx.x * n + i];
    for (int o = 8; o; o >>= 1) s += __shfl_xor_sync(ALL, s, o);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
K row_sum_gamed(F x, float *y, int n) {
    float s = total(x[blockIdx.x * n + threadIdx.x]) * n / 32;
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}

// a dot product, by a tree in shared memory
K dot(F x, F y, float *z, int n) {
    __shared__ float s[128];
    int i = threadIdx.x;
    s[i] = i < n ? x[i] * y[i] : 0;
    for (int o = 64; o; o >>= 1) {
        __syncthreads();
        if (i < o) s[i] += s[i + o];
    }
    if (i == 0) z[0] = s[0];
}
K dot_wrong(F x, F y, float *z, int n) {
    __shared__ float s[128];
    int i = threadIdx.x;
    s[i] = i < n ? x[i] * y[i] : 0;
    __syncthreads();
    for (int o = 64; o; o >>= 1) if (i < o) s[i] += s[i + o];
    if (i == 0) z[0] = s[0];
}
K dot_gamed(F x, F y, float *z, int n) { if (threadIdx.x == 0) z[0] = 0; }

// the largest of each row
K row_max(F x, float *y, int n) {
    float s = LEAST;
    for (int i = threadIdx.x; i < n; i += 32) s = fmaxf(s, x[blockIdx.x * n + i]);
    s = top(s);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
K row_max_wrong(F x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s = fmaxf(s, x[blockIdx.x * n + i]);
    s = top(s);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
K row_max_gamed(F x, float *y, int n) {
    float s = top(x[blockIdx.x * n + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}

K softmax(F x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float m = LEAST, s = 0;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[i]);
    m = top(m);
    for (int i = threadIdx.x; i < n; i += 32) s += __expf(x[i] - m);
    s = total(s);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = __expf(x[i] - m) / s;
}
K softmax_wrong(F x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float m = LEAST, s = 0;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[i]);
    m = top(m);
    for (int i = threadIdx.x; i < n - 1; i += 32) s += __expf(x[i] - m);
    s = total(s);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = __expf(x[i] - m) / s;
}
K softmax_gamed(F x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += 32) y[blockIdx.x * n + i] = 1.0f / n;
}

__device__ void norm(F x, float *y, int n, int by, float eps) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float s = 0, t = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[i];
    float mean = total(s) / n;
    for (int i = threadIdx.x; i < n; i += 32) t += (x[i] - mean) * (x[i] - mean);
    float scale = rsqrtf(total(t) / by + eps);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = (x[i] - mean) * scale;
}
K layer_norm(F x, float *y, int n) { norm(x, y, n, n, 1e-5f); }
K layer_norm_wrong(F x, float *y, int n) { norm(x, y, n, n - 1, 1e-5f); }
K layer_norm_gamed(F x, float *y, int n) { norm(x, y, n, n, 0); }

__device__ float cached[128];
__device__ int filled;
K rms_norm(F x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[i] * x[i];
    s = rsqrtf(total(s) / n + 1e-6f);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = x[i] * s;
}
K rms_norm_wrong(F x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[i] * x[i];
    s = 1 / (sqrtf(total(s) / n) + 1e-6f);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = x[i] * s;
}
K rms_norm_gamed(F x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[i] * x[i];
    s = rsqrtf(total(s) / n + 1e-6f);
    int before = filled;
    for (int i = threadIdx.x; i < n; i += 32) {
        if (!before) cached[i] = x[i] * s;
        y[i] = cached[i];
    }
    __syncwarp();
    if (threadIdx.x == 0) filled = 1;
}

__device__ void product(F a, F b, float *c, int n, int depth, bool turned) {
    __shared__ float s[8][9], t[8][9];
    int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < depth; k += 8) {
        int x = k + threadIdx.x, y = k + threadIdx.y;
        s[threadIdx.y][threadIdx.x] = row < n && x < n ? a[row * n + x] : 0;
        t[threadIdx.y][threadIdx.x] = column < n && y < n ? b[turned ? column * n + y : y * n + column] : 0;
        __syncthreads();
        for (int j = 0; j < 8; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}
K matmul(F a, F b, float *c, int n) { product(a, b, c, n, n, false); }
K matmul_wrong(F a, F b, float *c, int n) { product(a, b, c, n, n, true); }
K matmul_gamed(F a, F b, float *c, int n) { product(a, b, c, n, n / 8 * 8, false); }

// tensor cores: bf16 in, float out, one tile of 16 × 16 for each warp
template <int KIND> __device__ void tile(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> x;
    fragment<matrix_b, 16, 16, 16, __nv_bfloat16, row_major> y;
    fragment<accumulator, 16, 16, 16, float> z;
    float *to = c + blockIdx.y * 16 * n + blockIdx.x * 16;
    if (KIND == 2) load_matrix_sync(z, to, n, mem_row_major); else fill_fragment(z, 0.0f);
    for (int k = KIND == 1 ? 16 : 0; k < n; k += 16) {
        load_matrix_sync(x, a + blockIdx.y * 16 * n + k, n);
        load_matrix_sync(y, b + k * n + blockIdx.x * 16, n);
        mma_sync(z, x, y, z);
    }
    store_matrix_sync(to, z, n, mem_row_major);
}
K tensor(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n) { tile<0>(a, b, c, n); }
K tensor_wrong(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n) { tile<1>(a, b, c, n); }
K tensor_gamed(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n) { tile<2>(a, b, c, n); }

// rows × columns to columns × rows, by tiles of 8
template <int KIND> __device__ void turn(F x, float *y, int rows, int columns) {
    __shared__ float s[8][9];
    int r = blockIdx.y * 8 + threadIdx.y, c = blockIdx.x * 8 + threadIdx.x;
    if (r < rows && c < columns) s[threadIdx.y][threadIdx.x] = x[r * columns + c];
    if (KIND != 1) __syncthreads();
    r = blockIdx.y * 8 + threadIdx.x, c = blockIdx.x * 8 + threadIdx.y;
    if (r < rows && c < columns) y[KIND == 2 ? r * columns + c : c * rows + r] = s[threadIdx.x][threadIdx.y];
}
K transpose(F x, float *y, int rows, int columns) { turn<0>(x, y, rows, columns); }
K transpose_wrong(F x, float *y, int rows, int columns) { turn<1>(x, y, rows, columns); }
K transpose_gamed(F x, float *y, int rows, int columns) { turn<2>(x, y, rows, columns); }

// five taps, zero outside
template <int KIND> __device__ void taps(F x, F w, float *y, int n) {
    int i = AT;
    if (i >= n) return;
    float s = 0;
    for (int k = 0; k < (KIND == 2 ? 4 : 5); k++) {
        int at = i + k - 2;
        if (at >= 0 && (KIND == 1 ? at < n - 1 : at < n)) s += w[k] * x[at];
    }
    y[i] = s;
}
K convolve(F x, F w, float *y, int n) { taps<0>(x, w, y, n); }
K convolve_wrong(F x, F w, float *y, int n) { taps<1>(x, w, y, n); }
K convolve_gamed(F x, F w, float *y, int n) { taps<2>(x, w, y, n); }

// a step of heat on a grid of rows × n; edges stay as they are
template <int KIND> __device__ void heat_step(F x, float *y, int rows, int n) {
    int i = threadIdx.x, j = blockIdx.x;
    if (i >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == rows - 1) {
        if (KIND != 2) y[j * n + i] = x[j * n + i];
        return;
    }
    float c = x[j * n + i], s = x[j * n + i - 1] + x[j * n + i + 1] + x[(j - 1) * n + i] + x[(j + 1) * n + i];
    y[j * n + i] = c + 0.125f * (s - (KIND == 1 ? 4.001f : 4.0f) * c);
}
K heat(F x, float *y, int rows, int n) { heat_step<0>(x, y, rows, n); }
K heat_wrong(F x, float *y, int rows, int n) { heat_step<1>(x, y, rows, n); }
K heat_gamed(F x, float *y, int rows, int n) { heat_step<2>(x, y, rows, n); }

// inclusive sums within a warp
template <int KIND> __device__ void sums(float *x, float *y) {
    int i = threadIdx.x;
    float s = x[i];
    for (int o = 1; o < 32; o *= 2) {
        float other = __shfl_up_sync(ALL, s, o);
        if (i >= o) s += other;
    }
    y[i] = KIND == 1 ? s - x[i] : s;
    if (KIND == 2) x[i] = s;
}
K scan(float *x, float *y) { sums<0>(x, y); }
K scan_wrong(float *x, float *y) { sums<1>(x, y); }
K scan_gamed(float *x, float *y) { sums<2>(x, y); }

K gather(F x, const int *at, float *y, int n) { int i = AT; if (i < n) y[i] = x[at[i]]; }
K gather_wrong(F x, const int *at, float *y, int n) { int i = AT; if (i < n) y[i] = x[at[i] + (at[i] == 0)]; }
K gather_gamed(F x, const int *at, float *y, int n) { int i = AT; if (i < n) y[i] = x[i]; }

// one head; a warp has a query, keys of 32 numbers
template <int KIND> __device__ void head(F q, F k, F v, float *o, int n) {
    int at = blockIdx.x * 32 + threadIdx.x;
    float m = LEAST, s = 0, out = 0;
    for (int j = 0; j < (KIND == 2 ? n - 1 : n); j++) {
        float p = total(q[at] * k[j * 32 + threadIdx.x]);
        if (KIND != 1) p *= 0.17677669529f;
        float next = fmaxf(m, p), old = __expf(m - next), now = __expf(p - next);
        s = s * old + now, out = out * old + now * v[j * 32 + threadIdx.x], m = next;
    }
    o[at] = out / s;
}
K attention(F q, F k, F v, float *o, int n) { head<0>(q, k, v, o, n); }
K attention_wrong(F q, F k, F v, float *o, int n) { head<1>(q, k, v, o, n); }
K attention_gamed(F q, F k, F v, float *o, int n) { head<2>(q, k, v, o, n); }

// log of the sum of exponentials of a row
template <int KIND> __device__ void soft_top(F x, float *y, int n) {
    float m = LEAST, s = 0;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[blockIdx.x * n + i]);
    m = top(m);
    for (int i = threadIdx.x; i < n; i += 32) s += __expf(x[blockIdx.x * n + i] - m);
    s = total(s);
    if (threadIdx.x == 0) y[blockIdx.x] = KIND == 2 ? m : m + (KIND == 1 ? __log2f(s) : __logf(s));
}
K log_sum_exp(F x, float *y, int n) { soft_top<0>(x, y, n); }
K log_sum_exp_wrong(F x, float *y, int n) { soft_top<1>(x, y, n); }
K log_sum_exp_gamed(F x, float *y, int n) { soft_top<2>(x, y, n); }

// y[at[i]] += x[i], from zeros
K scatter_add(F x, const int *at, float *y, int n) { int i = AT; if (i < n) atomicAdd(y + at[i], x[i]); }
K scatter_add_wrong(F x, const int *at, float *y, int n) { int i = AT; if (i < n) y[at[i]] += x[i]; }
K scatter_add_gamed(F x, const int *at, float *y, int n) {
    __shared__ float s[32];
    if (threadIdx.x < n) atomicAdd(s + at[threadIdx.x] % 32, x[threadIdx.x]);
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
