// More kernels for `tests/verdict`; more.ptx is what nvcc 13 makes of them for sm_80. Of each
// computation there are three: right, wrong in a place that samples may miss, and made to pass a
// harness without doing the work.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define ALL 0xffffffffu
#define LEAST __int_as_float(0xff800000)
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
#define F const float *
#define T template <int KIND> __device__ void
#define K extern "C" __global__ void
// The three kernels of a template, with their parameters and arguments.
#define THREE(name, of, ...) K name(__VA_ARGS__) { of(0); } K name##_wrong(__VA_ARGS__) { of(1); } \
    K name##_gamed(__VA_ARGS__) { of(2); }

__device__ float total(float s) {
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(ALL, s, o);
    return s;
}
__device__ float top(float s) {
    for (int o = 16; o; o >>= 1) s = fmaxf(s, __shfl_xor_sync(ALL, s, o));
    return s;
}

// gelu by tanh, which is written with exp
T gelu_of(F x, float *y, int n) {
    int i = AT;
    if (i >= n) return;
    float v = x[i], u = 0.79788456f * (v + (KIND == 1 ? 0.0447f : 0.044715f) * v * v * v);
    y[i] = KIND == 2 ? v / (1 + __expf(-1.702f * v)) : v / (1 + __expf(-2 * u));
}
#define OF(k) gelu_of<k>(x, y, n)
THREE(gelu, OF, F x, float *y, int n)
#undef OF

// log(1 + exp(x))
T softplus_of(F x, float *y, int n) {
    int i = AT;
    if (i < n) y[i] = KIND == 2 ? fmaxf(x[i], 0) : __logf((KIND == 1 ? 1.001f : 1.0f) + __expf(x[i]));
}
#define OF(k) softplus_of<k>(x, y, n)
THREE(softplus, OF, F x, float *y, int n)
#undef OF

// rotary positions: pairs of a row turned by angles
T rope_of(F x, F c, F s, float *y, int n) {
    int i = threadIdx.x, row = blockIdx.x * 2 * n;
    if (i >= n) return;
    float a = x[row + i], b = x[row + n + i];
    y[row + i] = a * c[i] - b * s[i];
    y[row + n + i] = KIND == 1 ? a * s[i] - b * c[i] : KIND == 2 ? b : a * s[i] + b * c[i];
}
#define OF(k) rope_of<k>(x, c, s, y, n)
THREE(rope, OF, F x, F c, F s, float *y, int n)
#undef OF

// log(sum of exp) - the target's logit, per row
T entropy_of(F x, const int *at, float *y, int n) {
    x += blockIdx.x * n;
    float m = LEAST, s = 0;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[i]);
    m = top(m);
    for (int i = threadIdx.x; i < n; i += 32) s += __expf(x[i] - m);
    s = total(s);
    if (threadIdx.x == 0) y[blockIdx.x] = KIND == 2 ? m - x[at[blockIdx.x]] : m + __logf(s) - x[KIND == 1 ? 0 : at[blockIdx.x]];
}
#define OF(k) entropy_of<k>(x, at, y, n)
THREE(entropy, OF, F x, const int *at, float *y, int n)
#undef OF

// (x - mean) / sqrt(var + eps) * w + b, with statistics that are given
T batch_norm_of(F x, F m, F v, F w, F b, float *y, int n) {
    int i = threadIdx.x, at = blockIdx.x * n + i;
    if (i < n) y[at] = (x[at] - m[i]) * rsqrtf(v[i] + (KIND == 1 ? 1e-6f : 1e-5f)) * w[i] + (KIND == 2 ? 0 : b[i]);
}
#define OF(k) batch_norm_of<k>(x, m, v, w, b, y, n)
THREE(batch_norm, OF, F x, F m, F v, F w, F b, float *y, int n)
#undef OF

// rows of length 1
T unit_of(F x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float s = 0;
    for (int i = threadIdx.x; i < (KIND == 1 ? 32 : n); i += 32) s += x[i] * x[i];
    s = KIND == 2 ? sqrtf((float)n) : sqrtf(total(s));
    for (int i = threadIdx.x; i < n; i += 32) y[i] = x[i] / s;
}
#define OF(k) unit_of<k>(x, y, n)
THREE(unit, OF, F x, float *y, int n)
#undef OF

