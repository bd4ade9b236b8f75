// A vector sum with its program around it.
#include <assert.h>
#include <cuda_runtime.h>
#include <helper_cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                     \
  do {                                                                  \
    cudaError_t status = call;                                          \
    if (status != cudaSuccess) {                                        \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));   \
      exit(EXIT_FAILURE);                                               \
    }                                                                   \
  } while (0)

__global__ void vector_add(const float *a, const float *b, float *c, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) {
    assert(i >= 0);
    c[i] = a[i] + b[i];
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 50000;
  size_t bytes = n * sizeof(float);
  float *host = (float *)malloc(bytes), *a, *b, *c;
  for (int i = 0; i < n; ++i) host[i] = rand() / (float)RAND_MAX;
  CHECK(cudaMalloc((void **)&a, bytes));
  CHECK(cudaMalloc((void **)&b, bytes));
  CHECK(cudaMalloc((void **)&c, bytes));
  CHECK(cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice));
  vector_add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  CHECK(cudaGetLastError());
  printf("done }\n");
  cudaFree(a), cudaFree(b), cudaFree(c);
  free(host);
  return 0;
}
