"""`Out`: a value that a C function writes through a pointer, such as `int* info`."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from llvmlite import ir

from ferrule.compiler.conventions.arguments import NULL, Null, PointerCast, shown, values
from ferrule.compiler.conventions.base import Call, Place
from ferrule.compiler.conventions.c.texts import CString, text_leaves
from ferrule.compiler.conventions.conversions import converted, limits, type_of
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime.llvm.layouts import I8, PTR, VOID, size_of
from ferrule.specs import Data, Dim, DType, Param, Scalar, Sym, as_dtype
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, is_name
from ferrule.specs.params.numbers import check_scalar_dtype

Initial: TypeAlias = "Dim | float | Scalar | kinds.Pointer | Data | PointerCast | Null | None"
_MOST_ROOM: Final = 1 << 16
"""The largest buffer for a text, in bytes: it is on the stack."""
_RELEASE: Final = ir.FunctionType(VOID, [PTR])


class Key:
    """The identity of an `Out` in a call: no two objects are equal."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, init=False)
class Out:
    """A place on the stack whose address a C function gets, and what it has written there.

        exponent = Out("int32")
        CFunction("frexp", [x, exponent], returns="float64")        # (0.5, 4)

    Or the place for what a function returns: `returns=Out(CString, free="free")`.

    The first argument is the C type of the value: a dtype, "pointer", or `CString`, a `char*`.  It
    is `initial` when the call begins, by default 0 or null, and all calls of a function that list
    the same `Out` get the same place.

    The call gives the value back as it is at the end, behind the result of the C function, unless
    `result=False`.  A `CString` is given back as a copy; if it is null, this is a RuntimeError.
    `value` is what has been written so far: an argument of later calls, for an integer also a size
    and a side of a condition.  `field` is the value itself in a struct, which a C function changes
    there: an `Out` as a field is its address.

    A `CString` with `room=256` is a `char buffer[256]`, zeros at first: the function gets its
    address and writes the text there.  A text that is longer is cut, for the last byte is 0.

    `free` is the name of the function `void free(void*)` that the library has for what it has put
    there, in `free_code`, by default in the code of the function that lists the `Out`.  It is
    called once, at the end of a call that succeeds or fails, and not for null.  A pointer that is
    given back belongs to the caller: it is freed only if the call fails.

    Raises TypeError for an initial value of another kind; ValueError for types that no scalar has,
    an integer that does not fit, `free` for numbers, and a `room` of another kind or size.
    """

    dtype: DType | Literal["pointer", "string"]
    name: str
    initial: Initial
    result: bool
    free: str | None
    free_code: HostCode | None
    room: int | None
    param: Param
    symbol: Sym

    def __init__(
        self,
        kind: DType | str | type[CString],
        name: str = "out",
        *,
        initial: Initial = None,
        result: bool = True,
        free: str | None = None,
        free_code: HostCode | None = None,
        room: int | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "dtype", _checked_kind(kind))
        put(self, "room", room)
        put(self, "name", name)
        put(self, "initial", initial)
        put(self, "result", result)
        put(self, "free", free)
        put(self, "free_code", free_code)
        if not isinstance(name, str) or not is_name(name):
            raise ValueError(f"Out: its name must be an identifier, but got {name!r}")
        if not isinstance(result, bool):
            raise TypeError(f"Out {name!r}: result must be True or False, but got {shown(result)}")
        self._check_free()
        self._check_initial()
        self._check_room()
        put(self, "param", self._made_param())
        narrow = isinstance(self.dtype, DType) and self.dtype.name == "int32"
        put(self, "symbol", Sym(Key(), name, 32 if narrow else 64))

    def _check_room(self) -> None:
        if self.room is None:
            return
        if type(self.room) is not int or not 1 < self.room <= _MOST_ROOM:
            raise ValueError(
                f"Out {self.name!r}: room is the size of a buffer on the stack, an int from 2 to "
                f"{_MOST_ROOM}, but got {self.room!r}; more is the .data of a result or temporary"
            )
        if self.dtype != "string" or self.free is not None or self.initial is not None:
            raise ValueError(
                f"Out {self.name!r}: room is the size of a buffer for a CString, which has no "
                f"initial address and is not freed"
            )

    def _made_param(self) -> Param:
        match self.dtype:
            case "pointer":
                return kinds.Pointer(self.name)
            case "string":
                return kinds.String(self.name)
            case dtype:
                return Scalar(self.name, dtype)

    def _check_free(self) -> None:
        if self.free is None and self.free_code is None:
            return
        if not isinstance(self.free, str) or not self.free:
            raise TypeError(
                f"Out {self.name!r}: free is the name of a function, free='sqlite3_free', "
                f"but got {shown(self.free)}"
            )
        if isinstance(self.dtype, DType):
            raise ValueError(
                f"Out {self.name!r}: a number has nothing that {self.free} could free: expected "
                f"'pointer' or CString"
            )
        if self.free_code is not None and not isinstance(self.free_code, HostCode):
            raise TypeError(
                f"Out {self.name!r}: expected free_code=HostCode.from_library(…), but got "
                f"{shown(self.free_code)}"
            )

    def _check_initial(self) -> None:
        given, dtype = self.initial, self.dtype
        if given is None:
            return
        if not isinstance(dtype, DType):
            if not isinstance(given, Null | kinds.Pointer | Data | PointerCast):
                raise TypeError(
                    f"Out {self.name!r}: an address begins as NULL, a Pointer of the signature or "
                    f"the .data of a tensor, but got {shown(given)}"
                )
            return
        is_float = isinstance(given, float) or (
            isinstance(given, Scalar) and given.dtype.kind == "float"
        )
        known = is_dim(given) or isinstance(given, float | Scalar)
        if not known or isinstance(given, bool) or (is_float and dtype.kind != "float"):
            raise TypeError(
                f"Out {self.name!r}: expected a number for {dtype.name}, a size or a scalar "
                f"parameter, but got {shown(given)}"
            )
        if isinstance(given, int) and dtype.kind != "float":
            low, high = limits(dtype)
            if not low <= given <= high:
                raise ValueError(
                    f"Out {self.name!r}: {given} does not fit {dtype.name}, [{low}, {high}]"
                )

    @property
    def value(self) -> Sym | OutValue:
        """What has been written there so far."""
        is_size = isinstance(self.dtype, DType) and self.dtype.kind in ("int", "uint")
        return self.symbol if is_size else OutValue(self)

    @property
    def field(self) -> OutField:
        """The value as a field of a struct; what a C function leaves there is the new value."""
        return OutField(self)

    @property
    def needs_end(self) -> bool:
        """Whether something is freed at the end of the call."""
        return self.free is not None

    @property
    def kind(self) -> ir.Type:
        """The LLVM type of the value; of a buffer, the address."""
        return type_of(self.dtype) if isinstance(self.dtype, DType) else PTR

    def open(self, call: Call) -> Place:
        """The place in a call, with the initial value."""
        known = call.places.get(self.symbol.key)
        if known is not None:
            return known
        call.steps.add(f"make room for {self.name}: {_spoken(self.dtype)}")
        room = self.room
        at = call.zeroed(self.kind, self.name) if room is None else self._buffer(call, room)
        place = Place(self.name, at, self.param)
        call.places[self.symbol.key] = place
        if self.initial is not None and self.initial is not NULL:
            what = f"the initial value of the Out {self.name!r}"
            call.emitter.store(self._first(call, what), place.address)
            place.is_written = True
        return place

    def _buffer(self, call: Call, room: int) -> ir.Value:
        """A buffer of zeros: a text that C leaves without an end has one."""
        e = call.emitter
        place = e.alloca(ir.ArrayType(I8, room), name=self.name)
        with e.within(e.current.entry_basic_block):
            e.call("memset", [place, e.const_i32(0), e.const_i64(room)])
        return place

    def _first(self, call: Call, what: str) -> ir.Value:
        given: Any = self.initial
        if isinstance(self.dtype, DType):
            return converted(call, given, self.dtype, what)
        (value,) = values(call, given, what)
        return value

    @property
    def size_in_memory(self) -> int:
        """The number of bytes behind the address."""
        return size_of(self.kind) if self.room is None else self.room

    @property
    def alignment(self) -> int:
        """The alignment of the place, in bytes; a buffer is one of chars."""
        return size_of(self.kind) if self.room is None else 1

    def loaded(self, call: Call) -> ir.Value:
        """The value as it is now; of a buffer its address, with a 0 at its end."""
        e, address = call.emitter, self.open(call).address
        if self.room is None:
            return e.load(address, self.kind)
        e.store(ir.Constant(I8, 0), e.index(address, I8, self.room - 1))
        return address

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        place = self.open(call)
        place.is_written = True
        return [place.address]

    def owned(self, call: Call, code: HostCode) -> None:
        """Free what a function of this code puts there at the end of the call.

        Raises ValueError if another call has done so: what is there would be lost, or freed twice.
        """
        if self.free is None:
            return
        place = self.open(call)
        if place.is_owned:
            raise ValueError(
                f"{call.signature.name}: two calls write to the Out {self.name!r}, whose value "
                f"{self.free} frees once: give each call an Out of its own"
            )
        place.is_owned = True
        call.steps.add(f"free what {self.name} holds by {self.free} at the end")
        chosen = code if self.free_code is None else self.free_code
        chosen.require(self.free, _RELEASE, call.signature.name)
        chosen.bring(call, self.free)
        release = call.emitter.symbol(chosen.symbol(self.free), _RELEASE)
        call.at_end(lambda well: self._free(call, release, well))

    def _free(self, call: Call, release: ir.Value, well: bool) -> None:
        # The caller gets the address itself, and frees it.
        if well and self.result and self.dtype == "pointer":
            return
        e = call.emitter
        found = e.load(self.open(call).address, PTR)
        with e.if_then(e.not_(e.is_null(found))):
            e.call(release, [found])

    def given(self, call: Call) -> list[ir.Value]:
        """The leaves of the result: the value as it is now."""
        value = self.loaded(call)
        if self.dtype == "string":
            return text_leaves(call, value, f"the Out {self.name!r} is", self.room)
        if isinstance(self.dtype, DType) and self.dtype.kind == "bool":
            return [call.emitter.builder.and_(value, ir.Constant(I8, 1))]
        return [value]


