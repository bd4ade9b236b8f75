"""Functions of Numba: `fe.frontends.numba.compile(function, *examples)`.

On the CPU the code that Numba compiles in nopython mode is called without Python; for GPUs the
kernel that `numba.cuda` compiles is launched without Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.captured import compiled_in
from ferrule.frontends.examples import SeenSizes, parted, spec_of
from ferrule.frontends.given import (
    architectures,
    brief,
    check_on_cpu,
    check_signature,
    names,
    requiring,
)
from ferrule.frontends.kernels import build_kernel
from ferrule.frontends.launchsizes import checked_sizes, constants_of, constants_said, unmarked
from ferrule.frontends.numba.records import (
    Records,
    as_numbers,
    bytes_of,
    is_of_records,
    records_of,
)
from ferrule.frontends.packages import load
from ferrule.frontends.strides import Asked
from ferrule.specs import Condition, Dim, Param, Requirement, Signature
from ferrule.specs.copies import changed
from ferrule.specs.params import Scalar, Tensor
from ferrule.specs.params.base import REQUIRED

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CallingConvention
    from ferrule.compiler.options import Options
    from ferrule.runtime import Function

__all__ = ["cfunc", "compile"]

Sizes: TypeAlias = "Dim | Sequence[Dim]"

_ELEMENTWISE: Final = "call it in a loop of a function with @numba.njit, and compile that"
_ADVICE: Final = {
    "DUFunc": _ELEMENTWISE,
    "GUFunc": _ELEMENTWISE,
    "CFunc": "fe.frontends.numba.cfunc is for C functions",
}
"""Hints for other objects of Numba, by the names of their types."""


def compile(
    function: Any,
    *examples: Any,
    grid: Sizes | Callable[[Signature], Sizes] | None = None,
    block: Sizes | Callable[[Signature], Sizes] | None = None,
    smem: Dim | Callable[[Signature], Dim] | None = None,
    target: str | Sequence[str] = "cpu",
    results: Sequence[str] = (),
    zero: bool | str | Sequence[str] = (),
    name: str | None = None,
    doc: str | None = None,
    requires: Sequence[Condition | Requirement] = (),
    options: str | Options | None = None,
) -> Function:
    """The function that calls a function of Numba.

    `function` is a Python function, or one with `@numba.njit` or `@numba.cuda.jit`, whose options
    are used.  `examples` are, for each of its parameters, a fake tensor, a spec, a real array, or a
    number or its dtype, of which only the type is used; an array of NumPy's records is one for
    their bytes, `r.view("u1").reshape(*r.shape, -1)`.  The last ones may be omitted if they have
    defaults, which are kept.  A read-only array is an example for an array that the function only
    reads; calls may pass it read-only or writable.  Numba compiles it for arrays of their ranks and
    layouts.  The arrays named by `results` are allocated and returned; their sizes must be known
    from the others.  Elements that Numba's function does not write are uninitialised: `zero` names
    the arrays that are filled with zeros before the call, True means all.

    `target` is "cpu", or an architecture such as "sm_90", or several: then the function is a
    kernel, `grid` and `block` are one to three sizes, `smem` its dynamic shared memory in bytes, or
    functions that compute these from the signature.  If sizes differ between calls, the grid must
    depend on them or be marked by `fixed`; a size of a real array that is equal to a number in
    `block` or `smem` is constant, unless the number is marked by `fixed`.  On the CPU a number that
    it returns is what the call returns, and the call raises an exception that it raises.
    `requires` as for `fe.compile`, `options` are those of `compiler.build`.

    Raises ImportError if Numba is not installed, CompileError with Numba's message for a function
    that it cannot compile, and for code that needs Python.
    """
    cuda = target != "cpu"
    load("numba_cuda" if cuda else "numba", "numba", "numba-cuda" if cuda else "numba")
    plain = _plain(function)
    constants = [*constants_of(grid, block), *_in_shared(smem, examples)]
    records = records_of(list(inspect.signature(plain).parameters), examples)
    params, made, signature = _call(plain, examples, name, results, constants, records)
    more = constants_said(signature, grid, block)
    if more:
        params, made, signature = _call(plain, examples, name, results, constants + more, records)
    if cuda:
        from ferrule.frontends.numba.device import device_call

        archs = architectures("target", target, "'cpu', or ")
        asked = Asked.of(signature)
        grid = None if grid is None else checked_sizes("grid", grid, asked.signature)
        sizes: list[Any] = [
            unmarked(each(asked.signature) if callable(each) else each)
            for each in (grid, block, smem)
        ]
        launch = device_call(function, params, records, archs, *sizes)
        convention: CallingConvention = asked.held(launch)
    else:
        from ferrule.frontends.numba.host import host_call

        _check_for_cpu(function, _name(plain), params, grid, block)
        convention = host_call(function, params, records)
    return build_kernel(
        plain,
        requiring(signature, requires),
        convention,
        results=made,
        zero=zero,
        doc=doc,
        options=options,
    )


def _call(
    function: Callable[..., Any],
    examples: Sequence[Any],
    name: str | None,
    results: Sequence[str],
    constants: Sequence[int],
    records: Records,
) -> tuple[list[Param], list[Tensor], Signature]:
    """All parameters of the function, the tensors among them that `results` names, and the
    signature of the others."""
    params = _params(function, examples, constants, names(results), records)
    given, made = parted(params, results)
    return params, made, Signature(_name(function) if name is None else name, given)


def _check_for_cpu(
    function: Any, name: str, params: Sequence[Param], grid: object, block: object
) -> None:
    """Raises CompileError for a kernel and for arguments that are only for GPUs."""
    if grid is not None or block is not None:
        wrong = "grid and block are for kernels: target is 'cpu'"
    elif type(function).__name__ == "CUDADispatcher":
        wrong = f"{name} is a kernel of numba.cuda, but the target is 'cpu'"
    else:
        check_on_cpu(params, name)
        return
    raise CompileError(Diagnostic(wrong, hint="name an architecture, target='sm_90a'"))


def _plain(function: Any) -> Callable[..., Any]:
    """The Python function; TypeError, with a hint, for an object that is none."""
    plain = getattr(function, "py_func", function)
    kind = type(function).__name__
    if kind in _ADVICE or not inspect.isfunction(plain):
        advice = f": {_ADVICE[kind]}" if kind in _ADVICE else ""
        raise TypeError(
            f"fe.frontends.numba.compile: expected a Python function, or one of Numba's, but got "
            f"{brief(function)}{advice}"
        )
    return plain


def _in_shared(smem: Any, examples: Sequence[Any]) -> list[int]:
    """The numbers of elements of the real arrays that have as many bytes as the shared memory."""
    if type(smem) is not int:
        return []
    held = (each for each in examples if getattr(each, "nbytes", None) == smem)
    return [smem // each.itemsize for each in held if smem]


def _params(
    function: Callable[..., Any],
    examples: Sequence[Any],
    constants: Sequence[int],
    made: Sequence[str],
    records: Records,
) -> list[Param]:
    """The specs of the function's parameters; `made` names the allocated ones."""
    params = list(inspect.signature(function).parameters.values())
    for param in params:
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            raise CompileError(
                Diagnostic(
                    f"{function.__name__}: the parameter {str(param)!r} stands for any number",
                    hint="write parameters one by one",
                )
            )
    given = _with_defaults(function, examples)
    plain = [as_numbers(each) if is_of_records(each) else each for each in given]
    sizes = SeenSizes.of(plain, constants=constants)
    found = [
        _records(param.name, example, sizes, records[param.name], is_made=param.name in made)
        if param.name in records
        else _param(param.name, example, sizes, is_made=param.name in made)
        for param, example in zip(params, given, strict=True)
    ]
    # A parameter before one without a default, such as an array, cannot have one.
    for number in reversed(range(len(found))):
        spec = _defaulted(found[number], params[number].default)
        if spec is None:
            break
        found[number] = spec
    return found