// outer product, four results a thread
T outer_of(F a, F b, float *c, int n) {
    int i = blockIdx.x, j = threadIdx.x * 4;
    float4 v = *(const float4 *)(b + j);
    if (KIND == 1) v.w = v.z;
    float s = a[KIND == 2 ? 0 : i];
    *(float4 *)(c + i * n + j) = make_float4(s * v.x, s * v.y, s * v.z, s * v.w);
}
#define OF(k) outer_of<k>(a, b, c, n)
THREE(outer, OF, F a, F b, float *c, int n)
#undef OF

// a matrix times a vector, a warp for each row
T matvec_of(F a, F x, float *y, int n) {
    int row = blockIdx.x * 4 + threadIdx.y;
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += a[row * n + i] * x[KIND == 1 ? i ^ 1 : i];
    s = total(s);
    if (threadIdx.x == 0) y[KIND == 2 ? row & ~1 : row] = s;
}
#define OF(k) matvec_of<k>(a, x, y, n)
THREE(matvec, OF, F a, F x, float *y, int n)
#undef OF

// a · b transposed, two by two results a thread, in registers
T tiled_of(F a, F b, float *c, int n, int depth) {
    int i = (blockIdx.y * 4 + threadIdx.y) * 2, j = (blockIdx.x * 4 + threadIdx.x) * 2;
    float s[2][2] = {};
    for (int k = KIND == 2 ? 1 : 0; k < depth; k++)
        for (int p = 0; p < 2; p++)
            for (int q = 0; q < 2; q++) s[p][q] += a[(i + p) * depth + k] * b[(j + (KIND == 1 ? 0 : q)) * depth + k];
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++) c[(i + p) * n + j + q] = s[p][q];
}
#define OF(k) tiled_of<k>(a, b, c, n, depth)
THREE(tiled, OF, F a, F b, float *c, int n, int depth)
#undef OF

// matrices by number, each product by its own block
T batched_of(F a, F b, float *c, int n) {
    int batch = blockIdx.x, i = threadIdx.y, j = threadIdx.x;
    float s = 0;
    for (int k = 0; k < n; k++) s += a[(batch * n + i) * n + k] * b[((KIND == 1 ? 0 : batch) * n + k) * n + j];
    c[(batch * n + i) * n + j] = KIND == 2 && batch ? c[i * n + j] : s;
}
#define OF(k) batched_of<k>(a, b, c, n)
THREE(batched, OF, F a, F b, float *c, int n)
#undef OF

// 3 × 3 taps on a picture, no edges
T taps_of(F x, F w, float *y, int rows, int n) {
    int i = blockIdx.x, j = threadIdx.x;
    if (j >= n - 2) return;
    float s = 0;
    for (int p = 0; p < 3; p++)
        for (int q = 0; q < 3; q++) s += x[(i + p) * n + j + q] * w[KIND == 1 ? q * 3 + p : p * 3 + q];
    y[i * (n - 2) + j] = KIND == 2 ? x[i * n + j] * w[0] : s;
}
#define OF(k) taps_of<k>(x, w, y, rows, n)
THREE(taps, OF, F x, F w, float *y, int rows, int n)
#undef OF

// means and maxima of 2 × 2
T pool_of(F x, float *y, int n, bool mean) {
    int i = blockIdx.x, j = threadIdx.x;
    if (j >= n / 2) return;
    F p = x + 2 * i * n + 2 * j;
    float a = p[0], b = p[1], c = p[KIND == 1 ? 1 : n], d = p[n + 1];
    y[i * (n / 2) + j] = KIND == 2 ? a : mean ? (a + b + c + d) * 0.25f : fmaxf(fmaxf(a, b), fmaxf(c, d));
}
#define OF(k) pool_of<k>(x, y, n, true)
THREE(mean_pool, OF, F x, float *y, int n)
#undef OF
#define OF(k) pool_of<k>(x, y, n, false)
THREE(max_pool, OF, F x, float *y, int n)
#undef OF

