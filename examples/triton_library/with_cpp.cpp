// Calls the library of rows.py through its header; there is neither Python nor Triton.
//
//   ferrule build rows.py -o dist
//   c++ with_cpp.cpp -I dist $(tvm-ffi-config --cxxflags) -L dist -l rows
//     $(tvm-ffi-config --ldflags --libs) -ldl -Wl,-rpath,dist -o with_cpp
//
// It says "no GPU" where there is none; what is wrong with a call is said there, too.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "rows.hpp"

using Address = unsigned long long;

// The few functions of the driver that bring numbers to a GPU and back.
struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);

  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    return function == nullptr ? -1 : function(arguments...);
  }

  bool start() const {
    int device = 0;
    void* context = nullptr;
    return library != nullptr && call("cuInit", 0u) == 0 && call("cuDeviceGet", &device, 0) == 0 &&
           call("cuDevicePrimaryCtxRetain", &context, device) == 0 &&
           call("cuCtxSetCurrent", context) == 0;
  }
};

struct Matrix {
  int64_t shape[2], strides[2];
  DLTensor tensor;

  Matrix(void* data, int64_t rows, int64_t columns, int64_t stride)
      : shape{rows, columns},
        strides{stride, 1},
        tensor{data, {kDLCUDA, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0} {}
};

static int refused(int64_t columns) {
  alignas(16) static float somewhere[4];
  Matrix a(somewhere, 1, columns, columns), b(somewhere, 1, columns, columns);
  Matrix y(somewhere, 1, columns + (columns == 4), columns);
  try {
    swiglu(&a.tensor, &b.tensor, &y.tensor);
  } catch (const ferrule::Error& error) {
    std::printf("%s\n", error.kind().c_str());
    return 0;
  }
  return 1;
}

int main() {
  // A result of another size, and rows that no version is for.
  if (refused(4) != 0 || refused(65537) != 0) return 1;
  Driver driver;
  if (!driver.start()) {
    std::printf("no GPU\n");
    return 0;
  }
  const int64_t rows = 3, columns = 5, count = rows * columns;
  std::vector<float> values(count, 1.0f), found(count);
  Address memory[3];
  for (Address& each : memory) {
    if (driver.call("cuMemAlloc_v2", &each, static_cast<size_t>(4 * count)) != 0) return 1;
    const void* from = values.data();
    driver.call("cuMemcpyHtoD_v2", each, from, static_cast<size_t>(4 * count));
  }
  Matrix a(reinterpret_cast<void*>(memory[0]), rows, columns, columns);
  Matrix b(reinterpret_cast<void*>(memory[1]), rows, columns, columns);
  Matrix y(reinterpret_cast<void*>(memory[2]), rows, columns, columns);
  try {
    swiglu(&a.tensor, &b.tensor, &y.tensor);
  } catch (const ferrule::Error& error) {
    std::printf("%s: %s\n", error.kind().c_str(), error.what());
    return 1;
  }
  void* to = found.data();
  driver.call("cuMemcpyDtoH_v2", to, memory[2], static_cast<size_t>(4 * count));
  std::printf("silu(1) * 1 = %.6f\n", static_cast<double>(found[count - 1]));
  return 0;
}
