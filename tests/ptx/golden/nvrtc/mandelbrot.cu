// The usual picture: turns until a point leaves the circle of radius 2, or `most`.
extern "C" __global__ void mandelbrot(int *out, int width, int height, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float cr = -2.0f + 3.0f * x / width, ci = -1.5f + 3.0f * y / height, zr = 0, zi = 0;
  int turns = 0;
  while (turns < most && zr * zr + zi * zi <= 4.0f) {
    float next = zr * zr - zi * zi + cr;
    zi = 2.0f * zr * zi + ci;
    zr = next;
    turns++;
  }
  out[y * width + x] = turns;
}
