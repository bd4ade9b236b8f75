"""GPUs for tests on a machine without any: a stand-in for libcuda.so.1, and forged CUDA tensors.

A test takes the fixture `fake_cuda`, which a conftest imports from here.  The stand-in is compiled
once a process and loaded for all of it, so that `dlopen("libcuda.so.1")` finds it by its name; but
it has devices only while such a test runs, so that every other test meets a driver without one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

SOURCES = Path(__file__).parent / "fake_cuda"
PARTS = (
    "libcuda.c",
    "modules.c",
    "tensor_maps.c",
    "variables.c",
    "world.c",
    "cubin.c",
    "ptx.c",
)
SONAME = "libcuda.so.1"
CUDA = 2
"""DLPack's number of the device type."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What came with a cuLaunchKernelEx: `parameters` are the bytes of each, `attributes` the
    values, 64 bytes each, by their CUlaunchAttributeID.  `arch` is that of the kernel's image."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    smem: int
    stream: int
    parameters: tuple[bytes, ...]
    attributes: Mapping[int, bytes]
    arch: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the driver: its result, the device that was current (-1: none), its numbers."""

    name: str
    result: int
    device: int
    numbers: tuple[int, ...] = ()
    launch: Launch | None = None


class FakeCuda:
    """The stand-in, loaded; what it does is in `fake_cuda/`.  One world for the process."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self.library.fake_call.restype = ctypes.POINTER(_CCall)
        self.library.fake_stream.restype = ctypes.c_void_p
        self.library.fake_capture.restype = ctypes.c_bool
        self.library.fake_variable.restype = ctypes.c_void_p
        self.library.fake_target.restype = ctypes.c_char_p

    def reset(self, devices: int = 2) -> None:
        """Forget everything: calls, contexts, libraries, failures to come."""
        self.library.fake_reset(devices)

    def calls(self) -> list[Call]:
        """The calls since the last `reset` or `clear`."""
        count = self.library.fake_num_calls()
        return [_call(self.library.fake_call(i).contents) for i in range(count)]

    def names(self) -> list[str]:
        """The names of the calls, which are then forgotten."""
        names = [call.name for call in self.calls()]
        self.clear()
        return names

    def launches(self) -> list[Launch]:
        """The launches that were accepted."""
        return [call.launch for call in self.calls() if call.launch is not None]

    def clear(self) -> None:
        """Forget the calls alone."""
        self.library.fake_clear()

    def fail(self, name: str, code: int, after: int = 0) -> None:
        """Let the next call of a name fail, or the one that comes after so many."""
        self.library.fake_fail(name.encode(), code, after)

    def delay_loads(self, seconds: float) -> None:
        """Let cuLibraryLoadData take so long."""
        self.library.fake_delay_loads(int(seconds * 1e6))

    @property
    def target(self) -> str:
        """The architecture of the PTX that was loaded last; "" if there is none."""
        return str(self.library.fake_target().decode())

    def set_capability(self, device: int, capability: int) -> None:
        """Let a device have a compute capability, ten times it: 90 at first."""
        self.library.fake_capability(device, capability)

    def load_eagerly(self) -> None:
        """Let libraries be loaded for all contexts at once, as CUDA_MODULE_LOADING=EAGER says."""
        self.library.fake_load_eagerly()

    def variable(self, name: str, device: int = 0) -> bytes:
        """What is in a variable of the library that was asked for it last."""
        size = ctypes.c_long()
        address = self.library.fake_variable(device, name.encode(), ctypes.byref(size))
        assert address, f"nobody asked for the variable {name}"
        return ctypes.string_at(address, size.value)

    def limit_threads(self, most: int) -> None:
        """Let the registers of every kernel be enough for so many threads a block."""
        self.library.fake_limit_threads(most)

    def limit_shared(self, most: int) -> None:
        """Let the devices have so many bytes of shared memory for a block."""
        self.library.fake_limit_shared(most)

    def reset_device(self, device: int) -> None:
        """What cuDevicePrimaryCtxReset does: contexts and libraries go."""
        self.library.fake_reset_device(device)

    @contextmanager
    def capturing(self, stream: int) -> Iterator[None]:
        """Capture a stream into a graph; nothing may disturb that."""
        self.library.fake_capture(ctypes.c_void_p(stream), True)
        yield
        whole = self.library.fake_capture(ctypes.c_void_p(stream), False)
        assert whole, "the capture was disturbed"

    def set_current(self, device: int, *, primary: bool = False) -> None:
        """Let a context of somebody else be current on this thread; for -1, none."""
        self.library.fake_set_current(device, primary)

    def stream(self, device: int) -> int:
        """A new stream of a device."""
        handle = self.library.fake_stream(device)
        assert handle, "the stand-in has no more streams"
        return int(handle)

    @property
    def device(self) -> int:
        """The device whose context is current on this thread, or -1."""
        return int(self.library.fake_device())

    @property
    def depth(self) -> int:
        """Contexts on this thread's stack."""
        return int(self.library.fake_depth())

    @property
    def libraries(self) -> int:
        """Libraries that are loaded."""
        return int(self.library.fake_num_libraries())

    def retained(self, device: int) -> int:
        """How often the primary context of a device is held."""
        return int(self.library.fake_retained(device))


