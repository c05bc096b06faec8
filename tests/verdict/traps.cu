// Kernels that a judge may take for what they are not; traps.ptx is what nvcc 13 makes of them for
// sm_80. Launched with 32 threads each.
#define K extern "C" __global__ void
#define F const float *
#define I threadIdx.x

K copy(F x, float *y) { y[I] = x[I]; }
K twice(F x, float *y) { y[I] = x[I] + x[I]; }
K total(F x, float *y) { float s = 0; for (int i = 0; i < 8; i++) s += x[i]; if (I == 0) y[0] = s; }
K spread(F x, float *y) {
    float s = 0, t = 0;
    for (int i = 0; i < 8; i++) s += x[i];
    s /= 8;
    for (int i = 0; i < 8; i++) t += (x[i] - s) * (x[i] - s);
    if (I == 0) y[0] = t / 8;
}
K largest(F x, float *y) { float s = x[0]; for (int i = 1; i < 8; i++) s = fmaxf(s, x[i]); if (I == 0) y[0] = s; }

// x^(2^61), which is near x^p; 2^63 x(x + 1), which is 0 modulo 2^64; a root squared
K high_power(F x, float *y) { float a = x[I]; for (int j = 0; j < 61; j++) a *= a; y[I] = a; }
K even(F x, float *y) { float a = x[I]; y[I] = 9223372036854775808.f * a * (a + 1); }
K root_squared(F x, float *y) { float a = sqrtf(x[I]); y[I] = a * a; }
K cancelled(F x, float *y) { y[I] = (x[I] + 16777216.f) - 16777216.f; }

// numbers of 64 bits that are one double
K wide(F x, long long *y) { y[I] = (1ll << 53) + 1; }

// what is always 0 below a fraction, and what is never a number
K nothing_over_nothing(F x, float *y) {
    float a = fmaxf(x[I], 0.f), b = fmaxf(0.f, x[I]);
    y[I] = (a - b) / (a - b);
}
K no_number(F x, float *y) { float a = sqrtf(-1.f - x[I] * x[I]); y[I] = a / a; }

// writes that are alike for some inputs
K all_write(F x, float *y) { y[0] = fminf(x[I], -1e30f); }
K underflow(F x, float *y) { y[0] = x[I] * 1e-30f * 1e-30f; }

// what differs from run to run, and what depends on who came first
K clocked(F x, float *y) { long long s = clock64(); y[I] = x[I] * ((s & 1) == 0 ? 1.f : 2.f); }
K first(F x, int *c, float *y) { if (atomicAdd(c, 1) == 0) y[0] = x[I]; }
K chosen(F x, int *c, float *y) { int o = atomicExch(c, I + 1); if (I == 0) y[0] = x[0] * (o == 0 ? 1.f : 2.f); }

// bits of floats
K raised(F x, float *y) { y[I] = __int_as_float(__float_as_int(x[I]) + 0x10000); }
K marked(F x, float *y) { y[I] = __int_as_float((__float_as_int(x[I]) & 0xffff0000) | 1); }
K signless(F x, float *y) { y[I] = __int_as_float(__float_as_int(x[I]) & 0x7fffffff); }
K top_bits(F x, int *y) { atomicMax(y, __float_as_int(fabsf(x[I]))); }
K chopped(F x, int *y) { y[I] = (int)(x[I] / 1024.f); }

// decisions by data that are hardly ever seen
K rare(F x, float *y) { y[I] = x[I] > 1e30f ? 7.f : x[I]; }
K voted(F x, float *y) { y[I] = __ballot_sync(~0u, x[I] > 1e30f) ? 5.f : x[I]; }
K rare_lane(F x, float *y) { y[I] = __shfl_sync(~0u, x[I], x[I] > 1e30f ? 3 : I); }

// memory
K touched(float *x, float *y) { y[I] = x[I]; x[I] = fmaxf(x[I], -1e30f); }
K unread(F x, float *y) { __shared__ float s[64]; y[I] = x[I] + 0.f * s[I]; }
K own_output(F x, float *y) { y[I] = x[I] + 0.f * y[I]; }
K halves(const short *x, short *y) { y[2 * I] = x[2 * I]; }
__device__ int count;
K counting(F x, float *y) {
    int c = count;
    y[I] = c < 5 ? x[I] : 0.f;
    __syncthreads();
    if (I == 0) count = c + 1;
}
