"""Marked functions: what a decorator says of a Python function, for those that compile it.

What a call of one does, and how it is pickled, is in `decorators`, which needs the compiler.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ferrule.compiler.errors import CompileError, Diagnostic

if TYPE_CHECKING:
    from typing_extensions import Self

FAST_MATH: Final = "__ferrule_fast_math__"
FMAD: Final = "__ferrule_fmad__"
DYNAMIC_LAYOUT: Final = "__ferrule_dynamic_layout__"
PROMOTION: Final = "__ferrule_promotion__"
"""The attributes with the flags, with what is said of fmad, whether layouts of tensors are dynamic,
and whose dtypes results of arithmetic have: attributes are parts of a function's key in the
cache."""


class Marked:
    """A marked function: a method of the objects of its class, copied as itself like Python's
    functions."""

    __slots__ = ("__dict__", "__weakref__", "function")  # a slot is what a guard can watch

    function: Callable[..., Any]
    prefix: str = ""

    def set_name_prefix(self, prefix: str) -> None:
        """Names of what is compiled from here on begin with this text and an underscore."""
        if not isinstance(prefix, str) or not f"{prefix}_".isidentifier():
            raise ValueError(
                f"set_name_prefix: {prefix!r} cannot begin a name: letters, digits and underscores "
                "can, and no digit first"
            )
        self.prefix = prefix

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, owner: object, cls: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __getitem__(self, sizes: object) -> NoReturn:
        name = self.function.__name__
        raise TypeError(
            f"{name} cannot be indexed: a @ferrule.jit function launches kernels with "
            "kernel(...).launch(grid=..., block=...), and is called itself without sizes"
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class KernelFunction(Marked):
    """A kernel, which many threads run; a host function calls and launches it.

    `function` is the Python function.  Its source is read when a host function that launches it is
    compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"the kernel {self.function.__name__} can be called only in a @ferrule.jit function: "
            f"{self.function.__name__}(...).launch(grid=..., block=...)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        said = f"a kernel has no attribute {name!r}"
        if name == "launch":
            said += f": write {self.function.__name__}(...).launch(grid=..., block=...)"
        raise AttributeError(said, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<ferrule kernel {self.function.__qualname__}>"


class JitFunction(Marked):
    """A host function.  `function` is the Python function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<ferrule jit {self.function.__qualname__}>"


def fast_math_of(function: types.FunctionType) -> tuple[str, ...]:
    """The fast-math flags that a decorator gave a function."""
    found: tuple[str, ...] = vars(function).get(FAST_MATH, ())
    return found


def fmad_of(function: types.FunctionType) -> bool | None:
    """What a decorator said of fmad; None if it said nothing."""
    found: bool | None = vars(function).get(FMAD)
    return found


def has_dynamic_layout(function: Callable[..., Any]) -> bool:
    """Whether a decorator said that sizes and strides of real tensors may be others in a call."""
    return bool(getattr(function, DYNAMIC_LAYOUT, False))


def promotes_as_cute(function: Callable[..., Any]) -> bool:
    """Whether a decorator said that results of arithmetic have the dtypes of CuTe DSL."""
    return getattr(function, PROMOTION, "ferrule") == "cute"


def check_undecorated(function: Callable[..., Any]) -> None:
    """Refuses a function that another decorator wraps: only one of the two could be compiled."""
    inner = getattr(function, "__wrapped__", None)
    if inner is not None:
        raise CompileError(
            Diagnostic(
                f"{function.__name__} is wrapped by a decorator, which would be lost",
                expected="a function as its def statement made it",
                hint="leave the other decorator away",
            )
        )
