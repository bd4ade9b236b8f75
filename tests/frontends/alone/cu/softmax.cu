/* A softmax of rows, a warp for each, with the host's version first. */
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <float.h>
#include <omp.h>

void softmax_cpu(float *out, const float *in, int rows, int columns) {
#pragma omp parallel for
  for (int row = 0; row < rows; row++) {
    const float *x = in + row * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int j = 0; j < columns; j++) most = fmaxf(most, x[j]);
    for (int j = 0; j < columns; j++) sum += expf(x[j] - most);
    for (int j = 0; j < columns; j++) out[row * columns + j] = expf(x[j] - most) / sum;
  }
}

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

__global__ void softmax_kernel(float *__restrict__ out, const float *__restrict__ in, int rows,
                               int columns) {
  const int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (row >= rows) return;
  const float *x = in + row * columns;
  float most = -FLT_MAX, sum = 0.0f;
  for (int j = lane; j < columns; j += 32) most = fmaxf(most, x[j]);
  for (int offset = 16; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, offset));
  for (int j = lane; j < columns; j += 32) sum += expf(x[j] - most);
  sum = warp_sum(sum);
  for (int j = lane; j < columns; j += 32)
    out[row * columns + j] = expf(x[j] - most) / sum;
}

void softmax(int which, float *out, const float *in, int rows, int columns, int threads) {
  if (which == 1) softmax_kernel<<<(rows * 32 + threads - 1) / threads, threads>>>(out, in, rows, columns);
}
