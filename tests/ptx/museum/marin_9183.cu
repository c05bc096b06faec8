// Marin #9183: two warps wait for the launch before, the others read its results
// https://github.com/marin-community/marin/pull/9183
// kind: launch
// In a grouped product only the warps that load and schedule wait for the launch before. The others read the
// bounds of the groups from global memory, may see old ones, and leave; the loader then waits for ever.
// mend: there the overlap was given up; here each warp waits before it reads the bounds.
// launch: block 128
// before: missing wait; griddepcontrol.wait is missing
#include "tools.cuh"
K(earlier) {
  LAUNCH_DEPENDENTS;
  if (T < 8) b[T] = 16 * T;
}
K(fault) {
  if (WARP < 2) GRID_WAIT;  //-
  GRID_WAIT;  //+
  int bound = b[T % 8];  //!
  b[1024 + T] = bound + a[T];
}
