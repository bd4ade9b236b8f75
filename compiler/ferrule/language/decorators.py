"""`@kernel` and `@jit`: mark a Python function as a kernel or a host function."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, overload

from ferrule.compiler.errors import CompileError
from ferrule.language import marks
from ferrule.language.dependencies.edited import remember
from ferrule.runtime.forks import ForkLock

if TYPE_CHECKING:
    from ferrule.language.fastmath import FastMath
    from ferrule.language.quickcalls import QuickCalls

Promotion: TypeAlias = Literal["ferrule", "cute"]

_LATER: Final = object()
"""The function of a decorator that got only keywords."""

_VERSIONS: Final = 8
"""The number of versions of the outer values for which compiled code is cached."""


class KernelFunction(marks.KernelFunction):
    """A kernel, which many threads run; a host function calls and launches it.

    `function` is the Python function.  Its source is read when a host function that launches it is
    compiled.
    """

    def __reduce__(self) -> str | tuple[Any, ...]:
        from ferrule.language.pickling import reduced

        return reduced(self)


class JitFunction(marks.JitFunction):
    """A host function.  A call compiles it for its arguments' specs and caches the result as long
    as the outer values that the function uses stay the same.

    `function` is the Python function.  `ferrule.compile` compiles it for examples instead, so that
    one compiled function serves many sizes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._compiled: dict[object, list[tuple[Any, Any]]] = {}
        self._lock = ForkLock()  # a finaliser may call it during its compilation
        self._quick: QuickCalls | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        quick = self._quick
        if quick is not None:
            compiled = quick.find(args, kwargs)
            if compiled is not None:
                if quick.constants:
                    args, kwargs = quick.without_constants(args, kwargs)
                return compiled(*args, **kwargs)
        return self._whole_way(args, kwargs)

    def _whole_way(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call for which the arguments are bound, and their specs derived."""
        from ferrule.language.compilation import compile_for_call

        wanted = compile_for_call(self.function, args, kwargs)
        with self._lock:
            compiled, witness = self._known(wanted.key) or (None, None)
            if compiled is None:
                compiled, witness = wanted.build()
                versions = self._compiled.setdefault(wanted.key, [])
                versions.insert(0, (compiled, witness))
                del versions[_VERSIONS:]
        self._keep(args, kwargs, wanted.constants, compiled, witness)
        return compiled(*wanted.positional, **wanted.named)

    def _keep(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        constants: Mapping[str, Any],
        compiled: Any,
        witness: Any,
    ) -> None:
        """Let the next call with arguments like these be quick."""
        from ferrule.language.quickcalls import QuickCalls

        quick = QuickCalls.of(self.function, constants)
        if quick is None or self._quick is None or not quick.extends(self._quick):
            self._quick = quick
        if self._quick is not None:
            self._quick.keep(args, kwargs, compiled, witness)

    def _known(self, key: object) -> tuple[Any, Any] | None:
        """The cached function for this key, and its witness, if the outer values are unchanged."""
        for compiled, witness in self._compiled.get(key, ()):
            if witness.same() or witness.unchanged():
                return compiled, witness
        return None

    def __reduce__(self) -> str | tuple[Any, ...]:
        from ferrule.language.pickling import reduced

        return reduced(self)


@overload
def kernel(function: Callable[..., Any]) -> KernelFunction: ...


@overload
def kernel(
    *, fast_math: FastMath = False, fmad: bool | None = None
) -> Callable[[Callable[..., Any]], KernelFunction]: ...


def kernel(function: Any = _LATER, *, fast_math: FastMath = False, fmad: bool | None = None) -> Any:
    """Marks a function as a kernel: `@ferrule.kernel`.

    `fast_math`, `fmad`: as for `jit`.  Raises CompileError unless it is a function.
    """
    if function is _LATER:
        return partial(kernel, fast_math=fast_math, fmad=fmad)
    return KernelFunction(_checked(function, "kernel", fast_math, fmad))


@overload
def jit(function: Callable[..., Any]) -> JitFunction: ...


@overload
def jit(
    *,
    fast_math: FastMath = False,
    fmad: bool | None = None,
    dynamic_layout: bool = False,
    promotion: Promotion = "ferrule",
) -> Callable[[Callable[..., Any]], JitFunction]: ...


def jit(
    function: Any = _LATER,
    *,
    fast_math: FastMath = False,
    fmad: bool | None = None,
    dynamic_layout: bool = False,
    promotion: Promotion = "ferrule",
) -> Any:
    """Marks a function as a host function: `@ferrule.jit`.

    `fast_math`, as in `@ferrule.jit(fast_math={"reassoc", "contract"})`: LLVM's fast-math flags of
    the arithmetic in this function and in those that it calls, but not in the kernels that it
    launches; True is all of them except "nnan" and "ninf".  Results then depend on the CPU.
    `fmad`: whether a product and the sum that reads it are one operation, which rounds once, the
    same on all targets; None: as the option `fmad` says.
    `dynamic_layout`: real tensors as arguments or examples stand for tensors of all sizes and
    strides, as with the option; direct calls with other sizes then find what is compiled.
    `promotion`: "cute" gives arithmetic, also in its kernels, the dtypes that CuTe DSL gives it: a
    Python int is an Int32 and a float a Float32 beside any number, and of an integer and a float,
    or of two integers, the result is as wide as the wider one.
    Raises CompileError unless it is a function, for unknown flags, and if the two contradict.
    """
    if function is _LATER:
        given = {"fast_math": fast_math, "fmad": fmad}
        return partial(jit, **given, dynamic_layout=dynamic_layout, promotion=promotion)
    return JitFunction(_checked(function, "jit", fast_math, fmad, dynamic_layout, promotion))


def _checked(
    function: Callable[..., Any],
    decorator: str,
    fast_math: FastMath,
    fmad: bool | None,
    dynamic_layout: bool = False,
    promotion: Promotion = "ferrule",
) -> Callable[..., Any]:
    if not inspect.isfunction(function):
        raise CompileError(f"@ferrule.{decorator} marks a function, but got {function!r}")
    marks.check_undecorated(function)
    if not isinstance(dynamic_layout, bool):
        raise CompileError(
            f"dynamic_layout of {function.__name__} must be a bool, but got {dynamic_layout!r}"
        )
    if promotion not in ("ferrule", "cute"):
        raise CompileError(
            f'promotion of {function.__name__} must be "ferrule" or "cute", but got {promotion!r}'
        )
    if fast_math is not False or fmad is not None:
        function = _relaxed(function, fast_math, fmad)
    said: dict[str, object] = {marks.DYNAMIC_LAYOUT: True} if dynamic_layout else {}
    if promotion != "ferrule":
        said[marks.PROMOTION] = promotion
    if said:
        function = _copied(function, said)
    remember(function)
    return function


def _relaxed(function: types.FunctionType, fast_math: object, fmad: object) -> types.FunctionType:
    """A copy of a function with these flags."""
    from ferrule.language.fastmath import checked, checked_fmad

    flags = checked(fast_math, f"fast_math of {function.__name__}")
    said = checked_fmad(fmad, flags, fast_math is not True, function.__name__)
    found = {marks.FAST_MATH: flags} if flags else {}
    return _copied(function, found if said is None else {**found, marks.FMAD: said})


def _copied(function: types.FunctionType, marked: Mapping[str, object]) -> types.FunctionType:
    """A copy of a function with these attributes: itself may also be compiled without them."""
    code, names = function.__code__, function.__globals__
    copy = types.FunctionType(
        code, names, function.__name__, function.__defaults__, function.__closure__
    )
    for name in ("__kwdefaults__", "__annotations__", "__doc__", "__module__", "__qualname__"):
        setattr(copy, name, getattr(function, name))
    vars(copy).update(vars(function), **marked)
    return copy
