"""Launchers written by hand in C++ on tvm-ffi's `cubin_launcher.h`, for `launch.py`.

A case is a number of arguments by kind; all launch the kernel `launched` of an image of their own,
which takes the tensors' addresses, their size, and the numbers. *Plain* is what the header's own
example does: it asks for the caller's stream and launches. *Checked* makes the checks that
ferrule's wrapper makes, and looks whether the tensors' GPU is the current one.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import peers
import tvm_ffi

KERNEL: Final = "launched"
BLOCK: Final = 256


@dataclass(frozen=True, slots=True)
class Case:
    """So many vectors of float32 that share their size, of int32 and of float32."""

    name: str
    symbol: str
    tensors: int = 0
    ints: int = 0
    floats: int = 0

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Name and kind of each: `t0` is a tensor, `i0` an int32, `f0` a float32."""
        counts = ("t", self.tensors), ("i", self.ints), ("f", self.floats)
        return [(f"{kind}{number}", kind) for kind, count in counts for number in range(count)]

    @property
    def ptx(self) -> str:
        """The image: a kernel that returns at once."""
        kinds = ["u64"] * (self.tensors + bool(self.tensors))
        kinds += ["u32"] * self.ints + ["f32"] * self.floats
        params = ", ".join(f".param .{kind} p{number}" for number, kind in enumerate(kinds))
        head = ".version 7.8\n.target sm_80\n.address_size 64\n"
        return f"{head}.visible .entry {KERNEL}({params})\n{{\n  ret;\n}}\n"


CASES: Final = (
    Case("no arguments", "none"),
    Case("3 tensors", "three", tensors=3),
    Case("5 arguments: 3 tensors, 2 numbers", "five", tensors=3, ints=1, floats=1),
    Case("19 arguments: 5 tensors, 14 numbers", "nineteen", tensors=5, ints=9, floats=5),
)

_HEAD: Final = """
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/cubin_launcher.h>
#include <tvm/ffi/tvm_ffi.h>
using tvm::ffi::TensorView;

static inline void check(const TensorView& t, const char* name, int64_t n, DLDevice device) {
  if (t.device().device_type != kDLCUDA) TVM_FFI_THROW(ValueError) << name << ": not on a GPU";
  if (t.device().device_id != device.device_id)
    TVM_FFI_THROW(ValueError) << name << ": on another GPU";
  if (t.ndim() != 1) TVM_FFI_THROW(ValueError) << name << ": ndim is " << t.ndim();
  DLDataType d = t.dtype();
  if (d.code != kDLFloat || d.bits != 32 || d.lanes != 1)
    TVM_FFI_THROW(TypeError) << name << ": not float32";
  if (t.size(0) != n) TVM_FFI_THROW(ValueError) << name << ": wrong size";
  if (t.stride(0) != 1 && n > 1) TVM_FFI_THROW(ValueError) << name << ": not compact";
  if (reinterpret_cast<uintptr_t>(t.data_ptr()) % 4 != 0)
    TVM_FFI_THROW(ValueError) << name << ": not aligned";
}

static inline void check_current(DLDevice device) {
  CUdevice current;
  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(cuCtxGetDevice(&current));
  if (current != device.device_id) TVM_FFI_THROW(RuntimeError) << "another GPU is current";
}

static inline void launch(tvm::ffi::CubinKernel& kernel, void** args, unsigned blocks,
                          DLDevice device) {
  tvm::ffi::dim3 grid(blocks), block(BLOCK);
  auto stream = static_cast<tvm::ffi::cuda_api::StreamHandle>(
      TVMFFIEnvGetStream(device.device_type, device.device_id));
  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(kernel.Launch(args, grid, block, stream));
}
"""

_IMAGE: Final = """
static const char image_{symbol}[] = R"ptx({ptx})ptx";
TVM_FFI_EMBED_CUBIN_FROM_BYTES({symbol}, image_{symbol})
"""

