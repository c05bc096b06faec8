// Sixteen stencils and products with the names of KernelGen, written anew from their definitions and shaped
// to the published numbers of loads and shuffles: the published sources are OpenACC.
// One thread per point along i; one block row per j (and k); interior points only.
#define POINT_2D                                                   \
    const int i = blockIdx.x * blockDim.x + threadIdx.x + REACH;   \
    const int j = blockIdx.y + REACH;                              \
    if (i >= nx - REACH) return;                                   \
    const int p = i + nx * j
#define POINT_3D                                                   \
    const int i = blockIdx.x * blockDim.x + threadIdx.x + REACH;   \
    const int j = blockIdx.y + REACH;                              \
    const int k = blockIdx.z + REACH;                              \
    if (i >= nx - REACH) return;                                   \
    const int row = nx, plane = nx * ny;                           \
    const int p = i + row * j + plane * k
#define IN const float *__restrict__
#define OUT float *__restrict__

#define REACH 1
extern "C" __global__ void divergence(int nx, int ny, float cx, float cy, float cz, IN ux, IN uy,
                                      IN uz, OUT u) {
    POINT_3D;
    u[p] = cx * (ux[p + 1] - ux[p - 1]) + cy * (uy[p + row] - uy[p - row]) +
           cz * (uz[p + plane] - uz[p - plane]);
}

extern "C" __global__ void gameoflife(int nx, float c, IN u0, OUT u1) {
    POINT_2D;
    const float around = u0[p - 1 - nx] + u0[p - nx] + u0[p + 1 - nx] + u0[p - 1] + u0[p + 1] +
                         u0[p - 1 + nx] + u0[p + nx] + u0[p + 1 + nx];
    u1[p] = 1.0f / (1.0f + (u0[p] + around - 3.0f) * (around - 3.0f) * c);
}
#undef REACH

#define REACH 2
#define U(di, dj) u0[p + (di) + nx * (dj)]
extern "C" __global__ void gaussblur(int nx, float s0, float s1, float s2, float s4, float s5,
                                     float s8, float f, IN u0, OUT u1) {
    POINT_2D;
    u1[p] = f * (s0 * U(0, 0) + s1 * (U(-1, 0) + U(1, 0) + U(0, -1) + U(0, 1)) +
                 s2 * (U(-1, -1) + U(1, -1) + U(-1, 1) + U(1, 1)) +
                 s4 * (U(-2, 0) + U(2, 0) + U(0, -2) + U(0, 2)) +
                 s5 * (U(-2, -1) + U(-1, -2) + U(1, -2) + U(2, -1) + U(-2, 1) + U(-1, 2) +
                       U(1, 2) + U(2, 1)) +
                 s8 * (U(-2, -2) + U(2, -2) + U(-2, 2) + U(2, 2)));
}
#undef U
#undef REACH

#define REACH 1
extern "C" __global__ void gradient(int nx, int ny, float cx, float cy, float cz, IN u, OUT ux,
                                    OUT uy, OUT uz) {
    POINT_3D;
    ux[p] = cx * (u[p + 1] - u[p - 1]);
    uy[p] = cy * (u[p + row] - u[p - row]);
    uz[p] = cz * (u[p + plane] - u[p - plane]);
}

extern "C" __global__ void jacobi(int nx, float c0, float c1, float c2, IN w0, OUT w1) {
    POINT_2D;
    w1[p] = c0 * w0[p] + c1 * (w0[p - 1] + w0[p - nx] + w0[p + 1] + w0[p + nx]) +
            c2 * (w0[p - 1 - nx] + w0[p - 1 + nx] + w0[p + 1 - nx] + w0[p + 1 + nx]);
}
#undef REACH

#define REACH 2
#define W(di, dj, dk) w0[p + (di) + row * (dj) + plane * (dk)]
extern "C" __global__ void lapgsrb(int nx, int ny, float a, float b, float c, float d, IN w0,
                                   OUT w1) {
    POINT_3D;
    w1[p] = a * W(0, 0, 0) +
            b * (W(-1, 0, 0) + W(1, 0, 0) + W(0, -1, 0) + W(0, 1, 0) + W(0, 0, -1) + W(0, 0, 1)) +
            c * (W(-1, -1, 0) + W(1, -1, 0) + W(-1, 1, 0) + W(1, 1, 0) + W(-1, 0, -1) +
                 W(1, 0, -1) + W(-1, 0, 1) + W(1, 0, 1) + W(0, -1, -1) + W(0, 1, -1) +
                 W(0, -1, 1) + W(0, 1, 1)) +
            d * (W(-2, 0, 0) + W(2, 0, 0) + W(0, -2, 0) + W(0, 2, 0) + W(0, 0, -2) + W(0, 0, 2));
}
#undef REACH

#define REACH 1
extern "C" __global__ void laplacian(int nx, int ny, float a, float b, IN w0, OUT w1) {
    POINT_3D;
    w1[p] = a * W(0, 0, 0) +
            b * (W(-1, 0, 0) + W(1, 0, 0) + W(0, -1, 0) + W(0, 1, 0) + W(0, 0, -1) + W(0, 0, 1));
}
#undef W
#undef REACH

extern "C" __global__ void matmul(int nx, int nt, IN a, IN b, OUT c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int q = blockIdx.y;
    if (i >= nx) return;
    float sum = c[i + nx * q];
    for (int t = 0; t < nt; ++t) sum += a[i + nx * t] * b[t + nt * q];
    c[i + nx * q] = sum;
}

