"""Functions that raise errors and call other functions; see `faces` for what a face is."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def raise_error(kind: str | type[Exception], text: str, *values: Any) -> None:
    """Ends the call with an error of this class, `raise_error("ValueError", "n is {}", n)`.

    `kind`: the name of any class that is registered with tvm-ffi; one that the caller does not know
    is a RuntimeError there.  Each `{}` of the text stands for a value: a number, a string, a dtype,
    a device, or a tuple of these; floats are shown as C's `%g` does.
    """
    outside("raise_error")


def call(function: str | Any, *arguments: Any, result: Any = None) -> Any:
    """Calls a function that any language registered with tvm-ffi, by its name.

    In a host function.  `function` may also be a parameter that is a function; `f(x)` is the same
    then.  Arguments are numbers, strings, bytes, None, tensors, dtypes, devices and objects; the
    callee may read and write a tensor, but must not keep it.  `result`: the dtype of the number
    that comes back; without it whatever comes back is dropped.  What the callee raises ends the
    call.
    """
    outside("call")
