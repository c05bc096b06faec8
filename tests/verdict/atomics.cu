// Sums of floats that atomics make, and what they leave that depends on who comes first; atomics.ptx
// is what nvcc 13 makes of them for sm_80. n numbers in blocks of 32.
#define K extern "C" __global__ void
#define A (const float *x, const float *w, float *y, int n)
#define T threadIdx.x
#define I (blockIdx.x * 32 + threadIdx.x)

K dot A { if (I < n) atomicAdd(y, x[I] * w[I]); }
K hist A { if (I < n) atomicAdd(y + I % 7, x[I] * w[I]); }
K in_shared A {
    __shared__ float s;
    if (T == 0) s = 0;
    __syncthreads();
    if (I < n) atomicAdd(&s, x[I] * w[I]);
    __syncthreads();
    if (T == 0) atomicAdd(y, s);
}
K lost A { if (I < n - 1) atomicAdd(y, x[I] * w[I]); }
K twice A { if (I < n) atomicAdd(y, x[I] * w[I]); if (I == 3) atomicAdd(y, x[3] * w[3]); }

K uses_old A { if (I < n) { float o = atomicAdd(y, x[I] * w[I]); if (I == n - 1) y[0] = o + x[I] * w[I]; } }
K looks A { if (I < n) { atomicAdd(y, x[I] * w[I]); float o = *(volatile float *)y; if (I == n - 1) *(volatile float *)y = o; } }
K put_first A { if (I == 0) atomicExch(y, 0.f); if (I < n) atomicAdd(y, x[I] * w[I]); }

K first_swap(const float *, int *y) { atomicCAS(y, 0, (int)T + 1); }
K last_swap(const float *, int *y) { atomicExch(y, (int)T); }
K two_kinds(const float *, int *y) { if (T == 0) atomicAdd(y, 1); else if (T == 1) atomicMax(y, 5); }
