"""C functions of Numba, `@numba.cfunc`: the arguments of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ferrule.compiler.conventions.arguments import Argument, Cast, Null, cast, describe
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.numba.host import has_code, native_call, result_of
from ferrule.frontends.numba.types import dtype_of
from ferrule.frontends.packages import load
from ferrule.specs import Data, DType, Param, Signature
from ferrule.specs.expr import is_dim
from ferrule.specs.params import Pointer, Scalar, Tensor

_WRAPPER: Final = "cfunc."


def cfunc_call(
    function: Any, signature: Signature, arguments: Sequence[Argument] | None, linked: bool
) -> CallingConvention:
    """The call of a `@cfunc`, with arguments converted to the types for which it was compiled.

    Its address is that of a wrapper that calls Numba's own function and discards its exceptions.
    """
    types = load("numba", "numba").types

    name, kinds = function.__name__, function._sig.args
    given = _handed(signature.params) if arguments is None else list(arguments)
    if len(given) != len(kinds):
        raise CompileError(
            Diagnostic(
                f"{name} takes {len(kinds)} arguments, but there are {len(given)}",
                expected=", ".join(map(str, kinds)),
                hint='name them, arguments=[sig["x"].data, sig["x"].shape[0], ...]',
            )
        )
    converted = [
        _converted(types, signature, each, kind, f"argument #{position} of {name}")
        for position, (each, kind) in enumerate(zip(given, kinds, strict=True))
    ]
    returned = function._sig.return_type
    if linked:
        whole = _with_code(function)
        symbol = whole.native_name.removeprefix(_WRAPPER)
        return native_call(name, whole.inspect_llvm(), symbol, returned, converted)
    return CFunction(function, converted, returns=result_of(name, returned))


def _with_code(function: Any) -> Any:
    """The C function; it is compiled again if it comes from Numba's cache on disk."""
    if has_code(function._library, function.native_name):
        return function
    numba, compiler = load("numba", "numba"), function._compiler
    made = numba.cfunc(function._sig, locals=compiler.locals, **compiler.targetoptions)
    return made(function.__wrapped__)


def _handed(params: Sequence[Param]) -> list[Argument]:
    """The address of each tensor, and the other parameters unchanged."""
    return [param.data if isinstance(param, Tensor) else param for param in params]


def _converted(types: Any, names: Signature, given: Argument, kind: Any, what: str) -> Argument:
    """The C value of an argument for a parameter with this type of Numba."""
    if isinstance(kind, types.CPointer) or kind == types.voidptr:
        pointee = None if kind == types.voidptr else dtype_of(types, kind.dtype)
        if isinstance(given, (Null, Pointer)) or _points_to(given, pointee):
            return given
        raise CompileError(
            Diagnostic(f"{what} is {describe(names, given)}", expected=f"a pointer, {kind}")
        )
    dtype = dtype_of(types, kind)
    if dtype is None:
        raise CompileError(
            Diagnostic(f"{what} is a {kind} of Numba", expected="pointers and numbers")
        )
    if isinstance(given, Scalar) and given.dtype is dtype or isinstance(given, Cast):
        return given
    number: Any = given
    if isinstance(given, (float, Scalar)) or is_dim(given):
        return cast(number, dtype)
    raise CompileError(
        Diagnostic(f"{what} is {describe(names, given)}", expected=f"a number, {kind}")
    )


def _points_to(given: Argument, dtype: DType | None) -> bool:
    return isinstance(given, Data) and (dtype is None or given.tensor.dtype is dtype)
