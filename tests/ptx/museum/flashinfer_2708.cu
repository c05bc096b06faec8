// FlashInfer #2708: the wait for the launch before is compiled to nothing
// https://github.com/flashinfer-ai/flashinfer/issues/2708
// kind: launch
// A template calls a wait that stands behind a macro. The host asks for overlapping launches, but the macro
// is not defined: tiles are fetched while the launch before still writes them.
// mend: define the macro for the compiler.
// before: missing wait; griddepcontrol.wait is missing
#define MAY_WAIT 0  //-
#define MAY_WAIT 1  //+
#include "tools.cuh"
#if MAY_WAIT
#define WAIT_FOR_LAUNCH GRID_WAIT
#else
#define WAIT_FOR_LAUNCH
#endif
K(earlier) {
  LAUNCH_DEPENDENTS;
  b[G] = a[G] + 7;
  PROXY_ALL;
}
K(fault) {
  __shared__ alignas(16) int tile[64];
  __shared__ u64 full;
  if (T == 0) { mb_init(&full, 1); INIT_FENCE; }
  SYNC;
  if (T == 0) {
    WAIT_FOR_LAUNCH;
    mb_expect(&full, sizeof tile);
    tma_in(tile, b, sizeof tile, &full);  //!
  }
  mb_wait(&full, 0);
  b[1024 + T] = tile[T];
}
