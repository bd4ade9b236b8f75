"""Tensors that an operator makes with torch's allocator, in LLVM IR.

Two kinds: tensors of the plan's `made`, whose sizes follow from the arguments, and tensors that the
function itself makes and returns. For these the operator is the allocator of the thread while the
function runs: its tensors are torch tensors inside, so that what comes back is given to torch
without a copy. What the function returns otherwise is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from llvmlite import ir

from ferrule import specs
from ferrule.compiler.operators.torch.plans import Made, Plan, keys_of
from ferrule.compiler.operators.torch.symbols import DELETE_TENSOR, EMPTY, KEYS, torch_function
from ferrule.compiler.operators.torch.unboxing import (
    DESCRIBE,
    DEVICE_TABLE,
    DEVICE_TYPES,
    DTYPE_TABLE,
    DTYPES,
)
from ferrule.compiler.operators.torch.words import scalar_type_of
from ferrule.compiler.sizes import Sizes
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    DLTENSOR,
    I8,
    I32,
    I64,
    MANAGED_TENSOR,
    OBJECT,
    PTR,
    TENSOR_OBJECT,
    VOID,
)
from ferrule.specs.binding import ACTUAL, Binding, bindings_of

_SET_ERROR: Final = ir.FunctionType(VOID, [PTR, PTR, PTR])
_ALLOCATE: Final = "ferrule_allocate"
_DELETER: Final = "ferrule_deleter"
_REVERSE: Final = "ferrule_number"
_OBJECT_DELETER: Final = "ferrule_object_deleter"
PROBE: Final = "ferrule_probe"
SET_ALLOCATOR: Final = "TVMFFIEnvSetDLPackManagedTensorAllocator"
SET_ALLOCATOR_TYPE: Final = ir.FunctionType(I32, [PTR, I32, PTR])


# ---- tensors whose sizes follow from the arguments ----


def checked(plan: Plan) -> Plan:
    """ValueError for sizes that nothing tells, and devices that torch does not have."""
    untold = untold_size(plan)
    if untold is not None:
        raise ValueError(
            f"torch_op {plan.name!r}: no argument tells {untold}, so the operator cannot make it; "
            f"leave it out of out="
        )
    for device in keys_of(plan):
        if device not in KEYS:
            raise ValueError(f"torch_op {plan.name!r}: torch has no tensors on {device}")
    return plan


def check_backward(plan: Plan, backward: Plan) -> None:
    """ValueError for a gradient whose size no argument of the backward function tells."""
    untold = untold_size(backward)
    if untold is not None:
        raise ValueError(
            f"torch_op {plan.name!r}: no argument of the backward function tells {untold}: save "
            f"the argument that has it, save=[...], and give the function a parameter of its name"
        )


def untold_size(plan: Plan) -> str | None:
    """The name of a made tensor and of its size that no argument tells; None if all are told."""
    for signature in plan.candidates:
        told = {binding.symbol for binding in _bindings(plan, signature)}
        for made in plan.made:
            for symbol in _symbols(signature, (made,)) - told:
                return f"the size {signature.format(symbol)} of {made.param.name}"
    return None


def plain_bindings(plan: Plan) -> tuple[Binding, ...] | None:
    """Where the sizes of made tensors are; None unless each is a size of a tensor that is always
    there."""
    usable: dict[specs.Sym, Binding] = {}
    signature = plan.candidates[0]
    for each in _bindings(plan, signature):
        place = each.places[0]
        is_plain = place.kind == "shape" and len(place.path) == 1 and not place.optional
        if is_plain and {*specs.symbols_of(each.solution)} <= {*usable, ACTUAL}:
            usable[each.symbol] = each
    return tuple(usable.values()) if _symbols(signature, plan.made) <= usable.keys() else None


def _symbols(signature: specs.Signature, made: Sequence[Made]) -> set[specs.Sym]:
    params = [signature.arguments[each.position] for each in made]
    tensors = [param for param in params if isinstance(param, specs.Tensor)]
    dims = [dim for tensor in tensors for dim in (*tensor.shape, *tensor.strides)]
    return {symbol for dim in dims for symbol in specs.symbols_of(dim)}


def _bindings(plan: Plan, signature: specs.Signature) -> tuple[Binding, ...]:
    try:
        return bindings_of(tuple(signature.arguments[i] for i in given_positions(plan)))
    except ValueError:  # a size that stands in an expression alone, which a made tensor had told
        return ()


def given_positions(plan: Plan) -> tuple[int, ...]:
    """The positions of the arguments that a call gives: all but those of made tensors."""
    taken = {each.position for each in plan.made}
    return tuple(i for i in range(len(plan.signature.arguments)) if i not in taken)


def symbol_values(
    e: Emitter, plan: Plan, tensors: Mapping[int, ir.Value], refuse: Callable[[ir.Value], None]
) -> Sizes[ir.Value]:
    """The sizes of the call; `tensors` are the DLTensors by the position of the parameter.

    A tensor of too few dims counts as one with sizes of 0: the function refuses it. `refuse` emits
    what happens where a size has no value.
    """
    values: dict[specs.Sym, ir.Value] = {}
    positions = given_positions(plan)
    for binding in plain_bindings(plan) or ():
        place = binding.places[0]
        actual = _size_at(e, tensors[positions[place.path[0]]], place.axis)
        values[binding.symbol] = actual
        if binding.solution is not ACTUAL:
            sizes = Sizes(e, {**values, ACTUAL: actual}, refuse=refuse)
            values[binding.symbol] = sizes.lower(binding.solution).value
    return Sizes(e, values, refuse=refuse)


def _size_at(e: Emitter, tensor: ir.Value, axis: int) -> ir.Value:
    rank = e.load_field(tensor, DLTENSOR, "ndim")
    place = e.alloca(I64)
    e.store(e.const_i64(0), place)
    with e.if_then(e.icmp("sgt", rank, e.const_i32(axis))):
        shape = e.load_field(tensor, DLTENSOR, "shape")
        e.store(e.load(e.index(shape, I64, axis), I64), place)
    return e.load(place, I64)


def make_tensor(
    e: Emitter, made: Made, sizes: Sizes[ir.Value], like: ir.Value, handle: ir.Value
) -> ir.Value:
    """Make a tensor on the device of the tensor `like`, a handle; put its handle at `handle`.

    Returns a flag that is true if torch has not made it.
    """
    rank = len(made.param.shape)
    shape, strides = e.alloca(I64, max(rank, 1)), e.alloca(I64, max(rank, 1))
    for place, dims in ((shape, made.param.shape), (strides, made.param.strides)):
        for axis, dim in enumerate(dims):
            e.store(sizes.lower(dim).value, e.index(place, I64, axis))
    kind, index = e.alloca(I32), e.alloca(I32)
    for name, place in (("device_type", kind), ("device_index", index)):
        e.call(torch_function(e, f"aoti_torch_get_{name}"), [like, place])
    number = e.const_i32(checked_number(made.param.dtype))
    device = [e.load(kind, I32), e.load(index, I32)]
    code = e.call(
        torch_function(e, EMPTY), [e.const_i64(rank), shape, strides, number, *device, handle]
    )
    return e.icmp("ne", code, e.const_i32(0))


def checked_number(dtype: specs.DType) -> int:
    """torch's number of a dtype.  Raises ValueError for a dtype that torch does not have."""
    number = scalar_type_of(dtype)
    if number is None:
        raise ValueError(f"torch has no dtype {dtype.name}, so it cannot make a tensor of it")
    return number


