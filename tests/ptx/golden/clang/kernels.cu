// Compiled by clang for NVPTX without the CUDA headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define tid __nvvm_read_ptx_sreg_tid_x()
#define ntid __nvvm_read_ptx_sreg_ntid_x()
#define ctaid __nvvm_read_ptx_sreg_ctaid_x()

extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  int i = ctaid * ntid + tid;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void reverse(const int* in, int* out) {
  __shared__ int tile[128];
  tile[tid] = in[ctaid * 128 + tid];
  __nvvm_bar_sync(0);
  out[ctaid * 128 + tid] = tile[127 - tid];
}
__device__ __attribute__((noinline)) double power(double x, int n) {
  double r = 1.0;
  for (; n > 0; n >>= 1) { if (n & 1) r *= x; x *= x; }
  return r;
}
extern "C" __global__ void powers(const double* x, const int* n, double* out, int count) {
  for (int i = ctaid * ntid + tid; i < count; i += 64) out[i] = power(x[i], n[i]);
}
extern "C" __global__ void classify(const int* in, int* out, int n) {
  int i = ctaid * ntid + tid;
  if (i >= n) return;
  int r;
  switch (in[i] & 7) {
    case 0: r = 10; break; case 1: r = in[i] * 3; break; case 2: r = in[i] / 7; break;
    case 3: r = in[i] % 5; break; case 4: r = -in[i]; break; case 5: r = 99; break;
    default: r = in[i] >> 2;
  }
  out[i] = r;
}
