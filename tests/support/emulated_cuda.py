"""libcuda of an emulated GPU, called by ctypes, and a few kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from fake_machine import FakeMachine

KERNELS = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 table[16];
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 count)
{
    ret;
}
.visible .entry nothing()
{
    ret;
}
.visible .entry fails()
{
    ret;
}
.visible .entry small() .maxntid 64
{
    ret;
}
.visible .entry exact() .reqntid 32, 2
{
    ret;
}
"""


class Cuda:
    """libcuda by ctypes: each call is checked, `result` gives what it refuses with."""

    def __init__(self, machine: FakeMachine) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.machine = machine

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            status = self.result(name, *arguments)
            assert status == 0, f"{name}: {status}: {self.text(status)}"

        return call

    def result(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, name)(*arguments))

    def text(self, status: int) -> str:
        place = ctypes.c_char_p()
        self.library.cuGetErrorString(status, ctypes.byref(place))
        return (place.value or b"").decode()

    def made(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint64) -> Any:
        """What a function writes to its first argument."""
        place = kind()
        getattr(self, name)(ctypes.byref(place), *arguments)
        return place.value

    def handle(self, name: str, *arguments: Any) -> ctypes.c_uint64:
        return ctypes.c_uint64(self.made(name, *arguments))

    def number(self, name: str, *arguments: Any) -> int:
        return int(self.made(name, *arguments, kind=ctypes.c_int))

    def read(self, address: int, size: int) -> bytes:
        to = ctypes.create_string_buffer(size)
        self.cuMemcpyDtoH_v2(to, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return to.raw

    def write(self, address: int, data: bytes) -> None:
        self.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))

    def allocate(self, size: int) -> ctypes.c_uint64:
        return self.handle("cuMemAlloc_v2", ctypes.c_size_t(size))
