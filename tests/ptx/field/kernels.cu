// Kernels for `tests/ptx/field`; kernels.ptx is what nvcc 13 makes of them for sm_90.
// Threads of a block or of a warp share a row or a tile; n need not be a multiple of either.
#define ALL 0xffffffffu
#define LEAST __int_as_float(0xff800000)

extern "C" __global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float s[16][17], t[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        int x = k + threadIdx.x, y = k + threadIdx.y;
        s[threadIdx.y][threadIdx.x] = row < n && x < n ? a[row * n + x] : 0;
        t[threadIdx.y][threadIdx.x] = column < n && y < n ? b[y * n + column] : 0;
        __syncthreads();
        for (int j = 0; j < 16; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

extern "C" __global__ void softmax(const float *x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float top = LEAST, sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        float next = fmaxf(top, x[i]);
        sum = sum * __expf(top - next) + __expf(x[i] - next);
        top = next;
    }
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(ALL, top, o), next = fmaxf(top, other);
        sum = sum * __expf(top - next) + __shfl_xor_sync(ALL, sum, o) * __expf(other - next);
        top = next;
    }
    for (int i = threadIdx.x; i < n; i += 32) y[i] = __expf(x[i] - top) / sum;
}

extern "C" __global__ void attention(
    const float *q, const float *k, const float *v, float *o, int n, float scale) {
    int at = blockIdx.x * 32 + threadIdx.x;
    float top = LEAST, sum = 0, out = 0;
    for (int j = 0; j < n; j++) {
        float s = q[at] * k[j * 32 + threadIdx.x];
        for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(ALL, s, d);
        s *= scale;
        float next = fmaxf(top, s), old = __expf(top - next), p = __expf(s - next);
        sum = sum * old + p, out = out * old + p * v[j * 32 + threadIdx.x], top = next;
    }
    o[at] = out / sum;
}

extern "C" __global__ void row_norm(const float *x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float s = 0, t = 0;
    for (int i = threadIdx.x; i < n; i += 32) s += x[i], t += x[i] * x[i];
    for (int o = 16; o; o >>= 1)
        s += __shfl_xor_sync(ALL, s, o), t += __shfl_xor_sync(ALL, t, o);
    float mean = s / n, scale = rsqrtf(t / n - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = (x[i] - mean) * scale;
}

extern "C" __global__ void largest(const float *x, float *y, int n) {
    x += blockIdx.x * n;
    float top = LEAST;
    for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, x[i]);
    for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(ALL, top, o));
    if (threadIdx.x == 0) y[blockIdx.x] = top;
}
