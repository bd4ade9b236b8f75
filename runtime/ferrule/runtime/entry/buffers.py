"""Reading arrays of JAX through Python's buffer protocol, and giving the buffers back.

Only classes of the table `learned.BUFFERS` are read. While a call holds a buffer, nothing frees or
reuses its memory: another thread may delete or donate the array when the GIL is released.
JAX's buffers are complete when they are given: it waits for what it still computes.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.entry.objects import learned_symbol, way_of
from ferrule.runtime.entry.python import python
from ferrule.runtime.entry.structs import MAX_NDIM, PY_BUFFER, STATE, VIEW, describe_view
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, I8, I32, I64, PTR, VOID
from ferrule.runtime.values.foreign import NUMPY_WRITEABLE
from ferrule.runtime.values.learned import BUFFERS
from ferrule.specs.dtypes import BY_NAME

READ_BUFFER: Final = "ferrule_read_buffer"
"""`i32 (argument, out, view, state, flags)`, as `READ_TENSOR`, for classes of `BUFFERS`. What may
be written is refused. `state` then holds the buffer."""

READ_BUFFER_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR, I32])

RELEASE_BUFFERS: Final = "ferrule_release_buffers"
"""`void (view)`: release the buffers of this view and the following ones."""

RELEASE_BUFFERS_TYPE: Final = ir.FunctionType(VOID, [PTR])

WRITTEN: Final = 1 << 30
"""Beside NumPy's flags: the parameter may be written, so a torch tensor's version is counted."""

_STRIDED: Final = 0x0018
_FORMAT: Final = 0x0004
"""Flags of `PyObject_GetBuffer`: strides (and with them sizes), and the format."""

_LETTERS: Final = {
    "?": "bool",
    **dict.fromkeys("bhilq", "int8"),
    **dict.fromkeys("BHILQ", "uint8"),
    **dict.fromkeys("efd", "float32"),
}
"""The formats of `struct`, by a dtype of the same kind; the width is the item's size."""

_NONE: Final = 0xFF
_LARGEST: Final = 16


def define_buffers(e: Emitter) -> None:
    """Define `READ_BUFFER` and `RELEASE_BUFFERS`."""
    names = ("argument", "out", "view", "state", "flags")
    with e.define(READ_BUFFER, I32, READ_BUFFER_TYPE.args, names=names) as function:
        _BufferReader(e, function.args).emit()
    with e.define(RELEASE_BUFFERS, VOID, [PTR], names=("view",)) as function:
        _release(e, function.args[0])


def _release(e: Emitter, first: ir.Value) -> None:
    before, head, done = e.builder.block, e.block("head"), e.block("done")
    body = e.block("body")
    e.branch(head)
    e.at(head)
    view = e.builder.phi(PTR, name="view")
    view.add_incoming(first, before)
    e.cond_branch(e.is_null(view), done, body)
    e.at(body)
    # Read first: to release an array can run code of Python.
    following = e.load_field(view, VIEW, "held")
    python(e, "PyBuffer_Release", e.field_ptr(view, VIEW, "buffer"))
    view.add_incoming(following, e.builder.block)
    e.branch(head)
    e.at(done)
    e.builder.ret_void()


