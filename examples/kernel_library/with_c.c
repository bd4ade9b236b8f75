/* Calls the library of kernels.py through its header.
 *
 *   ferrule build kernels.py -o dist
 *   cc with_c.c -I dist $(tvm-ffi-config --cflags) -L dist -l activations \
 *     $(tvm-ffi-config --ldflags --libs) -Wl,-rpath,dist -o with_c
 */
#include <stdio.h>

#include "activations.h"

static void print_error(void) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
  printf("%.*s: %.*s\n", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
         cell->message.data);
  TVMFFIObjectDecRef(error);
}

int main(void) {
  float a[4] = {-1, 0, 1, 2}, b[4] = {0}, sum = 0;
  int64_t four[1] = {4}, three[1] = {3}, one[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, four, one, 0};
  DLTensor y = {b, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, four, one, 0};

  if (relu(&x, &y) != 0 || sum_of_squares(&y, &sum) != 0) {
    print_error();
    return 1;
  }
  printf("%g %g %g %g, squares %g\n", b[0], b[1], b[2], b[3], sum);

  y.shape = three;
  if (relu(&x, &y) == 0) return 1;
  print_error();
  return 0;
}
