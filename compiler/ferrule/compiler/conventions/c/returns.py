"""The result of a C function, as a value or an error; and types that only LLVM IR has."""

from __future__ import annotations

import collections.abc
from copy import copy
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias

from llvmlite import ir

from ferrule.compiler.conventions.arguments import TYPES, shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.by_value import Shape
from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.conventions.conversions import type_of
from ferrule.compiler.halves import BFloatType
from ferrule.runtime.llvm.layouts import I8, I16, I32, I64, PTR, VOID
from ferrule.specs import DType, Int32, Pointer, Scalar, as_dtype
from ferrule.specs.deferred import dataclass
from ferrule.specs.params.numbers import check_scalar_dtype

Fails: TypeAlias = Literal["nonzero", "negative", "zero", "null"]
Returns: TypeAlias = "ReturnCode | Out | DType | str | collections.abc.Sequence[DType | str] | None"
Checked: TypeAlias = "ReturnCode | Out | DType | Literal['pointer', 'string'] | Members | None"
Members: TypeAlias = "tuple[DType | Literal['pointer'], ...]"
"""The members of a struct that is returned by value."""

_Error: TypeAlias = "tuple[type[Exception] | str, str] | type[Exception]"
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


class TextCall(Protocol):
    """A call of a C function about a code: one that returns a text, `CFunction(…,
    returns="string")`, or writes it to an `Out(CString, room=…)` among its arguments; or one that
    says whether the code is a failure."""

    function: str
    arguments: tuple[Any, ...]
    returns: Any

    def value(self, call: Call) -> ir.Value:
        """Make the call; returns what the function does."""
        ...


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a failure, as an argument of the function that has the text for it; `CODE`."""

    dtype: DType | None = None

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [I32 if self.dtype is None else type_of(self.dtype)]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`.  Raises ValueError outside of `ReturnCode(text=…)`."""
        if call.code is None or self.dtype is None:
            raise ValueError(f"{what} is CODE, which only the text of a ReturnCode has")
        narrow = self.dtype.bits < 64
        (kind,) = self.types()
        return [call.emitter.builder.trunc(call.code, kind) if narrow else call.code]


CODE: Final = Code()


