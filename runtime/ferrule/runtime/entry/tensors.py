"""Reading tensors: NumPy's fields, torch through its exchange API, tensors of tvm-ffi.

Sizes and strides of an array are copied: another thread may reshape it while the GIL is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import DeviceType, TypeIndex
from ferrule.runtime.entry.buffers import READ_BUFFER, READ_BUFFER_TYPE, WRITTEN
from ferrule.runtime.entry.objects import INNER, INNER_TYPE
from ferrule.runtime.entry.python import FALSE, python
from ferrule.runtime.entry.readers import Form
from ferrule.runtime.entry.structs import MAX_NDIM, NO_DEVICE, STATE, VIEW, describe_view
from ferrule.runtime.entry.surroundings import TORCH_OWN, Surroundings
from ferrule.runtime.llvm.emitter import COLD, LIKELY, UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    DLTENSOR,
    I8,
    I16,
    I32,
    I64,
    PTR,
    PY_ARRAY,
    PY_ARRAY_DESCR,
    PY_OBJECT,
    Layout,
)
from ferrule.runtime.values.foreign import NUMPY_WRITEABLE
from ferrule.runtime.values.lazybits import LazyBits
from ferrule.runtime.values.tensorwords import INLINE_DIMS, TensorWords
from ferrule.specs import Complex64

_READ: Final = ir.FunctionType(I32, [PTR, PTR])
_WORK_STREAM: Final = ir.FunctionType(I32, [I32, I32, PTR])

READ_TENSOR: Final = "ferrule_read_tensor"
"""`i32 (argument, out, view, state, flags)`: read a tensor; 0 if the argument is of another form.

