// A histogram of bytes with atomics in shared and in global memory.
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <string>

typedef uint32_t uint;
const int kBins = 32;

__device__ inline void count(uint *bins, uint8_t value) { atomicAdd(bins + value / 8, 1u); }

__global__ void histogram(const uint8_t *data, uint *bins, uint64_t size) {
  __shared__ uint mine[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
    count(mine, data[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) atomicAdd(bins + i, mine[i]);
}

struct Options {
  int blocks = 4;
  int threads;
};

static Options parsed(int argc, const char *argv[]) {
  Options options{8, 64};
  for (int i = 1; i < argc; ++i) options.blocks = std::stoi(std::string(argv[i]));
  return options;
}

int main(int argc, const char *argv[]) {
  auto options = parsed(argc, argv);
  uint *bins;
  uint8_t *data;
  cudaMalloc(&bins, kBins * sizeof(uint));
  histogram<<<options.blocks, options.threads>>>(data, bins, 100);
  return cudaDeviceSynchronize() == cudaSuccess ? EXIT_SUCCESS : EXIT_FAILURE;
}
