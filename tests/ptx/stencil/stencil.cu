// Three larger stencils of the reach and load counts published for hypterm, rhs4th3fort and
// derivative: one thread per point, arrays flattened as i + nx * (j + ny * k).
#define IN const float *__restrict__
#define OUT float *__restrict__
#define POINT(REACH)                                                  \
    const int i = blockIdx.x * blockDim.x + threadIdx.x + REACH;      \
    const int j = blockIdx.y * blockDim.y + threadIdx.y + REACH;      \
    const int k = blockIdx.z * blockDim.z + threadIdx.z + REACH;      \
    if (i >= nx - REACH || j >= ny - REACH || k >= nz - REACH) return
#define AT(a, di, dj, dk) a[(i + (di)) + nx * ((j + (dj)) + ny * (k + (dk)))]

// hypterm, along the leading dimension: eighth-order differences of six arrays, five fluxes.
#define EIGHTH(F)                                                                \
    (0.8f * (F(1) - F(-1)) - 0.2f * (F(2) - F(-2)) + 0.038f * (F(3) - F(-3)) -   \
     0.0035f * (F(4) - F(-4)))
extern "C" __global__ void hypterm(int nx, int ny, int nz, float dxinv, IN cons1, IN cons2,
                                   IN cons3, IN cons4, IN q1, IN q4, OUT flux0, OUT flux1,
                                   OUT flux2, OUT flux3, OUT flux4) {
    POINT(4);
#define MASS(d) AT(cons1, d, 0, 0)
#define MOMENTUM_X(d) (AT(cons1, d, 0, 0) * AT(q1, d, 0, 0) + AT(q4, d, 0, 0))
#define MOMENTUM_Y(d) (AT(cons2, d, 0, 0) * AT(q1, d, 0, 0))
#define MOMENTUM_Z(d) (AT(cons3, d, 0, 0) * AT(q1, d, 0, 0))
#define ENERGY(d) ((AT(cons4, d, 0, 0) + AT(q4, d, 0, 0)) * AT(q1, d, 0, 0))
    AT(flux0, 0, 0, 0) = -EIGHTH(MASS) * dxinv;
    AT(flux1, 0, 0, 0) = -EIGHTH(MOMENTUM_X) * dxinv;
    AT(flux2, 0, 0, 0) = -EIGHTH(MOMENTUM_Y) * dxinv;
    AT(flux3, 0, 0, 0) = -EIGHTH(MOMENTUM_Z) * dxinv;
    AT(flux4, 0, 0, 0) = -EIGHTH(ENERGY) * dxinv;
}

// The second difference of u with a variable coefficient c and stretching s along one axis.
#define SECOND(C, U)                                                                          \
    ((C(-1) - 0.75f * (C(0) + C(-2))) * (U(-2) - U(0)) +                                      \
     (C(-2) + C(1) + 3.0f * (C(0) + C(-1))) * (U(-1) - U(0)) +                                \
     (C(-1) + C(2) + 3.0f * (C(1) + C(0))) * (U(1) - U(0)) +                                  \
     (C(1) - 0.75f * (C(0) + C(2))) * (U(2) - U(0)))
// First differences of fourth order, one inside the other: d/da (c * du/db).
#define FIRST(F) (F(-2) - F(2) + 8.0f * (F(1) - F(-1)))
#define NINTH (1.0f / 144.0f)
#define SIXTH (1.0f / 6.0f)

template <class C, class U> __device__ __forceinline__ float second(C c, U u) { return SECOND(c, u); }
template <class F> __device__ __forceinline__ float first(F f) { return FIRST(f); }