It fills the TVMFFIAny `out`, which may point into `view`. An array must have these NumPy flags;
`WRITTEN` is one more.
"""

_IS_SAFE_TENSOR: Final = "ferrule_is_safe_tensor"

_FOREIGN_ORDER: Final = ord(">")

READ_TENSOR_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR, I32])

_TYPES: Final = MappingProxyType(
    {
        Form.ARRAY: ("numpy_ndarray",),
        Form.TENSOR: ("tvm_ffi_Tensor",),
        Form.TORCH: ("torch_Tensor", "torch_Parameter"),
    }
)


def define_read_tensor(e: Emitter, surroundings: Surroundings, instance: Layout) -> None:
    """Define `READ_TENSOR`; `instance` has the offset of the handle in a tensor of tvm-ffi."""
    safe = _define_is_safe(e) if surroundings.has_torch else None
    names = ("argument", "out", "view", "state", "flags")
    with e.define(READ_TENSOR, I32, READ_TENSOR_TYPE.args, names=names) as function:
        _TensorReader(e, surroundings, function.args, e.block("refused")).emit(
            function, instance, safe
        )


class _TensorReader:
    """Generates the body of `READ_TENSOR`."""

    __slots__ = ("arg", "e", "flags", "out", "refused", "state", "surroundings", "view")

    def __init__(
        self,
        e: Emitter,
        surroundings: Surroundings,
        arguments: Sequence[ir.Value],
        refused: ir.Block,
    ) -> None:
        self.e = e
        self.surroundings = surroundings
        self.arg, self.out, self.view, self.state, self.flags = arguments
        self.refused = refused

    def emit(self, function: ir.Function, instance: Layout, safe: ir.Function | None) -> None:
        """Try the forms one after the other; `safe` recognises torch's harmless subclasses."""
        e = self.e
        with e.within(self.refused):
            e.ret(e.const_i32(0))
        kind = e.load_field(self.arg, PY_OBJECT, "ob_type")
        tensor: ir.Block | None = None
        for form in (Form.ARRAY, Form.TORCH, Form.TENSOR):
            if form in self.surroundings.forms:
                taken, following = self._case(kind, _TYPES[form])
                self._read(form, instance)
                e.at(following)
                tensor = taken if form is Form.TORCH else tensor
        if tensor is not None and safe is not None:
            adapter = e.block("adapter")
            found = e.icmp("ne", e.call(safe, [kind]), e.const_i32(0))
            e.cond_branch(found, tensor, adapter, UNLIKELY)
            e.at(adapter)
        self._adapter(function)

    def _adapter(self, function: ir.Function) -> None:
        """Read the tensor inside of an adapter instead, or an array's buffer."""
        e, others = self.e, [self.out, self.view, self.state, self.flags]
        inner = e.call(e.symbol(INNER, INNER_TYPE), [self.arg])
        with e.if_then(e.not_(e.is_null(inner))):
            e.ret(e.call(function, [inner, *others]))
        e.ret(e.call(e.symbol(READ_BUFFER, READ_BUFFER_TYPE), [self.arg, *others]))

    def _read(self, form: Form, instance: Layout) -> None:
        match form:
            case Form.ARRAY:
                self._array()
            case Form.TENSOR:
                self._object(instance)
            case Form.TORCH:
                self._torch()
            case _:
                raise ValueError(f"{form} is no form of tensors")

    def _case(self, kind: ir.Value, symbols: Sequence[str]) -> tuple[ir.Block, ir.Block]:
        """Branch on the type; returns the block for these types, and the block for all others."""
        e = self.e
        taken = e.block(symbols[0])
        for symbol in symbols:
            following = e.block("following")
            same = e.builder.icmp_unsigned("==", kind, e.external(symbol))
            e.cond_branch(same, taken, following)
            e.at(following)
        e.at(taken)
        return taken, following

    def _require(self, condition: ir.Value) -> None:
        on = self.e.block("on")
        self.e.cond_branch(condition, on, self.refused, LIKELY)
        self.e.at(on)

    def _give(self, index: TypeIndex, payload: ir.Value) -> None:
        e = self.e
        e.store_field(self.out, ANY, "head", e.const_i64(index))
        e.store_field(self.out, ANY, "v_ptr", payload)
        e.ret(e.const_i32(1))

    # ---- tensors of tvm-ffi ----

    def _object(self, instance: Layout) -> None:
        handle = self.e.load_field(self.arg, instance, "handle")
        self._require(self.e.not_(self.e.is_null(handle)))
        self._give(TypeIndex.TENSOR, handle)

    # ---- NumPy ----

    def _array(self) -> None:
        """Read an array; refuses each property that NumPy's own DLPack export refuses."""
        e, b = self.e, self.e.builder
        wanted = b.and_(self.flags, e.const_i32(NUMPY_WRITEABLE))
        flags = b.and_(e.load_field(self.arg, PY_ARRAY, "flags"), wanted)
        self._require(b.icmp_unsigned("==", flags, wanted))
        dtype = self._array_dtype()
        ndim = e.load_field(self.arg, PY_ARRAY, "nd")
        self._require(b.icmp_unsigned("<=", ndim, e.const_i32(MAX_NDIM)))
        self._extents(b.zext(ndim, I64), dtype)
        data = e.load_field(self.arg, PY_ARRAY, "data")
        self._give(TypeIndex.DLTENSOR_PTR, describe_view(e, self.view, data, ndim, dtype))

    def _array_dtype(self) -> ir.Value:
        e, b = self.e, self.e.builder
        descr = e.load_field(self.arg, PY_ARRAY, "descr")
        order = e.load_field(descr, PY_ARRAY_DESCR, "byteorder")
        self._require(b.icmp_unsigned("!=", order, ir.Constant(I8, _FOREIGN_ORDER)))
        number = e.load_field(descr, PY_ARRAY_DESCR, "type_num")
        words = self.surroundings.dtypes
        self._require(b.icmp_unsigned("<", number, e.const_i32(len(words))))
        name = "dtypes"
        if name not in e.module.globals:
            e.global_constant(name, ir.Constant(ir.ArrayType(I32, len(words)), list(words)))
        table = e.module.globals[name]
        dtype = e.load(e.index(table, I32, b.zext(number, I64)), I32, name="dtype")
        self._require(b.icmp_unsigned("!=", dtype, e.const_i32(0)))
        return dtype

    def _extents(self, ndim: ir.Value, dtype: ir.Value) -> None:
        """Copy sizes, and strides in elements; refuses strides that are not whole elements."""
        e, b = self.e, self.e.builder
        bits = b.and_(b.lshr(dtype, e.const_i32(8)), e.const_i32(0xFF))
        # Element sizes are powers of two, of 8 bits or more.
        zeros = b.zext(b.cttz(bits, e.const_i1(True)), I64)
        shift = b.sub(zeros, e.const_i64(3), name="shift")
        shape, strides = (e.field_ptr(self.view, VIEW, name) for name in ("shape", "strides"))
        sizes = e.load_field(self.arg, PY_ARRAY, "dimensions")
        steps = e.load_field(self.arg, PY_ARRAY, "strides")
        before, head, copy, after = b.block, e.block("dims"), e.block("dim"), e.block("copied")
        e.branch(head)
        e.at(head)
        i, seen = b.phi(I64, name="i"), b.phi(I64, name="seen")
        e.cond_branch(e.icmp("ult", i, ndim), copy, after)
        e.at(copy)
        e.store(e.load(e.index(sizes, I64, i), I64), e.index(shape, I64, i))
        step = e.load(e.index(steps, I64, i), I64)
        e.store(b.ashr(step, shift), e.index(strides, I64, i))
        for phi, following in ((i, b.add(i, e.const_i64(1))), (seen, b.or_(seen, step))):
            phi.add_incoming(e.const_i64(0), before)
            phi.add_incoming(following, copy)
        e.branch(head)
        e.at(after)
        mask = b.sub(b.shl(e.const_i64(1), shift), e.const_i64(1))
        rest = b.and_(seen, mask)
        self._require(b.icmp_unsigned("==", rest, e.const_i64(0)))

    # ---- torch ----

    def _torch(self) -> None:
        e = self.e
        if self.surroundings.version is None:
            self._require(e.icmp("eq", self._is_written(), e.const_i32(0)))
        at = e.field_ptr(self.view, VIEW, "dl")
        if self.surroundings.words is not None:
            exchanged = e.block("exchanged")
            self._torch_fields(self.surroundings.words, at, exchanged)
            e.at(exchanged)
        # torch's exchange function gives such a tensor as if nothing were pending.
        if self.surroundings.lazy is not None:
            self._require(e.not_(is_pending(e, self.arg, self.surroundings.lazy)))
        function = e.symbol("torch_read", _READ)
        function.attributes.add("nonlazybind")
        status = e.call(function, [self.arg, at])
        failed = e.builder.icmp_unsigned("!=", status, e.const_i32(0))
        with e.if_then(failed, likely=False):
            python(e, "PyErr_Clear")
            e.branch(self.refused)
        if self.surroundings.lazy is None:
            self._ask_pending(e.load_field(at, DLTENSOR, "dtype"))
        e.store_field(self.state, STATE, "framework", self.arg)
        self._stream(at)
        self._count()
        self._give(TypeIndex.DLTENSOR_PTR, at)

    def _torch_fields(self, words: TensorWords, at: ir.Value, exchanged: ir.Block) -> None:
        """Read the fields of an ordinary tensor on the CPU; all others go to `exchanged`."""
        e, b = self.e, self.e.builder
        impl = e.load(e.index(self.arg, I8, words.impl), PTR, name="impl")
        key = e.load(e.index(impl, I8, words.key), I64, name="keys")
        known = [e.icmp("eq", key, e.const_i64(each)) for each in words.keys]
        self._or_else(reduce(b.or_, known), exchanged)
        storage = e.load(e.index(impl, I8, words.storage), PTR, name="storage")
        ndim = e.load(e.index(impl, I8, words.ndim), I64, name="ndim")
        self._or_else(e.icmp("ule", ndim, e.const_i64(INLINE_DIMS)), exchanged)
        lazy = e.load(e.index(storage, I8, words.lazy), I8, name="lazy")
        self._or_else(b.icmp_unsigned("==", lazy, ir.Constant(I8, 0)), exchanged)
        dtype = self._torch_dtype(words, impl, exchanged)
        for name, first in (("shape", words.sizes), ("strides", words.strides)):
            place = e.field_ptr(self.view, VIEW, name)
            # All that there are: a loop over the dims would take longer.
            for i in range(INLINE_DIMS):
                word = e.load(e.index(impl, I8, first + 8 * i), I64)
                e.store(word, e.index(place, I64, i))
            e.store_field(at, DLTENSOR, name, place)
        e.store_field(at, DLTENSOR, "data", self._torch_data(words, impl, storage, dtype))
        e.store_field(at, DLTENSOR, "device", e.const_i64(DeviceType.CPU))
        e.store_field(at, DLTENSOR, "ndim", b.trunc(ndim, I32))
        e.store_field(at, DLTENSOR, "dtype", dtype)
        e.store_field(at, DLTENSOR, "byte_offset", e.const_i64(0))
        e.store_field(self.state, STATE, "framework", self.arg)
        self._count()
        self._give(TypeIndex.DLTENSOR_PTR, at)

    def _or_else(self, condition: ir.Value, otherwise: ir.Block) -> None:
        on = self.e.block("on")
        self.e.cond_branch(condition, on, otherwise, LIKELY)
        self.e.at(on)

    def _torch_dtype(self, words: TensorWords, impl: ir.Value, exchanged: ir.Block) -> ir.Value:
        e = self.e
        number = e.builder.zext(e.load(e.index(impl, I8, words.dtype), I16), I64)
        self._or_else(e.icmp("ult", number, e.const_i64(len(words.dtypes))), exchanged)
        table = ir.Constant(ir.ArrayType(I32, len(words.dtypes)), list(words.dtypes))
        place = e.global_constant("torch_dtypes", table)
        dtype = e.load(e.index(place, I32, number), I32, name="dtype")
        self._or_else(e.icmp("ne", dtype, e.const_i32(0)), exchanged)
        return dtype

    def _torch_data(
        self, words: TensorWords, impl: ir.Value, storage: ir.Value, dtype: ir.Value
    ) -> ir.Value:
        """The address of the first element; null for a tensor without elements, as torch says."""
        e, b = self.e, self.e.builder
        start, count = (e.load(e.index(impl, I8, at), I64) for at in (words.start, words.numel))
        bits = b.zext(b.and_(b.lshr(dtype, e.const_i32(8)), e.const_i32(0xFF)), I64)
        offset = b.mul(start, b.lshr(bits, e.const_i64(3)))
        first = e.load(e.index(storage, I8, words.data), PTR)
        address = b.gep(first, [offset], source_etype=I8)
        return e.select(e.icmp("eq", count, e.const_i64(0)), e.null(), address)

    def _is_written(self) -> ir.Value:
        """Not 0 if the parameter may be written."""
        return self.e.binary("and", self.flags, self.e.const_i32(WRITTEN))

    def _count(self) -> None:
        """Count the version of a tensor that is written."""
        e, version = self.e, self.surroundings.version
        if version is None:
            return
        with e.if_then(e.icmp("ne", self._is_written(), e.const_i32(0))):
            impl = e.load(e.index(self.arg, I8, version.impl), PTR)
            count_version(e, e.index(impl, I8, version.counter), e.const_i64(version.number))

    def _ask_pending(self, dtype: ir.Value) -> None:
        """Refuse a pending negation or conjugation (complex dtypes): DLPack cannot express them."""
        e, b = self.e, self.e.builder
        self._ask("torch_is_neg")
        code = b.and_(dtype, e.const_i32(0xFF))
        is_complex = b.icmp_unsigned("==", code, e.const_i32(Complex64.code))
        with e.if_then(is_complex, likely=False):
            self._ask("torch_is_conj")

    def _ask(self, symbol: str) -> None:
        """Call a method of the tensor; continue if it returns False, otherwise refuse."""
        e = self.e
        asked = [e.external(symbol), self.arg, e.null()]
        found = python(e, "PyObject_CallFunctionObjArgs", *asked)
        with e.if_then(e.is_null(found), likely=False):
            python(e, "PyErr_Clear")
            e.branch(self.refused)
        python(e, "Py_DecRef", found)
        self._require(e.builder.icmp_unsigned("==", found, e.external(FALSE)))

    def _stream(self, at: ir.Value) -> None:
        """Set the stream: the framework's current one on the device of the first non-CPU tensor."""
        e, b = self.e, self.e.builder
        kind = e.load_field(at, DLTENSOR, "device_type")
        elsewhere = b.icmp_unsigned("!=", kind, e.const_i32(DeviceType.CPU))
        with e.if_then(elsewhere, likely=False):
            known = e.load_field(self.state, STATE, "device")
            with e.if_then(b.icmp_signed("==", known, e.const_i64(NO_DEVICE))):
                place = e.field_ptr(self.state, STATE, "stream")
                index = e.load_field(at, DLTENSOR, "device_id")
                ask = e.symbol("torch_work_stream", _WORK_STREAM)
                failed = b.icmp_unsigned("!=", e.call(ask, [kind, index, place]), e.const_i32(0))
                with e.if_then(failed, likely=False):
                    python(e, "PyErr_Clear")
                    e.branch(self.refused)
                device = e.load_field(at, DLTENSOR, "device")
                e.store_field(self.state, STATE, "device", device)


