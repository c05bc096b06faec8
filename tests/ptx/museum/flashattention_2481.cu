// flash-attention #2481: a kernel reads gradients that the launch before still writes
// https://github.com/Dao-AILab/flash-attention/pull/2481
// kind: launch
// The backward preprocessing is launched so that it may begin before the kernel before it has ended. It
// reads that kernel's output at once, and now and then gets half of it.
// mend: griddepcontrol.wait before the first read.
// before: missing wait; griddepcontrol.wait is missing
#include "tools.cuh"
K(earlier) {
  LAUNCH_DEPENDENTS;
  b[G] = a[G] * 3;
}
K(fault) {
  int own = a[G];
  GRID_WAIT;  //+
  b[1024 + G] = own * b[G];  //!
}
