#ifndef SCAN_COMMON_H
#define SCAN_COMMON_H
#define BLOCK 64
__host__ __device__ static inline int added(int a, int b) { return a + b; }
#endif
