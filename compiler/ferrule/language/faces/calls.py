"""Functions that raise errors and call other functions; see `base` for the meaning of a face."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside
from ferrule.specs.deferred import dataclass


def raise_error(kind: str | type[Exception], text: str, *values: Any) -> None:
    """Ends the call with an error of this class, `raise_error("ValueError", "n is {}", n)`.

    `kind`: the name of any class that is registered with tvm-ffi; an unknown class becomes a
    RuntimeError in the caller.  Each `{}` of the text is replaced by a value: a number, a string, a
    dtype, a device, or a tuple of these; floats are formatted like C's `%g`.
    """
    outside("raise_error")


def call(function: str | Any, *arguments: Any, result: Any = None) -> Any:
    """Calls a function of any language that is registered with tvm-ffi, by its name.

    In a host function.  `function` may also be a function parameter; then `f(x)` is the same.
    Arguments are numbers, strings, bytes, None, tensors, dtypes, devices and objects; the callee
    may read and write a tensor, but must not keep it.  `result`: the type of the result, as a
    dtype, `str`, `bytes`, a fake tensor, a spec, `Optional` of one of these, or a tuple of them; it
    is checked.  Without it the result is dropped.  An error of the callee ends the call.
    """
    outside("call")


@dataclass(frozen=True, slots=True)
class ExternFunction:
    """A function with the symbol `__tvm_ffi_<name>` in another object.  Made by `extern_func`."""

    name: str
    library: str | None = None
    function: Any = None
    result: Any = None

    def __call__(self, *arguments: Any, result: Any = None) -> Any:
        """Calls it, in a host function; see `call`."""
        outside(self.name)


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """A function of a module that the calling one imports.  Made by `import_func`."""

    name: str
    result: Any = None

    def __call__(self, *arguments: Any, result: Any = None) -> Any:
        """Calls it, in a host function; see `call`."""
        outside(self.name)


def import_func(name: str, *, result: Any = None) -> ImportedFunction:
    """A function of a module that is not code, for calls in host functions.

    It is looked up in the imports of the caller's module, `ferrule.Module(..., imports=[...])`,
    then among registered functions.  `result`: the type of the result, as for `call`.  Raises
    ValueError for an empty name or one with a NUL character; the call raises RuntimeError if there
    is no such function, or the code was not loaded as a module.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"import_func takes the name of a function, but got {name!r}")
    return ImportedFunction(name, result)


def extern_func(
    name: str, *, library: str | None = None, function: Any = None, result: Any = None
) -> ExternFunction:
    """A function of another object, for direct calls in host functions.

    The symbol is `__tvm_ffi_<name>`; an exported object leaves it undefined, for the linker.  In
    this process its address is that of `function`, a compiled function; else it is in `library`,
    the path of a shared library, which an object that is loaded later uses too; else among the
    symbols that this process has loaded globally.  `result`: the type of the result, as for `call`.
    Raises ValueError for a name that is invalid in C, TypeError for a function that was not
    compiled.
    """
    from ferrule.runtime import Function

    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ValueError(
            f"{name!r} is no name of a C function: extern_func takes what stands behind __tvm_ffi_"
        )
    if function is not None and not isinstance(function, Function):
        raise TypeError(f"the function of extern_func must be a compiled one, but got {function!r}")
    if function is not None and library is not None:
        raise ValueError("extern_func takes a library or a function, but got both")
    return ExternFunction(name, None if library is None else str(library), function, result)
