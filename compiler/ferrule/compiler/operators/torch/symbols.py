"""Functions of libtorch that operators use: its stable C interface, and a few of C++.

The C interface is torch's own for extensions that outlive a version of torch
(`torch/csrc/inductor/aoti_torch/c/shim.h`). It does not have what autograd needs: whether a tensor
requires a gradient, whether gradients are computed at all, the count of a tensor's writes, and a
kernel that refuses a gradient. These are functions of C++, found by their mangled names. Where one
is missing an operator is made of Python functions instead.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from llvmlite import ir

from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I32, I64, PTR, VOID

# C++ names, mangled as in the Itanium C++ ABI: `c10::TensorImpl::requires_grad() const`,
# `c10::GradMode::is_enabled()`, and `torch::autograd::impl::bump_version(at::Tensor const&)`.
REQUIRES_GRAD: Final = "_ZNK3c1010TensorImpl13requires_gradEv"
GRAD_IS_ENABLED: Final = "_ZN3c108GradMode10is_enabledEv"
BUMP_VERSION: Final = "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE"
PERSONALITY: Final = "__gxx_personality_v0"
RESUME: Final = "_Unwind_Resume"
"""What LLVM calls where an exception goes on after a cleanup."""
DELETE: Final = "_ZdlPv"  # `operator delete(void*)`
CURRENT_STREAM: Final = "aoti_torch_get_current_cuda_stream"
DELETE_TENSOR: Final = "aoti_torch_delete_tensor_object"
CHECK: Final = "aoti_torch_check"
EMPTY: Final = "aoti_torch_empty_strided"

_TYPES: Final[dict[str, ir.FunctionType]] = {
    REQUIRES_GRAD: ir.FunctionType(I1, [PTR]),
    GRAD_IS_ENABLED: ir.FunctionType(I1, []),
    BUMP_VERSION: ir.FunctionType(VOID, [PTR]),
    PERSONALITY: ir.FunctionType(I32, [], var_arg=True),
    DELETE: ir.FunctionType(VOID, [PTR]),
    CURRENT_STREAM: ir.FunctionType(I32, [I32, PTR]),
    DELETE_TENSOR: ir.FunctionType(I32, [PTR]),
    CHECK: ir.FunctionType(VOID, [I1, PTR, PTR, I32, PTR]),
    EMPTY: ir.FunctionType(I32, [I64, PTR, PTR, I32, I32, I32, PTR]),
    "aoti_torch_new_tensor_handle": ir.FunctionType(I32, [PTR, PTR]),
    "aoti_torch_clone": ir.FunctionType(I32, [PTR, PTR]),
    "aoti_torch_create_tensor_from_blob": ir.FunctionType(
        I32, [PTR, I64, PTR, PTR, I64, I32, I32, I32, PTR]
    ),
    **{
        f"aoti_torch_get_{each}": ir.FunctionType(I32, [PTR, PTR])
        for each in ("data_ptr", "device_type", "device_index", "dtype", "dim", "sizes", "strides")
    },
}


def torch_function(e: Emitter, name: str) -> ir.Function:
    """A function of libtorch, declared in the module at first use."""
    return e.symbol(name, _TYPES[name])


def used(e: Emitter) -> tuple[str, ...]:
    """The functions of libtorch that the module has declared."""
    return tuple(name for name in _TYPES if name in e.module.globals)


@cache
def addresses(names: tuple[str, ...]) -> dict[str, int] | None:
    """The addresses in this process; None if one of the functions is missing."""
    found = {name: address_of(name) for name in names}
    known = {name: address for name, address in found.items() if address is not None}
    return known if len(known) == len(found) else None


def address_of(name: str) -> int | None:
    """The address of one function in torch's libraries, or of the C++ runtime that they use."""
    for library in libraries():
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


@cache
def libraries() -> tuple[Any, ...]:
    """libtorch_cpu, libc10, and libtorch_cuda where it is installed."""
    # libtorch_cpu finds the symbols of the libraries that it needs, the C++ runtime among them.
    names = ("torch_cpu", "c10", "torch_cuda")
    paths = [_folder() / f"lib{each}.so" for each in names]
    return tuple(ctypes.CDLL(str(path)) for path in paths if path.exists())


def library_paths() -> tuple[str, ...]:
    """The libraries with which an operator is linked."""
    return tuple(str(_folder() / f"lib{each}.so") for each in ("torch_cpu", "c10"))


def _folder() -> Path:
    return Path(sys.modules["torch"].__file__ or "").parent / "lib"


def load_torch(what: str) -> Any:
    """torch, imported.  Raises an ImportError that says which function of ours needs it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"{what} needs torch, which cannot be imported here ({error}): "
            f"pip install 'ferrule[torch]'",
            name="torch",
        ) from error


# ---- torch's dispatch keys, by its names of device types ----


KEYS: Final = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "xpu": "XPU",
    "mps": "MPS",
}
"""The devices whose tensors an operator takes."""
