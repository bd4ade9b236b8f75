"""Arguments that only C functions can take."""

from __future__ import annotations

from typing import ClassVar

from llvmlite import ir

from ferrule.compiler.conventions.arguments import CArgument as CArgument
from ferrule.compiler.conventions.arguments import (
    Cast,
    InMemory,
    check_argument,
    check_field,
    in_memory,
    is_object,
    parameters,
    shown,
    values,
)
from ferrule.compiler.conventions.arguments import HostArgument as HostArgument
from ferrule.compiler.conventions.arguments import c_types as c_types
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.by_value import Shape, on_stack
from ferrule.runtime.llvm.layouts import PTR
from ferrule.specs import Compound, Data, Param, Scalar, Sym, Tensor
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """The address of a struct, array, number or tensor map on the stack, valid during the call.

    It can be a field of a struct, or in another Reference, as `T**` is.  Values that the callee
    writes there are lost, so it must say one of two things, for itself and the References inside
    of it: `reads_only`, that the callee writes nothing, as a `const` pointer does, or `discards`,
    that nobody wants what it writes.  An `Out` gives back what the callee writes, its `field` what
    it writes to a field of a struct.

    Raises TypeError for a value that becomes several, ValueError if it says both.
    """

    value: CArgument
    reads_only: bool = False
    discards: bool = False

    def __post_init__(self) -> None:
        check_field(self.value, "what a Reference refers to")
        for name, said in (("reads_only", self.reads_only), ("discards", self.discards)):
            if not isinstance(said, bool):
                raise TypeError(f"Reference: {name} must be True or False, but got {shown(said)}")
        if self.reads_only and self.discards:
            raise ValueError(
                "Reference: reads_only says that nothing is written there, discards that what is "
                "written is not wanted: leave one of them out"
            )
        if not isinstance(self.value, InMemory) and len(c_types(self.value)) != 1:
            raise TypeError(
                f"Reference: expected one value, but {shown(self.value)} becomes several"
            )

    @property
    def size_in_memory(self) -> int:
        """The number of bytes behind the address."""
        ((size, _),) = parameters(self.value)
        return size

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return in_memory(call, self.value, what)


@dataclass(frozen=True, slots=True)
class Handle:
    """The `TVMFFIObjectHandle` of a parameter that is a tvm-ffi object, such as a function or a
    list, for a callee that reads it through tvm-ffi's C API; for an `AnyValue` the `TVMFFIAny*`.

    It is valid during the call.  Raises TypeError for other parameters.
    """

    value: Param

    def __post_init__(self) -> None:
        if not is_object(self.value):
            raise TypeError(
                f"Handle: expected a parameter that is an object of tvm-ffi, such as a Function, "
                f"but got {shown(self.value)}"
            )

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return call.leaves(self.value)


@dataclass(frozen=True, slots=True)
class OnStack:
    """The address of memory on the stack of the body, a multiple of 8."""

    word: ClassVar[str] = "a place on the stack"
    address: ir.Value

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return [self.address]


def addresses(argument: CArgument) -> list[Data | None]:
    """For each value of an argument, the tensor address that it is, or None."""
    match argument:
        case Data():
            return [argument]
        case Tensor():
            return [argument.data]
        case kinds.Optional(item=Tensor() as tensor):
            return [None, tensor.data]
    if isinstance(argument, InMemory):
        return [None]
    found: list[Data | None] | None = getattr(argument, "addresses", None)
    return [None] * len(c_types(argument)) if found is None else found


def check_c(argument: object, what: str) -> None:
    """Raise TypeError for a value that cannot be passed to a C function; `what` is its name."""
    if isinstance(argument, HostArgument):
        return
    instead = _instead(argument)
    if instead is not None:
        raise TypeError(f"{what} is {shown(argument)}: {instead}")
    check_argument(argument, what)
    if isinstance(argument, InMemory):
        Shape.of(argument, what)


def _instead(argument: object) -> str | None:
    """The hint for Python values that look like an argument."""
    if isinstance(argument, str | bytes):
        return "a text goes as conventions.CString(…)"
    if isinstance(argument, float):
        return "a number has a type in C, conventions.cast(…, 'float64')"
    if callable(argument) and not isinstance(argument, type):
        return (
            "a callback is a parameter of the signature: conventions.Callback(…) of a Function for "
            "one of Python, a Pointer for an address of C"
        )
    return None


def c_values(call: Call, argument: CArgument, what: str) -> list[ir.Value]:
    """The values that an argument becomes; the address for a struct by value."""
    if isinstance(argument, HostArgument):
        return argument.values(call, what)
    if isinstance(argument, InMemory):
        return [on_stack(call, argument, what)]
    return values(call, argument, what)


def values_of(argument: CArgument) -> int:
    """The number of values that an argument becomes; a struct by value counts as one."""
    return 1 if isinstance(argument, InMemory) else len(c_types(argument))


def extensions(argument: CArgument) -> list[str]:
    """For each value, its extension to an int, "" if it is as wide."""
    pairs = zip(c_types(argument), are_signed(argument), strict=True)
    return [
        ("signext" if signed else "zeroext")
        if isinstance(kind, ir.IntType) and kind.width < 32
        else ""
        for kind, signed in pairs
    ]


def are_signed(argument: CArgument) -> list[bool]:
    """For each value, whether it is a signed integer."""
    match argument:
        case Cast(dtype=dtype) | Scalar(dtype=dtype):
            return [dtype.kind == "int"]
        case int() | Sym() | Compound():
            return [True]
        case kinds.Tuple(items=items):
            return [sign for item in items for sign in are_signed(item)]
        case kinds.Optional(item=item):
            return [False, *are_signed(item)]
        case kinds.Union(members=members):
            return [False, *(sign for member in members for sign in are_signed(member))]
    return [False] * len(c_types(argument))