class _CAttribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_ubyte * 64)]


class _CCall(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 40),
        ("kernel", ctypes.c_char * 512),
        ("target", ctypes.c_char * 16),
        ("result", ctypes.c_int),
        ("device", ctypes.c_int),
        ("num_numbers", ctypes.c_int),
        ("num_parameters", ctypes.c_int),
        ("numbers", ctypes.c_longlong * 8),
        ("sizes", ctypes.c_int * 32),
        ("bytes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_int),
        ("attributes", _CAttribute * 8),
    ]


def _call(found: _CCall) -> Call:
    name, numbers = found.name.decode(), tuple(found.numbers[: found.num_numbers])
    launch = None
    if name == "cuLaunchKernelEx" and found.result == 0:
        sizes = found.sizes[: found.num_parameters]
        data = ctypes.string_at(found.bytes, sum(sizes))
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        parameters = tuple(data[at : at + size] for at, size in zip(starts, sizes, strict=True))
        kernel, (smem, stream) = found.kernel.decode(), numbers[6:]
        given = found.attributes[: found.num_attributes]
        attributes = {each.id: bytes(each.value) for each in given}
        sizes = numbers[:3], numbers[3:6], smem
        arch = found.target.decode()
        launch = Launch(kernel, *sizes, stream, parameters, attributes, arch)
    return Call(name, found.result, found.device, numbers, launch)


# ---- loading it ----


def build(
    folder: Path, *flags: str, sources: tuple[str, ...] = PARTS, soname: str = SONAME
) -> Path:
    """Compile the stand-in, or another one from these sources.  Skips without a C compiler.

    Whatever is loaded under the usual soname is what `dlopen` finds from then on.
    """
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if not shutil.which(compiler[0]):
        compiler = [next(filter(shutil.which, ("gcc", "clang")), "")]
    if not compiler[0]:
        pytest.skip("no C compiler ($CC, cc, gcc or clang) for the stand-in of libcuda")
    path = folder / soname
    files = [SOURCES / name for name in sources]
    shared = ["-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{soname}"]
    command = [*compiler, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *shared, *flags]
    subprocess.run([*map(str, (*command, *files)), "-lpthread", "-o", str(path)], check=True)
    return path