def _with_defaults(function: Callable[..., Any], examples: Sequence[Any]) -> list[Any]:
    """An example for each parameter; the last ones may be omitted if they have defaults, as in a
    call."""
    params = inspect.signature(function).parameters
    needed = sum(param.default is param.empty for param in params.values())
    if needed <= len(examples) <= len(params):
        rest = list(params.values())[len(examples) :]
        return [*examples, *(param.default for param in rest)]
    count = str(needed) if needed == len(params) else f"{needed} to {len(params)}"
    raise CompileError(
        Diagnostic(
            f"{function.__name__}: the examples do not fit: expected {count}, but got "
            f"{len(examples)}",
            expected=f"one for each of {', '.join(params) or 'no parameters'}",
            hint="examples are arguments of their own, without a list around them"
            if len(examples) == 1 and isinstance(examples[0], (list, tuple))
            else None,
        )
    )


def _param(name: str, example: Any, sizes: SeenSizes, *, is_made: bool) -> Param:
    """The spec of a parameter; a number is an example for its type."""
    if isinstance(example, np.generic):
        example = example.dtype
    elif isinstance(example, bool | int | float):
        example = type(example)
    spec = spec_of(name, example, sizes=sizes)
    if isinstance(spec, Tensor) and not is_made and _is_read_only(example):
        return changed(spec, read_only=True)
    return spec


