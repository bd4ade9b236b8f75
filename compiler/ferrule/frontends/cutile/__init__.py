"""Kernels of cuTile: `fe.frontends.cutile.compile(kernel, parameters, grid=…, target="sm_100")`.

cuTile compiles a kernel under constraints, and assumes that a call keeps them.  Here they are
checked: they become the function's specs, and what specs cannot say is checked beside them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import SeenSizes, parted
from ferrule.frontends.given import architectures, brief
from ferrule.frontends.kernels import build_kernel
from ferrule.frontends.launchsizes import checked_sizes, constants_of
from ferrule.frontends.packages import load
from ferrule.specs import Dim, Signature

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
    options: str | Options | None = None,
) -> Function:
    """The function that launches a kernel of cuTile, `ct.launch(stream, grid, kernel, …)`.

    `parameters` say what the kernel is compiled for: a `KernelSignature` of cuTile, or for each
    parameter of the kernel a constraint, an example or spec, the dtype of a number, the value of a
    constant, or a tuple of these.  An example becomes a constraint with all that it says: sizes and
    strides that are constant or divisible, alignment; sizes of 32 bits, no negative strides, and no
    memory in common with others.  Constants are no parameters of the function, but inside of a
    tuple they are arguments that must equal them.  The arrays named by `results` are allocated and
    returned, those that `zero` names, or all for True, filled with zeros before the call.

    `grid` is one to three sizes, or a function that gets the signature and says them; where a call
    may bring other sizes it follows from them, or is `fixed`.  `target` is
    an architecture such as "sm_100", or several.  `options` are those of `compiler.build`.

    Raises ImportError without cuTile, TypeError for what is no kernel of it, CompileError with
    cuTile's words for what it cannot compile.  A call that breaks a constraint is a ValueError or
    TypeError.
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
    sizes = checked_sizes("grid", grid, signature)
    archs = architectures("target", target)
    convention = launch(cutile, kernel, function.__name__, found, sizes, archs)
    return build_kernel(
        function,
        signature,
        convention,
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
