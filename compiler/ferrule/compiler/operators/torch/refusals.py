"""The errors of a call, for arguments that have no memory.

A fake kernel knows the sizes, strides, dtypes and devices of tensors without elements. So that it
raises the same errors as the call, it calls a function with the same checks and an empty body.
What it hands over says what the fake tensors say, and its addresses are never followed.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import tvm_ffi

from ferrule import specs
from ferrule.compiler.binding import load
from ferrule.compiler.building import compiled
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.hostcode import HostCode
from ferrule.compiler.operators.torch.plans import candidates_of
from ferrule.compiler.operators.torch.words import DEVICE_NAMES, dlpack_word
from ferrule.compiler.origin import CompiledOrigin
from ferrule.compiler.overloading import overload_module
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass

_ADDRESS: Final = 1 << 32
"""An address with every alignment that a spec can ask for."""


def checks_of(signature: specs.Signature) -> Function:
    """A function with the checks of this signature, which does nothing with its arguments."""
    origins = [_empty(each) for each in candidates_of(signature)]
    if not isinstance(signature, specs.Overloads):
        return load(origins[0])
    module = overload_module(signature, [each.module for each in origins])
    return load(CompiledOrigin(module, "", target=origins[0].target))


def _empty(signature: specs.Signature) -> CompiledOrigin:
    without = signature.altered(result=None)
    code = HostCode.from_address(ctypes.CDLL(None).getpid)
    return compiled(without, CFunction("getpid", [], code=code))


_SIZES: Final = ctypes.POINTER(ctypes.c_int64)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", _SIZES),
        ("strides", _SIZES),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("dl", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


# PYFUNCTYPE, because PyCapsule_New needs the GIL.
_new_capsule: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


@dataclass(slots=True)
class _Described:
    """A tensor that says what a fake tensor says; `kept` is the memory of its description."""

    managed: _Managed
    kept: tuple[Any, ...]

    def __dlpack__(self, **_: Any) -> Any:
        return _new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.managed.dl.device_type, self.managed.dl.device_id


@dataclass(frozen=True, slots=True)
class Description:
    """What a tensor says of itself: sizes and strides in elements, a dtype as DLPack's word, and
    the name and index of a device as torch has them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: int
    device: str
    index: int

    @classmethod
    def of(cls, tensor: Any) -> Description:
        """The description of a torch tensor, with the sizes that symbols stand for."""
        shape, strides = (tuple(map(hint, each)) for each in (tensor.shape, tensor.stride()))
        device = tensor.device
        return cls(shape, strides, dlpack_word(tensor.dtype), device.type, device.index or 0)

    def stand_in(self) -> tuple[Any, object]:
        """A tensor of tvm-ffi with the same description and without memory, and the owner of the
        description, which must live as long."""
        rank = len(self.shape)
        sizes = [(ctypes.c_int64 * rank)(*each) for each in (self.shape, self.strides)]
        managed = _Managed()
        dl = managed.dl
        dl.data = 0 if 0 in self.shape else _ADDRESS
        dl.device_type = int(DEVICE_NAMES.get(self.device, 0))
        dl.device_id, dl.ndim, dl.dtype = self.index, rank, self.dtype
        dl.shape, dl.strides = (ctypes.cast(each, _SIZES) for each in sizes)
        owner = _Described(managed, tuple(sizes))
        return tvm_ffi.from_dlpack(owner), owner


def hint(size: Any) -> int:
    """A size, or the size that a symbol stands for in the call that is traced."""
    node = getattr(size, "node", None)
    return int(size) if node is None or node.hint is None else int(node.hint)