def _records(name: str, example: Any, sizes: SeenSizes, dtype: Any, *, is_made: bool) -> Tensor:
    """The spec of an array of records."""
    read_only = not is_made and _is_read_only(example)
    return bytes_of(name, sizes.dims(example.shape), dtype, read_only=read_only)


def _is_read_only(example: Any) -> bool:
    """Whether it is a read-only array: Numba rejects code that writes to it."""
    return isinstance(example, np.ndarray) and not example.flags.writeable


def _defaulted(spec: Param, default: Any) -> Param | None:
    """A number with the default of the function's own parameter; None if it cannot have one."""
    if not isinstance(spec, Scalar) or not isinstance(default, bool | int | float):
        return None
    try:
        return Scalar(spec.name, spec.dtype, default) if spec.default is REQUIRED else spec
    except (TypeError, ValueError):
        return None


def _name(function: Callable[..., Any]) -> str:
    name = function.__name__
    return name if name.isidentifier() else "function"


def cfunc(
    function: Any,
    signature: Signature,
    arguments: Sequence[Any] | None = None,
    *,
    linked: bool = True,
    results: Sequence[Tensor] = (),
    zero: bool | str | Sequence[str] = (),
    doc: str | None = None,
    options: str | Options | None = None,
) -> Function:
    """The function of a signature that calls a C function of Numba, made with `@numba.cfunc`.

    `arguments` are its arguments, expressions of the signature as `conventions.CFunction` takes
    them, converted to the types of its parameters; by default they are the parameters in order, and
    for tensors the addresses.  `linked`: its code becomes a part of the function, which can be
    exported, and the call raises an exception that it raises.  Otherwise its address is called:
    that needs Numba and Python, cannot be exported, and an exception is printed and lost.

    Raises ImportError if Numba is not installed, TypeError for an object that is not a C function
    of Numba, CompileError for arguments that do not fit it.
    """
    numba = load("numba", "numba")
    if not isinstance(function, numba.core.ccallback.CFunc):
        raise TypeError(
            f"fe.frontends.numba.cfunc: expected a function with @numba.cfunc, but got "
            f"{brief(function)}"
        )
    check_signature(signature, "numba.cfunc")
    from ferrule.frontends.numba.cfuncs import cfunc_call

    convention = cfunc_call(function, signature, arguments, linked)
    from ferrule.compiler.building import build

    return build(
        signature,
        convention,
        results=results,
        zero=zero,
        doc=doc,
        options=options,
        assumes=compiled_in(function._pyfunc),
    )
