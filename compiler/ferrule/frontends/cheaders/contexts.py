"""Callbacks of the functions of a header: the types of what C calls, and the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.frontends.cheaders.declared import Address, Called, Declared, Kind, Number, Opaque

if TYPE_CHECKING:
    from ferrule.compiler.conventions import Callback

Context: TypeAlias = "str | tuple[str, int] | None"
"""The name of the `void*` that a function hands through to a callback, with its position among the
callback's parameters where several may be it; None for a callback without one."""


class LeftOut(Exception):
    """The reason why a function of a header cannot be called."""


def callback_of(function: Declared, name: str, context: Context, *, kept: bool) -> Callback:
    """What C gets for a parameter that is the address of a function; `kept` is for a function that
    keeps it after the call.

    Raises LeftOut for types that a callback does not have; ValueError for a context that it does
    not get.
    """
    from ferrule.compiler.conventions import Callback
    from ferrule.specs import Function

    called = _called(function, name)
    if called.is_open:
        raise LeftOut(f"it takes {name}, a function of any number of arguments")
    position = None if context is None else _position(function, name, called, context)
    params = [_passed(name, each) for i, each in enumerate(called.parameters) if i != position]
    is_void = called.result == Opaque("void")
    returns = None if is_void else _passed(name, called.result, is_result=True)
    return Callback(Function(name), params, returns=returns, context=position, kept=kept)


def _called(function: Declared, name: str) -> Called:
    kind = function.parameters[name]
    if not (isinstance(kind, Address) and isinstance(kind.to, Called)):
        raise ValueError(f"callbacks: {function.name} has {name}, which is no function")
    return kind.to


def _position(function: Declared, name: str, called: Called, context: Context) -> int:
    """The position of the context among the callback's own parameters."""
    what = f"callbacks: '{function.name}.{name}': {context!r}"
    user = context if isinstance(context, str) else (context or ("",))[0]
    if not _is_context(function.parameters.get(user)):
        raise ValueError(f"{what}: {function.name} has no void* {user}")
    found = [i for i, each in enumerate(called.parameters) if _is_context(each)]
    if isinstance(context, tuple):
        if context[1] not in found:
            raise ValueError(f"{what}: what C calls has a void* at {found}")
        return context[1]
    if len(found) != 1:
        raise ValueError(
            f"{what}: what C calls has {len(found)} parameters of void*, at {found}: "
            f"({user!r}, position) says which is the context"
        )
    return found[0]


def _is_context(kind: Kind | None) -> bool:
    return isinstance(kind, Address) and kind.to == Opaque("void") and not kind.is_const


def _passed(name: str, kind: Kind, *, is_result: bool = False) -> Any:
    """The type of a parameter or result in the words of a `Callback`."""
    from ferrule.compiler.conventions import CString

    match kind:
        case Number(dtype) if not dtype.startswith(("float16", "bfloat", "complex")):
            return dtype
        case Address(Number("int8", enum=""), is_const=True) if not is_result:
            return CString
        case Address():
            return "pointer"
    raise LeftOut(f"it takes {name}, a function with a number or struct that no dtype is")


def checked_contexts(callbacks: Mapping[str, Context]) -> Mapping[str, Context]:
    """Raises TypeError for entries of another form."""
    if not isinstance(callbacks, Mapping):
        raise TypeError(
            f"callbacks must be a dict, such as {{'each.visit': 'user'}}, but got {callbacks!r}"
        )
    for key, context in callbacks.items():
        is_pair = isinstance(context, tuple) and [*map(type, context)] == [str, int]
        if not (isinstance(key, str) and "." in key):
            raise TypeError(f"callbacks: {key!r} is no function and parameter, 'each.visit'")
        if not (context is None or isinstance(context, str) or is_pair):
            raise TypeError(
                f"callbacks: {key!r} is {context!r}: wanted the name of the void* that C hands "
                f"through, ('user', 2) with its position in the callback, or None"
            )
    return callbacks


def check_context(header: str, declared: Mapping[str, Declared], key: str) -> None:
    """Raises ValueError for an entry that belongs to no parameter."""
    function, _, name = key.rpartition(".")
    if function not in declared:
        raise ValueError(f"callbacks: {key!r}: {header} has no {function!r}")
    if name not in declared[function].parameters:
        listed = ", ".join(declared[function].parameters) or "nothing"
        raise ValueError(f"callbacks: {key!r}: {function} takes {listed}, and no {name}")
    _called(declared[function], name)


def check_kept(header: str, kept: Sequence[str], contexts: Mapping[str, Context]) -> None:
    """Raises ValueError for a function without callbacks."""
    named = {key.rpartition(".")[0] for key in contexts}
    for name in kept:
        if name not in named:
            raise ValueError(f"kept: {header}: callbacks={{…}} has none of the function {name!r}")


def own_contexts(function: Declared, contexts: Mapping[str, Context]) -> dict[str, Context]:
    """The contexts of a function's callbacks, by the names of its parameters."""
    return {
        key.rpartition(".")[2]: context
        for key, context in contexts.items()
        if key.rpartition(".")[0] == function.name
    }
