"""The cold half of launching: loading an image, changing the context, reporting errors.

* `i32 ferrule_cuda_open(ptr state, ptr program, i32 device, ptr values)`: load the image of a
  `PROGRAM` for a device and its kernels, or wait for the thread that does.  `device` is the call's,
  or -1.
* `i32 ferrule_cuda_push(ptr state, i32 device, i32 result, ptr values)`: make the primary context
  of a device current, of device 0 for -1; `result` is the result of cuCtxGetDevice.
* `i32 ferrule_cuda_pop(ptr state, ptr values)`: restore the context from before.
* `i32 ferrule_cuda_allow(ptr state, ptr kernel, i32 device, i32 smem, ptr values)`: let a kernel
  use all the shared memory of a device, if it may not yet.
* `i32 ferrule_cuda_allow_clusters(ptr state, ptr kernel, ptr values)`: let a kernel use clusters of
  more than 8 blocks on the current device, if it may not yet.
* `i32 ferrule_cuda_refused(ptr state, ptr program, ptr kernel, ptr used, ptr config, ptr pointers,
  i32 result, ptr values)`: after a launch with the handle `used` returned `result`: launch again if
  the handle was destroyed with a context that was reset, else report the error.
* `i32 ferrule_cuda_register(ptr state)`, when the object's library is opened, and `i32
  ferrule_cuda_unload(ptr state)`, when it is closed.
* `i32 ferrule_cuda_encode(ptr state, ptr slot, ptr tiling, ptr place, ptr address, ptr sizes, ptr
  strides, ptr values)`: encode a tensor map of a `TILING`; `slot` is the object's cache for the
  address of the driver's function.  Returns an `Encoded`.
* `i32 ferrule_cuda_clear(ptr state, ptr address, i64 bytes, ptr stream, ptr values)`: fill memory
  of the current device with zeros, in the order of a stream.
* `i32 ferrule_cuda_write(ptr state, ptr name, ptr source, i64 size, ptr stream, ptr values)`: write
  a variable of the current device's image, on a stream; zeros if the source is null.

Each returns a `Status` and stores the values of its fault in `values`.  A failed load leaves the
state and the driver unchanged, so that the next call tries again.
"""

from __future__ import annotations

from typing import Final

from ferrule.compiler.cuda.launcher.choice import define_choosing
from ferrule.compiler.cuda.launcher.cold import define_failed
from ferrule.compiler.cuda.launcher.contexts import define_contexts
from ferrule.compiler.cuda.launcher.encode import define_encoding
from ferrule.compiler.cuda.launcher.entries import PROTOTYPES
from ferrule.compiler.cuda.launcher.fill import define_clearing
from ferrule.compiler.cuda.launcher.load import define_loading
from ferrule.compiler.cuda.launcher.refusals import define_refusing
from ferrule.compiler.cuda.launcher.rows import define_rows
from ferrule.compiler.cuda.launcher.unload import define_closing
from ferrule.compiler.cuda.launcher.write import define_writing
from ferrule.runtime.llvm.emitter import Emitter

ENTRIES: Final = tuple(PROTOTYPES)


def define_cuda(emitter: Emitter) -> None:
    """All functions of the module."""
    define_failed(emitter)
    define_choosing(emitter)
    define_rows(emitter)
    define_closing(emitter)
    define_loading(emitter)
    define_contexts(emitter)
    define_refusing(emitter)
    define_encoding(emitter)
    define_clearing(emitter)
    define_writing(emitter)
