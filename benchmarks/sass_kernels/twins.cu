// The kernels of sass.py as they are written in CUDA C++: the same algorithm, sizes and strides as
// arguments, the same number of threads. INDEX is the type of products of indices: int, as most
// people write, or long long, which is right for tensors of any size.

#include <cuda_bf16.h>
#include <math.h>
#include <stdint.h>

#ifndef INDEX
#define INDEX int
#endif

typedef INDEX I;
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

__device__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

// ---- elementwise ----

KERNEL(256) add_1d(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

KERNEL(256) add_2d(const float *a, I a0, I a1, const float *b, I b0, I b1, float *c, I c0, I c1,
                   int m, int n) {
  int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  if (row < m && column < n)
    c[row * c0 + column * c1] = a[row * a0 + column * a1] + b[row * b0 + column * b1];
}

KERNEL(256) saxpy(float alpha, const float *x, float *y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y[i];
}

KERNEL(256) saxpy_vectors(float alpha, const float4 *x, float4 *y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n / 4) {
    float4 u = x[i], v = y[i];
    v.x = alpha * u.x + v.x;
    v.y = alpha * u.y + v.y;
    v.z = alpha * u.z + v.z;
    v.w = alpha * u.w + v.w;
    y[i] = v;
  }
}

#define ELEMENTWISE(name, value)                      \
  KERNEL(256) name(const float *a, float *c, int n) { \
    int i = blockIdx.x * 256 + threadIdx.x;           \
    if (i < n) {                                      \
      float x = a[i];                                 \
      c[i] = value;                                   \
    }                                                 \
  }

ELEMENTWISE(exp_of, expf(x))
ELEMENTWISE(log_of, logf(x))
ELEMENTWISE(tanh_of, tanhf(x))
ELEMENTWISE(sigmoid_of, 1.0f / (1.0f + expf(-x)))
ELEMENTWISE(erf_of, erff(x))
ELEMENTWISE(rsqrt_of, rsqrtf(x))
ELEMENTWISE(sin_of, sinf(x))
ELEMENTWISE(gelu, 0.5f * x * (1.0f + erff(x * 0.70710678f)))

// Whole tensors: what a careful programmer writes for `c[:] = a[:] * 2 + b[:]`.

KERNEL(256) whole_1d(const float *a, const float *b, float *c, int n) {
  int i = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (i < n) {  // a multiple of 4
    float4 u = *(const float4 *)(a + i), v = *(const float4 *)(b + i);
    *(float4 *)(c + i) =
        make_float4(u.x * 2 + v.x, u.y * 2 + v.y, u.z * 2 + v.z, u.w * 2 + v.w);
  }
}

KERNEL(256) whole_2d(const float *a, I a0, I a1, const float *b, I b0, I b1, float *c, I c0, I c1,
                     int m, int n) {
  int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  if (row < m && column < n)
    c[row * c0 + column * c1] = a[row * a0 + column * a1] * 2 + b[row * b0 + column * b1];
}

// ---- moving ----

KERNEL(256) transpose(const float *a, float *out, int m, int n) {
  __shared__ float tile[32][33];
  int tx = threadIdx.x, ty = threadIdx.y, bx = blockIdx.x, by = blockIdx.y;
  for (int i = ty; i < 32; i += 8)
    if (by * 32 + i < m && bx * 32 + tx < n) tile[i][tx] = a[(I)(by * 32 + i) * n + bx * 32 + tx];
  __syncthreads();
  for (int i = ty; i < 32; i += 8)
    if (bx * 32 + i < n && by * 32 + tx < m)
      out[(I)(bx * 32 + i) * m + by * 32 + tx] = tile[tx][i];
}

KERNEL(256) row_gather(const float *table, const int *rows, float *out, int n) {
  int row = blockIdx.y, column = blockIdx.x * 256 + threadIdx.x;
  if (column < n) out[(I)row * n + column] = table[(I)rows[row] * n + column];
}

KERNEL(256) paged_gather(const float *cache, const int *table, const int *lengths, float *out,
                         int tokens, int width) {
  int piece = blockIdx.x, token = blockIdx.y, sequence = blockIdx.z;
  int i = piece * 256 + threadIdx.x, pages = (tokens + 15) / 16;
  if (i >= width) return;
  I to = ((I)sequence * tokens + token) * width + i;
  if (token < lengths[sequence]) {
    int page = table[(I)sequence * pages + token / 16];
    out[to] = cache[((I)page * 16 + token % 16) * width + i];
  } else {
    out[to] = 0.0f;
  }
}

