// TileLang #2612: a barrier inside a loop is moved before the branch around it
// https://github.com/tile-ai/tilelang/issues/2612
// kind: compiler
// Every fourth thread runs a loop that writes its element and reads a neighbour's. The barrier between the
// two was hoisted out of the branch, where it orders nothing of the loop.
// mend: all threads run the loop, with barriers in it; the branch guards the accesses alone.
// before: data race; nothing orders them
#include "tools.cuh"
K(fault) {
  __shared__ int row[64];
  bool mine = T % 4 == 0;
  int sum = 0;
  row[T] = 0;
  SYNC;
  for (int i = 0; i < n; i++) {
    if (mine) row[T] = a[T] + i;  //!
    SYNC;  //+
    if (mine) sum += row[(T + 32) % 64];  //!
    SYNC;  //+
  }
  b[T] = sum;
}
