"""PyTorch without CUDA, whose tensors on "cuda" are memory of an emulated GPU.

`install()` changes the PyTorch of this process: a tensor that is asked for on "cuda" is made on the
CPU, in managed memory of the emulated driver, and says of itself that it is on the GPU, through
`device`, `is_cuda` and DLPack.  PyTorch computes with it as with any tensor of the CPU.
Products of 2-byte floats are summed as the emulated tensor cores do, in float32 and in the order of
k.
"""

from __future__ import annotations

import ctypes
import types
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

DEVICE: Final = torch.device("cuda", 0)
_HALVES: Final = (torch.float16, torch.bfloat16)
_managed: Final[set[int]] = set()
_kept: Final[list[Any]] = []


class CudaTensor(torch.Tensor):
    """A tensor that says it is on the GPU."""

    def __dlpack_device__(self) -> Any:
        return (_CUDA, 0)


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


@cache
def _context() -> ctypes.c_void_p:
    """The primary context of the first GPU, for as long as the process lives."""
    context = ctypes.c_void_p()
    for result in (_driver().cuInit(0), _driver().cuDevicePrimaryCtxRetain(_at(context), 0)):
        if result:
            raise RuntimeError(f"the GPU has no context: error {result}")
    return context


def _at(value: Any) -> Any:
    return ctypes.byref(value)


def _allocated(size: int) -> ctypes.Array[ctypes.c_byte]:
    """Managed memory, which is freed with the result."""
    address = ctypes.c_uint64()
    _in_context("cuMemAllocManaged", _at(address), ctypes.c_size_t(size), 1)
    buffer = (ctypes.c_byte * size).from_address(address.value)
    _managed.add(address.value)
    weakref.finalize(buffer, _free, address.value).atexit = False
    return buffer


def _free(address: int) -> None:
    _managed.discard(address)
    _driver().cuMemFree_v2(ctypes.c_uint64(address))


def on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in memory of the GPU: itself if it is there, else a copy of its whole storage."""
    if type(tensor) is CudaTensor:
        return tensor
    with torch._C.DisableTorchFunctionSubclass():
        storage = tensor.untyped_storage()
        if storage.nbytes() and storage.data_ptr() not in _managed:
            tensor = _moved(tensor)
        return tensor.as_subclass(CudaTensor)


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    buffer = _allocated(storage.nbytes())
    ctypes.memmove(buffer, storage.data_ptr(), storage.nbytes())
    flat = torch.frombuffer(buffer, dtype=torch.uint8)
    made = torch.empty(0, dtype=tensor.dtype)
    made.set_(flat.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
    return made.requires_grad_(tensor.requires_grad)


def _every(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(_every(each, change) for each in value)
    return value


def _is_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.split(":")[0] == "cuda"


def _is_cpu(value: Any) -> bool:
    return value == "cpu" if isinstance(value, str) else value == torch.device("cpu")


def _has_gpu(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_gpu, value))
    return type(value) is CudaTensor


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU, with the strides of the tensor."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.clone().as_subclass(torch.Tensor)


def _summed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b of 2-byte floats, as tensor cores sum it."""
    left, right = a.float(), b.float()
    total = torch.zeros(torch.broadcast_shapes(a.shape[:-1] + (1,), (b.shape[-1],)))
    total = left[..., :, :1] * 0 + right[..., :1, :] * 0
    for k in range(a.shape[-1]):
        total += left[..., :, k : k + 1] * right[..., k : k + 1, :]
    return total.to(a.dtype)


