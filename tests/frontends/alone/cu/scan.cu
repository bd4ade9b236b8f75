#include <stdio.h>
#include "scan_common.h"

// An inclusive sum of one block.
__global__ void scan(const int *in, int *out, int n) {
  __shared__ int values[BLOCK];
  const int i = threadIdx.x;
  values[i] = i < n ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < BLOCK; step *= 2) {
    int more = i >= step ? values[i - step] : 0;
    __syncthreads();
    values[i] = added(values[i], more);
    __syncthreads();
  }
  if (i < n) {
    out[i] = values[i];
    if (i == n - 1 && out[i] < 0) printf("overflow: %d\n", out[i]);
  }
}

int main() {
#ifdef VERBOSE
  if (getenv("VERBOSE")) {
    printf("%d\n", BLOCK);
#else
  {
#endif
    scan<<<1, BLOCK>>>(0, 0, 0);
  }
  return 0;
}
