"""Fake pointers and fake streams: examples of arguments that are handles.

`make_ptr` and `nullptr` make objects that hold an address, so they can also be arguments of a call.
A fake stream is only an example for compilation, not an argument.
"""

from __future__ import annotations

import ctypes

from ferrule.specs.deferred import dataclass
from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, as_dtype
from ferrule.specs.params import AddressSpace, EnvStream, Pointer, Stream, check_alignment
from ferrule.specs.params.tensors import check_index


@dataclass(frozen=True, slots=True)
class FakePointer:
    """An address and the dtype of the elements there, made by `make_ptr` and `nullptr`."""

    dtype: DType
    value: int
    address_space: AddressSpace
    assumed_align: int

    def __ferrule_spec__(self, name: str) -> Pointer:
        return Pointer(name, self.dtype, self.address_space, self.assumed_align)

    def __tvm_ffi_opaque_ptr__(self) -> int:
        return self.value

    @property
    def _pointer(self) -> int:
        """The address, as programs for CuTe DSL ask for it."""
        return self.value


@dataclass(frozen=True, slots=True)
class FakeStream:
    """A stream without a handle, made by `make_fake_stream`; `env`: the caller's current stream."""

    env: bool = False
    device: str | None = None
    device_id: int | None = None

    def __ferrule_spec__(self, name: str) -> Stream | EnvStream:
        return EnvStream(name, self.device, self.device_id) if self.env else Stream(name)


def make_ptr(
    dtype: DType | str,
    value: int | ctypes.c_void_p,
    mem_space: AddressSpace = AddressSpace.generic,
    *,
    assumed_align: int | None = None,
) -> FakePointer:
    """A pointer to elements of a dtype at an address.

    `assumed_align`: the alignment of the address in bytes, by default the element size.
    Raises TypeError for a value that is not an address, and ValueError for an address that is out
    of range or not aligned.
    """
    checked = as_dtype(dtype)
    if not isinstance(mem_space, AddressSpace):
        raise TypeError(f"make_ptr: mem_space must be an AddressSpace, but got {mem_space!r}")
    address = (value.value or 0) if isinstance(value, ctypes.c_void_p) else value
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"make_ptr: an address must be an int or c_void_p, but got {value!r}")
    if not 0 <= address < 1 << 63:
        raise ValueError(f"make_ptr: an address must be from 0 to 2**63 - 1, but got {address}")
    align = check_alignment(checked, assumed_align)
    if address % align:
        raise ValueError(f"make_ptr: the address {address:#x} is no multiple of {align} bytes")
    return FakePointer(checked, address, mem_space, align)


def nullptr(
    dtype: DType | str,
    mem_space: AddressSpace = AddressSpace.generic,
    *,
    assumed_align: int | None = None,
) -> FakePointer:
    """A null pointer to elements of a dtype."""
    return make_ptr(dtype, 0, mem_space, assumed_align=assumed_align)


def make_fake_stream(
    *,
    use_tvm_ffi_env_stream: bool = False,
    device: str | None = None,
    device_id: int | None = None,
) -> FakeStream:
    """An example of a stream.

    `use_tvm_ffi_env_stream`: the stream is not an argument of the call; the wrapper uses the
    caller's current stream on the device of the first tensor.  `device` and `device_id` name
    another device, and are needed if there is no tensor.  Raises ValueError for a device without
    `use_tvm_ffi_env_stream`: then the call gives the stream.
    """
    if not use_tvm_ffi_env_stream and (device is not None or device_id is not None):
        raise ValueError(
            "make_fake_stream: a device is asked for where the stream is the caller's current "
            "one; give use_tvm_ffi_env_stream=True too"
        )
    if device is None and device_id is not None:
        raise ValueError("make_fake_stream: device_id needs a device")
    place = None if device is None else as_device_type(device)
    index = None if device_id is None else check_index(device_id)
    return FakeStream(bool(use_tvm_ffi_env_stream), place, index)
