/* A program that loads the exported library, with the C API alone.
 *
 *   python export.py
 *   cc $(tvm-ffi-config --cflags) dynamic.c $(tvm-ffi-config --ldflags --libs) -o dynamic
 *   ./dynamic ./scale.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tvm/ffi/c_api.h>

static void check(int status) {
  if (status == 0) return;
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
  fprintf(stderr, "%.*s: %.*s\n", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
          cell->message.data);
  TVMFFIObjectDecRef(error);
  exit(1);
}

static TVMFFIAny value(int32_t type_index) {
  TVMFFIAny made;
  memset(&made, 0, sizeof made);
  made.type_index = type_index;
  return made;
}

static TVMFFIAny text(const char* of) {
  TVMFFIAny made = value(kTVMFFIRawStr);
  made.v_c_str = of;
  return made;
}

static TVMFFIAny tensor(DLTensor* of) {
  TVMFFIAny made = value(kTVMFFIDLTensorPtr);
  made.v_ptr = of;
  return made;
}

/* Calls a function that tvm-ffi has registered under a name. */
static TVMFFIAny call_global(const char* name, TVMFFIAny* args, int count) {
  TVMFFIByteArray key = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  TVMFFIAny result = value(kTVMFFINone);
  check(TVMFFIFunctionGetGlobal(&key, &function));
  check(TVMFFIFunctionCall(function, args, count, &result));
  check(TVMFFIObjectDecRef(function));
  return result;
}

int main(int argc, char** argv) {
  float a[4] = {0, 1, 2, 3}, b[4] = {0};
  int64_t shape[1] = {4}, strides[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  DLTensor y = {b, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};

  TVMFFIAny path = text(argc > 1 ? argv[1] : "./scale.so");
  TVMFFIAny module = call_global("ffi.ModuleLoadFromFile", &path, 1);
  TVMFFIAny query[3] = {module, text("scale"), value(kTVMFFIBool)};
  TVMFFIAny function = call_global("ffi.ModuleGetFunction", query, 3);
  if (function.type_index != kTVMFFIFunction) return 1;

  TVMFFIAny args[3] = {tensor(&x), tensor(&y), value(kTVMFFIFloat)};
  TVMFFIAny result = value(kTVMFFINone);
  args[2].v_float64 = 2.5;
  check(TVMFFIFunctionCall(function.v_obj, args, 3, &result));
  printf("%g %g %g %g\n", b[0], b[1], b[2], b[3]);

  check(TVMFFIObjectDecRef(function.v_obj));
  check(TVMFFIObjectDecRef(module.v_obj));
  return 0;
}
