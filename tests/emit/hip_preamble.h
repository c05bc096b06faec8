/* What hipcc's own headers would bring, as far as our texts use it: clang's HIP front end then needs
   none of ROCm. Declarations alone: nothing of it is run. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct Coordinates {
  unsigned x, y, z;
};
extern __device__ const Coordinates threadIdx, blockIdx;
__device__ void __syncthreads();
__device__ unsigned __brev(unsigned);

#define SHUFFLES(type)                          \
  __device__ type __shfl(type, int, int);       \
  __device__ type __shfl_up(type, unsigned, int);   \
  __device__ type __shfl_down(type, unsigned, int); \
  __device__ type __shfl_xor(type, int, int);
SHUFFLES(int)
SHUFFLES(unsigned)
SHUFFLES(long long)
SHUFFLES(unsigned long long)
SHUFFLES(float)
SHUFFLES(double)

#define VECTORS(type, name)                      \
  struct name##2 { type x, y; };                 \
  struct name##4 { type x, y, z, w; };           \
  __device__ name##2 make_##name##2(type, type); \
  __device__ name##4 make_##name##4(type, type, type, type);
VECTORS(float, float)
VECTORS(double, double)
VECTORS(int, int)
VECTORS(unsigned, uint)
VECTORS(short, short)
VECTORS(unsigned short, ushort)
VECTORS(signed char, char)
VECTORS(unsigned char, uchar)
VECTORS(long long, longlong)
VECTORS(unsigned long long, ulonglong)

#define FUNCTIONS(type, suffix)                                                       \
  __device__ type fabs##suffix(type);                                                 \
  __device__ type fma##suffix(type, type, type);                                      \
  __device__ type sqrt##suffix(type);                                                 \
  __device__ type exp##suffix(type);                                                  \
  __device__ type exp2##suffix(type);                                                 \
  __device__ type log##suffix(type);                                                  \
  __device__ type log2##suffix(type);                                                 \
  __device__ type tanh##suffix(type);                                                 \
  __device__ bool signbit(type);
FUNCTIONS(float, f)
FUNCTIONS(double, )
__device__ int min(int, int);
__device__ int max(int, int);
__device__ unsigned min(unsigned, unsigned);
__device__ unsigned max(unsigned, unsigned);
__device__ long long min(long long, long long);
__device__ long long max(long long, long long);
