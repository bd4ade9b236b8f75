"""New tensors of a host function: their table, their ops, and what the function returns of them.

A body that makes tensors has two functions.  `ferrule_body` holds a table with a place for each
`Alloc`, calls `inner`, which does the work, and releases what is in the table, whatever came of it.
What `inner` returns of objects the caller gets a reference of its own to, once all went well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from ferrule.compiler.allocation import ALLOCATE, KEEP, LET_GO, Status, failures
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.types import result_types
from ferrule.language.ir.walk import all_ops
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import DLTENSOR, I8, I32, I64, PTR, TENSOR_OBJECT, VOID
from ferrule.specs import Param, params

_ALLOCATE: Final = ir.FunctionType(I32, [PTR, PTR, PTR])
_KEEP: Final = ir.FunctionType(VOID, [PTR, I64])
_LET_GO: Final = ir.FunctionType(VOID, [PTR, I64])
_PLAIN: Final = (params.Scalar, params.String, params.Bytes, params.DataType, params.Device)


def tensor_count(program: ops.Program) -> int:
    """How many places for tensors a body of this program needs."""
    return sum(isinstance(op, ops.Alloc) for op in all_ops(program.host.body))


def needs_frame(program: ops.Program) -> bool:
    """Whether a body of this program needs `frame` around it."""
    return tensor_count(program) > 0 or bool(_objects(program.result))


def _objects(result: Param | None, first: int = 0) -> list[int]:
    """The slots of a result that hold handles."""
    match result:
        case None | params.NoneValue() | params.Shape() | params.Pointer():
            return []
        case params.Tuple(items=items):
            found = []
            for item in items:
                found += _objects(item, first)
                first += len(result_types(item))
            return found
        case _ if isinstance(result, _PLAIN):
            return []
    return [first]


def declare_inner(e: Emitter, types: Sequence[ir.Type], names: Sequence[str]) -> ir.Function:
    """The function that does the work, without its code: what `frame` calls."""
    return e.declare(
        "inner",
        I32,
        [PTR, *types],
        names=["tensors", *names],
        linkage="internal",
        attributes=("nounwind",),
    )


def frame(
    program: ops.Program, e: Emitter, inner: ir.Function, arguments: Sequence[ir.Value]
) -> None:
    """The code of `ferrule_body`; `inner` takes the table before these arguments."""
    count = max(1, tensor_count(program))
    table = e.alloca(PTR, count, name="tensors")
    for position in range(count):
        e.store(e.null(), e.index(table, PTR, position))
    status = e.call(inner, [table, *arguments], "status")
    objects = _objects(program.result)
    if objects:
        done, behind = e.block("done"), e.block("behind")
        e.cond_branch(e.icmp("eq", status, ir.Constant(I32, 0)), done, behind, LIKELY)
        e.at(done)
        for slot in objects:
            e.call(e.symbol(KEEP, _KEEP), [arguments[1], e.const_i64(slot)])
        e.branch(behind)
        e.at(behind)
    if tensor_count(program):
        e.call(e.symbol(LET_GO, _LET_GO), [table, e.const_i64(count)])
    e.ret(status)


@dataclass(slots=True)
class Allocator:
    """Emits the `Alloc`s of one host function, each with the next place of the table."""

    table: ir.Value
    device: DeviceType
    index: ir.Value
    next: int = 0

    def allocate(self, lowering: FunctionLowering, op: ops.Alloc) -> None:
        """A tensor, whose address and object become known; the symbols that it makes too."""
        e = lowering.emitter
        for dim, size in zip(op.result.tensor.shape, op.sizes, strict=True):
            if dim in lowering.made:
                e.store(lowering.values[size], lowering.made[dim])
        place = e.index(self.table, PTR, self.next)
        self.next += 1
        arguments = [self._prototype(lowering, op), place, lowering.fault_values]
        status = e.call(e.symbol(ALLOCATE, _ALLOCATE), arguments, "status")
        self._check(lowering, status, op)
        handle = e.load(place, PTR, name=op.result.hint)
        lowering.objects[op.result] = handle
        data = e.load_field(handle, TENSOR_OBJECT, "dl.data")
        offset = e.load_field(handle, TENSOR_OBJECT, "dl.byte_offset")
        lowering.values[op.result] = e.index(data, I8, offset)

    def _prototype(self, lowering: FunctionLowering, op: ops.Alloc) -> ir.Value:
        """The DLTensor that says what is wanted."""
        e, type_ = lowering.emitter, op.result.tensor
        shape = e.alloca(I64, max(1, len(op.sizes)), name="shape")
        for axis, size in enumerate(op.sizes):
            e.store(lowering.values[size], e.index(shape, I64, axis))
        prototype = e.alloca(DLTENSOR, name="prototype")
        for name, value in (
            ("data", e.null()),
            ("device_type", e.const_i32(self.device)),
            ("device_id", self.index),
            ("ndim", e.const_i32(len(op.sizes))),
            ("dtype", e.const_i32(type_.dtype.dlpack)),
            ("shape", shape),
            ("strides", e.null()),
            ("byte_offset", e.const_i64(0)),
        ):
            e.store_field(prototype, DLTENSOR, name, value)
        return prototype

    def _check(self, lowering: FunctionLowering, status: ir.Value, op: ops.Alloc) -> None:
        """End the function with the allocation's failure."""
        e = lowering.emitter
        faults = failures(self.device.name.lower(), op.location)
        first, *_ = [lowering.faults.number(fault) for fault in faults]
        failed, passed = e.block("failed"), e.block("allocated")
        e.cond_branch(e.icmp("eq", status, ir.Constant(I32, 0)), passed, failed, LIKELY)
        e.at(failed)
        number = e.binary("add", status, ir.Constant(I32, first - 1))
        raised = ir.Constant(I32, int(Status.RAISED))
        e.ret(e.select(e.icmp("eq", status, raised), raised, number))
        e.at(passed)
