"""The call of a function of a header: its arguments in Python, and the values that C gets for them.

An address needs a size, which the header does not say: `sizes` does.  A number that is the size of
an array is no parameter in Python: the array has it.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

from ferrule.frontends.cheaders.contexts import Context, LeftOut, callback_of
from ferrule.frontends.cheaders.declared import (
    Address,
    Called,
    Declared,
    Kind,
    Number,
    Opaque,
    Row,
)
from ferrule.specs import Dim, Pointer, Scalar, Signature, String, Tensor, as_dtype, sym_int64
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions import Out

Size: TypeAlias = "str | int | tuple[str | int, ...] | Out | None"
"""The extent of an array: names of parameters and numbers; None for an address of anything, and an
`Out` for a place that the call has and gives back."""

_TEXT: Final = Address(Number("int8"), is_const=True)
_BYTES: Final = (Opaque("void"), Number("int8"), Number("uint8"))
_UNPASSED: Final = ("float16", "bfloat16", "complex64", "complex128")


@dataclass(frozen=True, slots=True)
class Planned:
    """A call: the signature, the arguments of the C function, the results that are allocated, and
    for each of these that is also an argument the size that it holds before the call."""

    signature: Signature
    arguments: tuple[Any, ...]
    results: tuple[Tensor, ...]
    before: tuple[tuple[Tensor, Any], ...]
    returns: Any


def plan(
    function: Declared,
    sizes: Mapping[str, Size],
    contexts: Mapping[str, Context],
    returns: Any,
    *,
    kept: bool = False,
) -> Planned:
    """The call of a function.  `sizes` are those of its own parameters, by their names, `contexts`
    those of its callbacks, which it may have `kept`.

    Raises LeftOut with the reason if there is none; ValueError for a size that the function does
    not have, and for a context that it does not hand through.
    """
    if function.is_open:
        raise LeftOut("it takes any number of arguments")
    planned = _Plan(function, {**dict(_lengths(function)), **sizes}, contexts, kept=kept)
    arguments = tuple(planned.argument(name) for name in function.parameters)
    return Planned(
        Signature(function.name, tuple(planned.params)),
        arguments,
        tuple(each for each, _ in planned.before),
        tuple(planned.before),
        _result(function.result) if returns is None else returns,
    )


def _lengths(function: Declared) -> Iterator[tuple[str, Size]]:
    """The sizes that the header says, `double x[4]` and `double x[n]`."""
    for name, kind in function.parameters.items():
        if isinstance(kind, Address) and kind.length is not None:
            lengths, inner = _lengths_of(kind)
            named = [each for each in lengths if isinstance(each, str)]
            # An array of structs has no dtype.
            if set(named) <= {*function.parameters} and not isinstance(inner, Opaque):
                yield name, kind.length


def _lengths_of(kind: Address) -> tuple[list[int | str | None], Kind]:
    """The lengths that an array of arrays says, and what its elements are."""
    lengths: list[int | str | None] = [kind.length]
    inner = kind.to
    while isinstance(inner, Row):
        lengths.append(inner.length)
        inner = inner.of
    return lengths, inner


def _result(kind: Kind) -> Any:
    match kind:
        case Opaque("void"):
            return None
        case Number(dtype) if dtype not in _UNPASSED:
            return dtype
        case Address(to, is_const):
            return "string" if is_const and to in _BYTES[1:] else "pointer"
        case _:
            raise LeftOut(f"it returns {_text(kind)}{_instead(kind, 'returns=')}")


def _instead(kind: Kind, result: str = "") -> str:
    """What to write for a value that no parameter or result of a header's function is."""
    own = f": write the call yourself, conventions.CFunction with {result}"
    match kind:
        case Number("complex64" | "complex128" as dtype):
            part = "float32" if dtype == "complex64" else "float64"
            return own + (f"['{part}', '{part}']" if result else "Struct([re, im])")
        case Opaque(text, is_number=False) if not text.startswith("union"):
            return own + ("the members, ['int32', …]" if result else "Struct([…]) of its members")
    return ": let a function in C take or return its address, by frontends.c.compile"


def _text(kind: Kind) -> str:
    match kind:
        case Number(dtype, enum):
            return enum or dtype
        case Address(to, is_const):
            return f"an address of {'constant ' * is_const}{_text(to)}"
        case Row(of, length):
            return f"{_text(of)}[{length}]"
        case Called():
            return "a function"
        case Opaque(text):
            return text


