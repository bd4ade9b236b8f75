"""What ferrule is compared with: functions of tvm-ffi that check nothing, and C++ through
`tvm_ffi.cpp.load_inline`, with and without checks written by hand.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tvm_ffi

from ferrule.runtime import Engine, ObjectCode

COUNTS: Final = (1, 3, 8)

RETURNS: Final = """
define i32 @__tvm_ffi_unchecked(ptr %handle, ptr %args, i32 %count, ptr %result) {
  ret i32 0
}
"""

# Calls a function `times` times with the same arguments, and counts the calls that failed.
LOOP: Final = """
define i64 @call_loop(ptr %function, ptr %args, i32 %count, i64 %times) {
entry:
  %result = alloca {i32, i32, i64}
  store {i32, i32, i64} zeroinitializer, ptr %result
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %failed = phi i64 [0, %entry], [%sum, %loop]
  %status = call i32 %function(ptr null, ptr %args, i32 %count, ptr %result)
  %wrong = icmp ne i32 %status, 0
  %one = zext i1 %wrong to i64
  %sum = add i64 %failed, %one
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %end
end:
  ret i64 %sum
}
"""


def load_text(text: str, name: str) -> Engine:
    """LLVM assembly, linked into this process."""
    from llvmlite import binding

    from ferrule.runtime.linking.engine import host_triple, initialize_llvm

    initialize_llvm()
    triple = host_triple()
    target = binding.Target.from_triple(triple)
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")
    module = binding.parse_assembly(text)
    module.verify()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)
    return Engine.load(ObjectCode(name, bytes(machine.emit_object(module)), triple, ""))


def unchecked() -> Any:
    """A function of tvm-ffi whose code returns at once, whatever it is given."""
    engine = load_text(RETURNS, "unchecked")
    address = engine.address("__tvm_ffi_unchecked")
    return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=engine)


# ---- a loop in C ----


class Any16(ctypes.Structure):
    """A `TVMFFIAny`: kind, padding, payload."""

    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("payload", ctypes.c_uint64),
    ]


@dataclass(frozen=True, slots=True)
class CallLoop:
    """Calls code over and over, without Python between."""

    engine: Engine

    def run(self, address: int, args: ctypes.Array[Any16], times: int) -> None:
        """`times` calls; RuntimeError if one of them refuses its arguments."""
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
        )
        loop = prototype(self.engine.address("call_loop"))
        failed = loop(address, ctypes.addressof(args), len(args), times)
        if failed:
            raise RuntimeError(f"{failed} of {times} calls failed")


def call_loop() -> CallLoop:
    """The loop, compiled."""
    return CallLoop(load_text(LOOP, "call_loop"))


# ---- C++ ----


_CHECK: Final = """
#include <tvm/ffi/tvm_ffi.h>
using tvm::ffi::TensorView;

static inline void check(const TensorView& t, const char* name, int64_t n, int64_t m) {
  if (t.device().device_type != kDLCPU) TVM_FFI_THROW(ValueError) << name << ": not on the CPU";
  if (t.ndim() != 2) TVM_FFI_THROW(ValueError) << name << ": ndim is " << t.ndim();
  DLDataType d = t.dtype();
  if (d.code != kDLFloat || d.bits != 32 || d.lanes != 1)
    TVM_FFI_THROW(TypeError) << name << ": not float32";
  if (t.shape()[0] != n || t.shape()[1] != m) TVM_FFI_THROW(ValueError) << name << ": wrong sizes";
  if (t.strides()[1] != 1 || t.strides()[0] != m)
    TVM_FFI_THROW(ValueError) << name << ": not compact";
  if (reinterpret_cast<uintptr_t>(t.data_ptr()) % 4 != 0)
    TVM_FFI_THROW(ValueError) << name << ": not aligned";
}

void plain_nothing() {}
void plain_int(int64_t i) {}
"""

ADD_ONE: Final = """
#include <tvm/ffi/tvm_ffi.h>

void add_one(tvm::ffi::TensorView a, tvm::ffi::TensorView b) {
  const float* from = static_cast<const float*>(a.data_ptr());
  float* to = static_cast<float*>(b.data_ptr());
  for (int64_t i = 0; i < a.shape()[0]; ++i) to[i] = from[i] + 1.0f;
}
"""


def cpp_missing() -> str | None:
    """Why C++ cannot be compiled here, or None."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++")):
        return "no C++ compiler ($CXX, c++, g++ or clang++)"
    if not shutil.which("ninja"):
        return "no ninja, which tvm-ffi builds with"
    return None


def load_inline(name: str, source: str, functions: list[str], folder: Path) -> Any:
    """A C++ module, built anew in `folder`."""
    from tvm_ffi import cpp

    folder.mkdir(parents=True, exist_ok=True)
    return cpp.load_inline(
        name, cpp_sources=source, functions=functions, build_directory=str(folder)
    )


def cpp_functions(folder: Path) -> Any:
    """A module: `plain_nothing`, `plain_int`, and `plain1`, `checked1`, … by number of tensors."""
    source = _CHECK + "".join(_plain(n) + _checked(n) for n in COUNTS)
    names = [f"{kind}{n}" for kind in ("plain", "checked") for n in COUNTS]
    return load_inline("peers", source, ["plain_nothing", "plain_int", *names], folder)


def _plain(count: int) -> str:
    return f"void plain{count}({_tensors(count)}) {{}}\n"


def _checked(count: int) -> str:
    # The first gives the sizes that the others must have, so its rank is checked before.
    first = 'if (t0.ndim() != 2) TVM_FFI_THROW(ValueError) << "t0: ndim is " << t0.ndim();'
    sizes = "int64_t n = t0.shape()[0], m = t0.shape()[1];"
    checks = " ".join(f'check(t{i}, "t{i}", n, m);' for i in range(count))
    return f"void checked{count}({_tensors(count)}) {{ {first} {sizes} {checks} }}\n"


def _tensors(count: int) -> str:
    return ", ".join(f"TensorView t{i}" for i in range(count))