@dataclass(frozen=True, slots=True, init=False)
class ReturnCode:
    """How a C function reports failure.

        ReturnCode(errors={-2: (ValueError, "the stream is damaged")}, fails="negative")
        ReturnCode(text=CFunction("sqlite3_errmsg", [db.value], returns="string", code=code))

    `dtype` is the C type of its result, an integer or "pointer".  `fails` tells which codes are
    failures: "nonzero", "negative" or "zero" ones; for a pointer it is "null"; or a `CFunction` of
    the library that says so of `CODE`, `CFunction("ZSTD_isError", [CODE], returns="uint32")`: a
    failure is what is not 0 there, and a code of 64 bits is shown with a sign, as in
    `(size_t)-70`.  `of` is an `Out`
    with an integer that the function leaves there instead of returning it; `errno=True` makes the
    code of a failure that of the C library's errno.

    `errors` are the class and message of the error for each code, or the class alone; any other
    failure is a RuntimeError that shows the code.  `text` is behind the code if no message is
    given: an `Out(CString)`, or a `CFunction` that returns a string or writes one to an
    `Out(CString, room=256)`, with `CODE` for the code among its arguments; a null pointer and an
    empty buffer add nothing.  With `value=True` the call returns a value that is
    no failure; with an `Out`, which no call lists, it is put there.
    """

    dtype: DType | Literal["pointer"]
    fails: Fails | TextCall
    errors: tuple[tuple[int, str, str | None], ...]
    value: bool | Out
    text: TextCall | Out | None
    of: Out | None
    errno: bool

    def __init__(
        self,
        dtype: DType | str | None = None,
        *,
        fails: Fails | TextCall | None = None,
        errors: collections.abc.Mapping[int, _Error] | None = None,
        value: bool | Out = False,
        text: TextCall | Out | None = None,
        of: Out | None = None,
        errno: bool = False,
    ) -> None:
        """Raises ValueError for a dtype that is not an integer, and for codes that are not failures
        or do not fit the dtype; TypeError for texts that are none of those above."""
        put = object.__setattr__
        is_pointer = dtype == "pointer"
        put(self, "of", _checked_of(of, dtype, value))
        given = "int32" if dtype is None else dtype
        of_out = of.dtype if of is not None else None
        chosen = of_out if of_out is not None else given
        put(self, "dtype", chosen if is_pointer else check_scalar_dtype(as_dtype(chosen)))
        put(self, "fails", ("null" if is_pointer else "nonzero") if fails is None else fails)
        put(self, "value", value)
        put(self, "errno", errno)
        for name, flag in (("value", value), ("errno", errno)):
            if not isinstance(flag, bool) and not (name == "value" and isinstance(flag, Out)):
                raise TypeError(f"ReturnCode: {name} must be True or False, but got {flag!r}")
        if isinstance(value, Out) and value.dtype != self.dtype:
            raise ValueError(
                f"ReturnCode: the function returns {shown_type(self.dtype)}, but the Out "
                f"{value.name!r} is {shown_type(value.dtype)}"
            )
        put(self, "fails", self._checked_fails())
        rows = [] if errors is None else _rows(errors, has_text=text is not None)
        for code, _, _ in rows:
            self._check_code(code)
        put(self, "errors", tuple(sorted(rows, key=lambda row: row[0])))
        put(self, "text", _checked_text(text, self.code))

    @property
    def code(self) -> DType | None:
        """The dtype of the code of a failure; None for a null pointer, which has none."""
        if self.errno:
            return Int32
        return self.dtype if isinstance(self.dtype, DType) else None

    def _checked_fails(self) -> Fails | TextCall:
        fails = self.fails
        if not isinstance(self.dtype, DType):
            if fails != "null":
                raise ValueError(f"ReturnCode: a pointer fails='null', but got {fails!r}")
            return "null"
        if not isinstance(fails, str):
            return _checked_question(fails, self.dtype)
        if self.fails not in ("nonzero", "negative", "zero"):
            raise ValueError(
                f"ReturnCode: expected fails='nonzero', 'negative' or 'zero', got {self.fails!r}"
            )
        if self.dtype.kind not in ("int", "uint"):
            hint = ": a _Bool comes back as a 'uint8'" if self.dtype.kind == "bool" else ""
            raise ValueError(
                f"ReturnCode: expected an integer dtype, but got {self.dtype.name}{hint}"
            )
        if self.fails == "negative" and self.dtype.kind == "uint":
            raise ValueError(f"ReturnCode: {self.dtype.name} is never negative")
        return fails

    def _check_code(self, code: int) -> None:
        if self.code is None:
            raise ValueError(
                "ReturnCode: a null pointer has no code: errors=… needs errno=True or an integer"
            )
        if self.errno:
            # errno is an int of C.
            if not 0 <= code < 1 << 31:
                raise ValueError(f"ReturnCode: errno is never {code}")
            return
        assert isinstance(self.dtype, DType)
        bits, signed = self.dtype.bits, self.dtype.kind == "int"
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if not isinstance(self.fails, str) and bits == 64:
            low = -(1 << 63)  # a size_t of which the library says `(size_t)-70`
        if not low <= code <= high:
            raise ValueError(f"ReturnCode: {self.dtype.name} is never {code}")
        if not isinstance(self.fails, str):
            return
        fits = {"nonzero": code != 0, "negative": code < 0, "zero": code == 0}
        if not fits[self.fails]:
            raise ValueError(f"ReturnCode: {code} is no failure where {self.fails} codes are")


def shown_type(dtype: DType | str) -> str:
    """A dtype or the word for another type of C."""
    return dtype.name if isinstance(dtype, DType) else dtype


def _checked_of(of: object, dtype: object, value: object) -> Out | None:
    if of is None:
        return None
    if not isinstance(of, Out):
        raise TypeError(f"ReturnCode: of is an Out with an integer, but got {shown(of)}")
    if not (isinstance(of.dtype, DType) and of.dtype.kind in ("int", "uint")):
        raise ValueError(f"ReturnCode: the Out {of.name!r} is no integer")
    if dtype is not None or value:
        what = "value=…" if value else f"the dtype {dtype!r}"
        raise ValueError(f"ReturnCode: {what} and of={of.name!r}: the Out has the code, leave one")
    return of


