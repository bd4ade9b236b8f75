"""The result of a C function, as a value or an error; and types that only LLVM IR has."""

from __future__ import annotations

import collections.abc
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from llvmlite import ir

from ferrule.compiler.conventions.arguments import TYPES
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.byvalue import Shape
from ferrule.compiler.conventions.conversions import type_of
from ferrule.compiler.halves import BFloatType
from ferrule.runtime.llvm.layouts import I8, I16, I64, PTR, VOID
from ferrule.specs import DType, Pointer, Scalar, as_dtype
from ferrule.specs.deferred import dataclass
from ferrule.specs.params.numbers import check_scalar_dtype

Returns: TypeAlias = "ReturnCode | DType | str | collections.abc.Sequence[DType | str] | None"
Checked: TypeAlias = "ReturnCode | DType | Literal['pointer', 'string'] | Members | None"
Members: TypeAlias = "tuple[DType | Literal['pointer'], ...]"
"""The members of a struct that is returned by value."""

_ROW: Final = '{-1: (ValueError, "what is wrong")}'
_OF_C: Final = MappingProxyType(
    {
        "void": None,
        "float": "float32",
        "double": "float64",
        "char": "int8",
        "short": "int16",
        "int": "int32",
        **dict.fromkeys(("long", "long long", "ssize_t", "ptrdiff_t", "intptr_t"), "int64"),
        **dict.fromkeys(("size_t", "unsigned long", "uintptr_t"), "uint64"),
        **{
            f"{kind}{bits}_t": f"{kind}{bits}"
            for kind in ("int", "uint")
            for bits in (8, 16, 32, 64)
        },
        **dict.fromkeys(("ptr", "void*", "char*", "const char*", "void *", "char *"), "pointer"),
        "unsigned": "uint32",
        "unsigned int": "uint32",
    }
)


@dataclass(frozen=True, slots=True, init=False)
class ReturnCode:
    """How a C function reports failure.

        ReturnCode(errors={-2: (ValueError, "the stream is damaged")}, fails="negative")

    `dtype` is the C type of its result.  `fails` tells which codes are failures: "nonzero" or
    "negative" ones.  `errors` are the class and message of the error for each code; any other
    failure is a RuntimeError that shows the code.  With `value`, the call returns a code that is
    not a failure.
    """

    dtype: DType
    fails: Literal["nonzero", "negative"]
    errors: tuple[tuple[int, str, str], ...]
    value: bool

    def __init__(
        self,
        dtype: DType | str = "int32",
        *,
        fails: Literal["nonzero", "negative"] = "nonzero",
        errors: collections.abc.Mapping[int, tuple[type[Exception] | str, str]] | None = None,
        value: bool = False,
    ) -> None:
        """Raises ValueError for a dtype that is not an integer, and for codes that are not failures
        or do not fit the dtype."""
        put = object.__setattr__
        put(self, "dtype", check_scalar_dtype(as_dtype(dtype)))
        put(self, "fails", fails)
        put(self, "value", value)
        if not isinstance(value, bool):
            raise TypeError(f"ReturnCode: value must be True or False, but got {value!r}")
        if fails not in ("nonzero", "negative"):
            raise ValueError(f"ReturnCode: expected fails='nonzero' or 'negative', got {fails!r}")
        if self.dtype.kind not in ("int", "uint"):
            raise ValueError(f"ReturnCode: expected an integer dtype, but got {self.dtype.name}")
        if fails == "negative" and self.dtype.kind == "uint":
            raise ValueError(f"ReturnCode: {self.dtype.name} is never negative")
        rows = [] if errors is None else _rows(errors)
        for code, _, _ in rows:
            self._check_code(code)
        put(self, "errors", tuple(sorted(rows)))

    def _check_code(self, code: int) -> None:
        bits, signed = self.dtype.bits, self.dtype.kind == "int"
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if not low <= code <= high:
            raise ValueError(f"ReturnCode: {self.dtype.name} is never {code}")
        if code == 0 or (code > 0 and self.fails == "negative"):
            raise ValueError(f"ReturnCode: {code} is no failure where {self.fails} codes are")


def _rows(errors: object) -> list[tuple[int, str, str]]:
    """The code, class and text of each error."""
    if not isinstance(errors, collections.abc.Mapping):
        raise TypeError(f"ReturnCode: errors must be a dict, {_ROW}, but got {errors!r}")
    rows = []
    for code, row in errors.items():
        match code, row:
            case int(), (kind, str() as text) if not isinstance(code, bool):
                rows.append((code, _class_name(kind), text))
            case _:
                raise TypeError(
                    f"ReturnCode: an error is written as {_ROW}, but got {{{code!r}: {row!r}}}"
                )
    return rows


