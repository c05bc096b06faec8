// llama.cpp #23690: a new kernel is launched like the others, and does not wait like them
// https://github.com/ggml-org/llama.cpp/pull/23690
// kind: launch
// All kernels of the library are launched so that they may overlap, and each waits before it touches data.
// A new transform came without the wait: it overwrites what the launch before still reads.
// mend: the wait at its beginning.
// launch: grid 2
// before: missing wait; griddepcontrol.wait is missing
#include "tools.cuh"
K(earlier) {
  LAUNCH_DEPENDENTS;
  b[1024 + G] = b[G] + a[G];
}
K(fault) {
  GRID_WAIT;  //+
  int other = __shfl_xor_sync(~0u, a[G], 1);
  b[G] = LANE & 1 ? other - a[G] : other + a[G];  //!
}