class _BufferReader:
    """Generates the body of `READ_BUFFER`."""

    __slots__ = ("arg", "buffer", "e", "flags", "out", "refused", "state", "view")

    def __init__(self, e: Emitter, arguments: tuple[ir.Value, ...]) -> None:
        self.e = e
        self.arg, self.out, self.view, self.state, self.flags = arguments
        self.refused = e.block("refused")
        self.buffer = e.field_ptr(self.view, VIEW, "buffer")

    def emit(self) -> None:
        e = self.e
        with e.within(self.refused):
            e.ret(e.const_i32(0))
        way = way_of(e, self.arg, e.external(learned_symbol(BUFFERS)))
        self._require(e.icmp("ne", way, e.const_i64(0)))
        written = e.binary("and", self.flags, e.const_i32(NUMPY_WRITEABLE | WRITTEN))
        self._require(e.icmp("eq", written, e.const_i32(0)))
        self._hold()
        size = e.load_field(self.buffer, PY_BUFFER, "itemsize")
        dtype = self._dtype(size)
        ndim = e.load_field(self.buffer, PY_BUFFER, "ndim")
        self._require(e.builder.icmp_unsigned("<=", ndim, e.const_i32(MAX_NDIM)))
        self._extents(e.builder.zext(ndim, I64), size)
        self._describe(ndim, dtype)

    def _require(self, condition: ir.Value) -> None:
        on = self.e.block("on")
        self.e.cond_branch(condition, on, self.refused, LIKELY)
        self.e.at(on)

    def _hold(self) -> None:
        """Take the buffer; the end of the call gives it back."""
        e = self.e
        flags = e.const_i32(_STRIDED | _FORMAT)
        failed = python(e, "PyObject_GetBuffer", self.arg, self.buffer, flags)
        with e.if_then(e.icmp("ne", failed, e.const_i32(0)), likely=False):
            python(e, "PyErr_Clear")
            e.branch(self.refused)
        # From here on the call gives the buffer back, also where something below is refused.
        e.store_field(self.view, VIEW, "held", e.load_field(self.state, STATE, "held"))
        e.store_field(self.state, STATE, "held", self.view)

    def _dtype(self, size: ir.Value) -> ir.Value:
        """The dtype's word: the kind of the format's letter, and the item's size."""
        e, b = self.e, self.e.builder
        text = e.load_field(self.buffer, PY_BUFFER, "format")
        self._require(e.not_(e.is_null(text)))
        is_native = self._is(e.load(text, I8), "=")
        text = e.select(is_native, e.index(text, I8, 1), text)
        is_complex = self._is(e.load(text, I8), "Z")
        text = e.select(is_complex, e.index(text, I8, 1), text)
        letter = e.load(text, I8)
        self._require(b.icmp_unsigned("<", letter, ir.Constant(I8, 128)))
        codes = [
            BY_NAME[_LETTERS[c]].code if c in _LETTERS else _NONE for c in map(chr, range(128))
        ]
        table = ir.Constant(ir.ArrayType(I8, 128), codes)
        place = e.index(e.global_constant("formats", table), I8, b.zext(letter, I64))
        code = b.zext(e.load(place, I8), I32)
        self._require(e.icmp("ne", code, e.const_i32(_NONE)))
        self._require(b.icmp_unsigned("==", e.load(e.index(text, I8, 1), I8), ir.Constant(I8, 0)))
        is_float = e.icmp("eq", code, e.const_i32(BY_NAME["float32"].code))
        self._require(b.or_(e.not_(is_complex), is_float))
        code = e.select(is_complex, e.const_i32(BY_NAME["complex64"].code), code)
        self._require(e.icmp("eq", b.ctpop(size), e.const_i64(1)))
        self._require(e.icmp("ule", size, e.const_i64(_LARGEST)))
        # Eight bits for each byte of the size, in the second byte of a DLDataType; then one lane.
        bits = b.shl(b.trunc(size, I32), e.const_i32(8 + 3))
        return b.or_(b.or_(code, bits), e.const_i32(1 << 16))

    def _is(self, character: ir.Value, wanted: str) -> ir.Value:
        return self.e.builder.icmp_unsigned("==", character, ir.Constant(I8, ord(wanted)))

    def _extents(self, ndim: ir.Value, size: ir.Value) -> None:
        """Copy the sizes, and the strides in elements; JAX's arrays have whole elements."""
        e, b = self.e, self.e.builder
        shift = b.cttz(size, e.const_i1(True))
        sizes = e.load_field(self.buffer, PY_BUFFER, "shape")
        steps = e.load_field(self.buffer, PY_BUFFER, "strides")
        places = (sizes, steps)
        known = e.not_(b.or_(*(e.is_null(each) for each in places)))
        self._require(b.or_(known, e.icmp("eq", ndim, e.const_i64(0))))
        shape, strides = (e.field_ptr(self.view, VIEW, name) for name in ("shape", "strides"))
        with e.loop(ndim) as i:
            e.store(e.load(e.index(sizes, I64, i), I64), e.index(shape, I64, i))
            step = e.load(e.index(steps, I64, i), I64)
            e.store(b.ashr(step, shift), e.index(strides, I64, i))

    def _describe(self, ndim: ir.Value, dtype: ir.Value) -> None:
        e = self.e
        data = e.load_field(self.buffer, PY_BUFFER, "buf")
        at = describe_view(e, self.view, data, ndim, dtype)
        e.store_field(self.out, ANY, "head", e.const_i64(TypeIndex.DLTENSOR_PTR))
        e.store_field(self.out, ANY, "v_ptr", at)
        e.ret(e.const_i32(1))
