"""Selects the code that emits each op of the IR as LLVM instructions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from llvmlite import ir

from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.functions import control, memory
from ferrule.language.codegen.functions.computing import computed
from ferrule.language.codegen.functions.lowering import FunctionLowering, ThreadOp
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType
from ferrule.language.ir.walk import Work, drive, is_plain
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64
from ferrule.specs import Boolean, Sym


def emit_region(lowering: FunctionLowering, region: ops.Region) -> Work:
    """Emits the ops of a region; nested regions are yielded."""
    for op in region.ops:
        work = _op(lowering, op)
        if work is not None:
            yield work


def _op(lowering: FunctionLowering, op: ops.Op) -> Work | None:
    """Emits one op, or returns the work of one with regions."""
    if lowering.lines is not None:
        lowering.lines.at(op)
    if is_plain(op):
        emit_simple(lowering, op)
        return None
    match op:
        case ops.If():
            return control.if_(lowering, op, emit_region)
        case ops.For():
            return _looped(lowering, op, control.for_(lowering, op, emit_region))
        case ops.While():
            return _looped(lowering, op, control.while_(lowering, op, emit_region))
        case _ if isinstance(op, ops.HostOp):
            return _hosted(lowering, op)
        case ops.Store(tensor, indices, value):
            memory.store(lowering, tensor, indices, value)
        case ops.Return(values):
            _return(lowering, values)
        case ops.Print(format_, values):
            _print(lowering, format_, values)
        case ops.Define(symbol, value):
            lowering.emitter.store(lowering.values[value], lowering.made[symbol])
        case ops.Check(condition, fault, values):
            stored = tuple(lowering.as_i64(value) for value in values)
            lowering.check(lowering.values[condition], fault, stored)
        case _ if isinstance(op, ops.CooperationEffect):
            _together(lowering, op)
        case _:
            emit_simple(lowering, op)
    return None


def _looped(lowering: FunctionLowering, op: ops.For | ops.While, work: Work) -> Work:
    """The work of a loop of the program."""
    return work if lowering.lines is None else _told(lowering, op, work)


def _told(lowering: FunctionLowering, op: ops.For | ops.While, work: Work) -> Work:
    with lowering.inside(op, "loop"):
        yield from work


def _hosted(lowering: FunctionLowering, op: ops.HostOp) -> Work | None:
    """Emits an op that only host functions have, with the target's code."""
    assert lowering.host_op is not None, "only a host function has these"
    return lowering.host_op(lowering, op)


def _together(lowering: FunctionLowering, op: ThreadOp) -> None:
    """Emits an op of cooperating threads."""
    if lowering.thread_op is None:
        name = type(op).__name__
        raise CodegenError(f"{name}: threads do not work together on this target yet")
    lowering.thread_op(lowering, op)


def emit_simple(lowering: FunctionLowering, op: ops.SimpleOp) -> None:
    """Emits an op with one result, unless its value is known already."""
    result = op.result
    lowering.multiples.note(op)
    if result in lowering.values:
        return  # such as shared memory, whose address is known when a block begins
    if is_plain(op) and not isinstance(result.type, HandleType):
        lowering.values[result] = computed(lowering, op, partial(_inlined, lowering))
        return
    match op:
        case ops.Size(_, dim, fault):
            checked = fault is not None
            wide = lowering.checked_size(op) if checked else lowering.dim(dim)
            if isinstance(dim, Sym) and dim in lowering.sizes:
                lowering.least[result] = max(dim.min or 0, 0)
            lowering.define_integer(result, wide)
        case ops.Special(_, register, axis):
            lowering.define_integer(result, lowering.coordinates[register, axis])
        case ops.View(_, tensor, indices):
            lowering.values[result] = memory.start(lowering, tensor, indices)
            if op.whole and tensor in lowering.objects:
                lowering.objects[result] = lowering.objects[tensor]
        case ops.Pointer(_, address):
            kind = ir.PointerType(addrspace=lowering.spaces[result.tensor.is_shared])
            lowering.values[result] = lowering.b.inttoptr(lowering.values[address], kind)
        case _ if isinstance(op, ops.HostOp):
            raise TypeError(f"only a host function has a {type(op).__name__}")
        case ops.Text(_, data):
            lowering.values[result] = lowering.emitter.bytes_constant(data)
        case ops.Table(_, data):
            lowering.values[result] = lowering.emitter.bytes_constant(
                data, align=result.tensor.align, space=lowering.constant_space
            )
        case ops.Address(_, operand):
            handle = lowering.objects.get(operand, lowering.values[operand])
            lowering.values[result] = lowering.b.ptrtoint(handle, I64)
        case ops.Fragment():
            lowering.values[result] = memory.room(lowering.emitter, result)
        case ops.Constant() if isinstance(result.type, HandleType):
            lowering.values[result] = lowering.emitter.null()
        case _ if isinstance(op, ops.Cooperation):
            _together(lowering, op)
        case _:
            lowering.values[result] = computed(lowering, op, partial(_inlined, lowering))


def _print(lowering: FunctionLowering, format_: str, values: Sequence[ops.Value]) -> None:
    """One call of the C library, which writes at once and in order."""
    e = lowering.emitter
    shown = [lowering.values[value] for value in values]
    if lowering.output is not None:
        lowering.output.print_(e, format_, shown)
        return
    bools = any(value.type is Boolean for value in values)
    texts = (e.cstring("True"), e.cstring("False")) if bools else ()
    shown = [lowering.b.select(v, *texts) if v.type == I1 else v for v in shown]
    e.call("dprintf", [ir.Constant(I32, 1), e.cstring(format_), *shown])


def _return(lowering: FunctionLowering, values: Sequence[ops.Value]) -> None:
    """Stores the parts of the result in their slots."""
    assert lowering.results is not None, "the program has no result"
    for position, value in enumerate(values):
        part = lowering.values[value]
        stored = lowering.b.zext(part, I8) if part.type == I1 else part
        lowering.emitter.store(stored, lowering.emitter.index(lowering.results, I64, position))


def _inlined(
    lowering: FunctionLowering, region: ops.Region, values: dict[ops.Value, ir.Value]
) -> ir.Value:
    """The value that a region of simple ops yields, given these values."""
    other = FunctionLowering(lowering.emitter, lowering.faults, values=values)
    drive(emit_region(other, region))
    return other.values[region.yields[0]]
