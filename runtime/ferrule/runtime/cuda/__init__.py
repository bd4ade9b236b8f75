"""Arrays on a GPU, streams and events, over the CUDA driver alone: `fe.cuda`.

    x = fe.cuda.array(np.arange(1000, dtype=np.float32))
    y = fe.cuda.empty_like(x)
    compiled(x, y)
    fe.cuda.to_numpy(y)

It is for programs and tests that use no framework. Arrays are tvm-ffi's tensors, which compiled
functions and every package that knows DLPack take; their memory is freed when they go. GPUs may be
real or emulated. CudaError where there is none, and where the driver refuses a call.
"""

from __future__ import annotations

from ferrule.runtime.cuda.arrays import array, copy, empty, empty_like, to_numpy, zeros
from ferrule.runtime.cuda.driver import device_count, synchronize
from ferrule.runtime.cuda.streams import Event, Stream
from ferrule.runtime.cuda.tensors import use_as_allocator

__all__ = [
    "Event",
    "Stream",
    "array",
    "copy",
    "device_count",
    "empty",
    "empty_like",
    "synchronize",
    "to_numpy",
    "use_as_allocator",
    "zeros",
]