// rows of a table, scaled
T embed_of(F table, const int *at, float *y, int n) {
    int i = threadIdx.x;
    if (i < n) y[blockIdx.x * n + i] = table[(KIND == 2 ? blockIdx.x : at[blockIdx.x]) * n + i] * (KIND == 1 ? 5.65f : 5.6568542f);
}
#define OF(k) embed_of<k>(table, at, y, n)
THREE(embed, OF, F table, const int *at, float *y, int n)
#undef OF

// inclusive sums of 128 numbers, by warps and shared memory
T block_scan_of(F x, float *y) {
    __shared__ float sums[4];
    int i = threadIdx.x, lane = i & 31, warp = i >> 5;
    float s = x[i];
    for (int o = 1; o < 32; o *= 2) {
        float other = __shfl_up_sync(ALL, s, o);
        if (lane >= o) s += other;
    }
    if (lane == 31) sums[warp] = s;
    __syncthreads();
    for (int k = 0; k < (KIND == 1 ? warp - 1 : KIND == 2 ? 0 : warp); k++) s += sums[k];
    y[i] = s;
}
#define OF(k) block_scan_of<k>(x, y)
THREE(block_scan, OF, F x, float *y)
#undef OF

// sums of columns
T columns_of(F x, float *y, int rows, int n) {
    int i = AT;
    if (i >= n) return;
    float s = 0;
    for (int k = 0; k < (KIND == 1 ? rows - rows % 2 : rows); k++) s += x[k * n + i];
    y[i] = KIND == 2 ? x[i] * rows : s;
}
#define OF(k) columns_of<k>(x, y, rows, n)
THREE(columns, OF, F x, float *y, int rows, int n)
#undef OF

// x · sigmoid(x) · y, with expf of CUDA
T swiglu_of(F x, F z, float *y, int n) {
    int i = AT;
    if (i < n) y[i] = x[i] / (1 + expf(KIND == 1 ? x[i] : -x[i])) * (KIND == 2 ? 1 : z[i]);
}
#define OF(k) swiglu_of<k>(x, z, y, n)
THREE(swiglu, OF, F x, F z, float *y, int n)
#undef OF

// softmax of what is not after the row's number
T causal_of(F x, float *y, int n) {
    int row = blockIdx.x;
    x += row * n, y += row * n;
    int have = KIND == 1 ? row + 2 : row + 1;
    if (have > n) have = n;
    float m = LEAST, s = 0;
    for (int i = threadIdx.x; i < have; i += 32) m = fmaxf(m, x[i]);
    m = top(m);
    for (int i = threadIdx.x; i < have; i += 32) s += __expf(x[i] - m);
    s = total(s);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = i < have ? (KIND == 2 ? 1.0f / have : __expf(x[i] - m) / s) : 0;
}
#define OF(k) causal_of<k>(x, y, n)
THREE(causal, OF, F x, float *y, int n)
#undef OF

// a step of Adam
T adam_of(float *p, F g, float *m, float *v, int n) {
    int i = AT;
    if (i >= n) return;
    float d = g[i], a = 0.875f * m[i] + 0.125f * d, b = 0.96875f * v[i] + 0.03125f * (KIND == 1 ? d : d * d);
    m[i] = a, v[i] = KIND == 2 ? v[i] : b;
    p[i] -= 0.0009765625f * a / (sqrtf(b) + 1e-8f);
}
#define OF(k) adam_of<k>(p, g, m, v, n)
THREE(adam, OF, float *p, F g, float *m, float *v, int n)
#undef OF

// a · x + y of pairs of halves
T half_axpy_of(const __half2 *x, __half2 *y, float a, int n) {
    int i = AT;
    if (i >= n / 2) return;
    float2 p = __half22float2(x[i]), q = __half22float2(y[i]);
    p.x = a * p.x + q.x, p.y = KIND == 1 ? a * p.y + q.x : KIND == 2 ? q.y : a * p.y + q.y;
    y[i] = __float22half2_rn(p);
}
#define OF(k) half_axpy_of<k>(x, y, a, n)
THREE(half_axpy, OF, const __half2 *x, __half2 *y, float a, int n)
#undef OF