extern "C" __global__ void rhs4th3fort(int nx, int ny, int nz, float a1, float cof, IN mu, IN la,
                                       IN u, IN v, IN w, IN strx, IN stry, IN strz, OUT ru, OUT rv,
                                       OUT rw) {
    POINT(2);
    auto along_x = [&](IN a) { return [=](int d) { return AT(a, d, 0, 0); }; };
    auto along_y = [&](IN a) { return [=](int d) { return AT(a, 0, d, 0); }; };
    auto along_z = [&](IN a) { return [=](int d) { return AT(a, 0, 0, d); }; };
    auto mu_x = [=](int d) { return AT(mu, d, 0, 0) * strx[i + d]; };
    auto mu_y = [=](int d) { return AT(mu, 0, d, 0) * stry[j + d]; };
    auto mu_z = [=](int d) { return AT(mu, 0, 0, d) * strz[k + d]; };
    auto both_x = [=](int d) { return (2.0f * AT(mu, d, 0, 0) + AT(la, d, 0, 0)) * strx[i + d]; };
    auto both_y = [=](int d) { return (2.0f * AT(mu, 0, d, 0) + AT(la, 0, d, 0)) * stry[j + d]; };
    auto both_z = [=](int d) { return (2.0f * AT(mu, 0, 0, d) + AT(la, 0, 0, d)) * strz[k + d]; };
    float r1 = SIXTH * (strx[i] * second(both_x, along_x(u)) + stry[j] * second(mu_y, along_y(u)) +
                        strz[k] * second(mu_z, along_z(u)));
    float r2 = SIXTH * (strx[i] * second(mu_x, along_x(v)) + stry[j] * second(both_y, along_y(v)) +
                        strz[k] * second(mu_z, along_z(v)));
    float r3 = SIXTH * (strx[i] * second(mu_x, along_x(w)) + stry[j] * second(mu_y, along_y(w)) +
                        strz[k] * second(both_z, along_z(w)));
    // d/d(outer) of c * d/d(inner) of a, for each pair of axes
    auto xy = [&](IN c, IN a) {
        return first([=](int p) {
            return AT(c, p, 0, 0) * first([=](int q) { return AT(a, p, q, 0); });
        });
    };
    auto yx = [&](IN c, IN a) {
        return first([=](int q) {
            return AT(c, 0, q, 0) * first([=](int p) { return AT(a, p, q, 0); });
        });
    };
    auto xz = [&](IN c, IN a) {
        return first([=](int p) {
            return AT(c, p, 0, 0) * first([=](int q) { return AT(a, p, 0, q); });
        });
    };
    auto zx = [&](IN c, IN a) {
        return first([=](int q) {
            return AT(c, 0, 0, q) * first([=](int p) { return AT(a, p, 0, q); });
        });
    };
    auto yz = [&](IN c, IN a) {
        return first([=](int p) {
            return AT(c, 0, p, 0) * first([=](int q) { return AT(a, 0, p, q); });
        });
    };
    auto zy = [&](IN c, IN a) {
        return first([=](int q) {
            return AT(c, 0, 0, q) * first([=](int p) { return AT(a, 0, p, q); });
        });
    };
    r1 += NINTH * (strx[i] * stry[j] * (xy(la, v) + yx(mu, v)) +
                   strx[i] * strz[k] * (xz(la, w) + zx(mu, w)));
    r2 += NINTH * (strx[i] * stry[j] * (xy(mu, u) + yx(la, u)) +
                   stry[j] * strz[k] * (yz(la, w) + zy(mu, w)));
    r3 += NINTH * (strx[i] * strz[k] * (xz(mu, u) + zx(la, u)) +
                   stry[j] * strz[k] * (yz(mu, v) + zy(la, v)));
    AT(ru, 0, 0, 0) = a1 * AT(ru, 0, 0, 0) + cof * r1;
    AT(rv, 0, 0, 0) = a1 * AT(rv, 0, 0, 0) + cof * r2;
    AT(rw, 0, 0, 0) = a1 * AT(rw, 0, 0, 0) + cof * r3;
}

// A stencil like "derivative": the strain of a displacement on a curved grid, by fourth-order
// differences weighted with four metric arrays; ten arrays, 166 loads.
extern "C" __global__ void derivative(int nx, int ny, int nz, float cof, IN u, IN v, IN w, IN mu,
                                      IN la, IN met1, IN met2, IN met3, IN met4, OUT ru, OUT rv,
                                      OUT rw) {
    POINT(2);
    auto weight = [=](int p, int q) {
        return (2.0f * AT(mu, p, q, 0) + AT(la, p, q, 0)) * AT(met1, p, q, 0) * AT(met1, p, q, 0);
    };
    auto cross = [=](IN a) {
        return first([=](int p) {
            return AT(mu, p, 0, 0) * AT(met1, p, 0, 0) *
                   first([=](int q) { return AT(a, p, q, 0); });
        });
    };
    auto depth = [=](IN a, IN m) {
        return AT(m, 0, 0, 0) * first([=](int p) {
                   return AT(la, p, 0, 0) * first([=](int q) { return AT(a, p, 0, q); });
               });
    };
    auto metric = [=](int q, int r) {
        return AT(met2, 0, q, r) * AT(met3, 0, q, r) * AT(met4, 0, q, r);
    };
    auto lines = [=](IN a) {
        return weight(0, 0) * AT(met4, 0, 0, 0) * first([=](int d) { return AT(a, d, 0, 0); }) +
               first([=](int d) { return AT(a, 0, d, 0) * AT(mu, 0, d, 0) * metric(d, 0); }) +
               first([=](int d) { return AT(a, 0, 0, d) * AT(la, 0, 0, d) * metric(0, d); });
    };
    AT(ru, 0, 0, 0) = cof * (lines(u) + cross(v) + depth(w, met2));
    AT(rv, 0, 0, 0) = cof * (lines(v) + cross(u) + depth(w, met3));
    AT(rw, 0, 0, 0) = cof * (lines(w) + depth(u, met2) + depth(v, met3));
}
