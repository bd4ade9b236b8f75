// The same function through tvm-ffi's C++ headers: linked in, and loaded from the library.
//
//   python export.py
//   cmake -B build -DCMAKE_PREFIX_PATH=$(tvm-ffi-config --cmakedir) && cmake --build build
//   build/tvm_ffi ./scale.so
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <iostream>

extern "C" int __tvm_ffi_scale(void* handle, const TVMFFIAny* args, int32_t num_args,
                               TVMFFIAny* result);

namespace ffi = tvm::ffi;

int main(int argc, char** argv) {
  float a[4] = {0, 1, 2, 3}, b[4] = {0};
  int64_t shape[1] = {4}, strides[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  DLTensor y = x;
  y.data = b;

  ffi::Function::InvokeExternC(nullptr, __tvm_ffi_scale, &x, &y, 2.5);
  std::cout << b[0] << " " << b[1] << " " << b[2] << " " << b[3] << "\n";

  ffi::Module module = ffi::Module::LoadFromFile(argc > 1 ? argv[1] : "./scale.so");
  ffi::Function scale = module->GetFunction("scale").value();
  scale(&x, &y, -1.0);
  std::cout << b[0] << " " << b[1] << " " << b[2] << " " << b[3] << "\n";
}
