"""Tensors as memrefs: how they are made, their elements, views, and the addresses of elements.

A tensor is a memref with explicit strides and any offset.  Sizes that depend on the program's
symbols are computed where the memref is made; loads and stores use the strides only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.mlir import casts
from ferrule.language.mlir.types import (
    base_type,
    element_type,
    is_compact,
    static_size,
    static_stride,
    tensor_type,
    whole_type,
)
from ferrule.specs import Boolean, Dim, DType, TFloat32, symbols_of

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText


def load(f: FunctionText, op: ops.Load) -> str:
    """An element of a tensor."""
    t, tensor = f.t, op.tensor
    if tensor in f.where.unwritten:
        return _constant_load(f, op)
    found = t.op(
        f"memref.load {_place(f, tensor, op.indices)}",
        element_type(tensor.tensor.dtype, f.spaces),
        op.result.hint if f.reads else "load",
    )
    return loaded(f, tensor, found)


def _constant_load(f: FunctionText, op: ops.Load) -> str:
    """Loads an element of memory that nothing writes to, with `llvm.load`: `memref.load` has no
    `invariant`."""
    type_, kind = op.tensor.tensor, element_type(op.tensor.tensor.dtype, f.spaces)
    at = pointer(f, op.tensor, op.indices)
    align = min(type_.align & -type_.align, type_.dtype.itemsize)
    text = f"llvm.load {at} invariant {{alignment = {align} : i64}} : {f.t.types[at]} -> {kind}"
    return loaded(f, op.tensor, f.t.op(text, kind, "load"))


def loaded(f: FunctionText, tensor: ops.Value, found: str) -> str:
    """The value of an element from its form in memory."""
    if tensor.tensor.dtype is Boolean and f.t.types[found] != "i1":
        return f.t.icmp("ne", found, f.t.integer(0, "i8"))
    if tensor.tensor.dtype.is_narrow:
        return f.t.cast("bitcast", found, "i8")
    return f.narrowed(TFloat32, found) if tensor.tensor.dtype is TFloat32 else found


def store(f: FunctionText, op: ops.Store) -> None:
    """Stores an element of a tensor."""
    value = stored(f, op.tensor, op.value)
    f.t.line(f"memref.store {value}, {_place(f, op.tensor, op.indices)}")


def stored(f: FunctionText, tensor: ops.Value, value: ops.Value) -> str:
    """The form in a tensor's memory of a value."""
    found = f.values[value]
    dtype = tensor.tensor.dtype
    if dtype.is_narrow:
        return f.t.cast("bitcast", found, element_type(dtype, f.spaces))
    return f.t.cast("extui", found, f.spaces.boolean) if dtype is Boolean else found


def _place(f: FunctionText, tensor: ops.Value, indices: Sequence[ops.Value]) -> str:
    """The operands by which loads and stores name an element."""
    type_ = tensor.tensor
    places = ", ".join(f.t.as_index(f.as_i64(index)) for index in indices)
    natural = type_.align % type_.dtype.itemsize == 0
    align = "" if natural else f" {{alignment = {type_.align & -type_.align} : i64}}"
    return f"{f.values[tensor]}[{places}]{align} : {f.t.types[f.values[tensor]]}"


def shaped(f: FunctionText, type_: TensorType, base: str, base_kind: str, offset: str) -> str:
    """A tensor of this type that begins `offset` elements (an `index`) behind the memref of one
    element."""
    t = f.t
    sizes = [str(d) if static_size(d) else _size(f, d) for d in type_.shape]
    strides = [str(s) if static_stride(s) else t.as_index(f.dim(s)) for s in type_.strides]
    wanted = tensor_type(type_, f.spaces)
    form = f"offset: [{offset}], sizes: [{', '.join(sizes)}], strides: [{', '.join(strides)}]"
    return t.op(f"memref.reinterpret_cast {base} to {form} : {base_kind} to {wanted}", wanted)


def _size(f: FunctionText, dim: Dim) -> str:
    """A size as an `index`.  A kernel does not receive the sizes that it does not use: they are 0
    here, and nothing reads them."""
    known = all(symbol in f.symbols for symbol in symbols_of(dim))
    return f.t.as_index(f.dim(dim)) if known else f.t.index(0)


def received(f: FunctionText, type_: TensorType, base: str) -> str:
    """The tensor of a parameter that points to its first element."""
    return shaped(f, type_, base, base_type(type_, f.spaces), f.t.index(0))


