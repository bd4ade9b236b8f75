// A reduction in shared memory, as a template with a launcher for each size of a block.
#include <cstdio>
#include <iostream>
#include <vector>

using namespace std;

template <class T, unsigned int kBlock>
__global__ void block_sums(const T *in, T *out, unsigned int n) {
  extern __shared__ __align__(sizeof(T)) unsigned char raw[];
  T *sums = reinterpret_cast<T *>(raw);
  unsigned int i = blockIdx.x * kBlock * 2 + threadIdx.x;
  T sum = i < n ? in[i] : T(0);
  if (i + kBlock < n) sum += in[i + kBlock];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned int s = kBlock / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) sums[threadIdx.x] = sum = sum + sums[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

template <class T>
void launch_block_sums(const std::vector<T> &values, T *in, T *out, int threads) {
  const int n = static_cast<int>(values.size()), shared = threads * sizeof(T);
  switch (threads) {
    case 128: block_sums<T, 128><<<n / 256, 128, shared>>>(in, out, n); break;
    case 64: block_sums<T, 64><<<n / 128, 64, shared>>>(in, out, n); break;
  }
  cout << "launched" << endl;
}

template void launch_block_sums<float>(const std::vector<float> &, float *, float *, int);
