// Kernels of 2 blocks of 64 threads unless a comment says otherwise; a has 4096 numbers below 64, b has 4096 zeros.
#define T threadIdx.x
#define B blockIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)
#define K(name) extern "C" __global__ void name(int* a, int* b, int n)
#define SYNC __syncthreads()
#define BAR(id, count) asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory")
#define ARRIVE(id, count) asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory")
__device__ __forceinline__ void copy4(int* to, const int* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(count) asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory")
__device__ __forceinline__ void put_release(int* p, int v) { asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ void put_relaxed(int* p, int v) { asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ int get_acquire(int* p) { int v; asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ int get_relaxed(int* p) { int v; asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
#define VOLATILE(p) (*(volatile int*)&(p))
