/* Made by …
#ifndef FERRULE_EXPORT_KINDS_HPP
#define FERRULE_EXPORT_KINDS_HPP

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include <tvm/ffi/c_api.h>

#ifndef FERRULE_ERROR
#define FERRULE_ERROR
namespace ferrule {
/* An error that a function raised: what() is its message, kind() the name of its class. */
class Error : public std::runtime_error {
 public:
  Error(const std::string& kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  const std::string& kind() const { return kind_; }

  /* The error that this thread has raised, which is raised no longer. */
  static Error raised() {
    TVMFFIObjectHandle handle = NULL;
    TVMFFIErrorMoveFromRaised(&handle);
    if (handle == NULL) return Error("RuntimeError", "a call failed without an error");
    const TVMFFIErrorCell* cell = reinterpret_cast<const TVMFFIErrorCell*>(
        reinterpret_cast<const char*>(handle) + sizeof(TVMFFIObject));
    Error error(std::string(cell->kind.data, cell->kind.size),
                std::string(cell->message.data, cell->message.size));
    TVMFFIObjectDecRef(handle);
    return error;
  }

 private:
  std::string kind_;
};
}  // namespace ferrule
#endif  // FERRULE_ERROR

extern "C" int32_t __tvm_ffi_f(void* handle, const TVMFFIAny* args, int32_t num_args,
    TVMFFIAny* result);

/* f(a: Tensor([n0, 8], float32), b: Optional[Tensor([n0], int8)], k: int32 = 3, s: str, u: uint64, p: Pointer(float32), c: Literal[3], yes: Literal[True], d: dtype, dev: Device, n: None, h: float16, flag: bool, double: int8, t: Tuple[int32, float32], größe: int16, result: float64) -> int32
 * Says * / and / * and more.
 *
 * Backslash \ and '"""'.
 *
 * a: Tensor([n0, 8], float32)
 * b: Optional[Tensor([n0], int8)]
 * k: int32
 * s: str
 * u: uint64
 * p: Pointer(float32)
 * c: Literal[3]
 * yes: Literal[True]
 * d: dtype
 * dev: Device
 * n: None
 * h: float16
 * flag: bool
 * double_: int8
 * t: Tuple[int32, float32]
 * arg15: int16
 * result_: float64
 * result: int32
 *
 * Throws ferrule::Error.
 */
inline int32_t f(DLTensor* a, DLTensor* b, int32_t k, const char* s, int64_t u, void* p, DLDataType d, DLDevice dev, float h, bool flag, int8_t double_, TVMFFIAny t, int16_t arg15, double result_) {
  TVMFFIAny args[17];
  TVMFFIAny returned;
  int status;
  memset(args, 0, sizeof args);
  memset(&returned, 0, sizeof returned);
  args[0].type_index = kTVMFFIDLTensorPtr;
  args[0].v_ptr = a;
  if (b != NULL) { args[1].type_index = kTVMFFIDLTensorPtr; args[1].v_ptr = b; }
  args[2].type_index = kTVMFFIInt;
  args[2].v_int64 = k;
  args[3].type_index = kTVMFFIRawStr;
  args[3].v_c_str = s;
  args[4].type_index = kTVMFFIInt;
  args[4].v_int64 = u;
  args[5].type_index = kTVMFFIOpaquePtr;
  args[5].v_ptr = p;
  args[6].type_index = kTVMFFIInt;
  args[6].v_int64 = INT64_C(3);
  args[7].type_index = kTVMFFIBool;
  args[7].v_int64 = 1;
  args[8].type_index = kTVMFFIDataType;
  args[8].v_dtype = d;
  args[9].type_index = kTVMFFIDevice;
  args[9].v_device = dev;
  args[10].type_index = kTVMFFINone;
  args[11].type_index = kTVMFFIFloat;
  args[11].v_float64 = h;
  args[12].type_index = kTVMFFIBool;
  args[12].v_int64 = flag;
  args[13].type_index = kTVMFFIInt;
  args[13].v_int64 = double_;
  args[14] = t;
  args[15].type_index = kTVMFFIInt;
  args[15].v_int64 = arg15;
  args[16].type_index = kTVMFFIFloat;
  args[16].v_float64 = result_;
  status = __tvm_ffi_f(NULL, args, 17, &returned);
  if (status != 0) throw ferrule::Error::raised();
  return (int32_t)returned.v_int64;
}

extern "C" int32_t __tvm_ffi_g(void* handle, const TVMFFIAny* args, int32_t num_args,
    TVMFFIAny* result);

/* g() -> str
 *
 * result: str, to be released by the caller
 *
 * Throws ferrule::Error.
 */
inline TVMFFIAny g() {
  TVMFFIAny args[1];
  TVMFFIAny returned;
  int status;
  memset(args, 0, sizeof args);
  memset(&returned, 0, sizeof returned);
  status = __tvm_ffi_g(NULL, args, 0, &returned);
  if (status != 0) throw ferrule::Error::raised();
  return returned;
}

extern "C" int32_t __tvm_ffi_double(void* handle, const TVMFFIAny* args, int32_t num_args,
    TVMFFIAny* result);

/* double(g: uint8) -> float64
 * A word of C.
 *
 * g: uint8
 * result: float64
 *
 * Throws ferrule::Error.
 */
inline double double_(uint8_t g) {
  TVMFFIAny args[1];
  TVMFFIAny returned;
  int status;
  memset(args, 0, sizeof args);
  memset(&returned, 0, sizeof returned);
  args[0].type_index = kTVMFFIInt;
  args[0].v_int64 = g;
  status = __tvm_ffi_double(NULL, args, 1, &returned);
  if (status != 0) throw ferrule::Error::raised();
  return (double)returned.v_float64;
}

extern "C" int32_t __tvm_ffi_flags(void* handle, const TVMFFIAny* args, int32_t num_args,
    TVMFFIAny* result);

/* flags(a: bool) -> bool
 *
 * a: bool
 * result: bool
 *
 * Throws ferrule::Error.
 */
inline bool flags(bool a) {
  TVMFFIAny args[1];
  TVMFFIAny returned;
  int status;
  memset(args, 0, sizeof args);
  memset(&returned, 0, sizeof returned);
  args[0].type_index = kTVMFFIBool;
  args[0].v_int64 = a;
  status = __tvm_ffi_flags(NULL, args, 1, &returned);
  if (status != 0) throw ferrule::Error::raised();
  return (bool)returned.v_int64;
}

extern "C" int32_t __tvm_ffi_sizes(void* handle, const TVMFFIAny* args, int32_t num_args,
    TVMFFIAny* result);

/* sizes(x: Shape([n0, 2]), o: Optional[int32]) -> Tensor([n0], int8)
 *
 * x: Shape([n0, 2])
 * o: Optional[int32]
 * result: Tensor([n0], int8), to be released by the caller
 *
 * Throws ferrule::Error.
 */
inline TVMFFIAny sizes(TVMFFIAny x, TVMFFIAny o) {
  TVMFFIAny args[2];
  TVMFFIAny returned;
  int status;
  memset(args, 0, sizeof args);
  memset(&returned, 0, sizeof returned);
  args[0] = x;
  args[1] = o;
  status = __tvm_ffi_sizes(NULL, args, 2, &returned);
  if (status != 0) throw ferrule::Error::raised();
  return returned;
}

#endif  // FERRULE_EXPORT_KINDS_HPP
