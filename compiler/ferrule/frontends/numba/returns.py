"""What a function of Numba returns: where its parts lie in memory, and as results of a call.

Numba stores the result at an address that the caller hands over: a number as it is, an array as
`{meminfo, parent, nitems, itemsize, data, shape..., strides...}` of 64 bits each, a tuple as a
struct, an optional as `{value, i8 valid}`.  (An optional that is the whole result is stored
without the flag, which is in the status of the call; here the caller stores it, see `host`.)

Arrays are copied into tensors of the caller's allocator: a caller may keep them longer than the
function's code, and Numba's memory may be that of an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeGuard

from llvmlite import ir

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.conversions import type_of
from ferrule.compiler.conventions.copies import Source, copied
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.numba.types import dtype_of
from ferrule.frontends.packages import load
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, F64, I8, I64, PTR
from ferrule.specs import DType, Param, Tensor, sym_int64
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import AnyValue, Scalar, Tuple

_DATA, _SIZES = 32, 40
"""The offsets of an array's data and of its sizes."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Array:
    """An array; the spec is that of its copy."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Perhaps:
    """A number or array, or None."""

    item: Number | Array


Value: TypeAlias = "Number | Array | Several | Perhaps"


def returned_value(name: str, kind: Any) -> Value | None:
    """The result of a function that returns this type of Numba; None for one that returns nothing.

    Raises CompileError for types without a counterpart.
    """
    types = load("numba", "numba").types
    if kind in (types.none, types.void):
        return None
    found = _value(types, kind, "result")
    if found is None:
        raise CompileError(
            Diagnostic(
                f"{name} returns a {kind} of Numba",
                expected="nothing, numbers, arrays of numbers, each of which may be None, and "
                "tuples of these",
                hint="write to an array that is a parameter, and name it in results=",
            )
        )
    return found


def _value(types: Any, kind: Any, name: str) -> Value | None:
    kind = types.unliteral(kind)
    match kind:
        case types.Array():
            dtype = _element(types, kind.dtype)
            shape = [sym_int64() for _ in range(kind.ndim)]
            return None if dtype is None else Array(Tensor(name, shape, dtype))
        case types.Optional():
            item = _value(types, kind.type, name)
            return Perhaps(item) if isinstance(item, Array) or _is_plain(item) else None
        case types.BaseTuple():
            items = [_value(types, each, f"{name}{i}") for i, each in enumerate(kind.types)]
            known = tuple(each for each in items if each is not None)
            return Several(known) if len(known) == len(items) else None
    dtype = dtype_of(types, kind)
    return None if dtype is None else Number(dtype)


def _element(types: Any, kind: Any) -> DType | None:
    """The dtype of an array's elements, which may be complex."""
    from ferrule.specs import as_dtype

    if kind in (types.complex64, types.complex128):
        return as_dtype(str(kind))
    return dtype_of(types, kind)


def _is_plain(value: Value | None) -> TypeGuard[Number]:
    """Whether a value of any kind can hold a number: a uint64 may be too large for it."""
    if not isinstance(value, Number):
        return False
    return value.dtype.bits < 64 or value.dtype.kind != "uint"


# ---- in memory ----


def room(value: Value) -> tuple[int, int]:
    """The size of a result in memory, and its alignment, in bytes."""
    match value:
        case Number(dtype=dtype):
            return dtype.itemsize, dtype.itemsize
        case Array(tensor=tensor):
            return _SIZES + 16 * len(tensor.shape), 8
        case Perhaps(item=item):
            size, align = room(item)
            # One byte behind the value says whether it is there.
            return _up(size + 1, align), align
        case Several(items=items):
            aligns = [room(each)[1] for each in items]
            end = max((at + room(each)[0] for at, each in _inside(items)), default=0)
            return _up(end, max(aligns, default=1)), max(aligns, default=1)


def valid_offset(value: Perhaps) -> int:
    """The offset of the flag of an optional."""
    return room(value.item)[0]


def _inside(items: tuple[Value, ...]) -> Iterator[tuple[int, Value]]:
    """The items of a tuple with their offsets."""
    end = 0
    for each in items:
        size, align = room(each)
        end = _up(end, align)
        yield end, each
        end += size


def _up(size: int, align: int) -> int:
    return -(-size // align) * align


def arrays(value: Value, offset: int = 0) -> Iterator[int]:
    """The offsets of the arrays; where an optional one is absent, its bytes are zero."""
    match value:
        case Array():
            yield offset
        case Perhaps(item=item):
            yield from arrays(item, offset)
        case Several(items=items):
            for at, each in _inside(items):
                yield from arrays(each, offset + at)


# ---- results of a call ----


def param(value: Value) -> Param:
    """The spec of the result."""
    match value:
        case Number(dtype=dtype):
            return Scalar("result", dtype)
        case Array(tensor=tensor):
            return tensor
        case Perhaps():
            return AnyValue("result")
        case Several(items=items):
            return Tuple("result", tuple(map(param, items)))


def leaves(call: Call, value: Value, place: ir.Value, function: str) -> list[ir.Value]:
    """The leaves of the result that lies at a place; its arrays are copied."""
    e = call.emitter
    match value:
        case Number(dtype=dtype):
            return [e.load(place, type_of(dtype))]
        case Array(tensor=tensor):
            return [_copied(call, tensor, place, function)]
        case Perhaps():
            return [_kept(call, value, place, function)]
        case Several(items=items):
            return [
                leaf
                for at, each in _inside(items)
                for leaf in leaves(call, each, e.index(place, I8, at), function)
            ]


def _copied(call: Call, tensor: Tensor, place: ir.Value, function: str) -> ir.Value:
    e = call.emitter
    data = e.load(e.index(place, I8, _DATA), PTR)
    sizes, steps = (e.index(place, I8, at) for at in (_SIZES, _SIZES + 8 * len(tensor.shape)))
    return copied(call, Source(data, sizes, steps, 1), tensor, function)


def _kept(call: Call, value: Perhaps, place: ir.Value, function: str) -> ir.Value:
    """The address of a value of any kind: None, the number, or the copy of the array."""
    e, kept = call.emitter, call.keep()
    flag = e.load(e.index(place, I8, valid_offset(value)), I8)
    there, behind = e.block("there"), e.block("behind")
    e.cond_branch(e.icmp("ne", flag, ir.Constant(I8, 0)), there, behind)
    e.at(there)
    with call.apart():
        (leaf,) = leaves(call, value.item, place, function)
        index, bits = _any(call, value.item, leaf)
        e.store_field(kept, ANY, "type_index", e.const_i32(index))
        e.store_field(kept, ANY, "v_int64", bits)
    e.branch(behind)
    e.at(behind)
    return kept


def _any(call: Call, value: Number | Array, leaf: ir.Value) -> tuple[int, ir.Value]:
    """The type index and the 64 bits of a value of any kind."""
    e = call.emitter
    if isinstance(value, Array):
        # The value is released by the wrapper, the handle with what the body owns.
        e.call("TVMFFIObjectIncRef", [leaf])
        return TypeIndex.TENSOR, e.builder.ptrtoint(leaf, I64)
    match value.dtype.kind:
        case "float":
            wide = leaf if leaf.type == F64 else e.builder.fpext(leaf, F64)
            return TypeIndex.FLOAT, e.builder.bitcast(wide, I64)
        case "bool":
            return TypeIndex.BOOL, e.builder.zext(leaf, I64)
        case "uint":
            return TypeIndex.INT, e.builder.zext(leaf, I64)
    return TypeIndex.INT, e.builder.sext(leaf, I64)