class _OnCuda(TorchFunctionMode):
    """What PyTorch's functions are given "cuda" for, and what they give for such tensors."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.device:
            return func(*args, **kwargs)
        if name == "__get__":
            return self._attribute(func, args)
        wanted = name == "cuda" or any(map(_is_cuda, (*args, *kwargs.values())))
        left = name == "cpu" or (name == "to" and any(map(_is_cpu, (*args, *kwargs.values()))))
        gpu = wanted or _has_gpu(args) or _has_gpu(tuple(kwargs.values()))
        if name == "cuda":
            return on_gpu(args[0])
        if not gpu:
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            result = self._called(func, name, args, kwargs)
        if left:
            return _every(result, _plain)
        return _every(result, on_gpu)

    def _called(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        args = tuple("cpu" if _is_cuda(each) else each for each in args)
        kwargs = {key: "cpu" if _is_cuda(each) else each for key, each in kwargs.items()}
        kwargs.pop("pin_memory", None)
        if name in ("matmul", "bmm", "mm", "__matmul__") and args[0].dtype in _HALVES:
            return _summed(args[0], args[1])
        if name == "einsum" and len(args) == 3 and args[1].dtype in _HALVES:
            found = _einsum(*args)
            if found is not None:
                return found
        return func(*args, **kwargs)

    def _attribute(self, func: Any, args: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            value = func(*args)
        if type(args[0]) is not CudaTensor:
            return value
        if isinstance(value, torch.device):
            return DEVICE
        if func == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return True
        return _every(value, on_gpu)


def _einsum(text: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """A product of matrices with one index to sum over; None for another one."""
    inputs, _, output = text.replace(" ", "").partition("->")
    left, _, right = inputs.partition(",")
    summed = [each for each in left if each in right and each not in output]
    batch = [each for each in left if each in right and each in output]
    rows = [each for each in left if each not in right]
    columns = [each for each in right if each not in left]
    if len(summed) != 1 or len(rows) != 1 or len(columns) != 1:
        return None
    first = torch.einsum(f"{left}->{''.join(batch + rows + summed)}", a)
    second = torch.einsum(f"{right}->{''.join(batch + summed + columns)}", b)
    made = "".join(batch + rows + columns)
    return torch.einsum(f"{made}->{output}", _summed(first, second))


class Stream:
    """The default stream."""

    cuda_stream = 0
    device = DEVICE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *args: Any) -> None:
        pass

    def synchronize(self) -> None:
        """All work is done when its call returns."""

    def wait_stream(self, other: Any) -> None:
        """All work is done when its call returns."""


_current: Final[list[Stream]] = [Stream()]


class Event(Stream):
    """An event of the driver; nobody may rely on its times."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        event = ctypes.c_void_p()
        _in_context("cuEventCreate", _at(event), 0)
        self.cuda_event = event.value or 0

    def record(self, stream: Any = None) -> None:
        """Puts it into a stream."""
        handle = ctypes.c_void_p(getattr(stream or _current[-1], "cuda_stream", 0))
        _in_context("cuEventRecord", ctypes.c_void_p(self.cuda_event), handle)

    def query(self) -> bool:
        """All work is done when its call returns."""
        return True

    def wait(self, stream: Any = None) -> None:
        """All work is done when its call returns."""

    def elapsed_time(self, end: Any) -> float:
        """A time that nothing divides by zero."""
        return 1.0


def _patch(arch: tuple[int, int]) -> None:
    properties = types.SimpleNamespace(
        name="emulated",
        major=arch[0],
        minor=arch[1],
        multi_processor_count=4,
        L2_cache_size=1 << 20,
    )
    values: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "init": lambda: None,
        "empty_cache": lambda: None,
        "is_current_stream_capturing": lambda: False,
        "current_stream": lambda device=None: _current[-1],
        "CUDAGraph": Graph,
        "graph": _Capturing,
        "default_stream": lambda device=None: Stream(),
        "stream": lambda stream: stream,
        "Stream": Stream,
        "Event": Event,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_device_capability": lambda device=None: arch,
        "get_device_name": lambda device=None: "emulated",
        "get_device_properties": lambda device=None: properties,
    }
    for name, value in values.items():
        setattr(torch.cuda, name, value)


# ---- DLPack's exchange API ----

_Read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)
_CUDA: Final = 2
_WORDS: Final = 8
_DATA: Final = 32
"""Where the DLTensor of a DLManagedTensorVersioned is."""


def _set_device(tensor: int, kind: int) -> None:
    """The device of a DLTensor: behind its pointer."""
    ctypes.c_int32.from_address(tensor + 8).value = kind
    ctypes.c_int32.from_address(tensor + 12).value = 0


def _exchange_api() -> Any:
    """The exchange API of `CudaTensor`: PyTorch's, with another device."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    capsule = torch.Tensor.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
    address = capsule if isinstance(capsule, int) else pointer(capsule, b"dlpack_exchange_api")
    words = (ctypes.c_uint64 * _WORDS).from_address(address)
    made = (ctypes.c_uint64 * _WORDS)(*words)
    hold, read = _Read(words[3]), _Read(words[5])

    def held(source: int, out: int) -> int:
        result = hold(source, out)
        if not result:
            _set_device(ctypes.c_uint64.from_address(out).value + _DATA, _CUDA)
        return result

    def seen(source: int, out: int) -> int:
        result = read(source, out)
        if not result:
            _set_device(out, _CUDA)
        return result

    def stream(kind: int, index: int, out: int) -> int:
        ctypes.c_uint64.from_address(out).value = 0
        return 0

    functions = [_Read(held), _Read(seen), _Stream(stream)]
    for place, function in zip((3, 5, 6), functions, strict=True):
        made[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
    _kept.extend((made, *functions))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    name = ctypes.create_string_buffer(b"dlpack_exchange_api")
    _kept.append(name)
    return new(ctypes.addressof(made), ctypes.cast(name, ctypes.c_char_p), None)


def _capsule(self: torch.Tensor, **options: Any) -> Any:
    """`__dlpack__`: PyTorch's capsule with another device."""
    options.pop("stream", None)
    with torch._C.DisableTorchFunctionSubclass():
        capsule = torch.Tensor.__dlpack__(self, **options)
    name = b"dltensor_versioned" if "versioned" in repr(capsule) else b"dltensor"
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    tensor = pointer(capsule, name) + (_DATA if name.endswith(b"versioned") else 0)
    _set_device(tensor, _CUDA)
    # PyTorch gives the stride of a dim of size 1 as 1, which no tensor map can have.
    places = ctypes.c_uint64.from_address(tensor + 32).value
    with torch._C.DisableTorchFunctionSubclass():
        strides = self.stride() if places else ()
    for place, stride in enumerate(strides):
        ctypes.c_int64.from_address(places + 8 * place).value = stride
    return capsule