# ---- tensors that the function makes ----


def define_allocator(e: Emitter) -> None:
    """The allocator, the deleter of its tensors, and `ferrule_probe`, which is called once.

    tvm-ffi makes a Tensor object of what an allocator gives; the word behind the object's fields
    is the address of what the allocator gave. The probe makes such an object, looks whether that
    is so, and keeps the object's deleter, by which such objects are known.
    """
    deleter = _define_deleter(e)
    _define_reverse(e)
    _define_allocate(e, deleter)
    known = e.global_constant(_OBJECT_DELETER, ir.Constant(I64, 0))
    known.global_constant = False
    _define_probe(e)


def _define_deleter(e: Emitter) -> ir.Function:
    with e.define(_DELETER, VOID, [PTR], names=("tensor",), linkage="internal") as function:
        (tensor,) = function.args
        handle = e.load_field(tensor, MANAGED_TENSOR, "manager_ctx")
        with e.if_then(e.not_(e.is_null(handle))):
            e.call(torch_function(e, DELETE_TENSOR), [handle])
        e.call("free", [tensor])
        e.ret()
    return function


def _define_reverse(e: Emitter) -> None:
    """`i32 number(ptr table, i32 count, i32 word)`: the position of a word, or -1."""
    with e.define(
        _REVERSE, I32, [PTR, I32, I32], names=("table", "count", "word"), linkage="internal"
    ) as function:
        table, count, word = function.args
        with e.loop(count) as i:
            entry = e.load(e.index(table, I32, e.builder.zext(i, I64)), I32)
            with e.if_then(e.icmp("eq", entry, word)):
                e.ret(i)
        e.ret(e.const_i32(-1))


def _number(e: Emitter, table: str, count: int, word: ir.Value) -> ir.Value:
    function = e.module.globals[_REVERSE]
    return e.call(function, [e.module.globals[table], e.const_i32(count), word])


