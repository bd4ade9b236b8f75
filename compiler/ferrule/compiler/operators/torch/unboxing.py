"""Values on torch's stack as TVM-FFI arguments, in LLVM IR.

torch hands a boxed kernel one 64-bit word for each argument (`StableIValue`): a number's own bits;
for a tensor a handle, `at::Tensor*`, that the kernel owns; for an optional argument the address of
such a word that the kernel owns, or null. Source: `torch/csrc/stable/stableivalue_conversions.h`.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from llvmlite import ir

from ferrule.compiler.operators.torch.plans import Argument, Kind, Plan
from ferrule.compiler.operators.torch.symbols import DELETE, torch_function
from ferrule.compiler.operators.torch.words import DEVICES, SCALAR_TYPES
from ferrule.runtime.abi import DeviceType, TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I32, I64, PTR

WORD_KINDS: Final = frozenset({Kind.TENSOR, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.ADDRESS})
"""The kinds that a boxed kernel takes; the others have words that differ between versions."""

_INDICES: Final = {
    Kind.TENSOR: TypeIndex.DLTENSOR_PTR,
    Kind.INT: TypeIndex.INT,
    Kind.FLOAT: TypeIndex.FLOAT,
    Kind.BOOL: TypeIndex.BOOL,
    Kind.ADDRESS: TypeIndex.OPAQUE_PTR,
}

DTYPE_TABLE: Final = "ferrule_dtypes"
DEVICE_TABLE: Final = "ferrule_devices"
# More than torch has numbers of `ScalarType` and of `DeviceType`.
DTYPES: Final = 64
DEVICE_TYPES: Final = 32
DESCRIBE: Final = "ferrule_describe"


def unbox(e: Emitter, plan: Plan, stack: ir.Value, args: ir.Value, handles: ir.Value) -> None:
    """Fill `args`, the function's arguments, and `handles`, the tensors in the order of the
    operator's arguments, null for an absent one."""
    tensor = 0
    for i, argument in enumerate(plan.arguments):
        word = e.load(e.index(stack, I64, i), I64, name=argument.name)
        arg = e.index(args, ANY, argument.position)
        handle = None
        if argument.kind is Kind.TENSOR:
            handle = e.index(handles, PTR, tensor)
            e.store(e.null(), handle)
            tensor += 1
        if argument.optional:
            _unbox_optional(e, argument, word, arg, handle)
        else:
            _unbox(e, argument, word, arg, handle)


def _unbox_optional(
    e: Emitter, argument: Argument, word: ir.Value, arg: ir.Value, handle: ir.Value | None
) -> None:
    box = e.builder.inttoptr(word, PTR)
    e.store_field(arg, ANY, "head", e.const_i64(TypeIndex.NONE))
    e.store_field(arg, ANY, "v_int64", e.const_i64(0))
    with e.if_then(e.not_(e.is_null(box))):
        inner = e.load(box, I64)
        e.call(torch_function(e, DELETE), [box])
        _unbox(e, argument, inner, arg, handle)


def _unbox(
    e: Emitter, argument: Argument, word: ir.Value, arg: ir.Value, handle: ir.Value | None
) -> None:
    e.store_field(arg, ANY, "head", e.const_i64(_INDICES[argument.kind]))
    if argument.kind is Kind.BOOL:
        word = e.builder.and_(word, e.const_i64(1))
    e.store_field(arg, ANY, "v_int64", word)
    if handle is not None:
        e.store(e.builder.inttoptr(word, PTR), handle)


def define_describe(e: Emitter, *, only_cpu: bool) -> None:
    """`i32 describe(ptr handle, ptr dltensor)`: 0, or not, if torch has no memory or layout of it.

    Sizes and strides stay torch's: they are valid as long as nobody resizes the tensor. With
    `only_cpu` all tensors are on the CPU: a kernel for the dispatch key of the CPU gets no others.
    """
    devices = {number: int(device) for number, device in DEVICES.items()}
    e.global_constant(DTYPE_TABLE, _table(DTYPES, SCALAR_TYPES))
    e.global_constant(DEVICE_TABLE, _table(DEVICE_TYPES, devices))
    names = ("handle", "dl")
    attributes = ("uwtable",)
    with e.define(
        DESCRIBE, I32, [PTR, PTR], names=names, linkage="internal", attributes=attributes
    ) as function:
        handle, dl = function.args
        dtype, rank = e.alloca(I32, name="dtype"), e.alloca(I64, name="rank")
        codes = [
            e.call(torch_function(e, f"aoti_torch_get_{name}"), [handle, place])
            for name, place in (
                ("data_ptr", e.field_ptr(dl, DLTENSOR, "data")),
                ("dim", rank),
                ("sizes", e.field_ptr(dl, DLTENSOR, "shape")),
                ("strides", e.field_ptr(dl, DLTENSOR, "strides")),
                ("dtype", dtype),
            )
        ]
        e.store_field(dl, DLTENSOR, "ndim", e.builder.trunc(e.load(rank, I64), I32))
        e.store_field(dl, DLTENSOR, "byte_offset", e.const_i64(0))
        word = _looked_up(e, DTYPE_TABLE, DTYPES, e.load(dtype, I32))
        e.store_field(dl, DLTENSOR, "dtype", word)
        if only_cpu:
            e.store_field(dl, DLTENSOR, "device", e.const_i64(DeviceType.CPU))
        else:
            codes += _store_device(e, handle, dl)
        e.ret(reduce(e.builder.or_, codes))


def _store_device(e: Emitter, handle: ir.Value, dl: ir.Value) -> list[ir.Value]:
    kind, index = e.alloca(I32, name="device_type"), e.alloca(I32, name="device_index")
    codes = [
        e.call(torch_function(e, f"aoti_torch_get_{name}"), [handle, place])
        for name, place in (("device_type", kind), ("device_index", index))
    ]
    device = _looked_up(e, DEVICE_TABLE, DEVICE_TYPES, e.load(kind, I32))
    e.store_field(dl, DLTENSOR, "device_type", device)
    found, zero = e.load(index, I32), e.const_i32(0)
    # -1 is the only device of its type.
    e.store_field(dl, DLTENSOR, "device_id", e.select(e.icmp("slt", found, zero), zero, found))
    return codes


def _table(size: int, entries: dict[int, int]) -> ir.Constant:
    return ir.Constant(ir.ArrayType(I32, size), [entries.get(i, 0) for i in range(size)])


def _looked_up(e: Emitter, table: str, size: int, number: ir.Value) -> ir.Value:
    """The table's entry; 0, which no parameter takes, for numbers beyond it."""
    known = e.icmp("ult", number, e.const_i32(size))
    position = e.builder.zext(e.select(known, number, e.const_i32(0)), I64)
    entry = e.load(e.index(e.module.globals[table], I32, position), I32)
    return e.select(known, entry, e.const_i32(0))
