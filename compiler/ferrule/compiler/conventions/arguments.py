"""The arguments that a convention can pass to its callee, and the values that they become.

    sig["x"].data                     the address of a tensor's first element; .byte_offset(4 * n)
    n, sig["x"].shape[0] // 4, 128    sizes: a symbol with its own width, another as int64
    sig["alpha"]                      a parameter: its leaves, see `artefacts.Body`
    cast(n, Int64), cast(1.5, Float16), cast(sig["alpha"], BFloat16)
    cast(sig["x"].data, "float4*")    an address that is passed as one of another type
    NULL                              a null pointer
    Struct([...])                     a struct by value, with the layout that C gives it
    TensorStruct(sig["x"])            the struct that kernels of CuTe take for a tensor

Two protocols are for arguments of one's own: `InMemory` for bytes, `HostArgument` for values that
only host code can take, such as addresses on the stack.

An integer narrower than an int is passed with its own C type; the caller of a C function extends
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import index
from typing import (
    Any,
    Final,
    Protocol,
    SupportsIndex,
    TypeAlias,
    get_args,
    overload,
    runtime_checkable,
)

from llvmlite import ir

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.conversions import TYPES as TYPES
from ferrule.compiler.conventions.conversions import converted, limits, type_of
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.runtime.llvm.layouts import I32, I64, PTR, align_of, size_of
from ferrule.specs import (
    Compound,
    Data,
    Dim,
    DType,
    Param,
    Scalar,
    Signature,
    Sym,
    Tensor,
    as_dtype,
)
from ferrule.specs import params as kinds
from ferrule.specs.conditions import Computed, format_float
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX, INT64_MIN, is_dim
from ferrule.specs.params import Pointer
from ferrule.specs.params.numbers import check_scalar_dtype

_PARAMS: Final = get_args(Param)


@dataclass(frozen=True, slots=True)
class Null:
    """A null pointer."""


NULL: Final = Null()


@dataclass(frozen=True, slots=True)
class Cast:
    """A number converted to a dtype, see `cast`."""

    value: Dim | float | Scalar | Computed
    dtype: DType


@dataclass(frozen=True, slots=True)
class PointerCast:
    """An address with another pointer type, as C writes it, see `cast`."""

    value: Data | Pointer
    pointer: str


@runtime_checkable
class InMemory(Protocol):
    """An argument that is passed as bytes: a struct by value, a tensor map, or one of your own.

    It can be a parameter of a kernel, a field of a `Struct`, or what a `Reference` refers to.  As
    an argument of a C function it goes by value if it is larger than 16 bytes.
    """

    @property
    def size(self) -> int:
        """Its size in bytes, a multiple of its alignment."""
        ...

    @property
    def align(self) -> int:
        """Its alignment in bytes, a power of two."""
        ...

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """Store all of its bytes at an address, at the insertion point of `call.emitter`; `what` is
        its name in errors.  The memory has this size and alignment, and any contents before."""
        ...


@runtime_checkable
class HostArgument(Protocol):
    """An argument for host code only, such as an address on the stack.

    It can be an argument of a `CFunction` or another call on the host and, if it is one value, a
    field of a `Struct`; no kernel of a GPU takes it.
    """

    def types(self) -> list[ir.Type]:
        """The LLVM types of the values that it becomes."""
        ...

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """The values, emitted at the insertion point of `call.emitter`; `what` is its name in
        errors.  What they point to is valid until the call returns."""
        ...


VALUES: Final = (Data, Cast, PointerCast, Null, Sym, Compound, *_PARAMS)
"""Arguments that are passed as values.  They are checked first, because that is faster than an
`isinstance` with the protocols `InMemory` and `HostArgument`."""

Argument: TypeAlias = "Data | Dim | Param | Cast | PointerCast | Null | InMemory"
"""What every convention can pass: addresses, sizes, parameters, numbers, and bytes."""

CArgument: TypeAlias = "Argument | HostArgument"
"""What a call on the host can pass, and what a field of a `Struct` is."""

_POINTER: Final = re.compile(r"[A-Za-z_][\w\s:<>,*()]*\*\s*(?:const)?")


@overload
def cast(value: Dim | float | Scalar | Computed, dtype: DType | str) -> Cast: ...
@overload
def cast(value: Data | Pointer, dtype: str) -> PointerCast: ...
def cast(
    value: Dim | float | Scalar | Computed | Data | Pointer, dtype: DType | str
) -> Cast | PointerCast:
    """A number with the dtype that the callee takes: a size, a scalar parameter, a Python number,
    or a float expression, see `ferrule.specs.conditions`.

    Or the address of a tensor or a `Pointer`, which the callee takes with another pointer type:
    then the second argument is the pointer type as C writes it, `cast(sig["x"].data, "float4*")`,
    and is compared with the callee's type if that is known.

    Integers become any integer or float, floats any float, rounded to nearest, ties to even, in one
    step; an integer outside the range of the dtype is a ValueError of the call.  Raises TypeError
    for a float that would become an integer and for values that are not numbers, ValueError for a
    constant that does not fit and for dtypes that no scalar has.
    """
    if isinstance(value, (Data, Pointer)):
        return _cast_pointer(value, dtype)
    wanted = check_scalar_dtype(as_dtype(dtype))
    if isinstance(value, bool) or not (
        is_dim(value) or isinstance(value, (float, Scalar, Computed))
    ):
        raise TypeError(
            f"cast: expected a size, a number or a scalar parameter, but got {shown(value)}"
        )
    is_float = isinstance(value, (float, Computed)) or (
        isinstance(value, Scalar) and value.dtype.kind == "float"
    )
    if is_float and wanted.kind != "float":
        raise TypeError(f"cast: a float cannot become {wanted.name}: {shown(value)}")
    if isinstance(value, int) and wanted.kind != "float":
        low, high = limits(wanted)
        if not low <= value <= high:
            raise ValueError(f"cast: {value} does not fit {wanted.name}, [{low}, {high}]")
    return Cast(value, wanted)


def _cast_pointer(value: Data | Pointer, pointer: object) -> PointerCast:
    if not isinstance(pointer, str):
        raise TypeError(
            f"cast: an address becomes a pointer, such as 'float4*', but got {pointer!r}"
        )
    if _POINTER.fullmatch(pointer.strip()) is None:
        raise ValueError(
            f"cast: an address becomes a pointer in C's words, such as 'float4*' or "
            f"'const struct point*', but got {pointer!r}"
        )
    return PointerCast(value, pointer.strip())


def check_argument(argument: object, what: str) -> None:
    """Raise TypeError for a value that no convention can pass; `what` is its name in the error."""
    if not (is_dim(argument) or isinstance(argument, VALUES) or isinstance(argument, InMemory)):
        raise TypeError(
            f"{what} must be a parameter, the .data of a tensor, a size, a cast(...), NULL, a "
            f"Struct or a TensorMap, but got {shown(argument)}{_advice(argument)}"
        )
    if isinstance(argument, (kinds.Shape, kinds.NoneValue, kinds.Constant)):
        raise TypeError(
            f"{what} is {shown(argument)}, of which nothing is handed over: list its sizes, or the "
            f"value that it always has, cast(…), or NULL"
        )
    found = next(_objects(argument), None)
    if found is not None:
        raise TypeError(f"{what} is {shown(argument)}, {_object_advice(found)}")
    if isinstance(argument, int) and not INT64_MIN <= argument <= INT64_MAX:
        raise ValueError(f"{what} does not fit 64 bits: {argument}")


def check_field(argument: object, what: str) -> None:
    """Raise TypeError for a value that no struct can hold; `what` is its name in the error."""
    if not isinstance(argument, HostArgument):
        check_argument(argument, what)


def _objects(argument: object) -> Iterator[object]:
    """The parts of a parameter that are tvm-ffi objects in a call, which only tvm-ffi's own API
    reads."""
    match argument:
        case kinds.Tuple(items=inner) | kinds.Union(members=inner):
            for each in inner:
                yield from _objects(each)
        case kinds.Optional(item=item):
            yield from _objects(item)
        case _ if is_object(argument):
            yield argument


def is_object(argument: object) -> bool:
    """Whether this is a parameter that is, or can be, a tvm-ffi object in a call."""
    return kinds.payload_of(argument) in (kinds.Payload.OBJECT, kinds.Payload.ANY)


def _object_advice(found: object) -> str:
    if isinstance(found, kinds.Function):
        return (
            "a function of tvm-ffi, and no address that C can call: conventions.Callback(…) makes "
            "one for a C function; an address goes as a Pointer, for which callers give "
            "ctypes.cast(callback, ctypes.c_void_p); a callee that calls it through tvm-ffi's API "
            "gets conventions.Handle(…)"
        )
    return (
        "which is an object of tvm-ffi at a call, of which C knows nothing: hand over what is in "
        "it, or conventions.Handle(…) to a callee that reads it through tvm-ffi's API"
    )


def _advice(argument: object) -> str:
    """The hint for a value that is nearly an argument."""
    if argument is None:
        return ": a null pointer is NULL"
    if isinstance(argument, bool):
        return f': write cast({int(argument)}, "bool"), or another dtype'
    if isinstance(argument, SupportsIndex):
        return f': write cast({index(argument)}, "int32"), or another dtype'
    if isinstance(argument, float):
        return f': write cast({argument!r}, "float32"), or another dtype'
    if isinstance(argument, tuple) and type(argument) is not tuple:
        return f": write a star before it, *{type(argument).__name__}(…)"
    is_list = isinstance(argument, (tuple, list)) and argument
    return ": where its items are meant, write a star before it" if is_list else ""


def types(argument: Argument) -> list[ir.Type]:
    """The LLVM types of the values that an argument becomes."""
    match argument:
        case Data() | Null():
            return [PTR]
        case Sym(width=32):
            return [I32]
        case Cast(dtype=dtype):
            return [type_of(dtype)]
        case PointerCast():
            return [PTR]
        case int() | Sym() | Compound():
            return [I64]
        case InMemory():
            raise TypeError(f"{type(argument).__name__} is handed over as bytes, not as a value")
        case _:
            return [TYPES[name] for name in leaves_of(argument)]


def values(call: Call, argument: Argument, what: str) -> list[ir.Value]:
    """The values that an argument becomes, with the types of `types`; `what` is its name in
    errors."""
    e = call.emitter
    match argument:
        case Data():
            return [call.address(argument)]
        case Tensor():
            return [call.address(argument.data)]
        case Null():
            return [e.null()]
        case Cast():
            return [converted(call, argument.value, argument.dtype, what)]
        case PointerCast():
            return values(call, argument.value, what)
        case int() | Sym() | Compound():
            bits = call.unsigned(argument, what)
            if bits is not None:
                return [bits]
            value = call.size(argument, what)
            narrow = isinstance(argument, Sym) and argument.width == 32
            return [e.builder.trunc(value, I32) if narrow else value]
        case InMemory():
            raise TypeError(f"{what}: a {type(argument).__name__} cannot be handed over here")
        case _:
            return call.leaves(argument)


def c_types(argument: CArgument) -> list[ir.Type]:
    """The LLVM types of the values that an argument becomes; not for a struct by value."""
    is_known = isinstance(argument, VALUES)
    if not is_known and isinstance(argument, HostArgument):
        return argument.types()
    return types(argument)  # type: ignore[arg-type]


def parameters(argument: CArgument) -> list[tuple[int, int]]:
    """The sizes and alignments, in bytes, of the values that an argument becomes in memory."""
    if not isinstance(argument, VALUES) and isinstance(argument, InMemory):
        return [(argument.size, argument.align)]
    return [(size_of(kind), align_of(kind)) for kind in c_types(argument)]


def store(call: Call, argument: CArgument, place: ir.Value, what: str) -> None:
    """Store an argument that is one value at an address."""
    if not isinstance(argument, VALUES) and isinstance(argument, InMemory):
        argument.store(call, place, what)
        return
    (value,) = _c_values(call, argument, what)
    call.emitter.store(value, place)


def _c_values(call: Call, argument: CArgument, what: str) -> list[ir.Value]:
    """The values that an argument becomes; not for a struct by value."""
    if not isinstance(argument, VALUES) and isinstance(argument, HostArgument):
        return argument.values(call, what)
    return values(call, argument, what)


def in_memory(call: Call, argument: CArgument, what: str) -> list[ir.Value]:
    """Addresses on the stack of the values that an argument becomes."""
    e = call.emitter
    if not isinstance(argument, VALUES) and isinstance(argument, InMemory):
        place = e.alloca(I64, -(-argument.size // 8), name="bytes")
        place.align = max(8, argument.align)
        argument.store(call, place, what)
        return [place]
    places = []
    for value in _c_values(call, argument, what):
        place = e.alloca(value.type, name="argument")
        e.store(value, place)
        places.append(place)
    return places


def listed(given: Any, what: str) -> tuple[Any, ...]:
    """The items of a list or another sequence.  Raises TypeError for a single value and for a
    text."""
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        return tuple(given)
    raise TypeError(f"{what} must be in a list, but got {shown(given)}")


def shown(value: Any) -> str:
    """A value as errors show it if it has no name in a signature."""
    match value:
        case Data(tensor=tensor):
            return f"{tensor.name}.data"
        case Sym() | Compound():
            return str(value)
        case _ if isinstance(value, _PARAMS):
            return f"{type(value).__name__} {value.name!r}"
    text = repr(value)
    return text if len(text) <= 80 else f"a {type(value).__name__}"


_INNER: Final = (
    *("fields", "items", "value", "tensor", "out", "param", "text", "callback", "function"),
)
"""Where an argument with parts has them."""


def spoken(signature: Signature, argument: Any) -> str:
    """An argument as the steps of a function show it: the class of one with parts, and these."""
    if isinstance(argument, tuple):
        return ", ".join(spoken(signature, each) for each in argument)
    if isinstance(argument, (str, bytes)):
        return repr(argument)
    if is_dim(argument) or isinstance(argument, (*VALUES, float)):
        return repr(argument) if isinstance(argument, float) else describe(signature, argument)
    parts = [getattr(argument, name) for name in _INNER if hasattr(argument, name)]
    name = getattr(argument, "name", "")
    inner = [spoken(signature, each) for each in parts[:1]] or ([name] if name else [])
    word = getattr(argument, "word", type(argument).__name__)
    return f"{word}({', '.join(inner)})" if inner else word


def describe(signature: Signature, argument: Argument) -> str:
    """An argument with the names of a signature, as errors show it."""
    match argument:
        case Data(tensor=tensor):
            return f"{tensor.name}.data"
        case Null():
            return "NULL"
        case Cast(value=value, dtype=dtype):
            return f"{dtype.name}({_described(signature, value)})"
        case PointerCast(value=value, pointer=pointer):
            return f"({pointer}){describe(signature, value)}"
        case int() | Sym() | Compound():
            return signature.format(argument)
        case InMemory():
            return type(argument).__name__
        case _:
            return argument.name


def _described(signature: Signature, number: Dim | float | Scalar | Computed) -> str:
    if isinstance(number, Computed):
        return format_float(number, signature.known)
    return repr(number) if isinstance(number, float) else describe(signature, number)