def _define_allocate(e: Emitter, deleter: ir.Function) -> None:
    names = ("prototype", "out", "context", "set_error")
    with e.define(_ALLOCATE, I32, [PTR] * 4, names=names, linkage="internal") as function:
        prototype, out, context, set_error = function.args
        rank = e.builder.zext(e.load_field(prototype, DLTENSOR, "ndim"), I64)
        room = e.builder.add(e.const_i64(MANAGED_TENSOR.size), e.builder.shl(rank, e.const_i64(3)))
        block = e.call("malloc", [room])
        with e.if_then(e.is_null(block), likely=False):
            _refuse(e, "there is no memory for a new tensor", context, set_error)
        e.call("memset", [block, e.const_i32(0), e.const_i64(MANAGED_TENSOR.size)])
        strides = e.index(block, I8, MANAGED_TENSOR.size)
        shape = e.load_field(prototype, DLTENSOR, "shape")
        _fill_strides(e, rank, shape, strides)
        handle = e.alloca(PTR, name="handle")
        dtype = _number(e, DTYPE_TABLE, DTYPES, e.load_field(prototype, DLTENSOR, "dtype"))
        kind = _number(
            e, DEVICE_TABLE, DEVICE_TYPES, e.load_field(prototype, DLTENSOR, "device_type")
        )
        index = e.load_field(prototype, DLTENSOR, "device_id")
        arguments = [rank, shape, strides, dtype, kind, index, handle]
        unknown = e.icmp("slt", e.builder.or_(dtype, kind), e.const_i32(0))
        with e.if_then(unknown, likely=False):
            e.call("free", [block])
            _refuse(e, "torch has no tensors of this dtype or device", context, set_error)
        code = e.call(torch_function(e, EMPTY), arguments)
        with e.if_then(e.icmp("ne", code, e.const_i32(0)), likely=False):
            e.call("free", [block])
            _refuse(e, "torch has no memory for a new tensor", context, set_error)
        held = e.load(handle, PTR)
        e.call(e.module.globals[DESCRIBE], [held, e.field_ptr(block, MANAGED_TENSOR, "dl")])
        e.store_field(block, MANAGED_TENSOR, "version_major", e.const_i32(1))
        e.store_field(block, MANAGED_TENSOR, "manager_ctx", held)
        e.store_field(block, MANAGED_TENSOR, "deleter", deleter)
        e.store(block, out)
        e.ret(e.const_i32(0))


def _refuse(e: Emitter, message: str, context: ir.Value, set_error: ir.Value) -> None:
    arguments = [context, e.cstring("MemoryError"), e.cstring(message)]
    e.call_pointer(set_error, _SET_ERROR, arguments)
    e.ret(e.const_i32(-1))


def _fill_strides(e: Emitter, rank: ir.Value, shape: ir.Value, strides: ir.Value) -> None:
    """Compact strides, as torch has them: a size of 0 counts as 1."""
    running = e.alloca(I64, name="stride")
    e.store(e.const_i64(1), running)
    with e.loop(rank) as i:
        axis = e.builder.sub(e.builder.sub(rank, i), e.const_i64(1))
        stride = e.load(running, I64)
        e.store(stride, e.index(strides, I64, axis))
        size = e.load(e.index(shape, I64, axis), I64)
        size = e.select(e.icmp("eq", size, e.const_i64(0)), e.const_i64(1), size)
        e.store(e.builder.mul(stride, size), running)


_TENSOR_FROM: Final = "TVMFFITensorFromDLPackVersioned"


def _define_probe(e: Emitter) -> None:
    with e.define(PROBE, VOID, [], attributes=COLD) as function:
        shape = e.alloca(I64)
        e.store(e.const_i64(0), shape)
        # More than the block needs: LLVM would make calloc, which is no function of ours, of both.
        block = e.call("malloc", [e.const_i64(MANAGED_TENSOR.size + 8)])
        with e.if_then(e.is_null(block)):
            e.ret()
        e.call("memset", [block, e.const_i32(0), e.const_i64(MANAGED_TENSOR.size)])
        e.store_field(block, MANAGED_TENSOR, "version_major", e.const_i32(1))
        e.store_field(block, MANAGED_TENSOR, "deleter", e.module.globals[_DELETER])
        e.store_field(block, MANAGED_TENSOR, "dl.device_type", e.const_i32(1))
        e.store_field(block, MANAGED_TENSOR, "dl.ndim", e.const_i32(1))
        e.store_field(block, MANAGED_TENSOR, "dl.dtype", e.const_i32(specs.Float32.dlpack))
        for name in ("shape", "strides"):
            e.store_field(block, MANAGED_TENSOR, f"dl.{name}", shape)
        place = e.alloca(PTR)
        arguments = [block, e.const_i32(0), e.const_i32(0), place]
        code = e.call(_TENSOR_FROM, arguments)
        with e.if_then(e.icmp("ne", code, e.const_i32(0))):
            e.call("free", [block])
            e.ret()
        made = e.load(place, PTR)
        with e.if_then(e.icmp("eq", _behind(e, made), e.builder.ptrtoint(block, I64))):
            deleter = e.builder.ptrtoint(e.load_field(made, OBJECT, "deleter"), I64)
            e.store(deleter, e.module.globals[_OBJECT_DELETER])
        e.call("TVMFFIObjectDecRef", [made])
        e.ret()
    del function