def view(f: FunctionText, op: ops.View) -> str:
    """A tensor that begins at an element of another one, or at the address in a handle."""
    source, result = op.tensor, op.result.tensor
    if not isinstance(source.type, TensorType):
        return at_pointer(f, result, _in_space(f, f.values[source], result))
    same = element_type(source.type.dtype, f.spaces) == element_type(result.dtype, f.spaces)
    if not same:
        return at_pointer(f, result, pointer(f, source, op.indices))
    if f.reads:
        base, kind = f.values[source], f.t.types[f.values[source]]
        start = _metadata(f, source)[1] if "offset" in kind else f.t.index(0)
        offset = f.t.arith("addi", start, f.t.as_index(linear(f, source, op.indices)))
        return shaped(f, result, base, kind, offset)
    base, start = _metadata(f, source)
    offset = f.t.arith("addi", start, f.t.as_index(linear(f, source, op.indices)))
    return shaped(f, result, base, base_type(source.type, f.spaces), offset)


def _metadata(f: FunctionText, tensor: ops.Value) -> tuple[str, str]:
    """The memref of the buffer's first element, and the tensor's offset from it."""
    t, type_ = f.t, tensor.tensor
    base, kind = base_type(type_, f.spaces), t.types[f.values[tensor]]
    types = [base, "index", *["index"] * (2 * len(type_.shape))]
    rank = len(type_.shape)
    names = [t.known(t.name(), base), t.known(t.name(), "index")]
    rest = "" if not rank else f", {t.name()}:{rank}, {t.name()}:{rank}"
    t.line(
        f"{', '.join(names)}{rest} = memref.extract_strided_metadata {f.values[tensor]} "
        f": {kind} -> {', '.join(types)}"
    )
    return names[0], names[1]


def strides_of(f: FunctionText, type_: TensorType, memref: str) -> list[str]:
    """The strides of a memref, as `index`."""
    t, rank = f.t, len(type_.shape)
    base, kind = base_type(type_, f.spaces), t.types[memref]
    found, strides = [t.name(), t.name()], t.name("strides")
    types = ", ".join([base, *["index"] * (1 + 2 * rank)])
    t.line(
        f"{', '.join(found)}, {t.name()}:{rank}, {strides}:{rank} = "
        f"memref.extract_strided_metadata {memref} : {kind} -> {types}"
    )
    return [t.known(f"{strides}#{axis}", "index") for axis in range(rank)]


def linear(f: FunctionText, tensor: ops.Value, indices: Sequence[ops.Value]) -> str:
    """The distance of an element from the first one, in elements (i64)."""
    t, found = f.t, f.t.const_i64(0)
    for index, stride in zip(indices, tensor.tensor.strides, strict=bool(indices)):
        step = f.as_i64(index)
        if stride != 1:
            step = t.binary("mul", step, f.dim(stride))
        found = t.binary("add", found, step)
    return found


def address(f: FunctionText, tensor: ops.Value, indices: Sequence[ops.Value] = ()) -> str:
    """The address of an element, i64."""
    t, type_ = f.t, tensor.tensor
    kind = t.types[f.values[tensor]]
    start = t.op(
        f"memref.extract_aligned_pointer_as_index {f.values[tensor]} : {kind} -> index", "index"
    )
    offset = _metadata(f, tensor)[1] if "offset" in kind else t.index(0)
    elements = t.cast("index_cast", offset, "i64")
    if indices:
        elements = t.binary("add", elements, linear(f, tensor, indices))
    size = t.const_i64(type_.dtype.itemsize)
    return t.binary("add", t.cast("index_cast", start, "i64"), t.binary("mul", elements, size))


def pointer(f: FunctionText, tensor: ops.Value, indices: Sequence[ops.Value] = ()) -> str:
    """The address of an element, as a pointer into the tensor's memory."""
    space = f.spaces.of(tensor.tensor)
    kind = f"!llvm.ptr<{space}>" if space else "!llvm.ptr"
    return f.t.op(f"llvm.inttoptr {address(f, tensor, indices)} : i64 to {kind}", kind)


def in_gmem(f: FunctionText, tensor: ops.Value) -> str:
    """The address of a tensor in global memory, in the address space of GPUs for it."""
    found = pointer(f, tensor)
    if f.t.types[found] != "!llvm.ptr":
        return found
    return f.t.op(f"llvm.addrspacecast {found} : !llvm.ptr to !llvm.ptr<1>", "!llvm.ptr<1>")