def _gives_text(text: object) -> bool:
    """Whether this is a call that returns a text or writes it to a buffer."""
    if not hasattr(text, "arguments"):
        return False
    returns = getattr(text, "returns", None)
    return returns == "string" or (not isinstance(returns, ReturnCode) and any(_buffers(text)))


def _buffers(text: Any) -> collections.abc.Iterator[Out]:
    return (each for each in text.arguments if isinstance(each, Out) and each.room is not None)


def buffer_of(text: TextCall) -> Out:
    """The buffer to which a call writes the text: the first one in its list."""
    return next(_buffers(text))


def _checked_text(text: object, code: DType | None) -> TextCall | Out | None:
    """The text, with the dtype of its `CODE`."""
    if text is None:
        return None
    if isinstance(text, Out):
        if text.dtype != "string":
            raise TypeError(f"ReturnCode: text is an Out(CString), but {text.name!r} is none")
        return text
    if not _gives_text(text):
        raise TypeError(
            f"ReturnCode: text is CFunction(…, returns='string'), one that writes it to an "
            f"Out(CString, room=256), or an Out(CString), but got {shown(text)}"
        )
    found: TextCall = _with_code(text, code)
    return found


def _with_code(asked: Any, code: DType | None) -> Any:
    """A call whose `CODE` has a type."""
    if CODE not in asked.arguments:
        return asked
    if code is None:
        raise ValueError("ReturnCode: a null pointer has no CODE: say errno=True")
    if code.bits < 32:
        raise ValueError(f"ReturnCode: CODE is an int32 or wider, but the code is {code.name}")
    filled = tuple(Code(code) if each == CODE else each for each in asked.arguments)
    made: Any = copy(asked)
    object.__setattr__(made, "arguments", filled)
    return made


def _checked_question(fails: Any, code: DType) -> TextCall:
    """The function that says whether a code is a failure, with the dtype of its `CODE`."""
    returns = getattr(fails, "returns", None)
    is_number = isinstance(returns, DType) and returns.kind != "float"
    if not (is_number and CODE in getattr(fails, "arguments", ())):
        raise TypeError(
            f"ReturnCode: fails is 'nonzero', 'negative', 'zero' or a call that says whether its "
            f"CODE is a failure, CFunction('is_error', [CODE], returns='uint32'), but got "
            f"{shown(fails)}"
        )
    found: TextCall = _with_code(fails, code)
    return found


def _rows(errors: object, *, has_text: bool) -> list[tuple[int, str, str | None]]:
    """The code, class and text of each error; None for the library's own text."""
    if not isinstance(errors, collections.abc.Mapping):
        raise TypeError(f"ReturnCode: errors must be a dict, {_ROW}, but got {errors!r}")
    rows: list[tuple[int, str, str | None]] = []
    for code, row in errors.items():
        match code, row:
            case int(), type() if has_text and not isinstance(code, bool):
                rows.append((code, _class_name(row), None))
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
    if given is None or isinstance(given, ReturnCode | Out):
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


def spoken_returns(returns: Checked) -> str:
    """What a C function returns, as the steps of a function show it; "" for nothing."""
    match returns:
        case None:
            return ""
        case str():
            return returns
        case DType(name=name):
            return name
        case Out(name=name):
            return f"Out({name})"
        case tuple():
            return f"({', '.join(map(spoken_returns, returns))})"
    kind = spoken_returns(returns.dtype)
    where = "" if returns.of is None else f" in {returns.of.name}"
    fails = returns.fails if isinstance(returns.fails, str) else f"{returns.fails.function} says so"
    return f"{kind}{where}, a failure if {fails}"


def result_param(returned: DType | Literal["pointer"]) -> Scalar | Pointer:
    """The result of a call for one value that a function returns."""
    return Scalar("result", returned) if isinstance(returned, DType) else Pointer("result")


def return_type(returns: Checked) -> ir.Type | Shape:
    """The LLVM type of a C function's result; the shape of a struct."""
    match returns:
        case None:
            return VOID
        case ReturnCode(of=of, dtype=dtype):
            return VOID if of is not None else _member_type(dtype)
        case Out(kind=kind):
            return kind
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