extern "C" __global__ void matvec(int nx, int nt, IN a, IN x, OUT y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx) return;
    float sum = 0.0f;
    for (int t = 0; t < nt; ++t) sum += a[t + nt * i] * x[t];
    y[i] = sum;
}

#define REACH 0
extern "C" __global__ void sincos3d(int nx, int ny, IN x, IN y, OUT xy) {
    POINT_3D;
    xy[p] = sinf(x[p]) + cosf(y[p]);
}

extern "C" __global__ void vecadd(int nx, int ny, IN w0, IN w1, OUT w2) {
    POINT_3D;
    w2[p] = w0[p] + w1[p];
}
#undef REACH

// The four weights of cubic interpolation at distance t past the second of four points.
__device__ __forceinline__ void cubic(float t, float w[4]) {
    w[0] = -t * (t - 1.0f) * (t - 2.0f) * (1.0f / 6.0f);
    w[1] = (t + 1.0f) * (t - 1.0f) * (t - 2.0f) * 0.5f;
    w[2] = -(t + 1.0f) * t * (t - 2.0f) * 0.5f;
    w[3] = (t + 1.0f) * t * (t - 1.0f) * (1.0f / 6.0f);
}

#define REACH 2
extern "C" __global__ void tricubic(int nx, int ny, IN u0, OUT u1, IN a, IN b, IN c) {
    POINT_3D;
    float wa[4], wb[4], wc[4], sum = 0.0f;
    cubic(a[p], wa);
    cubic(b[p], wb);
    cubic(c[p], wc);
#pragma unroll
    for (int dk = 0; dk < 4; ++dk)
#pragma unroll
        for (int dj = 0; dj < 4; ++dj)
#pragma unroll
            for (int di = 0; di < 4; ++di)
                sum += wa[di] * wb[dj] * wc[dk] *
                       u0[p + (di - 1) + row * (dj - 1) + plane * (dk - 1)];
    u1[p] = sum;
}

// The same interpolation, one direction after the other.
extern "C" __global__ void tricubic2(int nx, int ny, IN u0, OUT u1, IN a, IN b, IN c) {
    POINT_3D;
    float wa[4], wb[4], wc[4], sum = 0.0f;
    cubic(a[p], wa);
    cubic(b[p], wb);
    cubic(c[p], wc);
#pragma unroll
    for (int dk = 0; dk < 4; ++dk) {
        float level = 0.0f;
#pragma unroll
        for (int dj = 0; dj < 4; ++dj) {
            float line = 0.0f;
#pragma unroll
            for (int di = 0; di < 4; ++di)
                line += wa[di] * u0[p + (di - 1) + row * (dj - 1) + plane * (dk - 1)];
            level += wb[dj] * line;
        }
        sum += wc[dk] * level;
    }
    u1[p] = sum;
}

extern "C" __global__ void uxx1(int nx, int ny, float dth, IN d1, IN u0, OUT u1, IN xx, IN xy,
                                IN xz) {
    POINT_3D;
    const float c1 = 9.0f / 8.0f, c2 = -1.0f / 24.0f;
    const float d = 0.25f * (d1[p] + d1[p - row] + d1[p - plane] + d1[p - row - plane]);
    u1[p] = u0[p] + dth / d *
                        (c1 * (xx[p] - xx[p - 1]) + c2 * (xx[p + 1] - xx[p - 2]) +
                         c1 * (xy[p] - xy[p - row]) + c2 * (xy[p + row] - xy[p - 2 * row]) +
                         c1 * (xz[p] - xz[p - plane]) + c2 * (xz[p + plane] - xz[p - 2 * plane]));
}

extern "C" __global__ void wave13pt(int nx, int ny, float m0, float m1, float m2, IN w0, IN w1,
                                    OUT w2) {
    POINT_3D;
    w2[p] = m0 * w1[p] - w0[p] +
            m1 * (w1[p - 1] + w1[p + 1] + w1[p - row] + w1[p + row] + w1[p - plane] +
                  w1[p + plane]) +
            m2 * (w1[p - 2] + w1[p + 2] + w1[p - 2 * row] + w1[p + 2 * row] + w1[p - 2 * plane] +
                  w1[p + 2 * plane]);
}
#undef REACH

#define REACH 1
#define WHISPERING()                                                                             \
    POINT_2D;                                                                                    \
    const float ex = ca[p] * e0_0[p] + cb[p] * (h0[p] - h0[p - nx]);                             \
    const float below = ca[p - nx] * e0_0[p - nx];                                               \
    const float ey = ca[p] * e0_1[p] - cb[p] * (h0[p + 1] - h0[p - 1]);                          \
    const float left = ca[p - 1] * e0_1[p - 1];                                                  \
    e1_0[p] = ex + below * cb[p - nx];                                                           \
    e1_1[p] = ey + left * cb[p - 1];                                                             \
    u_out[p] = u_em[p] + ex * ex + ey * ey;                                                      \
    h1[p] = da[p] * h0[p] + db[p] * (ex - ey + h0[p + nx] - h0[p - nx])
extern "C" __global__ void whispering(int nx, IN ca, IN cb, IN da, IN db, IN e0_0, IN e0_1, IN h0,
                                      IN u_em, OUT e1_0, OUT e1_1, OUT h1, OUT u_out) {
    WHISPERING();
}
// Without restrict the compiler may not move loads over the stores.
extern "C" __global__ void whispering_plain(int nx, const float *ca, const float *cb,
                                            const float *da, const float *db, const float *e0_0,
                                            const float *e0_1, const float *h0, const float *u_em,
                                            float *e1_0, float *e1_1, float *h1, float *u_out) {
    WHISPERING();
}
