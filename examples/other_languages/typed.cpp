// The typed header, which needs the C API alone and suits every version of tvm-ffi.
//
//   python export.py
//   c++ $(tvm-ffi-config --cxxflags) typed.cpp scale.o $(tvm-ffi-config --ldflags --libs) -o typed
#include <iostream>

#include "scale.hpp"

int main() {
  float a[4] = {0, 1, 2, 3}, b[4] = {0};
  int64_t shape[1] = {4}, strides[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  DLTensor y = x;
  y.data = b;

  scale(&x, &y, 2.5f);
  std::cout << b[0] << " " << b[1] << " " << b[2] << " " << b[3] << "\n";

  try {
    scale(&x, nullptr, 2.5f);
  } catch (const ferrule::Error& error) {
    std::cout << error.kind() << ": " << error.what() << "\n";
  }
}
