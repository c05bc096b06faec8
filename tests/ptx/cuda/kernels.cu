// Kernels that people write, run on the emulator by test_kernels.py and compared with NumPy.

// Tiled transposition through shared memory; the tile has one more column against bank conflicts.
extern "C" __global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// One sum per warp by shuffles, then one atomic.
extern "C" __global__ void warp_sum(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, v);
}

// Tree in shared memory with barriers; one sum per block.
extern "C" __global__ void block_sum(const float* in, float* out, int n) {
    extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}

extern "C" __global__ void stencil(const float* __restrict__ a, float* __restrict__ b, int nx,
                                   int ny, float c0, float c1) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1)
        b[y * nx + x] = c0 * a[y * nx + x] + c1 * (a[y * nx + x - 1] + a[y * nx + x + 1] +
                                                   a[(y - 1) * nx + x] + a[(y + 1) * nx + x]);
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[16][16], tb[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int j = 0; j < 16; ++j) sum += ta[threadIdx.y][j] * tb[j][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Inclusive prefix sum of one block (Hillis and Steele, two buffers).
extern "C" __global__ void prefix_sum(const int* in, int* out, int n) {
    __shared__ int buffer[2][1024];
    int i = threadIdx.x, now = 0;
    buffer[0][i] = i < n ? in[blockIdx.x * n + i] : 0;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        buffer[1 - now][i] = buffer[now][i] + (i >= d ? buffer[now][i - d] : 0);
        now = 1 - now;
        __syncthreads();
    }
    if (i < n) out[blockIdx.x * n + i] = buffer[now][i];
}

// A function that is not inlined, with a struct by value, local memory and a loop.
struct Pair { int first; float second[3]; };
__device__ __noinline__ float fold(Pair p, int times) {
    float stack[8];
    for (int i = 0; i < 8; ++i) stack[i] = p.second[i % 3] * i;
    float sum = 0.0f;
    for (int i = 0; i < times; ++i) sum += stack[(i * p.first) & 7];
    return sum;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__constant__ float weights[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__device__ int calls = 7;
extern "C" __global__ void functions(Pair p, float* out, int* whole, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    p.first += i;
    out[i] = fold(p, i % 13) * weights[i & 3];
    whole[i] = fibonacci(i % 9) + calls;
}

// Threads leave loops at different times, some early.
extern "C" __global__ void collatz(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i], steps = 0;
    while (v != 1u) {
        if (v & 1u) {
            v = 3u * v + 1u;
            if (steps > 400u) { steps = 9999u; break; }
        } else {
            v >>= 1;
        }
        ++steps;
    }
    out[i] = steps;
}

// A lock taken by spinning: needs threads of one warp to make progress independently.
extern "C" __global__ void spin(int* lock, int* total) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int*)total += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