def has_libcuda() -> bool:
    """Whether there is a real driver here: the stand-in would be in its way."""
    try:
        library = ctypes.CDLL(SONAME)
    except OSError:
        return False
    return not hasattr(library, "fake_reset")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Lives as long as the process, for what was loaded from it."""
    return tempfile.TemporaryDirectory(prefix="fake_cuda")


def stand_in() -> FakeCuda:
    """The stand-in, outside of tests.  RuntimeError on a machine that has a real libcuda."""
    found = _stand_in()
    if found is None:
        raise RuntimeError("this machine has a real libcuda.so.1")
    return found


@cache
def _stand_in() -> FakeCuda | None:
    """The stand-in, compiled and loaded once a process; None beside a real driver."""
    if has_libcuda():
        return None
    # What is there by now stays: collections between the tests need not look at it.
    gc.collect()
    gc.freeze()
    return FakeCuda(build(Path(_folder().name)))


@pytest.fixture
def fake_cuda() -> Iterator[FakeCuda]:
    """The stand-in with two devices, nothing loaded, nothing current."""
    stand_in = _stand_in()
    if stand_in is None:
        pytest.skip("this machine has a real libcuda.so.1")
    stand_in.reset()
    yield stand_in
    if stand_in.libraries:
        # Functions that an error's frames hold unload their kernels now, in no other test.
        gc.collect()
    stand_in.reset(devices=0)


# ---- forged tensors ----


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("dl", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class _Forged:
    """Speaks DLPack's protocol for an array, and says that it is on a GPU."""

    _alive: dict[int, tuple[Any, ...]] = {}
    """What the tensors need that somebody holds, by the address of their struct."""

    def __init__(self, array: np.ndarray[Any, Any], device_id: int, device: int = CUDA) -> None:
        self.array, self.device = array, (device, device_id)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **_: object) -> Any:
        array = self.array
        steps = tuple(stride // array.itemsize for stride in array.strides)
        kind = _CODES[array.dtype.kind] | 8 * array.itemsize << 8 | 1 << 16
        return _capsule(array.ctypes.data, array.shape, steps, kind, self.device, array)


class _At:
    """Speaks DLPack's protocol for an address of a GPU, of which nobody else knows."""

    def __init__(self, *described: Any) -> None:
        self.described = described

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.described[4]

    def __dlpack__(self, **_: object) -> Any:
        *described, device_id = self.described
        return _capsule(*described, (CUDA, device_id), None)


def _capsule(
    address: int,
    sizes: tuple[int, ...],
    steps: tuple[int, ...],
    kind: int,
    device: tuple[int, int],
    owner: object,
) -> Any:
    """DLPack's capsule of a tensor; `kind` is a DLDataType as a number."""
    shape = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
    strides = (ctypes.c_int64 * max(1, len(steps)))(*steps)
    dtype = kind & 0xFF, kind >> 8 & 0xFF, kind >> 16
    tensor = _DLTensor(address, *device, len(sizes), *dtype)
    tensor.shape, tensor.strides = shape, strides
    managed = _Managed(tensor, None, _release)
    place = ctypes.addressof(managed)
    _Forged._alive[place] = owner, shape, strides, managed
    return _new_capsule(place, b"dltensor", None)


@_Deleter
def _release(address: int) -> None:
    _Forged._alive.pop(address, None)


# Functions of `ctypes.pythonapi` are everybody's: Warp declares this one in its own way.
_new_capsule = ctypes.PyDLL(None).PyCapsule_New
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_new_capsule.restype = ctypes.py_object


def forge(array: np.ndarray[Any, Any], device_id: int = 0) -> _Forged:
    """What speaks DLPack's protocol for the memory of an array, and says that it is on a GPU."""
    return _Forged(array, device_id)


def forged(array: np.ndarray[Any, Any], device_id: int = 0, device: int = CUDA) -> Any:
    """A tvm-ffi tensor that says that the memory of an array is on a GPU, or another device.

    Nobody may read it there; what takes it sees its address, shape and strides.
    """
    return tvm_ffi.from_dlpack(_Forged(array, device_id, device))


def forged_at(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: int, device_id: int = 0
) -> Any:
    """A tvm-ffi tensor of a GPU whose memory somebody else holds; `kind` as DLPack's number."""
    return tvm_ffi.from_dlpack(_At(address, shape, strides, kind, device_id))


def data_ptr(tensor: Any) -> int:
    """The address of a tvm-ffi tensor, which has a method for that since 0.1.13 alone."""
    return _DLTensor.from_address(tensor.__chandle__() + 24).data or 0
