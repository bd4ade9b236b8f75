"""The hot path of a kernel launch: machine code for arguments without any need for conversion.

It decodes the arguments and makes two driver calls. Each other case (a struct that it cannot read,
the first launch of an image, another device, a wrong argument) goes to the function in Python,
which starts again with the same arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import SYMBOL_PREFIX, DeviceType, TypeIndex
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.launches import LAUNCH, current_stream, store_config, store_parameters
from ferrule.runtime.llvm.layouts import (
    ANY,
    DLTENSOR,
    F32,
    F64,
    I8,
    I32,
    I64,
    PTR,
    TENSOR_OBJECT,
    Field,
    Layout,
)
from ferrule.runtime.ptx import driver
from ferrule.runtime.ptx.layout import LIMITS, MAX_THREADS, KernelLayout, Place
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Scalar

STATE: Final = Layout("KernelState", [Field(name, PTR) for name in driver.STATE])
"""`driver.KernelState`."""
_GET_DEVICE: Final = ir.FunctionType(I32, [PTR])
_ALIGN: Final = 16


@dataclass(frozen=True, slots=True)
class HotKernel:
    """A kernel: its name, its parameters, the address of its `STATE`, and the address of the
    function object for all cases outside of the hot path."""

    name: str
    layout: KernelLayout
    state: int
    slow: int


def is_hot(layout: KernelLayout) -> bool:
    """Whether the hot path can read all arguments; it cannot read 2-byte floats."""
    return not any(_is_half(place) for place in layout.places)


def _is_half(place: Place) -> bool:
    param = place.param
    return isinstance(param, Scalar) and param.dtype.kind == "float" and param.dtype.bits == 16


def launchers(kernels: Iterable[HotKernel]) -> str:
    """The LLVM module that defines `__tvm_ffi_<name>` for each kernel."""
    emitter = Emitter("launchers")
    for kernel in kernels:
        _Launcher(emitter, kernel).define()
    return emitter.text()


class _Launcher:
    """The function of one kernel under construction."""

    def __init__(self, emitter: Emitter, kernel: HotKernel) -> None:
        self.e = emitter
        self.kernel = kernel

    def define(self) -> None:
        e, names = self.e, ("handle", "args", "count", "result")
        symbol = SYMBOL_PREFIX + self.kernel.name
        with e.define(symbol, I32, [PTR, PTR, I32, PTR], names=names) as function:
            _, self.args, count, result = function.args
            self.slow = e.block("slow")
            self.launch(count)
            e.at(self.slow)
            slow = self.pointer(self.kernel.slow)
            e.ret(e.call("TVMFFIFunctionCall", [slow, self.args, count, result]))

    def launch(self, count: ir.Value) -> None:
        e, places = self.e, self.kernel.layout.places
        state = self.pointer(self.kernel.state)
        # Pairs with the barrier in `driver.Image._tell`: who sees the handle sees the other
        # pointers.
        function = e.builder.load_atomic(state, "acquire", 8, typ=PTR)
        self.require(e.not_(e.is_null(function)))
        self.require(e.icmp("eq", count, e.const_i32(len(places) + len(LIMITS))))
        self.device = e.alloca(I32, name="device")
        get_device = e.load_field(state, STATE, "get_device")
        status = e.call_pointer(get_device, _GET_DEVICE, [self.device])
        self.require(e.icmp("eq", status, e.const_i32(0)))
        pointers = self.parameters()
        config = self.config(self.sizes())
        launch = e.load_field(state, STATE, "launch")
        arguments = [config, function, pointers, e.null()]
        # A launch that the driver refused is tried again in Python, which raises its error.
        self.require(e.icmp("eq", e.call_pointer(launch, LAUNCH, arguments), e.const_i32(0)))
        e.ret(e.const_i32(0))

    def pointer(self, address: int) -> ir.Value:
        return self.e.builder.inttoptr(self.e.const_i64(address), PTR)

    def require(self, condition: ir.Value) -> None:
        """Continue if the condition holds, otherwise branch to the call of the Python function."""
        passed = self.e.block("passed")
        self.e.cond_branch(condition, passed, self.slow, LIKELY)
        self.e.at(passed)

    def item(self, position: int) -> tuple[ir.Value, ir.Value]:
        """An argument and its type index."""
        item = self.e.index(self.args, ANY, position)
        return item, self.e.load_field(item, ANY, "type_index")

    def is_(self, index: ir.Value, *kinds: TypeIndex) -> ir.Value:
        found = [self.e.icmp("eq", index, self.e.const_i32(kind)) for kind in kinds]
        flag = found[0]
        for other in found[1:]:
            flag = self.e.binary("or", flag, other)
        return flag

    def parameters(self) -> ir.Value:
        """Read the kernel's parameters; returns the array of their addresses."""
        e, layout = self.e, self.kernel.layout
        data = e.alloca(ir.ArrayType(I8, max(1, layout.size)), name="parameters")
        data.align = _ALIGN
        if layout.has_gaps:
            e.call("memset", [data, e.const_i32(0), e.const_i64(layout.size)])
        for position, place in enumerate(layout.places):
            e.store(self.value(position, place), e.index(data, I8, place.offset))
        return store_parameters(e, [e.index(data, I8, start) for start in layout.starts])

    def value(self, position: int, place: Place) -> ir.Value:
        item, index = self.item(position)
        if not isinstance(place.param, Scalar):
            return self.address(item, index)
        dtype = place.param.dtype
        if dtype.kind != "float":
            return self.integer(dtype, item, index)
        self.require(self.is_(index, TypeIndex.FLOAT))
        number = self.e.load(self.e.field_ptr(item, ANY, "v_float64"), F64)
        return number if dtype.bits == 64 else self.e.builder.fptrunc(number, F32)

    def integer(self, dtype: DType, item: ir.Value, index: ir.Value) -> ir.Value:
        e = self.e
        number = e.load_field(item, ANY, "v_int64")
        if dtype.kind == "bool":
            self.require(self.is_(index, TypeIndex.BOOL))
            return e.builder.trunc(number, I8)
        self.require(self.is_(index, TypeIndex.INT))
        least, most = dtype.range
        if least > -(1 << 63):
            self.require(e.icmp("sge", number, e.const_i64(least)))
        if most < (1 << 63) - 1:
            self.require(e.icmp("sle", number, e.const_i64(most)))
        return number if dtype.bits == 64 else e.builder.trunc(number, ir.IntType(dtype.bits))

    def address(self, item: ir.Value, index: ir.Value) -> ir.Value:
        """The address in an int or pointer, or the address of a tensor on the current device."""
        e = self.e
        place = e.alloca(I64, name="address")
        payload = e.load_field(item, ANY, "v_int64")
        e.store(payload, place)
        plain = self.is_(index, TypeIndex.NONE, TypeIndex.INT, TypeIndex.OPAQUE_PTR)
        with e.if_then(e.not_(plain)):
            is_object = self.is_(index, TypeIndex.TENSOR)
            known = e.binary("or", is_object, self.is_(index, TypeIndex.DLTENSOR_PTR))
            self.require(known)
            given = e.load_field(item, ANY, "v_ptr")
            inside = e.field_ptr(given, TENSOR_OBJECT, "dl")
            tensor = e.select(is_object, inside, given)
            kind = e.load_field(tensor, DLTENSOR, "device_type")
            self.require(e.icmp("eq", kind, e.const_i32(DeviceType.CUDA)))
            where = e.load_field(tensor, DLTENSOR, "device_id")
            self.require(e.icmp("eq", where, e.load(self.device, I32)))
            data = e.builder.ptrtoint(e.load_field(tensor, DLTENSOR, "data"), I64)
            offset = e.load_field(tensor, DLTENSOR, "byte_offset")
            e.store(e.binary("add", data, offset), place)
        return e.load(place, I64)

    def sizes(self) -> Sequence[ir.Value]:
        """Read and check the sizes of the launch; an empty grid is left to the Python function."""
        e = self.e
        found: list[ir.Value] = []
        for position, (least, most) in enumerate(LIMITS.values(), len(self.kernel.layout.places)):
            item, index = self.item(position)
            self.require(self.is_(index, TypeIndex.INT))
            number = e.load_field(item, ANY, "v_int64")
            first = 1 if len(found) < 3 else least
            self.require(e.icmp("sge", number, e.const_i64(first)))
            self.require(e.icmp("sle", number, e.const_i64(most)))
            found.append(number)
        # Cannot wrap: each factor is at most 1024 here.
        threads = e.builder.mul(e.builder.mul(found[3], found[4]), found[5])
        self.require(e.icmp("sle", threads, e.const_i64(MAX_THREADS)))
        return found

    def config(self, sizes: Sequence[ir.Value]) -> ir.Value:
        stream = current_stream(self.e, self.e.load(self.device, I32))
        return store_config(self.e, sizes[:3], sizes[3:6], sizes[6], stream, (self.e.null(), 0))
