// Kernels for `tests/verdict/test_precision.py`; precision.ptx is what nvcc 13 makes of them for
// sm_80. Each is there with sums in float, and with sums that somewhere pass through bf16.
#include <cuda_bf16.h>
#define ALL 0xffffffffu
#define LEAST __int_as_float(0xff800000)
#define ROW (blockIdx.x * n)
#define LANE threadIdx.x
#define F const float *
#define T template <class A> __device__ void
#define K extern "C" __global__ void
#define TWO(name, of, ...) K name(__VA_ARGS__) { of(float); } K name##_bf16(__VA_ARGS__) { of(bf16); }
typedef __nv_bfloat16 bf16;

template <class A> __device__ float total(A s) {
    for (int o = 16; o; o >>= 1) s = A(float(s) + float(__shfl_xor_sync(ALL, s, o)));
    return float(s);
}

// sums of rows, converted after each addition
T row_sum_(F x, float *y, int n) {
    A s = A(0.f);
    for (int i = LANE; i < n; i += 32) s = A(float(s) + x[ROW + i]);
    float all = total<float>(float(s));
    if (LANE == 0) y[blockIdx.x] = all;
}
#define OF(A) row_sum_<A>(x, y, n)
TWO(row_sum, OF, F x, float *y, int n)
#undef OF

// a product of vectors of bf16, by fma of the type
T dot_(const bf16 *x, const bf16 *y, float *z, int n) {
    A s = A(0.f);
    for (int i = LANE; i < n; i += 32) {
        if constexpr (sizeof(A) == 2) s = __hfma(x[i], y[i], s);
        else s = fmaf(float(x[i]), float(y[i]), s);
    }
    float all = total<float>(float(s));
    if (LANE == 0) z[0] = all;
}
#define OF(A) dot_<A>(x, y, z, n)
TWO(dot, OF, const bf16 *x, const bf16 *y, float *z, int n)
#undef OF

// a tile of eight by eight, with the sum of each tile of k added to what is held
T matmul_(F a, F b, float *c, int n) {
    __shared__ float u[8][8], v[8][8];
    int x = threadIdx.x, y = threadIdx.y;
    A held = A(0.f);
    for (int k = 0; k < n; k += 8) {
        u[y][x] = a[y * n + k + x];
        v[y][x] = b[(k + y) * 8 + x];
        __syncthreads();
        float s = 0;
        for (int i = 0; i < 8; i++) s = fmaf(u[y][i], v[i][x], s);
        held = A(float(held) + s);
        __syncthreads();
    }
    c[y * 8 + x] = float(held);
}
#define OF(A) matmul_<A>(a, b, c, n)
TWO(matmul, OF, F a, F b, float *c, int n)
#undef OF

// softmax, with the denominator summed by lanes
T softmax_(F x, float *y, int n) {
    float m = LEAST;
    for (int i = LANE; i < n; i += 32) m = fmaxf(m, x[ROW + i]);
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(ALL, m, o));
    A s = A(0.f);
    for (int i = LANE; i < n; i += 32) s = A(float(s) + exp2f(x[ROW + i] - m));
    float all = total<A>(s);
    for (int i = LANE; i < n; i += 32) y[ROW + i] = exp2f(x[ROW + i] - m) / all;
}
#define OF(A) softmax_<A>(x, y, n)
TWO(softmax, OF, F x, float *y, int n)
#undef OF

// layer norm of rows of 64, with the variance summed
T layer_(F x, float *y) {
    int n = 64;
    float u = x[ROW + LANE], v = x[ROW + LANE + 32];
    float mean = total<float>(u + v) * 0.015625f;
    u -= mean, v -= mean;
    float var = total<A>(A(u * u + v * v)) * 0.015625f;
    float scale = rsqrtf(var + 1e-5f);
    y[ROW + LANE] = u * scale;
    y[ROW + LANE + 32] = v * scale;
}
#define OF(A) layer_<A>(x, y)
TWO(layer, OF, F x, float *y)
#undef OF

// five taps along a line
T taps_(F x, F w, float *y, int n) {
    A s = A(0.f);
    for (int k = 0; k < 5; k++) {
        if constexpr (sizeof(A) == 2) s = __hadd(s, A(w[k] * x[LANE + k]));
        else s = fmaf(w[k], x[LANE + k], s);
    }
    if (LANE < n) y[LANE] = float(s);
}
#define OF(A) taps_<A>(x, w, y, n)
TWO(taps, OF, F x, F w, float *y, int n)
#undef OF

