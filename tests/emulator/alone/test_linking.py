"""The driver's linker: one text of PTX goes through it, everything else is refused by name."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
from emulated_cuda import KERNELS

CUBIN, PTX, LIBRARY = 0, 1, 4
TEXT = KERNELS.encode()
NOT_SUPPORTED = 801


@pytest.fixture
def linker(cuda: Any) -> ctypes.c_uint64:
    place = ctypes.c_uint64()
    cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(place))
    return place


def added(cuda: Any, linker: ctypes.c_uint64, kind: int, data: bytes) -> int:
    size = ctypes.c_size_t(len(data))
    result = cuda.result("cuLinkAddData_v2", linker, kind, data, size, b"name", 0, None, None)
    return int(result)


def linked(cuda: Any, linker: ctypes.c_uint64) -> ctypes.c_uint64:
    image, size = ctypes.c_uint64(), ctypes.c_size_t()
    cuda.cuLinkComplete(linker, ctypes.byref(image), ctypes.byref(size))
    assert size.value == len(TEXT) + 1
    return image


def test_what_is_linked_can_be_loaded(cuda: Any, linker: ctypes.c_uint64) -> None:
    assert added(cuda, linker, PTX, TEXT) == 0
    module = cuda.handle("cuModuleLoadData", linked(cuda, linker))
    assert cuda.handle("cuModuleGetFunction", module, b"scale").value
    cuda.cuLinkDestroy(linker)
    assert cuda.result("cuLinkDestroy", linker) != 0


def test_a_file(cuda: Any, linker: ctypes.c_uint64, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_bytes(TEXT)
    cuda.cuLinkAddFile_v2(linker, PTX, bytes(path), 0, None, None)
    assert linked(cuda, linker).value
    library = str(tmp_path / "libcudadevrt.a").encode()
    result = cuda.result("cuLinkAddFile_v2", linker, LIBRARY, library, 0, None, None)
    assert result == NOT_SUPPORTED
    assert "the emulated GPU links no libraries, PTX alone" in cuda.text(NOT_SUPPORTED)


def test_what_is_refused(cuda: Any, linker: ctypes.c_uint64) -> None:
    image, size = ctypes.c_uint64(), ctypes.c_size_t()
    assert cuda.result("cuLinkComplete", linker, ctypes.byref(image), ctypes.byref(size)) == 1
    assert added(cuda, linker, CUBIN, b"\x7fELF") == NOT_SUPPORTED
    assert added(cuda, linker, PTX, b"int main() {}") == 200
    assert added(cuda, linker, 77, TEXT) == 1
    assert added(cuda, linker, PTX, TEXT) == 0
    assert added(cuda, linker, PTX, TEXT) == NOT_SUPPORTED
    assert "links one text of PTX, not two" in cuda.text(NOT_SUPPORTED)