KERNEL(64) rotary(float *q, const int *positions, const float *cosines, const float *sines,
                  int heads) {
  int head = blockIdx.x, token = blockIdx.y, i = threadIdx.x, position = positions[token];
  float c = cosines[(I)position * 64 + i], s = sines[(I)position * 64 + i];
  float *at = q + ((I)token * heads + head) * 128 + i;
  float first = at[0], second = at[64];
  at[0] = first * c - second * s;
  at[64] = second * c + first * s;
}

KERNEL(256) stencil(const float *a, float *out, int nx, int ny, int nz, float middle, float side) {
  int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 4 + threadIdx.y + 1;
  int z = blockIdx.z * 2 + threadIdx.z + 1;
  if (x < nx - 1 && y < ny - 1 && z < nz - 1) {
    I plane = (I)ny * nx, at = z * plane + (I)y * nx + x;
    float sum = a[at - 1] + a[at + 1] + a[at - nx] + a[at + nx] + a[at - plane] + a[at + plane];
    out[at] = middle * a[at] + side * sum;
  }
}

KERNEL(256) histogram(const uint8_t *x, unsigned long long *counts, int n) {
  __shared__ int own[256];
  int tid = threadIdx.x;
  own[tid] = 0;
  __syncthreads();
  for (int k = 0; k < 64; k++) {
    int i = (blockIdx.x * 64 + k) * 256 + tid;
    if (i < n) atomicAdd(own + x[i], 1);
  }
  __syncthreads();
  if (own[tid] > 0) atomicAdd(counts + tid, (unsigned long long)own[tid]);
}

// ---- rows ----

template <typename F>
__device__ float of_block(float value, F f, float start) {
  __shared__ float warps[8];
  for (int step = 1; step < 32; step *= 2) value = f(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = start;
  for (int i = 0; i < 8; i++) value = f(value, warps[i]);
  return value;
}

__device__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ float added(float a, float b) { return a + b; }

KERNEL(128) softmax(const float *x, float *y, int m, int n) {
  int row = blockIdx.x * 128 + threadIdx.x;
  if (row >= m) return;
  x += (I)row * n;
  y += (I)row * n;
  float largest = x[0], sums[16] = {}, total = 0;
  for (int j = 1; j < n; j++) largest = fmaxf(largest, x[j]);
  for (int j = 0; j < n; j++) y[j] = expf(x[j] - largest);
  int whole = n / 16 * 16;
  for (int j = 0; j < whole; j += 16)
    for (int lane = 0; lane < 16; lane++) sums[lane] += y[j + lane];
  for (int lane = 0; lane < 16; lane++) total += sums[lane];
  for (int j = whole; j < n; j++) total += y[j];
  for (int j = 0; j < n; j++) y[j] = y[j] / total;
}

KERNEL(256) block_softmax(const float *x, float *y, int n) {
  x += (I)blockIdx.x * n;
  y += (I)blockIdx.x * n;
  float largest = -INFINITY, total = 0;
  for (int j = threadIdx.x; j < n; j += 256) largest = fmaxf(largest, x[j]);
  largest = of_block(largest, larger, -INFINITY);
  for (int j = threadIdx.x; j < n; j += 256) {
    float e = expf(x[j] - largest);
    y[j] = e;
    total += e;
  }
  total = of_block(total, added, 0.0f);
  for (int j = threadIdx.x; j < n; j += 256) y[j] = y[j] / total;
}

KERNEL(256) block_layer_norm(const float *x, const float *weight, const float *bias, float *y,
                             float eps, int n) {
  x += (I)blockIdx.x * n;
  y += (I)blockIdx.x * n;
  float own[8] = {}, total = 0, squares = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int j = k * 256 + threadIdx.x;
    if (j < n) total += own[k] = x[j];
  }
  float mean = of_block(total, added, 0.0f) / n;
#pragma unroll
  for (int k = 0; k < 8; k++)
    if (k * 256 + threadIdx.x < n) squares += (own[k] - mean) * (own[k] - mean);
  float scale = rsqrtf(of_block(squares, added, 0.0f) / n + eps);
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int j = k * 256 + threadIdx.x;
    if (j < n) y[j] = (own[k] - mean) * scale * weight[j] + bias[j];
  }
}

KERNEL(256) parts(const float *x, float *out, int n) {
  __shared__ float warps[8];
  float value = 0;
  for (int k = 0; k < 64; k++) {
    int i = (blockIdx.x * 64 + k) * 256 + threadIdx.x;
    if (i < n) value += x[i];
  }
  for (int step = 1; step < 32; step *= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x / 32 == 0) {
    value = warps[threadIdx.x % 8];
    for (int step = 1; step < 8; step *= 2) value += __shfl_xor_sync(~0u, value, step);
    if (threadIdx.x == 0) out[blockIdx.x] = value;
  }
}

