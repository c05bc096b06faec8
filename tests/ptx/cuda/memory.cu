// Memory of every width and space, atomics, divergence: results do not depend on the order of threads.

extern "C" __global__ void vectors(const uchar4* a, const short2* b, const int2* c, const float4* d,
                                   const double2* e, uchar4* oa, short2* ob, int2* oc, float4* od,
                                   double2* oe) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 va = a[i]; short2 vb = b[i]; int2 vc = c[i]; float4 vd = d[i]; double2 ve = e[i];
    oa[i] = make_uchar4(va.w, va.z, va.y, va.x);
    ob[i] = make_short2(vb.y, vb.x);
    oc[i] = make_int2(vc.y, vc.x);
    od[i] = make_float4(vd.w + vd.x, vd.z, vd.y, vd.x);
    oe[i] = make_double2(ve.y, ve.x * 2.0);
}

extern "C" __global__ void atomics32(const unsigned* in, unsigned* out, float* sums, double* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = in[i], slot = v & 3u;
    atomicAdd(&out[slot], v);
    atomicMin(&out[4 + slot], v);
    atomicMax(&out[8 + slot], v);
    atomicAnd(&out[12 + slot], v | 0xff00u);
    atomicOr(&out[16 + slot], v & 0xf0f0u);
    atomicXor(&out[20 + slot], v);
    atomicInc(&out[24 + slot], 17u);
    atomicDec(&out[28 + slot], 23u);
    atomicMin((int*)&out[32 + slot], (int)v);
    atomicMax((int*)&out[36 + slot], (int)v);
    atomicSub(&out[40 + slot], v);
    atomicAdd(&sums[slot], (float)(v & 0xff));
    atomicAdd(&wide[slot], (double)(v & 0xffff));
    out[44 + i] = atomicExch(&out[44 + 1024 + i], v);
}

extern "C" __global__ void atomics64(const unsigned long long* in, unsigned long long* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long v = in[i];
    int slot = (int)(v & 3u);
    atomicAdd(&out[slot], v);
    atomicMin(&out[4 + slot], v);
    atomicMax(&out[8 + slot], v);
    atomicAnd(&out[12 + slot], v | 0xff00u);
    atomicOr(&out[16 + slot], v & 0xf0f0u);
    atomicXor(&out[20 + slot], v);
    atomicMin((long long*)&out[24 + slot], (long long)v);
    atomicMax((long long*)&out[28 + slot], (long long)v);
}

// The largest value by compare-and-swap, and old values that must be a permutation.
extern "C" __global__ void compare_and_swap(const unsigned* in, unsigned* largest, unsigned* tickets) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = in[i], old = *largest, seen;
    do {
        seen = old;
        if (seen >= v) break;
        old = atomicCAS(largest, seen, v);
    } while (old != seen);
    unsigned ticket = atomicAdd(&tickets[0], 1u);
    atomicAdd(&tickets[1 + ticket], 1u);
}

extern "C" __global__ void copy_async(const float4* in, float4* out) {
    __shared__ float4 stage[128];
    unsigned to = (unsigned)__cvta_generic_to_shared(&stage[threadIdx.x]);
    const float4* from = in + blockIdx.x * 128 + threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n cp.async.commit_group;\n cp.async.wait_group 0;"
                 ::"r"(to), "l"(from) : "memory");
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = stage[127 - threadIdx.x];
}

__device__ __noinline__ float pick(const float* p, int i) { return p[i]; }
extern "C" __global__ void generic(const float* in, float* out) {
    __shared__ float near_by[128];
    float own[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 4; ++k) own[k] = in[i] * k;
    near_by[threadIdx.x] = in[i] + 1.0f;
    __syncthreads();
    const float* from = threadIdx.x % 3 == 0 ? in : threadIdx.x % 3 == 1 ? near_by : own;
    out[i] = pick(from, threadIdx.x % 3 == 2 ? i % 4 : threadIdx.x);
}

extern "C" __global__ void local_stack(const int* in, int* out) {
    int stack[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x, top = 0, sum = 0;
    for (int v = in[i] & 0xffff; v; v >>= 1) stack[top++ & 15] = v;
    while (top > 0) sum = sum * 3 + stack[--top & 15];
    out[i] = sum;
}

extern "C" __global__ void branches(const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], sum = 0;
    for (int k = 0; k < (v & 15); ++k) {
        switch ((v + k) & 7) {
            case 0: sum += k * 3; break;
            case 1: sum ^= v; break;
            case 2: if (sum > 100) continue; sum += 7;
            case 3: sum -= k; break;
            case 4: for (int j = 0; j < k; ++j) { if (j * j > v % 50) break; sum += j; } break;
            case 5: if (k > 9) { out[i] = -sum; return; } break;
            case 6: sum = sum * 5 + 1; break;
            default: sum >>= 1;
        }
    }
    out[i] = sum;
}

extern "C" __global__ void wide_product(const unsigned long long* a, const unsigned long long* b,
                                        unsigned long long* low, unsigned long long* high) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned __int128 p = (unsigned __int128)a[i] * b[i] + a[i];
    low[i] = (unsigned long long)p;
    high[i] = (unsigned long long)(p >> 64);
}

extern "C" __global__ void bytes(const signed char* a, const unsigned char* b, short* out, unsigned char* low) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = (short)(a[i] * b[i]);
    low[i] = (unsigned char)(a[i] - b[i]);
}

extern "C" __global__ void volatile_flags(volatile int* flags, int* out) {
    __shared__ volatile int last;
    if (threadIdx.x == 0) last = blockIdx.x;
    __syncthreads();
    flags[blockIdx.x * blockDim.x + threadIdx.x] = last + threadIdx.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = __syncthreads_count(threadIdx.x & 1) + __syncthreads_or(0);
}

extern "C" __global__ void partial_warps(const int* in, int* out) {
    int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, v = in[i];
    unsigned here = __activemask();
    if (v & 1) v += __popc(__ballot_sync(__activemask(), v & 2));
    int other = __shfl_xor_sync(here, v, 1);  // undefined where the partner is absent
    unsigned partner = (threadIdx.y * blockDim.x + threadIdx.x) ^ 1;
    v += (here >> partner & 1) ? other : v;
    out[i] = v + __reduce_add_sync(here, v & 0xff);
}
