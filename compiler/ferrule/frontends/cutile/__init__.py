"""Kernels of cuTile: `fe.frontends.cutile.compile(kernel, parameters, grid=…, target="sm_100")`.

cuTile compiles a kernel under constraints, and assumes that each call satisfies them.  Here they
are checked: they become the function's specs, and constraints that specs cannot express are checked
in addition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import SeenSizes, parted
from ferrule.frontends.given import architectures, brief, requiring
from ferrule.frontends.kernels import build_kernel
from ferrule.frontends.launchsizes import checked_sizes, constants_of
from ferrule.frontends.packages import load
from ferrule.frontends.strides import Asked
from ferrule.specs import Condition, Dim, Requirement, Signature

if TYPE_CHECKING:
    from ferrule.compiler.options import Options
    from ferrule.frontends.cutile.constraints import Parameter
    from ferrule.runtime import Function

__all__ = ["compile"]

Sizes: TypeAlias = "Dim | Sequence[Dim]"


def compile(
    kernel: Any,
    parameters: Any,
    *,
    grid: Sizes | Callable[[Signature], Sizes],
    target: str | Sequence[str],
    results: Sequence[str] = (),
    zero: bool | str | Sequence[str] = (),
    name: str | None = None,
    doc: str | None = None,
    requires: Sequence[Condition | Requirement] = (),
    options: str | Options | None = None,
) -> Function:
    """The function that launches a kernel of cuTile, `ct.launch(stream, grid, kernel, …)`.

    `parameters` say what the kernel is compiled for: a `KernelSignature` of cuTile, or for each
    parameter of the kernel a constraint, an example or spec, the dtype of a number, the value of a
    constant, or a tuple of these.  An example becomes a constraint with all properties that it has:
    sizes and strides that are constant or divisible, alignment; its sizes fit 32 bits, its strides
    are not negative, and it shares no memory with others.  A constant is not a parameter of the
    function; inside a tuple it is an argument that must equal the constant.  The arrays named by
    `results` are allocated and returned, those that `zero` names, or all for True, filled with
    zeros before the call.

    `grid` is one to three sizes, or a function that computes them from the signature; if the sizes
    of arrays differ between calls, it depends on them or is marked by `fixed`.  `target` is an
    architecture such as "sm_100", or several.  `requires` as for `fe.compile`, `options` are those
    of `compiler.build`.

    Raises ImportError if cuTile is not installed, TypeError if `kernel` is not one of its kernels,
    CompileError with cuTile's message for a kernel that it cannot compile.  A call that violates a
    constraint raises ValueError or TypeError.
    """
    cutile = load("cuda.tile", "cutile")
    load("cuda.tile.compilation", "cutile")
    if not isinstance(kernel, cutile.kernel):
        raise TypeError(
            f"fe.frontends.cutile.compile: expected a kernel, a function with @cuda.tile.kernel, "
            f"but got {brief(kernel)}"
        )
    from ferrule.frontends.cutile.calling import launch

    function = kernel._pyfunc
    found = _parameters(cutile, function, parameters)
    given, made = parted((each.spec for each in found if each.spec is not None), results)
    signature = Signature(function.__name__ if name is None else name, given)
    asked = Asked.of(signature)
    sizes = checked_sizes("grid", grid, asked.signature)
    archs = architectures("target", target)
    convention = launch(cutile, kernel, function.__name__, found, sizes, archs)
    return build_kernel(
        function,
        requiring(signature, requires),
        asked.held(convention),
        results=made,
        zero=zero,
        doc=doc,
        options=options,
    )


def _parameters(cutile: Any, function: Callable[..., Any], given: Any) -> list[Parameter]:
    from ferrule.frontends.cutile.constraints import parameter

    rows = getattr(given, "parameters", given)
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise TypeError(
            "fe.frontends.cutile.compile: parameters must be a list, with an example, a "
            "constraint or a constant for each parameter, or a KernelSignature, but got "
            f"{brief(given)}"
        )
    listed = list(inspect.signature(function).parameters)
    if len(rows) != len(listed):
        raise CompileError(
            Diagnostic(
                f"{function.__name__} has {len(listed)} parameters, but there are {len(rows)}",
                expected=f"one for each of {', '.join(listed)}",
            )
        )
    sizes = SeenSizes.of(rows, constants=constants_of(*rows))
    return [parameter(cutile, name, row, sizes) for name, row in zip(listed, rows, strict=True)]