def _in_space(f: FunctionText, pointer: str, type_: TensorType) -> str:
    """A pointer, converted to the address space of a tensor's memory."""
    space = f.spaces.of(type_)
    kind = f"!llvm.ptr<{space}>"
    if not space or f.t.types[pointer] == kind:
        return pointer
    return f.t.op(f"llvm.addrspacecast {pointer} : {f.t.types[pointer]} to {kind}", kind)


def at_pointer(f: FunctionText, type_: TensorType, pointer: str) -> str:
    """The tensor that begins at a pointer: the descriptor of a memref is built from it."""
    t, kind = f.t, base_type(type_, f.spaces)
    pointer = _in_space(f, pointer, type_)
    space = f.spaces.of(type_)
    ptr = f"ptr<{space}>" if space else "ptr"
    struct = f"!llvm.struct<({ptr}, {ptr}, i64)>"
    value = t.op(f"llvm.mlir.poison : {struct}", struct)
    for position, part in enumerate((pointer, pointer, t.const_i64(0))):
        value = t.op(f"llvm.insertvalue {part}, {value}[{position}] : {struct}", struct)
    base = t.op(f"builtin.unrealized_conversion_cast {value} : {struct} to {kind}", kind)
    return shaped(f, type_, base, kind, t.index(0))


def pointed(f: FunctionText, type_: TensorType, address: str) -> str:
    """The tensor that begins at an address, an `i64`."""
    space = f.spaces.of(type_)
    kind = f"!llvm.ptr<{space}>" if space else "!llvm.ptr"
    place = f.t.op(f"llvm.inttoptr {address} : i64 to {kind}", kind)
    return at_pointer(f, type_, place)


def at_byte(f: FunctionText, type_: TensorType, buffer: str, offset: str) -> str:
    """The tensor that begins `offset` bytes (i64) into a `memref<?xi8>`."""
    t, kind = f.t, f"memref<{element_type(type_.dtype, f.spaces)}>"
    shift = t.as_index(offset)
    base = t.op(f"memref.view {buffer}[{shift}][] : memref<?xi8> to {kind}", kind)
    return shaped(f, type_, base, kind, t.index(0))


def room(f: FunctionText, result: ops.Value) -> str:
    """A thread's own tensor, on the stack; it is filled with zeros, so that no element is
    undefined."""
    t, type_ = f.t, result.tensor
    count, buffer = span(type_), buffer_type(f, type_)
    place = t.first(
        f"memref.alloca() {{alignment = {type_.align} : i64}} : {buffer}", buffer, result.hint
    )
    if f.reads:
        zero = _zero(f, type_.dtype)
        t.line(f"linalg.fill ins({zero} : {t.types[zero]}) outs({place} : {buffer})")
        return of_buffer(f, type_, place, buffer)
    zero, first, end, one = _zero(f, type_.dtype), t.index(0), t.index(count), t.index(1)
    index = t.known(t.name("i"), "index")
    t.line(f"scf.for {index} = {first} to {end} step {one} {{")
    t.line(f"  memref.store {zero}, {place}[{index}] : {buffer}")
    t.line("}")
    return of_buffer(f, type_, place, buffer)


def of_buffer(f: FunctionText, type_: TensorType, place: str, buffer: str) -> str:
    """The tensor that begins at the start of a buffer of its elements."""
    if f.reads and is_compact(type_):
        return place
    return shaped(f, type_, place, buffer, f.t.index(0))


def buffer_type(f: FunctionText, type_: TensorType) -> str:
    """The memref of the memory of a tensor with constant sizes."""
    if f.reads and is_compact(type_):
        return whole_type(type_, f.spaces)
    space = f", {f.spaces.of(type_)}" if f.spaces.of(type_) else ""
    return f"memref<{span(type_)}x{element_type(type_.dtype, f.spaces)}{space}>"


def span(type_: TensorType) -> int:
    """The number of elements from the first to the last of a tensor of constant sizes, at least
    1."""
    count = 1
    for size, stride in zip(type_.shape, type_.strides, strict=True):
        assert isinstance(size, int) and isinstance(stride, int)
        count += max(size - 1, 0) * stride
    return count


def _zero(f: FunctionText, dtype: DType) -> str:
    """As it is stored, where a float of 8 bits is no integer."""
    if dtype is Boolean:
        return f.t.integer(0, f.spaces.boolean)
    zero = casts.constant(f.t, dtype, 0)
    return f.t.cast("bitcast", zero, element_type(dtype, f.spaces)) if dtype.is_narrow else zero
