"""Checks the arguments of a kernel call and packs them as the bytes of the kernel's parameters."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import tvm_ffi

from ferrule.runtime.abi import DeviceType
from ferrule.runtime.errors import LaunchError
from ferrule.runtime.ptx.layout import LIMITS, MAX_THREADS, KernelLayout, called, kernel_layout
from ferrule.runtime.values.views import address_of
from ferrule.specs import BFloat16, DType, Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Scalar
from ferrule.specs.rounding import nearest

_FORMS: Final = {
    ("int", 8): "<b",
    ("int", 16): "<h",
    ("int", 32): "<i",
    ("int", 64): "<q",
    ("uint", 8): "<B",
    ("uint", 16): "<H",
    ("uint", 32): "<I",
    ("uint", 64): "<Q",
    ("bool", 8): "<B",
    ("float", 16): "<H",
    ("float", 32): "<f",
    ("float", 64): "<d",
}
"""The struct code for a number of this kind and width; a 2-byte float is written as its bits."""


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """The blocks of a grid, the threads of a block, and its dynamic shared memory in bytes."""

    grid: Sequence[int]
    block: Sequence[int]
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Packed:
    """The packed arguments of a call: the bytes of the kernel's parameters, the start of each one,
    the launch sizes, and the GPU of the tensors."""

    data: ctypes.Array[ctypes.c_char]
    starts: tuple[int, ...]
    sizes: LaunchSizes
    device: int | None


class Packer:
    """Checks the arguments of one kernel's calls and packs them."""

    def __init__(self, kernel: Signature) -> None:
        self._signature: Final = called(kernel)
        self._layout: Final[KernelLayout] = kernel_layout(kernel)

    def pack(self, values: Sequence[Any]) -> Packed:
        """Check and pack the values of a call; raises TypeError, ValueError or LaunchError."""
        wanted = len(self._signature.arguments)
        if len(values) != wanted:
            raise TypeError(
                f"Expects {wanted} parameters when calling: `{self._signature}`, "
                f"but got {len(values)}"
            )
        data = ctypes.create_string_buffer(max(1, self._layout.size))
        devices: list[int] = []
        for position, place in enumerate(self._layout.places):
            value, param = values[position], place.param
            if isinstance(param, Scalar):
                form = _FORMS[param.dtype.kind, param.dtype.bits]
                number = self._number(param.dtype, value, position)
                struct.pack_into(form, data, place.offset, number)
            else:
                address = self._address(value, position, devices)
                struct.pack_into("<Q", data, place.offset, address)
        device = devices[0] if devices else None
        return Packed(data, self._layout.starts, self._sizes(values), device)

    def _sizes(self, values: Sequence[Any]) -> LaunchSizes:
        found = []
        for position, (name, (least, most)) in enumerate(LIMITS.items(), len(self._layout.places)):
            value = values[position]
            if isinstance(value, bool) or not isinstance(value, int):
                self._mismatch("type", position, "int32", _kind(value))
            if not least <= value <= most:
                words = name.replace("_", " ")
                self._invalid(f"expected {words} to be in [{least}, {most}], but got {value}")
            found.append(value)
        threads = found[3] * found[4] * found[5]
        if threads > MAX_THREADS:
            self._invalid(f"expected at most {MAX_THREADS} threads in a block, but got {threads}")
        return LaunchSizes(found[:3], found[3:6], found[6])

    def _number(self, dtype: DType, value: Any, position: int) -> int | float:
        wanted = (int, float) if dtype.kind == "float" else (int,)
        if not isinstance(value, wanted):
            self._mismatch("type", position, dtype.name, _kind(value))
        if dtype.kind == "bool":
            return int(bool(value))
        if dtype.kind == "float":
            return _rounded(dtype, value)
        least, most = dtype.range
        if not least <= value <= most:
            raise ValueError(
                f"Out of bound value on argument #{position} when calling: `{self._signature}`, "
                f"expected to be in {dtype.name} range [{least}, {most}], but got {value}"
            )
        return int(value)

    def _address(self, value: Any, position: int, devices: list[int]) -> int:
        match value:
            case None:
                return 0
            case ctypes.c_void_p():
                return value.value or 0
            case int() if not isinstance(value, bool):
                # A negative int is the address with the same 64 bits.
                return value & (2**64 - 1)
            case tvm_ffi.Tensor():
                code, index = value.__dlpack_device__()
                if code != DeviceType.CUDA:
                    self._mismatch("device", position, "a tensor on cuda", str(value.device))
                if devices and devices[0] != index:
                    first = f"cuda:{devices[0]}, where the tensors before it are"
                    self._mismatch("device", position, first, f"cuda:{index}")
                devices.append(index)
                return address_of(value)
        wanted = "a pointer, an int, None or a tensor on a GPU"
        self._mismatch("type", position, wanted, _kind(value))

    def _mismatch(self, what: str, position: int, wanted: str, got: str) -> NoReturn:
        raise (TypeError if what == "type" else ValueError)(
            f"Mismatched {what} on argument #{position} when calling: `{self._signature}`, "
            f"expected {wanted}, but got {got}"
        )

    def _invalid(self, why: str) -> NoReturn:
        raise LaunchError(f"Invalid launch of {self._signature.name}: {why}")


def _rounded(dtype: DType, value: int | float) -> int | float:
    """Round a number to the dtype, once: to nearest, ties to even, or infinity.  For `_FORMS`."""
    number = nearest(dtype, value)
    if dtype.bits >= 32:
        return number
    if dtype is BFloat16:
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
        return int(bits >> 16)
    (half,) = struct.unpack("<H", struct.pack("<e", number))
    return int(half)


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
