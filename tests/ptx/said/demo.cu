#include <cstdio>
#include <cassert>
__device__ int pick(int* x, int i) { return x[i]; }
__global__ void demo(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 3) printf("thread %d of %u: %5.2f %s %lld %c%%\n", i, blockDim.x, 2.5, "hello", 1ll << 40, 'z');
  if (n == 1) assert(i < 10);
  if (n == 2) x[i] = pick(x, i + 1000000);
  if (n == 3) while (x[0] == 0) { __threadfence(); if (((volatile int*)x)[1]) break; }
  if (n == 4) x[0] = i;
  if (n == 5) __trap();
}