def _as_capsule(tensor: torch.Tensor) -> Any:
    return _capsule(tensor) if type(tensor) is CudaTensor else _to_dlpack(tensor)


_to_dlpack = torch.utils.dlpack.to_dlpack


class Graph:
    """A CUDA graph of the driver."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.executable = ctypes.c_void_p()

    def replay(self) -> None:
        """Runs what was captured."""
        _in_context("cuGraphLaunch", self.executable, None)


class _Capturing(Stream):
    """`with torch.cuda.graph(g)`: a stream of its own is the current one, and is captured."""

    def __init__(self, graph: Graph, *args: Any, **kwargs: Any) -> None:
        self.graph = graph

    def __enter__(self) -> _Capturing:
        stream = ctypes.c_void_p()
        _in_context("cuStreamCreate", _at(stream), 1)  # not blocking, as PyTorch has it
        self.cuda_stream = stream.value or 0
        _current.append(self)
        _in_context("cuStreamBeginCapture_v2", stream, 2)
        return self

    def __exit__(self, *args: Any) -> None:
        _current.pop()
        found = ctypes.c_void_p()
        _in_context("cuStreamEndCapture", ctypes.c_void_p(self.cuda_stream), _at(found))
        _in_context(
            "cuGraphInstantiateWithFlags", _at(self.graph.executable), found, ctypes.c_uint64(0)
        )


def _in_context(name: str, *arguments: Any) -> None:
    """A call of the driver in the context of the GPU."""
    _driver().cuCtxPushCurrent_v2(_context())
    result = getattr(_driver(), name)(*arguments)
    _driver().cuCtxPopCurrent_v2(_at(ctypes.c_void_p()))
    if result:
        raise RuntimeError(f"{name}: error {result}")


def _cuda_malloc(size: int) -> tuple[int, int]:
    address = ctypes.c_uint64()
    _in_context("cuMemAlloc_v2", _at(address), ctypes.c_size_t(size))
    return 0, address.value


def _cuda_memset(address: int, value: int, size: int) -> tuple[int]:
    there, byte = ctypes.c_uint64(int(address)), ctypes.c_ubyte(value)
    _in_context("cuMemsetD8_v2", there, byte, ctypes.c_size_t(size))
    return (0,)


def _cuda_free(address: int) -> tuple[int]:
    _in_context("cuMemFree_v2", ctypes.c_uint64(int(address)))
    return (0,)


def _cuda_synchronize() -> tuple[int]:
    _in_context("cuCtxSynchronize")
    return (0,)


def _patch_runtime() -> None:
    """The few functions of CUDA's runtime that programs call, by the driver: the runtime itself
    asks the driver for functions that an emulated GPU does not have."""
    try:
        from cuda.bindings import runtime
    except ImportError:
        return
    runtime.cudaMalloc, runtime.cudaMemset = _cuda_malloc, _cuda_memset
    runtime.cudaFree, runtime.cudaDeviceSynchronize = _cuda_free, _cuda_synchronize


def install(arch: tuple[int, int] = (9, 0)) -> None:
    """Changes PyTorch for the rest of the process."""
    _patch(arch)
    _patch_runtime()
    torch._C._cuda_getCurrentRawStream = lambda device: 0  # type: ignore[attr-defined]
    torch.utils.dlpack.to_dlpack = torch.to_dlpack = _as_capsule  # type: ignore[assignment]
    CudaTensor.__dlpack_c_exchange_api__ = _exchange_api()  # type: ignore[attr-defined]
    CudaTensor.__dlpack__ = _capsule  # type: ignore[method-assign]
    mode = _OnCuda()
    mode.__enter__()
    _kept.append(mode)