// ---- products ----

KERNEL(256) matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row < m && column < n) {
    float total = 0;
    for (int i = 0; i < k; i++) total += a[(I)row * k + i] * b[(I)i * n + column];
    c[(I)row * n + column] = total;
  }
}

KERNEL(256) sgemm_16(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float of_a[16][16], of_b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float total = 0;
  for (int base = 0; base < k; base += 16) {
    of_a[ty][tx] = row < m && base + tx < k ? a[(I)row * k + base + tx] : 0;
    of_b[ty][tx] = base + ty < k && column < n ? b[(I)(base + ty) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; i++) total += of_a[ty][i] * of_b[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[(I)row * n + column] = total;
}

__device__ void load_tile(float (*tile)[32], const float *a, int row, int column, int m, int n) {
#pragma unroll
  for (int step = 0; step < 4; step++) {
    int i = step * 8 + threadIdx.y;
    bool inside = row + i < m && column + threadIdx.x < n;
    tile[i][threadIdx.x] = inside ? a[(I)(row + i) * n + column + threadIdx.x] : 0;
  }
}

KERNEL(256) tiled_matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float of_a[32][32], of_b[32][32];
  int tx = threadIdx.x, ty = threadIdx.y, bx = blockIdx.x, by = blockIdx.y;
  float sums[4] = {};
  for (int base = 0; base < k; base += 32) {
    load_tile(of_a, a, by * 32, base, m, k);
    load_tile(of_b, b, base, bx * 32, k, n);
    __syncthreads();
    for (int i = 0; i < 32; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) sums[j] += of_a[ty * 4 + j][i] * of_b[i][tx];
    __syncthreads();
  }
  int column = bx * 32 + tx;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    int row = by * 32 + ty * 4 + j;
    if (row < m && column < n) c[(I)row * n + column] = sums[j];
  }
}

KERNEL(256) sgemm_64(const float *a, const float *b, float *c, int n, int k) {
  __shared__ float of_a[16][64], of_b[16][64];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, bx = blockIdx.x, by = blockIdx.y;
  float sums[4][4] = {};
  for (int base = 0; base < k; base += 16) {
    float4 u = *(const float4 *)(a + (I)(base + ty) * n + by * 64 + tx * 4);
    float4 v = *(const float4 *)(b + (I)(base + ty) * n + bx * 64 + tx * 4);
    *(float4 *)&of_a[ty][tx * 4] = u;
    *(float4 *)&of_b[ty][tx * 4] = v;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float4 u = *(const float4 *)&of_a[i][ty * 4], v = *(const float4 *)&of_b[i][tx * 4];
      float left[4] = {u.x, u.y, u.z, u.w}, right[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int y = 0; y < 4; y++)
#pragma unroll
        for (int x = 0; x < 4; x++) sums[y][x] += left[y] * right[x];
    }
    __syncthreads();
  }
#pragma unroll
  for (int y = 0; y < 4; y++)
    *(float4 *)(c + (I)(by * 64 + ty * 4 + y) * n + bx * 64 + tx * 4) =
        make_float4(sums[y][0], sums[y][1], sums[y][2], sums[y][3]);
}

KERNEL(256) conv2d(const float *x, const float *weight, const float *bias, float *y, int channels,
                   int filters, int rows, int columns) {
  int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  int image = blockIdx.z / filters, out = blockIdx.z % filters;
  if (row < rows && column < columns) {
    float total = bias[out];
    for (int channel = 0; channel < channels; channel++)
#pragma unroll
      for (int dy = 0; dy < 3; dy++)
#pragma unroll
        for (int dx = 0; dx < 3; dx++) {
          int iy = row + dy - 1, ix = column + dx - 1;
          float factor = weight[(((I)out * channels + channel) * 3 + dy) * 3 + dx];
          if (0 <= iy && iy < rows && 0 <= ix && ix < columns)
            total += x[(((I)image * channels + channel) * rows + iy) * columns + ix] * factor;
        }
    y[(((I)image * filters + out) * rows + row) * columns + column] = total;
  }
}

// ---- tensor cores: tiles of 128 x 256 of bfloat16, slices of 32, 4 stages, warps of 64 x 64 ----

enum { M = 128, N = 256, K = 32, STAGES = 4, STAGE = (M + N) * K };

__device__ int swizzled(int row, int column, int columns) {
  int key = columns >= 64 ? row % 8 : row / 2 % 4;
  return row * columns + (column / 8 ^ key) * 8;
}

