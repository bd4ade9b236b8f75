/* A program with the exported object inside. It needs no Python, and of tvm-ffi the C API alone.
 *
 *   python export.py
 *   cc $(tvm-ffi-config --cflags) static.c scale.o $(tvm-ffi-config --ldflags --libs) -o static
 */
#include <stdio.h>

#include "scale.h"

/* The error that this thread has raised, printed and gone. */
static void print_error(void) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
  printf("%.*s: %.*s\n", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
         cell->message.data);
  TVMFFIObjectDecRef(error);
}

int main(void) {
  float a[4] = {0, 1, 2, 3}, b[4] = {0};
  int64_t four[1] = {4}, three[1] = {3}, one[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, four, one, 0};
  DLTensor y = {b, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, four, one, 0};

  if (scale(&x, &y, 2.5f) != 0) {
    print_error();
    return 1;
  }
  printf("%g %g %g %g\n", b[0], b[1], b[2], b[3]);

  y.shape = three; /* what is wrong is refused before anything runs */
  if (scale(&x, &y, 2.5f) == 0) return 1;
  print_error();
  return 0;
}
