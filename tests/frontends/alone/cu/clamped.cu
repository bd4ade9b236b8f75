// A device function that calls a function of the host, which no compiler takes.
#include <stdio.h>

float limit(float x) { return x > 1 ? 1 : x; }

__global__ void clamped(float *x) { x[threadIdx.x] = limit(x[threadIdx.x]); }

int main() { clamped<<<1, 32>>>(0); }