// sums of all before, by shuffles of what is held
T scan_(F x, float *y) {
    A s = A(x[LANE]);
    for (int o = 1; o < 32; o <<= 1) {
        A left = __shfl_up_sync(ALL, s, o);
        if (LANE >= o) s = A(float(s) + float(left));
    }
    y[LANE] = float(s);
}
#define OF(A) scan_<A>(x, y)
TWO(scan, OF, F x, float *y)
#undef OF

// one query, n keys of one value each, by the online softmax: what is held is scaled and added to
T online_(F s, F v, float *o, int n) {
    float m = LEAST, l = 0;
    A held = A(0.f);
    for (int i = 0; i < n; i++) {
        float x = s[i * 32 + LANE], top = fmaxf(m, x);
        float old = exp2f(m - top), now = exp2f(x - top);
        held = A(float(held) * old + now * v[i * 32 + LANE]);
        l = l * old + now;
        m = top;
    }
    o[LANE] = float(held) / l;
}
#define OF(A) online_<A>(s, v, o, n)
TWO(online, OF, F s, F v, float *o, int n)
#undef OF

// a tree in shared memory, which holds sums
T tree_(F x, float *y) {
    __shared__ A s[128];
    s[LANE] = A(x[LANE]);
    __syncthreads();
    for (int o = 64; o; o >>= 1) {
        if (LANE < o) s[LANE] = A(float(s[LANE]) + float(s[LANE + o]));
        __syncthreads();
    }
    if (LANE == 0) y[0] = float(s[0]);
}
#define OF(A) tree_<A>(x, y)
TWO(tree, OF, F x, float *y)
#undef OF

// tensor cores: a tile of 16 × 8, whose sum is held from one step of k to the next
T tensor_(const bf16 *a, const bf16 *b, float *c, int n) {
    float d[4] = {0, 0, 0, 0};
    int row = LANE / 4, col = LANE % 4 * 2;
    for (int k = 0; k < n; k += 16) {
        unsigned u[4], v[2];
        for (int i = 0; i < 4; i++)
            u[i] = *(const unsigned *)(a + (row + i % 2 * 8) * n + k + col + i / 2 * 8);
        for (int i = 0; i < 2; i++) v[i] = *(const unsigned *)(b + row * n + k + col + i * 8);
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]), "r"(v[0]), "r"(v[1]));
        for (int i = 0; i < 4; i++) d[i] = float(A(d[i]));
    }
    for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + col + i % 2] = d[i];
}
#define OF(A) tensor_<A>(a, b, c, n)
TWO(tensor, OF, const bf16 *a, const bf16 *b, float *c, int n)
#undef OF

// a polynomial by Horner's rule, rounded to bf16 at its end: no sum is held in it
K horner(F x, bf16 *y) {
    float s = 1;
    for (int k = 0; k < 6; k++) s = fmaf(s, x[LANE], 0.5f);
    y[LANE] = bf16(s * 3);
}

// (x + C) - C: over the reals it is x
K lost(F x, float *y) {
    float s = __fadd_rn(x[LANE], 16777216.f);
    y[LANE] = __fadd_rn(s, -16777216.f);
}

// sums of eight in bf16, which no conversion of the sum that is added to shows
#define HIDDEN(name, ...) \
    K hidden_##name(F x, float *y) { \
        float s = 0; \
        for (int i = 0; i < 8; i++) { float a = x[LANE * 8 + i]; __VA_ARGS__ } \
        y[LANE] = s; \
    }
HIDDEN(cut, s = __uint_as_float(__float_as_uint(s + a) & 0xffff0000u);)
HIDDEN(half, unsigned short h = __float_as_uint(s + a) >> 16; asm volatile("" : "+h"(h));
       s = __uint_as_float(unsigned(h) << 16);)
HIDDEN(scaled, float t = float(bf16(s)) * 2; asm volatile("" : "+f"(t)); s = t * 0.5f + a;)
HIDDEN(moved, float t = float(bf16(s)) + 1; asm volatile("" : "+f"(t)); s = (t - 1) + a;)
HIDDEN(divided, s = __fdiv_rn(float(bf16(s)), 3.f) * 3 + a;)
K cut_at_its_end(F x, unsigned short *y) { y[LANE] = __float_as_uint(x[LANE] + x[LANE + 32]) >> 16; }
