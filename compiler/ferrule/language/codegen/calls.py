"""Calls of functions of tvm-ffi by a host function: arguments, the call, what comes back.

The arguments are an array of TVMFFIAny on the stack.  Those that are made for the call alone,
strings and tensors of the caller, are in a table beside it, which is released behind the call,
whatever came of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from ferrule.compiler.allocation import LET_GO
from ferrule.compiler.calling import (
    FIND,
    INVOKE,
    PASS_OBJECT,
    PASS_TENSOR,
    PASS_TEXT,
    TYPES,
    Status,
    Wanted,
    failures,
)
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.verifier import CALL_OPERANDS
from ferrule.language.ir.walk import all_ops
from ferrule.runtime.abi import DeviceType, TypeIndex
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I1, I32, I64, PTR, VOID

_LET_GO: Final = ir.FunctionType(VOID, [PTR, I64])
_MADE: Final = ("text", "bytes", "tensor")
_PLAIN: Final[dict[ops.ArgumentKind, TypeIndex]] = {
    "none": TypeIndex.NONE,
    "bool": TypeIndex.BOOL,
    "int": TypeIndex.INT,
    "float": TypeIndex.FLOAT,
    "dtype": TypeIndex.DATA_TYPE,
    "device": TypeIndex.DEVICE,
    "pointer": TypeIndex.OPAQUE_PTR,
}


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument: its kind, its values, and where it goes."""

    kind: ops.ArgumentKind
    values: tuple[ops.Value, ...]
    item: ir.Value
    owned: ir.Value | None


def emit_call(
    lowering: FunctionLowering, op: ops.Call, device: DeviceType, index: ir.Value
) -> None:
    """A call; tensors of parameters are on this device."""
    _Call(lowering, op, device, index).emit()