class _Plan:
    """Collects the parameters of the signature, in the order of C's."""

    def __init__(
        self,
        function: Declared,
        sizes: Mapping[str, Size],
        contexts: Mapping[str, Context],
        *,
        kept: bool,
    ) -> None:
        self.function = function
        self.callbacks = {
            name: callback_of(function, name, context, kept=kept)
            for name, context in contexts.items()
        }
        self.contexts = {
            found if isinstance(found, str) else found[0]: name
            for name, found in contexts.items()
            if found is not None
        }
        self.sizes = sizes
        self.params: list[Any] = []
        self.before: list[tuple[Tensor, Any]] = []
        listed = [*map(dims_of, sizes.values()), *map(self._rows_of, sizes)]
        named = {each for dims in listed for each in dims if isinstance(each, str)}
        self.symbols = {each: sym_int64(symbol=each) for each in sorted(named)}
        for each in self.symbols:
            _check_size(function, each)

    def _rows_of(self, name: str) -> tuple[int | str | None, ...]:
        """The lengths of the rows of an array with a size, `m` of `x[n][m]`."""
        kind = self.function.parameters[name]
        if not isinstance(kind, Address) or is_out(self.sizes[name]) or self.sizes[name] is None:
            return ()
        return tuple(_lengths_of(kind)[0][1:])

    def argument(self, name: str) -> Any:
        """The value that C gets for a parameter; adds what Python passes to `params`."""
        kind = self.function.parameters[name]
        if name in self.symbols:
            return self._size(name, kind)
        if name in self.callbacks:
            self.params.append(self.callbacks[name].function)
            return self.callbacks[name]
        if name in self.contexts:
            return self.callbacks[self.contexts[name]].user_data
        match kind:
            case Number(dtype) if dtype not in _UNPASSED:
                return self._added(Scalar(_python_name(name), dtype))
            case Address():
                return self._address(name, kind)
            case _:
                raise LeftOut(f"it takes {name}, {_text(kind)}, by value{_instead(kind)}")

    def _added(self, param: Any) -> Any:
        self.params.append(param)
        return param

    def _size(self, name: str, kind: Kind) -> Any:
        """The size of an array, as a number, or in memory that the function changes."""
        from ferrule.compiler.conventions import cast

        symbol = self.symbols[name]
        match kind:
            case Number(dtype) if _is_integer(dtype):
                return symbol if dtype == "int64" else cast(symbol, dtype)
            case Address(Number(dtype), is_const=False) if _is_integer(dtype):
                held = Tensor(_python_name(name), (), dtype)
                self.before.append((held, cast(symbol, dtype)))
                return held.data
            case _:
                raise AssertionError("_check_size refuses every other kind")

    def _address(self, name: str, kind: Address) -> Any:
        from ferrule.compiler.conventions import CString

        if name in self.sizes:
            size = self.sizes[name]
            _check_length(self.function, name, kind, size)
            if is_out(size):
                return size
            return self._added(_pointer(name)) if size is None else self._array(name, kind, size)
        if kind.is_const and kind.to == _TEXT.to:
            return CString(self._added(String(_python_name(name))))
        behind = _lengths_of(kind)[1]
        if _is_handle(behind):  # most libraries read a null handle's memory, which ends the process
            return self._added(Pointer(_python_name(name), nullable=False))
        if isinstance(kind.to, Called):
            raise LeftOut(
                f"it takes {name}, the address of a function: callbacks="
                f"{{'{self.function.name}.{name}': …}} names the void* of its context, or None"
            )
        raise LeftOut(
            f"it takes {name}, {_text(kind)}: sizes={{'{self.function.name}.{name}': …}} says how "
            "many, None that it is any address"
        )

    def _array(self, name: str, kind: Address, size: Size) -> Any:
        from ferrule.compiler.conventions import cast

        dims: list[Dim] = [
            self.symbols[each] if isinstance(each, str) else each for each in dims_of(size)
        ]
        dtype, inner = self._element(name, kind.to)
        python = _python_name(name)
        tensor = Tensor(python, (*dims, *inner), dtype, read_only=kind.is_const)
        self.params.append(tensor)
        is_enum = isinstance(kind.to, Number) and kind.to.enum
        if isinstance(kind.to, Address) or is_enum:
            return cast(tensor.data, kind.text)
        return tensor.data

    def _element(self, name: str, kind: Kind) -> tuple[str, tuple[Dim, ...]]:
        """The dtype of an array, and the sizes of its elements."""
        match kind:
            case Row(of, length):
                dtype, inner = self._element(name, of)
                size = self.symbols[length] if isinstance(length, str) else length
                return dtype, (size, *inner)
            case Address():
                return "uint64", ()
            case Opaque("void") | Number("int8" | "uint8"):
                return "uint8", ()
            case Number(dtype):
                return dtype, ()
            case Opaque() | Called():
                raise ValueError(
                    f"sizes: {self.function.name} has {name} as an address of {_text(kind)}, of "
                    "which there is no array: leave it away, it is any address"
                )


def dims_of(size: Size) -> tuple[str | int, ...]:
    """The extents of a size."""
    match size:
        case tuple():
            return size
        case str() | int():
            return (size,)
    return ()


def is_out(size: object) -> TypeGuard[Out]:
    """Whether this is an `Out` in place of a size."""
    from ferrule.compiler.conventions import Out

    return isinstance(size, Out)


def _is_handle(kind: Kind) -> bool:
    """Whether an address of this type stands for an object of the library."""
    is_opaque = isinstance(kind, Opaque) and not kind.is_number
    return is_opaque and kind != Opaque("void")


def _is_integer(dtype: str) -> bool:
    return as_dtype(dtype).kind in ("int", "uint")


def _check_size(function: Declared, name: str) -> None:
    """Raises ValueError for a parameter that is neither an integer nor the address of one that
    the function changes."""
    match function.parameters[name]:
        case Number(dtype) | Address(Number(dtype), is_const=False) if _is_integer(dtype):
            return
        case kind:
            raise ValueError(
                f"sizes: {function.name} has {name} as {_text(kind)}, which is no size"
            )


def _check_length(function: Declared, name: str, kind: Address, size: Size) -> None:
    """Raises ValueError for less memory than `T x[4]` says that there is."""
    if not isinstance(kind.length, int):
        return
    match size:
        case int() | (int(),):
            (given,) = dims_of(size)
        case _ if is_out(size):
            given = size.room or 1
        case _:
            return
    if isinstance(given, int) and given < kind.length:
        raise ValueError(
            f"sizes: {function.name} takes {name} as an array of {kind.length}, but it is given "
            f"{given}"
        )


def _pointer(name: str) -> Pointer:
    return Pointer(_python_name(name))


def _python_name(name: str) -> str:
    """The name of a parameter; `in` is a word of Python's own."""
    return f"{name}_" if keyword.iskeyword(name) else name
