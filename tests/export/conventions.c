/* Calls a function of each calling convention, twice: with a number, and with one below 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

#ifndef FUNCTIONS
#define FUNCTIONS F(c_function, 2) F(memref, 2) F(last, 1) F(dltensors, 1) F(safe_call, 2) \
                  F(sequence, 2) F(first_of, 2) F(sized, 2) F(llvm_ir, 2)
#endif
#define F(name, count) int __tvm_ffi_##name(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
FUNCTIONS
#undef F

#ifdef WITHOUT_LIBRARY
int TVMFFIObjectDecRef(TVMFFIObjectHandle object) { return object != NULL; }
void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* error) { *error = NULL; }
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  printf("%s: %s\n", kind, message);
}
#endif

static void show(TVMFFIAny* value) {
  if (value->type_index == kTVMFFIInt) printf("%d", (int)value->v_int64);
  if (value->type_index == kTVMFFIFloat) printf("%g", value->v_float64);
  if (value->type_index == kTVMFFITensor) {
    DLTensor* tensor = (DLTensor*)((char*)value->v_obj + sizeof(TVMFFIObject));
    for (int64_t i = 0; i < tensor->shape[0]; i++) {
      printf(i ? " %g" : "%g", ((float*)tensor->data)[i]);
    }
  }
  if (value->type_index == kTVMFFIArray) {
    TVMFFISeqCell* items = (TVMFFISeqCell*)((char*)value->v_obj + sizeof(TVMFFIObject));
    for (int64_t i = 0; i < items->size; i++) {
      if (i) printf(", ");
      show((TVMFFIAny*)items->data + i);
    }
  }
}

static void call(const char* name, TVMFFISafeCallType function, TVMFFIAny* args, int count) {
  TVMFFIAny result = {.type_index = kTVMFFINone};
  printf("%s: ", name);
  if (function(NULL, args, count, &result)) {
    TVMFFIObjectHandle error = NULL;
    TVMFFIErrorMoveFromRaised(&error);
    if (error == NULL) return;
    TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
    printf("%.*s\n", (int)cell->message.size, cell->message.data);
    TVMFFIObjectDecRef(error);
    return;
  }
  show(&result);
  printf("\n");
  if (result.type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(result.v_obj);
}

#ifdef BEHIND
int BEHIND(void);
#else
#define BEHIND() 0
#endif

int main(void) {
  float data[3] = {1, 2, 3};
  int64_t shape[1] = {3}, strides[1] = {1};
  DLTensor x = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  TVMFFIAny args[2] = {{.type_index = kTVMFFIDLTensorPtr, .v_ptr = &x},
                       {.type_index = kTVMFFIFloat, .v_float64 = 2}};
#define F(name, count) call(#name, __tvm_ffi_##name, args, count);
  FUNCTIONS
  args[1].v_float64 = -1;
  FUNCTIONS
  return BEHIND();
}