def is_pending(e: Emitter, tensor: ir.Value, lazy: LazyBits) -> ir.Value:
    """Whether a torch tensor has a pending conjugation or negation."""
    impl = e.load(e.index(tensor, I8, lazy.impl), PTR)
    keys = e.load(e.index(impl, I8, lazy.keys), I64)
    return e.icmp("ne", e.binary("and", keys, e.const_i64(lazy.mask)), e.const_i64(0))


def count_version(e: Emitter, at: ir.Value, number: ir.Value) -> None:
    """Count a write of a torch tensor, whose pointer to its version is at `at`; `number` is the
    offset in the version. Atomic, because torch counts without the GIL."""
    counter = e.load(at, PTR)
    with e.if_then(e.not_(e.is_null(counter))):
        e.builder.atomic_rmw("add", e.index(counter, I8, number), e.const_i32(1), "monotonic")


def _define_is_safe(e: Emitter) -> ir.Function:
    """Whether a type is a subclass of torch.Tensor that has torch's `__torch_dispatch__` and the
    ways of DLPack that torch.Tensor has.

    Then torch alone manages the memory and the shape of its tensors.
    """
    names = ("type",)
    with e.define(
        _IS_SAFE_TENSOR, I32, [PTR], names=names, linkage="internal", attributes=COLD
    ) as function:
        kind = function.args[0]
        derived = python(e, "PyType_IsSubtype", kind, e.external("torch_Tensor"))
        with e.if_then(e.builder.icmp_unsigned("==", derived, e.const_i32(0))):
            e.ret(e.const_i32(0))
        for word in TORCH_OWN:
            found = python(e, "PyObject_GetAttr", kind, e.external(f"torch_{word}_name"))
            with e.if_then(e.is_null(found), likely=False):
                python(e, "PyErr_Clear")
                e.ret(e.const_i32(0))
            python(e, "Py_DecRef", found)
            own = e.builder.icmp_unsigned("!=", found, e.external(f"torch_plain_{word}"))
            with e.if_then(own, likely=False):
                e.ret(e.const_i32(0))
        e.ret(e.const_i32(1))
    return function