__device__ void copy_chunk(uint32_t to, const __nv_bfloat16 *from, bool inside) {
  int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

__device__ void load_matrices(uint32_t *to, uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

__device__ void load_transposed(uint32_t *to, uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

__device__ void multiply(float *c, const uint32_t *a, const uint32_t *b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(256, 1)
    tensor_core_matmul(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int m, int n,
                       int k) {
  extern __shared__ __align__(128) char memory[];
  uint32_t shared = (uint32_t)__cvta_generic_to_shared(memory);
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int across = ceil_div(n, N), of_group = 8 * across, first = blockIdx.x / of_group * 8;
  int height = min(ceil_div(m, M) - first, 8), inner = blockIdx.x % of_group;
  int row = (first + inner % height) * M, column = inner / height * N;

  int ra = t / 4, ca = t % 4 * 8, rb = t / 32, cb = t % 32 * 8;
  const __nv_bfloat16 *of_a = a + (long long)(row + ra) * k + ca;
  const __nv_bfloat16 *of_b = b + (long long)rb * n + column + cb;
  uint32_t to_a = swizzled(ra, ca, K) * 2, to_b = (M * K + swizzled(rb, cb, N)) * 2;
  int ends_a[2], ends_b[4], end_b = column + cb < n ? k - rb : 0;
#pragma unroll
  for (int i = 0; i < 2; i++) ends_a[i] = row + ra + i * 64 < m ? k - ca : 0;
#pragma unroll
  for (int i = 0; i < 4; i++) ends_b[i] = end_b - i * 8;

  auto load_slices = [&](uint32_t stage, int at) {
    const __nv_bfloat16 *source = of_a + at;
#pragma unroll
    for (int i = 0; i < 2; i++, source += (long long)k * 64)
      copy_chunk(stage + to_a + i * 64 * K * 2, source, at < ends_a[i]);
    source = of_b + (long long)at * n;
#pragma unroll
    for (int i = 0; i < 4; i++, source += (long long)n * 8)
      copy_chunk(stage + to_b + i * 8 * N * 2, source, at < ends_b[i]);
    asm volatile("cp.async.commit_group;");
  };

  int down = warp / 4 * 64, right = warp % 4 * 64;
  uint32_t place_a[2], place_b[4], left[2][4][4], other[2][4][4];
#pragma unroll
  for (int i = 0; i < 2; i++)
    place_a[i] = shared + swizzled(down + lane % 16, i * 16 + lane / 16 * 8, K) * 2;
#pragma unroll
  for (int i = 0; i < 4; i++)
    place_b[i] =
        shared + (M * K + swizzled(lane % 16, right + i * 16 + lane / 16 * 8, N)) * 2;
  auto load_fragments = [&](int which, uint32_t stage, int step) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      load_matrices(left[which][i], place_a[step] + stage + i * 16 * K * 2);
#pragma unroll
    for (int i = 0; i < 4; i++)
      load_transposed(other[which][i], place_b[i] + stage + step * 16 * N * 2);
  };

  float total[4][8][4] = {};
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; stage++)
    load_slices(shared + stage * STAGE * 2, stage * K);
  asm volatile("cp.async.wait_group 2;" ::: "memory");
  __syncthreads();
  load_fragments(0, 0, 0);
  const uint32_t last = STAGE * (STAGES - 1) * 2;
  uint32_t here = 0, free = last;
  for (int at = 0; at < k; at += K) {
#pragma unroll
    for (int step = 0; step < 2; step++) {
      if (step == 1) {
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        free = here;
        here = here < last ? here + STAGE * 2 : 0;
      }
      load_fragments((step + 1) % 2, here, (step + 1) % 2);
      if (step == 0) load_slices(shared + free, at + (STAGES - 1) * K);
#pragma unroll
      for (int y = 0; y < 4; y++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
          int x = y % 2 ? 7 - i : i;
          multiply(total[y][x], left[step][y], &other[step][x / 2][x % 2 * 2]);
        }
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();

  row += down;
  column += right;
  float *own = (float *)memory + warp * 16 * 64;
  auto place = [&](int r, int at) {
    int key = r * 4 / 2 % 8;
    return own + r * 64 + (at / 4 ^ key) * 4 + at % 4;
  };
#pragma unroll
  for (int y = 0; y < 4; y++) {
#pragma unroll
    for (int x = 0; x < 8; x++)
#pragma unroll
      for (int i = 0; i < 2; i++)
        *(float2 *)place(lane / 4 + 8 * i, x * 8 + lane % 4 * 2) =
            make_float2(total[y][x][2 * i], total[y][x][2 * i + 1]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      int r = lane / 16 + i * 2, at = lane % 16 * 4, to = row + y * 16 + r;
      float4 chunk = *(float4 *)place(r, at);
      if (to < m && column + at < n) *(float4 *)(c + (I)to * n + column + at) = chunk;
    }
    __syncwarp();
  }
}