_FUNCTION: Final = """
void {kind}_{symbol}({parameters}) {{
  static auto kernel = TVM_FFI_EMBED_CUBIN_GET_KERNEL({symbol}, "{kernel}");
  {checks}
  {locals}
  void* args[] = {{{addresses}}};
  launch(kernel, args, {blocks}, {device});
}}
"""
_TYPES: Final = {"t": "TensorView", "i": "int32_t", "f": "float"}
_FIRST: Final = 'if (t0.ndim() != 1) TVM_FFI_THROW(ValueError) << "t0: ndim is " << t0.ndim();'


def source(cases: Sequence[Case]) -> str:
    """The C++ of all launchers: `plain_<symbol>` and `checked_<symbol>`."""
    parts = [_HEAD.replace("BLOCK", str(BLOCK))]
    for case in cases:
        parts.append(_IMAGE.format(symbol=case.symbol, ptx=case.ptx))
        parts += [_launcher(case, "plain", ""), _launcher(case, "checked", _checks(case))]
    return "".join(parts)


def _checks(case: Case) -> str:
    if not case.tensors:
        return "check_current({kDLCUDA, 0});"
    each = [f'check(t{i}, "t{i}", t0.size(0), t0.device());' for i in range(case.tensors)]
    return " ".join((_FIRST, *each, "check_current(t0.device());"))


def _launcher(case: Case, kind: str, checks: str) -> str:
    named = case.arguments
    pointers = [f"void* p{i} = t{i}.data_ptr();" for i in range(case.tensors)]
    addresses = [f"&p{name[1:]}" if each == "t" else f"&{name}" for name, each in named]
    blocks, device = "1", "{kDLCUDA, 0}"
    if case.tensors:
        pointers.append("int64_t n = t0.size(0);")
        addresses.insert(case.tensors, "&n")
        blocks, device = f"(n + {BLOCK - 1}) / {BLOCK}", "t0.device()"
    return _FUNCTION.format(
        kind=kind,
        symbol=case.symbol,
        kernel=KERNEL,
        checks=checks,
        parameters=", ".join(f"{_TYPES[each]} {name}" for name, each in named),
        locals=" ".join(pointers),
        addresses=", ".join(addresses) or "nullptr",
        blocks=blocks,
        device=device,
    )


def missing() -> str | None:
    """Why they cannot be compiled here, or None."""
    if (reason := peers.cpp_missing()) is not None:
        return reason
    return None if _toolkit() else "no CUDA headers ($CUDA_HOME, or beside nvcc)"


def _toolkit() -> Path | None:
    """The folder with cuda.h."""
    nvcc = shutil.which("nvcc")
    beside = [] if nvcc is None else [Path(nvcc).resolve().parents[1]]
    asked = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [root / "include" for root in (*asked, *beside, Path("/usr/local/cuda"))]
    needed = "cuda.h", "cuda_runtime.h"
    return next((at for at in folders if all((at / name).is_file() for name in needed)), None)


@dataclass(frozen=True, slots=True)
class Launchers:
    """The launchers, compiled and loaded."""

    module: Any
    library: ctypes.CDLL

    def function(self, kind: str, case: Case) -> Any:
        """As Python calls it."""
        return getattr(self.module, f"{kind}_{case.symbol}")

    def address(self, kind: str, case: Case) -> int:
        """Of its packed C symbol."""
        symbol = self.library[f"__tvm_ffi_{kind}_{case.symbol}"]
        address = ctypes.cast(symbol, ctypes.c_void_p).value
        assert address is not None
        return address


def load(cases: Sequence[Case], folder: Path, level: str = "-O2") -> Launchers:
    """Compile; the driver's symbols are those that the process has."""
    from tvm_ffi import cpp

    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{kind}_{case.symbol}" for case in cases for kind in ("plain", "checked")]
    path = cpp.build_inline(
        "launchers",
        cpp_sources=source(cases),
        functions=names,
        extra_cflags=[level, "-DTVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API=1"],
        extra_include_paths=[str(_toolkit())],
        build_directory=str(folder),
    )
    return Launchers(tvm_ffi.load_module(path), ctypes.CDLL(path))
