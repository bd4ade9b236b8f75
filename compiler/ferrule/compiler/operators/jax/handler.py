"""The handler of a call: one function in LLVM IR that XLA calls with a frame of its interface.

`XLA_FFI_Error* handler(XLA_FFI_CallFrame*)` makes a DLTensor of each buffer and a TVM-FFI value of
each attribute, calls the compiled function, and takes its results. It holds no Python and no GIL.
Buffers of XLA are dense, so that strides follow from the dims; in which order is the plan's.

What the function refuses is an error of XLA, with the function's message. A frame that is not what
the plan says (a target that was called by hand with other arrays or attributes) is one, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule import specs
from ferrule.compiler.operators.jax import frames
from ferrule.compiler.operators.jax.frames import (
    API,
    BUFFER,
    FRAME,
    ORDINAL_GET,
    SPAN,
    STREAM_GET,
    struct_size,
)
from ferrule.compiler.operators.jax.helpers import (
    NUMBER,
    RAISED,
    REFUSE,
    SAY_VERSION,
    TAKE,
    define_helpers,
    is_text,
    word_of,
)
from ferrule.compiler.operators.jax.plans import Argument, Kind, Plan, axes_of_rank
from ferrule.compiler.operators.jax.words import NAMES, number_of
from ferrule.runtime.abi import DeviceType, TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    DLTENSOR,
    I8,
    I32,
    I64,
    PACKED,
    PTR,
    SEQ_OBJECT,
    VOID,
    Layout,
)
from ferrule.specs.deferred import dataclass

_FAST: Final = {Kind.INT: 5, Kind.FLOAT: 12, Kind.BOOL: 1}
"""XLA's dtypes of the attributes that `jax_call` makes."""
_HEADS: Final = {
    Kind.INT: TypeIndex.INT,
    Kind.FLOAT: TypeIndex.FLOAT,
    Kind.BOOL: TypeIndex.BOOL,
}


def handler_module(plan: Plan, symbol: str, target: str, triple: str) -> str:
    """The module that defines the handler `symbol`, which calls the TVM-FFI function `target`."""
    e = Emitter("ferrule.jax_call", triple)
    emit_handler(e, plan, symbol, target)
    return e.text()


def emit_handler(e: Emitter, plan: Plan, symbol: str, target: str) -> None:
    """Define the handler in a module."""
    define_helpers(e, plan)
    with e.define(symbol, PTR, [PTR], names=("frame",)) as function:
        _Handler(e, plan, function.args[0]).emit(target)


