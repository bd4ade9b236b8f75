"""Elements of tensors: their addresses, loads and stores.

Tensors of the running thread only are stack memory, which LLVM promotes to registers, unless
an index is known only at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.language.codegen.facts.offsets import Reach
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.loops import loop_end
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.arithmetic import opaque
from ferrule.language.codegen.values.scalars import memory_type
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64, PTR, VOID
from ferrule.specs import Boolean, Dim, TFloat32


def load(lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> ir.Value:
    """An element of a tensor."""
    place, align, kind = element(lowering, tensor, indices)
    loaded = lowering.b.load(place, name="load", align=align, typ=kind)
    _mark(lowering, loaded, tensor)
    # A GPU reads what nobody writes through a cache of its own: `ld.global.nc`.
    if tensor in lowering.unwritten:
        loaded.set_metadata("invariant.load", lowering.emitter.module.add_metadata([]))
    if tensor.tensor.dtype is Boolean:
        return lowering.b.icmp_unsigned("!=", loaded, ir.Constant(I8, 0))
    if tensor.tensor.dtype is TFloat32:
        return halves.narrow(lowering.emitter, TFloat32, loaded)
    return loaded


def store(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value], value: ops.Value
) -> None:
    """Writes an element of a tensor."""
    place, align, kind = element(lowering, tensor, indices)
    stored = lowering.values[value]
    if stored.type == I1:
        stored = lowering.b.zext(stored, kind)
    _mark(lowering, lowering.b.store(stored, place, align=align), tensor)


def _mark(lowering: FunctionLowering, access: ir.Instruction, tensor: ops.Value) -> None:
    """Marks a load or store as parallel, if it is.

    Threads that run one after the other have their private tensors at one address.
    """
    if lowering.group is not None and not tensor.tensor.is_own:
        hints.mark_access(access, lowering.group)


def element(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]
) -> tuple[ir.Value, int, ir.Type]:
    """The address of an element, its alignment, and its type in memory."""
    type_ = tensor.tensor
    kind = memory_type(type_.dtype)
    place = _address(lowering, tensor, indices, kind)
    return place, lowering.multiples.address(tensor, indices), kind


def start(lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> ir.Value:
    """The start address of a view; its elements may have any dtype."""
    if not indices:
        return lowering.values[tensor]
    return _address(lowering, tensor, indices, ir.ArrayType(I8, tensor.tensor.dtype.itemsize))


def _address(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value], kind: ir.Type
) -> ir.Value:
    """The address of an element; `kind` has the size of one."""
    if lowering.narrow and _fits_int32(lowering, tensor):
        short = _narrow_offset(lowering, tensor, indices)
        return lowering.b.gep(lowering.values[tensor], [short], source_etype=kind)
    offset: ir.Value | None = None
    for index, stride in zip(indices, tensor.tensor.strides, strict=True):
        step = lowering.as_i64(index) if stride == 1 else _scaled(lowering, index, stride)
        offset = step if offset is None else lowering.b.add(offset, step)
    data = lowering.values[tensor]
    if offset is None:
        return data
    # Only the lowering for GPUs has `maths`, and these need no opaque masks.
    if lowering.maths is None and not tensor.tensor.is_own:
        _hide_masks(lowering, offset)
    return lowering.b.gep(data, [offset], source_etype=kind)


def _fits_int32(lowering: FunctionLowering, tensor: ops.Value) -> bool:
    """Whether the offset of each element fits 32 bits."""
    reach = Reach.of(tensor.tensor)
    return reach in lowering.measured or reach.fits(lowering.limits)


def _narrow_offset(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]
) -> ir.Value:
    """The offset of an element from the first, computed in 32 bits: no element is further away."""
    b, offset = lowering.b, ir.Constant(I32, 0)
    for index, stride in zip(indices, tensor.tensor.strides, strict=True):
        step = b.trunc(lowering.as_i64(index), I32)
        if stride != 1:
            step = b.mul(step, b.trunc(lowering.dim(stride), I32), flags=("nsw",))
        offset = b.add(offset, step, flags=("nsw",))
    return b.sext(offset, I64)


def _scaled(lowering: FunctionLowering, index: ops.Value, stride: Dim) -> ir.Value:
    """An index times the stride of its dim."""
    return lowering.b.mul(lowering.as_i64(index), lowering.dim(stride))


# ---- masks in indices ----


def _hide_masks(lowering: FunctionLowering, offset: ir.Value) -> None:
    """Makes the masks of an offset opaque to LLVM: the same numbers, through inline assembly.

    LLVM 22.1 makes an access of a vector of elements side by side of one that is not:

        for (i = 0; i < 64; ++i) o[i] = x[b * 64 + (i & 3)];   // reads x[b * 64 + 0 .. 63]

    where the range of b is known, such as that of the number of a block in a grid that is known
    while compiling (`isConsecutivePtr` takes what is left of the mask for the first lane for the
    whole vector).  A conversion to fewer bits is such a mask, and a shift to the right may become
    one: LLVM makes `i & 3` of `i - (i >> 2 << 2)`.  In other offsets a mask is harmless,
    but nothing tells them apart safely.  On a GPU there are no vectors of this kind.
    """
    pending = [offset]
    while pending:
        value = pending.pop()
        known = not isinstance(value, ir.Instruction) or id(value) in lowering.unmasked
        if known or value.opname not in _ARITHMETIC:
            continue
        lowering.unmasked[id(value)] = value
        if value.opname in _MASKING and not _is_harmless(value):
            value.operands = [_opaque(lowering, each) for each in value.operands]
        elif value.opname == "trunc" and value.type.width < 32:
            _mask_before(lowering, value)
        pending += value.operands


def _is_harmless(mask: ir.Instruction) -> bool:
    """Whether LLVM removes a mask, or a shift is none: of a constant, which no counter is.

    The first stages of a butterfly have masks of 0, its last ones masks of all threads.
    """
    value, by = mask.operands
    if mask.opname != "and":
        return isinstance(value, ir.Constant)
    if not isinstance(by, ir.Constant):
        return False
    return by.constant == 0 or _is_below(value, by.constant + 1)


def _is_below(value: ir.Value, limit: int) -> bool:
    """Whether a value is the counter of a loop that ends at a constant, with no more than this."""
    while isinstance(value, ir.CastInstr) and value.opname in ("trunc", "sext", "zext"):
        value = value.operands[0]
    if not isinstance(value, ir.PhiInstr) or limit & (limit - 1):
        return False
    match value.incomings[0][0], loop_end(value):
        case ir.Constant(constant=int(first)), ir.Constant(constant=int(end)):
            return 0 <= first and end <= limit
    return False


def _opaque(lowering: FunctionLowering, operand: ir.Value) -> ir.Value:
    """A constant as a number that LLVM does not know; anything else as it is."""
    if not isinstance(operand, ir.Constant) or not isinstance(operand.constant, int):
        return operand
    b, kind = lowering.b, operand.type
    key = b.function.name, str(kind), operand.constant
    if key not in lowering.masks:
        word = I64 if kind.width > 32 else I32
        with b.goto_block(b.function.entry_basic_block):
            b.position_at_start(b.function.entry_basic_block)
            found = opaque(b, ir.Constant(word, operand.constant % (1 << word.width)))
            mask = found if word == kind else b.trunc(found, kind)
        # This conversion needs no mask: another one here would stand behind its use.
        lowering.masks[key] = lowering.unmasked[id(mask)] = mask
    return lowering.masks[key]


def _mask_before(lowering: FunctionLowering, narrowed: ir.Instruction) -> None:
    """Masks the operand of a conversion to fewer bits, which changes none of these."""
    b, (operand,) = lowering.b, narrowed.operands
    mask = _opaque(lowering, ir.Constant(operand.type, (1 << narrowed.type.width) - 1))
    with b.goto_block(narrowed.parent):
        b.position_before(narrowed)
        narrowed.operands = [b.and_(operand, mask)]


_MASKING: Final = ("and", "ashr", "lshr")
_ARITHMETIC: Final = frozenset(
    ("add", "sub", "mul", "and", "or", "xor", "shl", "ashr", "lshr", "sext", "zext", "trunc")
) | {"select", "udiv", "sdiv", "urem", "srem"}
"""What an index is computed with, from the counter of a loop."""


# ---- tensors of the running thread ----


def room(e: Emitter, tensor: ops.Value) -> ir.Value:
    """The address of a new tensor.

    It is filled with zeros, although the IR does not require it: LLVM could give uninitialised
    memory a different value at each read.
    """
    type_ = tensor.tensor
    count = 1
    for size, stride in zip(type_.shape, type_.strides, strict=True):
        assert isinstance(size, int) and isinstance(stride, int)
        count += (size - 1) * stride
    place = e.alloca(memory_type(type_.dtype), count, name=tensor.hint)
    place.align = type_.align
    size_in_bytes = ir.Constant(I64, count * type_.dtype.itemsize)
    fill = e.symbol("llvm.memset.p0.i64", ir.FunctionType(VOID, [PTR, I8, I64, I1]))
    e.call(fill, [place, ir.Constant(I8, 0), size_in_bytes, ir.Constant(I1, 0)])
    return place