@dataclass(slots=True)
class _Call:
    """One call under construction."""

    lowering: FunctionLowering
    op: ops.Call
    device: DeviceType
    index: ir.Value

    @property
    def e(self) -> Emitter:
        return self.lowering.emitter

    def emit(self) -> None:
        e, op = self.e, self.op
        count = len(op.kinds)
        made = sum(kind in _MADE for kind in op.kinds)
        items = e.alloca(ANY, max(1, count), name="items")
        owned = e.alloca(PTR, max(1, made), name="owned")
        for position in range(made):
            e.store(e.null(), e.index(owned, PTR, position))
        place, result = e.alloca(I32, name="status"), e.alloca(I64, name="result")
        e.store(e.const_i64(0), result)
        behind = e.block("behind")
        for argument in self._arguments(items, owned):
            self._pass(argument, place, behind)
        callee = self._callee(place, behind)
        wanted = e.const_i32(Wanted[op.wanted.upper()])
        arguments = [callee, items, e.const_i32(count), wanted, result]
        status = self._support(INVOKE, [*arguments, self.lowering.fault_values])
        e.store(status, place)
        e.branch(behind)
        e.at(behind)
        if made:
            e.call(e.symbol(LET_GO, _LET_GO), [owned, e.const_i64(made)])
        self._check(e.load(place, I32))
        kind = ir.DoubleType() if op.wanted == "float" else I64
        self.lowering.values[op.result] = e.load(result, kind, name=op.result.hint)

    def _arguments(self, items: ir.Value, owned: ir.Value) -> Iterator[_Argument]:
        values, made = iter(self.op.arguments), 0
        for position, kind in enumerate(self.op.kinds):
            given = tuple(next(values) for _ in CALL_OPERANDS[kind])
            item = self.e.index(items, ANY, position)
            place = self.e.index(owned, PTR, made) if kind in _MADE else None
            made += kind in _MADE
            yield _Argument(kind, given, item, place)

    def _support(self, name: str, arguments: list[ir.Value]) -> ir.Value:
        return self.e.call(self.e.symbol(name, TYPES[name]), arguments, "status")

    def _callee(self, place: ir.Value, behind: ir.Block) -> ir.Value:
        """The handle of the function; that of a name is kept in a variable of the object."""
        e, callee = self.e, self.op.callee
        if not isinstance(callee, str):
            return self.lowering.values[callee]
        name = f"ferrule.known.{callee}"
        known = e.builder.module.globals.get(name)
        if known is None:
            known = ir.GlobalVariable(e.builder.module, PTR, name)
            known.linkage, known.initializer = "internal", ir.Constant(PTR, None)
        found = e.alloca(PTR, name="callee")
        arguments = [known, e.cstring(callee), found]
        self._go_on(self._support(FIND, arguments), place, behind)
        return e.load(found, PTR)

    def _go_on(self, status: ir.Value, place: ir.Value, behind: ir.Block) -> None:
        """Past a step that went well; else behind the call."""
        e, passed = self.e, self.e.block("passed")
        e.store(status, place)
        e.cond_branch(e.icmp("eq", status, e.const_i32(0)), passed, behind, LIKELY)
        e.at(passed)

    def _pass(self, argument: _Argument, place: ir.Value, behind: ir.Block) -> None:
        e, item, owned = self.e, argument.item, argument.owned
        values = [self.lowering.values[value] for value in argument.values]
        match argument.kind:
            case "text" | "bytes":
                is_text = ir.Constant(I1, argument.kind == "text")
                status = self._support(PASS_TEXT, [*values, is_text, item, owned])
            case "tensor" if argument.values[0] in self.lowering.objects:
                handle = self.lowering.objects[argument.values[0]]
                status = self._support(PASS_OBJECT, [handle, item])
            case "tensor":
                prototype = self._prototype(argument.values[0])
                status = self._support(PASS_TENSOR, [prototype, item, owned])
            case "object":
                status = self._support(PASS_OBJECT, [*values, item])
            case "any":
                for name in ("head", "v_int64"):
                    e.store_field(item, ANY, name, e.load_field(values[0], ANY, name))
                return
            case kind:
                self._plain(item, kind, values)
                return
        self._go_on(status, place, behind)

    def _plain(self, item: ir.Value, kind: ops.ArgumentKind, values: list[ir.Value]) -> None:
        e = self.e
        e.store_field(item, ANY, "head", e.const_i64(_PLAIN[kind]))
        if not values:
            e.store_field(item, ANY, "v_int64", e.const_i64(0))
            return
        value = values[0]
        if value.type in (I1, I32):
            value = e.builder.zext(value, I64)
        name = {"float": "v_float64", "pointer": "v_ptr"}.get(kind, "v_int64")
        e.store_field(item, ANY, name, value)

    def _prototype(self, tensor: ops.Value) -> ir.Value:
        """The DLTensor of a tensor that came with the call, or of a part of any."""
        e, type_ = self.e, tensor.tensor
        rank = len(type_.shape)
        arrays = []
        for name, dims in (("shape", type_.shape), ("strides", type_.strides)):
            array = e.alloca(I64, max(1, rank), name=name)
            for axis, dim in enumerate(dims):
                e.store(self.lowering.dim(dim), e.index(array, I64, axis))
            arrays.append(array)
        prototype = e.alloca(DLTENSOR, name="prototype")
        for name, value in (
            ("data", self.lowering.values[tensor]),
            ("device_type", e.const_i32(self.device)),
            ("device_id", self.index),
            ("ndim", e.const_i32(rank)),
            ("dtype", e.const_i32(type_.dtype.dlpack)),
            ("shape", arrays[0]),
            ("strides", arrays[1]),
            ("byte_offset", e.const_i64(0)),
        ):
            e.store_field(prototype, DLTENSOR, name, value)
        return prototype

    def _check(self, status: ir.Value) -> None:
        """End the function with the failure of the call."""
        e, op = self.e, self.op
        name = f"`{op.callee}`" if isinstance(op.callee, str) else f"the function {op.callee.hint}"
        faults = failures(name, op.wanted, op.location)
        first, *_ = [self.lowering.faults.number(fault) for fault in faults]
        failed, passed = e.block("failed"), e.block("called")
        e.cond_branch(e.icmp("eq", status, ir.Constant(I32, 0)), passed, failed, LIKELY)
        e.at(failed)
        number = e.binary("add", status, ir.Constant(I32, first - 1))
        raised = ir.Constant(I32, int(Status.RAISED))
        e.ret(e.select(e.icmp("eq", status, raised), raised, number))
        e.at(passed)


def passes_tensors(program: ops.Program) -> bool:
    """Whether a program hands tensors to other functions, which must know their device."""
    calls = (op for op in all_ops(program.host.body) if isinstance(op, ops.Call))
    return any("tensor" in op.kinds for op in calls)