def _class_name(kind: type[Exception] | str) -> str:
    is_class = isinstance(kind, type) and issubclass(kind, Exception)
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if not ((is_class or isinstance(kind, str)) and name.isidentifier()):
        raise TypeError(f"ReturnCode: expected a class of errors or its name, but got {kind!r}")
    return name


def checked_returns(given: Returns) -> Checked:
    """The form of `returns` that a convention stores; "status" becomes a `ReturnCode`, a list the
    members of a struct."""
    if given is None or isinstance(given, ReturnCode):
        return given
    if given == "status":
        return ReturnCode()
    if given == "string":
        return "string"
    if isinstance(given, str | DType) or not isinstance(given, collections.abc.Sequence):
        return _one(given)
    if not given:
        raise ValueError("returns=[] is a struct without members: write returns=None for nothing")
    return tuple(map(_one, given))


def _one(given: DType | str) -> DType | Literal["pointer"]:
    if given == "pointer":
        return "pointer"
    if given in ("long double", "_Float16"):
        raise ValueError(f"no dtype is C's {given}: let the function return a double")
    if given in ("complex64", "complex128"):
        part = "float32" if given == "complex64" else "float64"
        raise ValueError(f"a complex number comes back as two: write returns=[{part!r}, {part!r}]")
    if isinstance(given, str) and given in _OF_C:
        raise ValueError(f"returns={given!r} is no dtype: write returns={_OF_C[given]!r}")
    return check_scalar_dtype(as_dtype(given))


def result_param(returned: DType | Literal["pointer"]) -> Scalar | Pointer:
    """The result of a call for one value that a function returns."""
    return Scalar("result", returned) if isinstance(returned, DType) else Pointer("result")


def return_type(returns: Checked) -> ir.Type | Shape:
    """The LLVM type of a C function's result; the shape of a struct."""
    match returns:
        case None:
            return VOID
        case ReturnCode(dtype=dtype):
            return type_of(dtype)
        case tuple() as members:
            return Shape.of_types(list(map(_member_type, members)))
    return PTR if returns == "string" else _member_type(returns)


def _member_type(returned: DType | Literal["pointer"]) -> ir.Type:
    return type_of(returned) if isinstance(returned, DType) else PTR


def received_members(call: Call, place: ir.Value, members: Members) -> list[ir.Value]:
    """The leaves of the members of a struct at an address."""
    kinds, values = list(map(_member_type, members)), []
    offsets = [offset for offset, _ in Shape.of_types(kinds).members]
    for member, kind, offset in zip(members, kinds, offsets, strict=True):
        value = call.emitter.load(call.emitter.index(place, I8, offset), kind)
        values.append(received(call, value, kind, member))
    return values


_HALVES: Final = {"half": ir.HalfType(), "bfloat": BFloatType()}
_IR_TYPES: Final = {"i1": ir.IntType(1), **_HALVES}
"""Types of LLVM IR that no value of a call has."""

UNWANTED: Final = {**TYPES, **_IR_TYPES, "void": VOID}
"""Types of results that can be ignored."""


def as_ir(call: Call, value: ir.Value, wanted: str) -> ir.Value:
    """A flag as i1 and a 2-byte float as half, if LLVM IR takes these."""
    build = call.emitter.builder
    if wanted == "i1" and value.type == I8:
        return build.trunc(value, _IR_TYPES["i1"])
    if wanted in _HALVES and value.type == I16:
        return build.bitcast(value, _HALVES[wanted])
    return value


def received(call: Call, value: ir.Value, wanted: ir.Type, returns: Checked) -> ir.Value:
    """A function's result as the leaf of a result; for a flag its lowest bit."""
    build = call.emitter.builder
    if value.type in _HALVES.values():
        return build.bitcast(value, I16)
    if value.type == _IR_TYPES["i1"]:
        return build.zext(value, wanted)
    if isinstance(returns, DType) and returns.kind == "bool":
        return build.and_(value, ir.Constant(I8, 1))
    return value


def widened(call: Call, value: ir.Value, dtype: DType) -> ir.Value:
    """An integer in 64 bits."""
    if dtype.bits == 64:
        return value
    build = call.emitter.builder
    return build.sext(value, I64) if dtype.kind == "int" else build.zext(value, I64)
