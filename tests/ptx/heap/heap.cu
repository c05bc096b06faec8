#include <cstdio>

struct Node {
  int value;
  Node* next;
};

struct Shape {
  float side;
  __device__ Shape(float s) : side(s) {}
  __device__ virtual ~Shape() {}
  __device__ virtual float area() { return side * side; }
};

struct Box : Shape {
  float high;
  __device__ Box(float s, float h) : Shape(s), high(h) {}
  __device__ float area() override { return side * side * high; }
};

__device__ Node* kept[64];

extern "C" __global__ void list(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Node* head = nullptr;
  for (int k = 0; k < i % n; ++k) {
    Node* one = (Node*)malloc(sizeof(Node));
    one->value = k * i;
    one->next = head;
    head = one;
  }
  int sum = 0;
  while (head) {
    Node* next = head->next;
    sum += head->value;
    free(head);
    head = next;
  }
  out[i] = sum;
}

extern "C" __global__ void block_array(int* out, int n, int mistake) {
  __shared__ int* data;
  if (threadIdx.x == 0) data = (int*)malloc(n * sizeof(int));
  __syncthreads();
  if (!data) return;
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = i * blockIdx.x;
  if (mistake != 1) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = data[n - 1 - threadIdx.x];
  if (mistake != 2) __syncthreads();
  if (threadIdx.x == 0) free(data);
}

extern "C" __global__ void objects(float* out) {
  Shape* shape = threadIdx.x % 2 ? new Box(threadIdx.x, 3) : new Shape(threadIdx.x);
  out[threadIdx.x] = shape->area();
  delete shape;
  float* row = new float[threadIdx.x + 1];
  for (int i = 0; i <= threadIdx.x; ++i) row[i] = i;
  out[threadIdx.x] += row[threadIdx.x];
  delete[] row;
}

extern "C" __global__ void fill(int* out, size_t size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
  while (char* one = (char*)malloc(size)) {
    if (size) one[size - 1] = 1;
    ++count;
  }
  out[i] = count;
}

extern "C" __global__ void keep(int first) {
  Node* one = (Node*)malloc(sizeof(Node));
  one->value = first + threadIdx.x;
  one->next = nullptr;
  kept[threadIdx.x] = one;
}

extern "C" __global__ void look(int* out, int give_back) {
  out[threadIdx.x] = kept[threadIdx.x]->value;
  if (give_back) free(kept[threadIdx.x]);
}

extern "C" __global__ void wrong(int* out, int what) {
  int* mine = (int*)malloc(10 * sizeof(int));
  for (int i = 0; i < 10; ++i) mine[i] = i;
  if (threadIdx.x == 3) {
    if (what == 1) mine[10] = 1;
    if (what == 2) out[0] = mine[-1];
    if (what == 3) { free(mine); out[0] = *(volatile int*)&mine[2]; }
    if (what == 4) { free(mine); free(mine); }
    if (what == 5) free(mine + 2);
    if (what == 6) free(out);
    if (what == 7) out[0] = *(int*)((char*)mine + 2);
    if (what == 8) { int* other = (int*)malloc(16); out[0] = other[1] > 3 ? 1 : 2; free(other); }
    if (what == 9) out[0] = mine[200];
    if (what == 10) { int x = 1; int* p = out[1] ? mine : &x; free(p); }
  }
  if (what == 11) {
    __shared__ int* one;
    if (threadIdx.x == 0) one = mine;
    __syncthreads();
    free(one);
    return;
  }
  free(mine);
}

extern "C" __global__ void sizes(unsigned long long* out, size_t size) {
  char* one = (char*)malloc(size);
  out[threadIdx.x] = (unsigned long long)one;
  free(one);
}

extern "C" __global__ void aligned(unsigned long long* out, size_t size, size_t align) {
  char* one = (char*)__nv_aligned_device_malloc(size, align);
  if (one) one[size - 1] = 1;
  out[threadIdx.x] = (unsigned long long)one;
  free(one);
}

extern "C" __global__ void words() {
  char* text = (char*)malloc(4);
  text[0] = 'a' + threadIdx.x;
  text[1] = '!';
  text[2] = 0;
  printf("%s\n", text);
  free(text);
}

extern "C" __global__ void atomics(int* out) {
  __shared__ int* counter;
  if (threadIdx.x == 0) {
    counter = (int*)malloc(2 * sizeof(int));
    atomicExch(counter, 5);
  }
  __syncthreads();
  atomicAdd(counter, threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = *counter;
  if (threadIdx.x == 0) out[32] = atomicAdd(counter + 1, 0);
}

extern "C" __global__ void churn(int* out, int turns) {
  int good = 0;
  for (int i = 0; i < turns; ++i) {
    int* one = (int*)malloc(1000);
    one[i % 250] = i;
    good += one[i % 250] == i;
    free(one);
  }
  out[threadIdx.x] = good;
}
