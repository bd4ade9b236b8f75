"""The cold half of launching: loading an image, changing the context, naming what failed.

* `i32 ferrule_cuda_open(ptr state, ptr program, i32 device, ptr stream, ptr values)`: load the
  image of a `PROGRAM` for a device and its kernels, or wait for who does that; `device` is the
  call's, or -1, `stream` a stream of it, or null for the caller's current one: of one that is
  captured, an error.
* `i32 ferrule_cuda_push(ptr state, i32 device, i32 result, ptr values)`: make the primary context
  of a device current, of device 0 for -1; `result` is what cuCtxGetDevice gave.
* `i32 ferrule_cuda_pop(ptr state, ptr values)`: make current what was before.
* `i32 ferrule_cuda_allow(ptr state, ptr kernel, i32 device, i32 smem, ptr values)`: allow a kernel
  all the shared memory that a device has, if it may not have it yet.
* `i32 ferrule_cuda_allow_clusters(ptr state, ptr kernel, ptr values)`: allow a kernel clusters of
  more than 8 blocks on the device that is current, if it may not have them yet.
* `i32 ferrule_cuda_refused(ptr state, ptr program, ptr kernel, ptr used, ptr config, ptr pointers,
  i32 result, ptr values)`: a launch with the handle `used` gave `result`: launch again where the
  handle went with a context that was reset, else say what is wrong.
* `i32 ferrule_cuda_register(ptr state)`, when the object's library is opened, and
  `i32 ferrule_cuda_unload(ptr state)`, when it is closed.
* `i32 ferrule_cuda_encode(ptr state, ptr slot, ptr tiling, ptr place, ptr address, ptr sizes,
  ptr strides, ptr values)`: encode a tensor map of a `TILING`; `slot` is where the object keeps the
  address of the driver's function.  An `Encoded`.
* `i32 ferrule_cuda_clear(ptr state, ptr address, i64 bytes, ptr stream, ptr values)`: fill memory
  of the current device with zeros, in the order of a stream.
* `i32 ferrule_cuda_write(ptr state, ptr name, ptr source, i64 size, ptr stream, ptr values)`: write
  a variable of the image that the current device has, on a stream; zeros for a source of null.

Each returns a `Status` and leaves the values of its fault in `values`.  A load that failed leaves
the state and the driver as it found them, so that the next call tries again.
"""

from __future__ import annotations

from typing import Final

from ferrule.compiler.cuda.choosing import define_choosing
from ferrule.compiler.cuda.clearing import define_clearing
from ferrule.compiler.cuda.closing import define_closing
from ferrule.compiler.cuda.cold import PROTOTYPES, define_failed
from ferrule.compiler.cuda.contexts import define_contexts
from ferrule.compiler.cuda.encoding import define_encoding
from ferrule.compiler.cuda.loading import define_loading
from ferrule.compiler.cuda.refusing import define_refusing
from ferrule.compiler.cuda.rows import define_rows
from ferrule.compiler.cuda.writing import define_writing
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