def _spoken(dtype: DType | str) -> str:
    return dtype if isinstance(dtype, str) else dtype.name


@dataclass(frozen=True, slots=True)
class OutValue:
    """What has been written to an `Out`, as an argument of a C function."""

    out: Out

    def __repr__(self) -> str:
        kind = self.out.dtype
        type_name = kind.name if isinstance(kind, DType) else kind
        return f"the value of the Out {self.out.name!r}, a {type_name}"

    def _no_side(self, _: object) -> bool:
        raise TypeError(f"{self!r} is no size: a condition compares integers")

    __lt__ = __le__ = __gt__ = __ge__ = _no_side

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [self.out.kind]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`.  Raises ValueError if nothing has written to it yet."""
        place = self.out.open(call)
        place.check_written(f"{call.signature.name}: {what}")
        return [self.out.loaded(call)]


@dataclass(frozen=True, slots=True)
class OutField:
    """The value of an `Out` as a field of a struct that a C function gets by its address.

    The struct is made anew for each call: the field begins as the value is by then, and what the
    call leaves in it is the value from then on.
    """

    place: Out

    def __repr__(self) -> str:
        return f"the Out {self.place.name!r} as a field"

    @property
    def size(self) -> int:
        """See `InMemory`."""
        return self.place.size_in_memory

    @property
    def align(self) -> int:
        """See `InMemory`."""
        return self.place.alignment

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [self.place.kind]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`.  Raises TypeError: by value nothing would come back."""
        raise TypeError(f"{call.signature.name}: {what} is {self!r}, which only a struct has")

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """See `InMemory`."""
        out, size = self.place.open(call), call.emitter.const_i64(self.size)
        out.is_written = True
        call.emitter.call("memcpy", [place, out.address, size])

        def take() -> None:
            call.emitter.call("memcpy", [out.address, place, size])

        call.taken.append(take)


def _checked_kind(kind: object) -> DType | Literal["pointer", "string"]:
    if kind is CString:
        return "string"
    if kind in ("pointer", "string"):
        return kind
    if isinstance(kind, str | DType):
        return check_scalar_dtype(as_dtype(kind))
    raise TypeError(f"Out: expected a dtype, 'pointer' or CString, but got {shown(kind)}")
