void axpy(int n, float a, float *x, float *y) {
#pragma omp target teams distribute parallel for map(to: x[0:n]) map(tofrom: y[0:n])
  for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
float sum(int n, float *x) {
  float s = 0;
#pragma omp target teams distribute parallel for reduction(+:s) map(to: x[0:n])
  for (int i = 0; i < n; i++) s += x[i];
  return s;
}
int main(void) { float x[10] = {1}, y[10] = {2}; axpy(10, 2, x, y); return sum(10, y) > 1e9; }