def _behind(e: Emitter, tensor: ir.Value) -> ir.Value:
    """The word behind the fields of a Tensor object."""
    return e.load(e.index(tensor, I8, TENSOR_OBJECT.size), I64)


def set_allocator(e: Emitter, old: ir.Value) -> None:
    """Make this thread's allocator ours; the one before goes to `old`."""
    function = e.symbol(SET_ALLOCATOR, SET_ALLOCATOR_TYPE)
    e.call(function, [e.module.globals[_ALLOCATE], e.const_i32(0), old])


def reset_allocator(e: Emitter, old: ir.Value) -> None:
    """The allocator that was before."""
    function = e.symbol(SET_ALLOCATOR, SET_ALLOCATOR_TYPE)
    e.call(function, [e.load(old, PTR), e.const_i32(0), e.null()])


def take_tensor(e: Emitter, value: ir.Value, dtype: specs.DType, handle: ir.Value) -> ir.Value:
    """Put torch's tensor of a returned value, an Any with a Tensor object, to `handle`.

    Returns a flag that is true if torch has not made it. The value stays the caller's to release.
    """
    tensor = e.load_field(value, ANY, "v_obj")
    code = e.alloca(I32, name="code")
    ours, copied, after = e.block("ours"), e.block("copied"), e.block("taken")
    deleter = e.builder.ptrtoint(e.load_field(tensor, OBJECT, "deleter"), I64)
    known = e.load(e.module.globals[_OBJECT_DELETER], I64)
    first = e.block("known")
    e.cond_branch(e.icmp("eq", deleter, known), first, copied)
    e.at(first)
    block = e.builder.inttoptr(_behind(e, tensor), PTR)
    made_by = e.load_field(block, MANAGED_TENSOR, "deleter")
    own = e.builder.ptrtoint(_address(e, _DELETER), I64)
    e.cond_branch(e.icmp("eq", e.builder.ptrtoint(made_by, I64), own), ours, copied)
    e.at(ours)
    held = e.load_field(block, MANAGED_TENSOR, "manager_ctx")
    e.store(e.call(torch_function(e, "aoti_torch_new_tensor_handle"), [held, handle]), code)
    e.branch(after)
    e.at(copied)
    e.store(_copy(e, e.field_ptr(tensor, TENSOR_OBJECT, "dl"), dtype, handle), code)
    e.branch(after)
    e.at(after)
    return e.icmp("ne", e.load(code, I32), e.const_i32(0))


def _address(e: Emitter, name: str) -> ir.Value:
    return ir.FormattedConstant(PTR, e.module.globals[name].get_reference())


def _copy(e: Emitter, dl: ir.Value, dtype: specs.DType, handle: ir.Value) -> ir.Value:
    """A copy of a tensor whose memory is not torch's."""
    kind = _number(e, DEVICE_TABLE, DEVICE_TYPES, e.load_field(dl, DLTENSOR, "device_type"))
    view = e.alloca(PTR, name="view")
    e.store(e.null(), view)
    offset = e.load_field(dl, DLTENSOR, "byte_offset")
    data = e.builder.gep(e.load_field(dl, DLTENSOR, "data"), [offset], source_etype=I8)
    viewed = e.call(
        torch_function(e, "aoti_torch_create_tensor_from_blob"),
        [
            data,
            e.builder.zext(e.load_field(dl, DLTENSOR, "ndim"), I64),
            e.load_field(dl, DLTENSOR, "shape"),
            e.load_field(dl, DLTENSOR, "strides"),
            e.const_i64(0),
            e.const_i32(checked_number(dtype)),
            kind,
            e.load_field(dl, DLTENSOR, "device_id"),
            view,
        ],
    )
    code = e.alloca(I32, name="copied")
    e.store(viewed, code)
    with e.if_then(e.icmp("eq", viewed, e.const_i32(0))):
        held = e.load(view, PTR)
        e.store(e.call(torch_function(e, "aoti_torch_clone"), [held, handle]), code)
        e.call(torch_function(e, DELETE_TENSOR), [held])
    return e.load(code, I32)
