// Needs cuRAND's headers, which are in a package of their own.
#include <curand_kernel.h>
#include <stdio.h>

__global__ void random_walk(float *out, unsigned long long seed) {
  curandState state;
  curand_init(seed, threadIdx.x, 0, &state);
  out[threadIdx.x] = curand_uniform(&state);
}

int main() { random_walk<<<1, 32>>>(0, 7); }
