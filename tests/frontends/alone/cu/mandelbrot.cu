// The Mandelbrot set; a macro says where functions run.
#include <complex>
#include <fstream>
#include <vector>
#define BOTH __host__ __device__
#define KERNEL(name) extern "C" __global__ void name

struct Complex {
  float re, im;
  BOTH Complex(float r, float i) : re(r), im(i) {}
  BOTH float norm() const { return re * re + im * im; }
  BOTH Complex operator*(const Complex &o) const {
    return Complex(re * o.re - im * o.im, re * o.im + im * o.re);
  }
  BOTH Complex operator+(const Complex &o) const { return Complex(re + o.re, im + o.im); }
};

BOTH int steps(Complex c, int limit) {
  Complex z(0, 0);
  for (int i = 0; i < limit; ++i) {
    z = z * z + c;
    if (z.norm() > 4) return i;
  }
  return limit;
}

KERNEL(mandelbrot)(int *out, int width, int height, int limit) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width)
    out[y * width + x] = steps(Complex(-2 + 3.0f * x / width, -1 + 2.0f * y / height), limit);
}

bool saved(const char *path, const std::vector<int> &picture) {
  std::ofstream file(path);
  for (size_t i = 0; i < picture.size(); ++i) file << picture[i] << '\n';
  return !!file;
}
