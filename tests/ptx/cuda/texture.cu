// Textures and surfaces by objects, as kernels use them today.
#define EACH(n) int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
extern "C" {
__global__ void fetch(cudaTextureObject_t t, float *out, int first, int n) { EACH(n); out[i] = tex1Dfetch<float>(t, i + first); }
__global__ void one(cudaTextureObject_t t, float *out, const float *x, int n) { EACH(n); out[i] = tex1D<float>(t, x[i]); }
__global__ void two(cudaTextureObject_t t, float *out, const float2 *x, int n) { EACH(n); out[i] = tex2D<float>(t, x[i].x, x[i].y); }
__global__ void three(cudaTextureObject_t t, float *out, const float4 *x, int n) { EACH(n); out[i] = tex3D<float>(t, x[i].x, x[i].y, x[i].z); }
__global__ void layered(cudaTextureObject_t t, float *out, const float4 *x, int n) { EACH(n); out[i] = tex2DLayered<float>(t, x[i].x, x[i].y, (int)x[i].z); }
__global__ void rows(cudaTextureObject_t t, float *out, const float2 *x, int n) { EACH(n); out[i] = tex1DLayered<float>(t, x[i].x, (int)x[i].y); }
__global__ void level(cudaTextureObject_t t, float *out, const float4 *x, int n) { EACH(n); out[i] = tex2DLod<float>(t, x[i].x, x[i].y, x[i].z); }
__global__ void fours(cudaTextureObject_t t, float4 *out, const float2 *x, int n) { EACH(n); out[i] = tex2D<float4>(t, x[i].x, x[i].y); }
__global__ void bytes(cudaTextureObject_t t, uchar4 *out, const float2 *x, int n) { EACH(n); out[i] = tex2D<uchar4>(t, x[i].x, x[i].y); }
__global__ void shorts(cudaTextureObject_t t, short2 *out, const float2 *x, int n) { EACH(n); out[i] = tex2D<short2>(t, x[i].x, x[i].y); }
__global__ void gather(cudaTextureObject_t t, float4 *out, const float2 *x, int n) { EACH(n); out[i] = tex2Dgather<float4>(t, x[i].x, x[i].y, 1); }
__global__ void either(cudaTextureObject_t a, cudaTextureObject_t b, float *out, const float2 *x, int n) { EACH(n); out[i] = tex2D<float>(i % 3 ? a : b, x[i].x, x[i].y); }
__global__ void cube(cudaTextureObject_t t, float *out, const float4 *x, int n) { EACH(n); out[i] = texCubemap<float>(t, x[i].x, x[i].y, x[i].z); }
__global__ void negate(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width)
{ int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y; if (x < width) surf2Dwrite(-surf2Dread<float>(from, 4 * x, y), to, 4 * x, y); }
__global__ void clamped(cudaSurfaceObject_t s, uchar4 *out, int n)
{ EACH(n); out[blockIdx.y * n + i] = surf2Dread<uchar4>(s, 4 * (i - 3), (int)blockIdx.y - 2, cudaBoundaryModeClamp); }
__global__ void zeroed(cudaSurfaceObject_t s, short *out, int n)
{ EACH(n); out[blockIdx.y * n + i] = surf2Dread<short>(s, 2 * (i - 3), (int)blockIdx.y - 2, cudaBoundaryModeZero); }
__global__ void dropped(cudaSurfaceObject_t s, const float4 *in, int n)
{ EACH(n); surf2Dwrite(in[blockIdx.y * n + i], s, 16 * (i - 3), (int)blockIdx.y - 2, cudaBoundaryModeZero); }
__global__ void edges(cudaSurfaceObject_t s, int n) { EACH(n); surf1Dwrite(i < 4 ? 7 : 9, s, 4 * (i - 3), cudaBoundaryModeClamp); }
__global__ void solid(cudaSurfaceObject_t s, cudaSurfaceObject_t l, int width)
{ int x = threadIdx.x; if (x < width) surf3Dwrite(surf2DLayeredread<long long>(l, 8 * x, blockIdx.x, blockIdx.y) + 1, s, 8 * x, blockIdx.x, blockIdx.y); }
__global__ void both(cudaTextureObject_t t, cudaSurfaceObject_t s, int width)
{ int x = threadIdx.x; if (x < width) surf1Dwrite(tex1D<float>(t, x + 1.5f) + 1, s, 4 * x); }
}