@dataclass(slots=True, eq=False)
class _Handler:
    """The parts of a handler, in the order of its code."""

    e: Emitter
    plan: Plan
    frame: ir.Value
    api: ir.Value = field(init=False)
    args: ir.Value = field(init=False)
    device: ir.Value = field(init=False)
    stream: ir.Value = field(init=False)
    ordinal: ir.Value = field(init=False)

    def emit(self, target: str) -> None:
        e, plan = self.e, self.plan
        self._answer_questions()
        self.api = e.load_field(self.frame, FRAME, "api")
        self._check_version()
        self.args = e.alloca(ANY, max(len(plan.arguments), 1), name="args")
        self._take_attributes()
        self._check_counts()
        self._ask_device()
        self._take_arrays()
        self._take_outputs()
        value, status = self._call(target)
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            e.ret(e.call(e.module.globals[RAISED], [self.api]))
        self._give(value)
        e.ret(e.null())

    def _answer_questions(self) -> None:
        """XLA asks for the version with an extension, and calls no function then."""
        e = self.e
        extension = e.load_field(self.frame, FRAME, "extension_start")
        with e.if_then(e.not_(e.is_null(extension)), likely=False):
            asked = e.call(e.module.globals[SAY_VERSION], [self.frame])
            with e.if_then(asked):
                e.ret(e.null())
        stage = e.load_field(self.frame, FRAME, "stage")
        with e.if_then(e.icmp("ne", stage, e.const_i32(frames.EXECUTE)), likely=False):
            e.ret(e.null())

    def _check_version(self) -> None:
        """Stop the process where the structs have another meaning: nothing can be said then.

        XLA does not register a handler of another major version, so that it does not come here.
        """
        e = self.e
        major = e.load_field(self.api, API, "api_version.major_version")
        with e.if_then(e.icmp("ne", major, e.const_i32(frames.MAJOR)), likely=False):
            e.call(e.symbol("llvm.trap", ir.FunctionType(VOID, [])), [])
            e.builder.unreachable()

    def _refuse(self, flag: ir.Value, text: str, number: ir.Value | None = None) -> None:
        """End with an error where the flag holds; `%ld` in the text is the number."""
        e = self.e
        with e.if_then(flag, likely=False):
            shown = e.const_i64(0) if number is None else number
            message = e.cstring(f"{self.plan.name}: {text}")
            e.ret(e.call(e.module.globals[REFUSE], [self.api, message, shown]))

    # ---- attributes ----

    def _take_attributes(self) -> None:
        e, attributes = self.e, self.plan.attributes()
        size = e.load_field(self.frame, FRAME, "attrs.size")
        listed = ", ".join(each.name for each in attributes) or "none"
        text = f"expected the attributes {listed}, but got %ld attributes"
        self._refuse(e.icmp("ne", size, e.const_i64(len(attributes))), text, size)
        if not attributes:
            return
        types = e.load_field(self.frame, FRAME, "attrs.types")
        names = e.load_field(self.frame, FRAME, "attrs.names")
        values = e.load_field(self.frame, FRAME, "attrs.attrs")
        for i, argument in enumerate(attributes):
            self._check_name(e.load(e.index(names, PTR, i), PTR), argument.name, listed)
            kind = e.load(e.index(types, I32, i), I32)
            self._take_attribute(argument, kind, e.load(e.index(values, PTR, i), PTR))

    def _check_name(self, span: ir.Value, name: str, listed: str) -> None:
        e = self.e
        text = f"expected the attributes {listed}, but one has another name"
        size = e.load_field(span, SPAN, "len")
        self._refuse(e.icmp("ne", size, e.const_i64(len(name.encode()))), text)
        self._refuse(e.not_(is_text(e, e.load_field(span, SPAN, "ptr"), name)), text)

    def _take_attribute(self, argument: Argument, kind: ir.Value, value: ir.Value) -> None:
        """A number of the kind that `jax_call` makes at once, another one by the helper."""
        e, arg = self.e, _place(self.e, self.args, argument)
        wanted = Kind.BOOL if argument.is_array else argument.kind
        dtype = e.alloca(I32, name="dtype")
        e.store(e.const_i32(0), dtype)
        is_scalar = e.icmp("eq", kind, e.const_i32(frames.SCALAR))
        with e.if_then(is_scalar, likely=True):
            e.store(e.load_field(value, frames.SCALAR_OF, "dtype"), dtype)
        fast = e.icmp("eq", e.load(dtype, I32), e.const_i32(_FAST[wanted]))
        with e.builder.if_else(fast, likely=True) as (then, otherwise):
            with then:
                e.store_field(arg, ANY, "head", e.const_i64(_HEADS[wanted]))
                place = e.load_field(value, frames.SCALAR_OF, "value")
                e.store_field(arg, ANY, "v_int64", _loaded(e, wanted, place))
            with otherwise:
                failed = e.call(e.module.globals[NUMBER], [kind, value, arg])
                text = f"expected the attribute {argument.name} to be {wanted.value}"
                self._refuse(failed, f"{text}{' or None' if argument.optional else ''}")

    def _present(self, argument: Argument) -> ir.Value | None:
        """Whether an optional array is there; None for one that always is."""
        if not argument.optional:
            return None
        e = self.e
        index = e.load_field(_place(e, self.args, argument), ANY, "type_index")
        return e.icmp("ne", index, e.const_i32(TypeIndex.NONE))

    # ---- arrays ----

    def _check_counts(self) -> None:
        e, plan = self.e, self.plan
        arrays = plan.arrays()
        expected: ir.Value = e.const_i64(sum(not each.optional for each in arrays))
        for each in arrays:
            present = self._present(each)
            if present is not None:
                expected = e.builder.add(expected, e.widened(present))
        size = e.load_field(self.frame, FRAME, "args.size")
        listed = ", ".join(each.name for each in arrays) or "none"
        text = f"expected the arrays {listed}, but got %ld arrays"
        self._refuse(e.icmp("ne", size, expected), text, size)
        size = e.load_field(self.frame, FRAME, "rets.size")
        listed = ", ".join(each.name for each in plan.outputs) or "none"
        text = f"expected the outputs {listed}, but got %ld outputs"
        self._refuse(e.icmp("ne", size, e.const_i64(len(plan.outputs))), text, size)

    def _take_arrays(self) -> None:
        e = self.e
        if not self.plan.arrays():
            return
        buffers = e.load_field(self.frame, FRAME, "args.args")
        position: ir.Value = e.const_i64(0)
        for argument in self.plan.arrays():
            present = self._present(argument)
            dl = e.alloca(DLTENSOR, name=argument.name)
            place = e.builder.gep(buffers, [position], inbounds=True, source_etype=PTR)
            if present is None:
                self._take_array(argument, e.load(place, PTR), dl)
                position = e.builder.add(position, e.const_i64(1))
            else:
                with e.if_then(present):
                    self._take_array(argument, e.load(place, PTR), dl)
                position = e.builder.add(position, e.widened(present))

    def _take_array(self, argument: Argument, buffer: ir.Value, dl: ir.Value) -> None:
        e = self.e
        if argument.output is not None:
            self._check_alias(argument, buffer)
        self._describe(buffer, dl, self.plan.specs_of(argument.position))
        arg = _place(e, self.args, argument)
        e.store_field(arg, ANY, "head", e.const_i64(TypeIndex.DLTENSOR_PTR))
        e.store_field(arg, ANY, "v_ptr", dl)

    def _check_alias(self, argument: Argument, buffer: ir.Value) -> None:
        e = self.e
        output = self._output(argument.output or 0)
        first, second = (e.load_field(each, BUFFER, "data") for each in (buffer, output))
        given = [each.position for each in self.plan.arrays()].index(argument.position)
        text = (
            f"{argument.name} is written, so the call needs input_output_aliases="
            f"{{{given}: {argument.output}}}"
        )
        self._refuse(e.icmp("ne", first, second), text)

    def _output(self, position: int) -> ir.Value:
        e = self.e
        buffers = e.load_field(self.frame, FRAME, "rets.rets")
        return e.load(e.index(buffers, PTR, position), PTR)

    def _describe(self, buffer: ir.Value, dl: ir.Value, found: Sequence[specs.Param]) -> None:
        e = self.e
        rank = e.load_field(buffer, BUFFER, "rank")
        dims = e.load_field(buffer, BUFFER, "dims")
        e.store_field(dl, DLTENSOR, "data", e.load_field(buffer, BUFFER, "data"))
        e.store_field(dl, DLTENSOR, "device", self.device)
        e.store_field(dl, DLTENSOR, "ndim", e.builder.trunc(rank, I32))
        e.store_field(dl, DLTENSOR, "dtype", word_of(e, e.load_field(buffer, BUFFER, "dtype")))
        e.store_field(dl, DLTENSOR, "shape", dims)
        e.store_field(dl, DLTENSOR, "byte_offset", e.const_i64(0))
        self._store_strides(dl, rank, dims, found)

    def _store_strides(
        self, dl: ir.Value, rank: ir.Value, dims: ir.Value, found: Sequence[specs.Param]
    ) -> None:
        """Dense strides for the ranks that the function takes; null, which it refuses, else."""
        e = self.e
        ranks = sorted({len(each.shape) for each in found if isinstance(each, specs.Tensor)})
        strides = e.alloca(I64, max(*ranks, 1, 1), name="strides")
        e.store_field(dl, DLTENSOR, "strides", e.null())
        for each in ranks:
            with e.if_then(e.icmp("eq", rank, e.const_i64(each)), likely=True):
                running: ir.Value = e.const_i64(1)
                axes = axes_of_rank(found, each)
                for axis in reversed(axes):
                    e.store(running, e.index(strides, I64, axis))
                    if axis != axes[0]:
                        running = e.builder.mul(running, e.load(e.index(dims, I64, axis), I64))
                e.store_field(dl, DLTENSOR, "strides", strides)

    # ---- outputs ----

    def _take_outputs(self) -> None:
        e = self.e
        for i, result in enumerate(self.plan.results):
            if isinstance(result, specs.Scalar):
                self._check_number(i, result)
        for argument in self.plan.arguments:
            if argument.made:
                dl = e.alloca(DLTENSOR, name=argument.name)
                found = self.plan.specs_of(argument.position)
                self._describe(self._output(argument.output or 0), dl, found)
                arg = _place(e, self.args, argument)
                e.store_field(arg, ANY, "head", e.const_i64(TypeIndex.DLTENSOR_PTR))
                e.store_field(arg, ANY, "v_ptr", dl)

    def _check_number(self, position: int, result: specs.Scalar) -> None:
        e, output = self.e, self._output(position)
        number = number_of(result.dtype) or 0
        others = e.icmp("ne", e.load_field(output, BUFFER, "dtype"), e.const_i32(number))
        many = e.icmp("ne", e.load_field(output, BUFFER, "rank"), e.const_i64(0))
        name = self.plan.outputs[position].name
        self._refuse(e.builder.or_(others, many), f"expected {name} to be {NAMES[number]}[]")

    def _call(self, target: str) -> tuple[ir.Value, ir.Value]:
        e = self.e
        value = e.alloca(ANY, name="value")
        e.store_field(value, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.store_field(value, ANY, "v_int64", e.const_i64(0))
        count = e.const_i32(len(self.plan.arguments))
        function = e.symbol(target, PACKED)
        with self._current_stream():
            status = e.call(function, [e.null(), self.args, count, value], "status")
        return value, status

    def _give(self, value: ir.Value) -> None:
        """Write the function's results to their outputs."""
        e, plan = self.e, self.plan
        items = value
        if plan.packs:
            items = e.load_field(e.load_field(value, ANY, "v_obj"), SEQ_OBJECT, "cell.data")
        failed: ir.Value = e.const_i1(False)
        for i, result in enumerate(plan.results):
            item, output = e.index(items, ANY, i), self._output(i)
            if isinstance(result, specs.Scalar):
                _store_number(e, result, item, output)
            else:
                failed = e.builder.or_(failed, self._take(i, result, item, output))
        if plan.results:
            index = e.load_field(value, ANY, "type_index")
            with e.if_then(e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT))):
                e.call("TVMFFIObjectDecRef", [e.load_field(value, ANY, "v_obj")])
        if any(isinstance(each, specs.Tensor) for each in plan.results):
            text = "it returned a tensor of another shape, dtype or layout than the output's"
            self._refuse(failed, text)

    def _take(
        self, position: int, result: specs.Param, item: ir.Value, output: ir.Value
    ) -> ir.Value:
        e = self.e
        assert isinstance(result, specs.Tensor)
        axes = axes_of_rank([result], len(result.shape))
        order = ir.Constant(ir.ArrayType(I64, max(len(axes), 1)), list(axes) or [0])
        listed = e.global_constant(f"ferrule_axes.{position}", order)
        arguments = [item, output, listed, e.const_i64(len(axes))]
        return e.call(e.module.globals[TAKE], arguments)

    # ---- device ----

    def _ask_device(self) -> None:
        """The device of the buffers, and XLA's stream as the argument that is one."""
        e = self.e
        self.stream, self.ordinal = e.null(), e.const_i32(0)
        self.device = e.const_i64(DeviceType.CPU)
        if self.plan.device != "cpu":
            self.stream, self.ordinal = self._stream_of_frame(), self._ordinal()
            wide = e.builder.shl(e.builder.zext(self.ordinal, I64), e.const_i64(32))
            self.device = e.builder.or_(wide, e.const_i64(DeviceType.CUDA))
        self._give_stream(self.stream)

    @contextmanager
    def _current_stream(self) -> Iterator[None]:
        """XLA's stream is the current one of tvm-ffi while the function runs."""
        e = self.e
        if self.plan.device == "cpu":
            yield
            return
        kind, outer = e.const_i32(DeviceType.CUDA), e.alloca(PTR, name="outer")
        e.store(e.null(), outer)
        e.call("TVMFFIEnvSetStream", [kind, self.ordinal, self.stream, outer])
        yield
        e.call("TVMFFIEnvSetStream", [kind, self.ordinal, e.load(outer, PTR), e.null()])

    def _give_stream(self, stream: ir.Value) -> None:
        e = self.e
        for argument in self.plan.arguments:
            if argument.kind is Kind.STREAM:
                arg = _place(e, self.args, argument)
                e.store_field(arg, ANY, "head", e.const_i64(TypeIndex.OPAQUE_PTR))
                e.store_field(arg, ANY, "v_ptr", stream)

    def _asked(self, layout: Layout, function: str) -> ir.Value:
        """The struct of a question to XLA after the answer; an error of XLA's ends the call."""
        e = self.e
        asked = e.alloca(layout, name=layout.name)
        e.store_field(asked, layout, "struct_size", e.const_i64(struct_size(layout)))
        e.store_field(asked, layout, "extension_start", e.null())
        e.store_field(asked, layout, "ctx", e.load_field(self.frame, FRAME, "ctx"))
        address = e.load_field(self.api, API, function)
        error = e.call_pointer(address, frames.OF_API, [asked])
        with e.if_then(e.not_(e.is_null(error)), likely=False):
            e.ret(error)
        return asked

    def _stream_of_frame(self) -> ir.Value:
        asked = self._asked(STREAM_GET, "XLA_FFI_Stream_Get")
        return self.e.load_field(asked, STREAM_GET, "stream")

    def _ordinal(self) -> ir.Value:
        asked = self._asked(ORDINAL_GET, "XLA_FFI_DeviceOrdinal_Get")
        return self.e.load_field(asked, ORDINAL_GET, "device_ordinal")


def _place(e: Emitter, args: ir.Value, argument: Argument) -> ir.Value:
    """The place of an argument's value."""
    return e.index(args, ANY, argument.position)


def _loaded(e: Emitter, kind: Kind, place: ir.Value) -> ir.Value:
    if kind is not Kind.BOOL:
        return e.load(place, I64)
    return e.builder.zext(e.icmp("ne", e.load(place, I8), ir.Constant(I8, 0)), I64)


def _store_number(e: Emitter, result: specs.Scalar, item: ir.Value, output: ir.Value) -> None:
    """A number of the function's in the width of its dtype."""
    place = e.load_field(output, BUFFER, "data")
    if result.dtype.kind == "float":
        value = e.load_field(item, ANY, "v_float64")
        if result.dtype.bits < 64:
            value = e.builder.fptrunc(value, ir.FloatType())
        e.store(value, place)
        return
    value = e.load_field(item, ANY, "v_int64")
    if result.dtype.bits < 64:
        value = e.builder.trunc(value, ir.IntType(result.dtype.bits))
    e.store(value, place)
