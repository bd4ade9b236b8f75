// A heat equation: structs by value, and integers of fixed width.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct __align__(8) {
  float diffusion;
  int32_t width;
} Settings;

__host__ int rounded(int value, int by) { return (value + by - 1) / by * by; }

static __global__ void unused(float *x) { x[0] = (float)M_PI; }

__global__ void heat_step(const float *old, float *fresh, Settings settings) {
  int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= settings.width) return;
  float left = old[i > 0 ? i - 1 : 0], right = old[min(i + 1, settings.width - 1)];
  fresh[i] = old[i] + settings.diffusion * (left + right - 2 * old[i]);
}

void simulate(float *a, float *b, int steps, Settings settings) {
  for (int step = 0; step < steps; ++step) {
    heat_step<<<rounded(settings.width, 64) / 64, 64>>>(a, b, settings);
    float *swapped = a;
    a = b;
    b = swapped;
  }
  memset(&settings, 0, sizeof settings);
}
