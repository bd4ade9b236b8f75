"""Functions of TileLang: `fe.frontends.tilelang.compile(function, target="sm_90a")`.

TileLang translates them to CUDA C++, which nvcc compiles; ferrule itself launches the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import parted
from ferrule.frontends.given import architectures, brief, requiring
from ferrule.frontends.packages import load
from ferrule.specs import Condition, Requirement, Signature

if TYPE_CHECKING:
    from ferrule.compiler.options import Options
    from ferrule.runtime import Function

__all__ = ["compile"]


def compile(
    function: Any,
    *,
    target: str,
    pass_configs: Mapping[str, Any] | None = None,
    results: Sequence[str] = (),
    zero: bool | str | Sequence[str] = (),
    name: str | None = None,
    doc: str | None = None,
    requires: Sequence[Condition | Requirement] = (),
    options: str | Options | None = None,
) -> Function:
    """The function that launches the kernels of a function of TileLang, a `T.prim_func`, or of a
    kernel that TileLang compiled from one.

    Its parameters are the function's; dynamic sizes and strides are symbols of their names.  Data
    must have the alignment that TileLang assumes, and an array that a kernel writes must not share
    memory with another of its arrays, otherwise the call raises ValueError.  The arrays named by
    `results` are allocated and returned, those that `zero` names, or all for True, filled with
    zeros before the call.

    `target` is an architecture such as "sm_90a"; only one, because TileLang's code differs between
    them.  `pass_configs` are those of `tilelang.jit`.  `requires` as for
    `fe.compile`, `options` are those of `compiler.build`.

    Raises ImportError if TileLang or nvcc is not installed, TypeError for an object that is not a
    function of TileLang, CompileError with TileLang's message for a function that it cannot
    compile, and for launches that depend on more than sizes.
    """
    tilelang = load("tilelang", "tilelang")
    function = _prim_func(tilelang, function)
    if not isinstance(target, str):
        raise TypeError(f"target must be an architecture such as 'sm_90a', but got {target!r}")
    target, *others = architectures("target", target)
    if others:
        raise CompileError(
            Diagnostic(
                f"target names {len(others) + 1} architectures",
                expected="one, such as 'sm_90a'",
                hint="compile the function for each, in functions of their own",
            )
        )
    from ferrule.frontends.tilelang.calling import Names, launches

    found = Names.of(function)
    given, made = parted(found.specs, results)
    called = str(function.attrs["global_symbol"]) if name is None else name
    signature = requiring(Signature(called, given), requires)
    convention = launches(tilelang, function, found, target, _configs(pass_configs))
    from ferrule.compiler.building import build

    return build(signature, convention, results=made, zero=zero, doc=doc, options=options)


def _prim_func(tilelang: Any, function: Any) -> Any:
    """The function of TVM; TypeError, with a hint, for an object that is none."""
    kind = tilelang.tvm.tirx.PrimFunc
    found = getattr(function, "prim_func", function)
    if isinstance(found, kind):
        return found
    advice = ""
    if hasattr(function, "get_tir"):
        advice = ": give what it makes for some arguments, function.get_tir(...)"
    elif callable(function):
        advice = ": a function that makes one must be called"
    raise TypeError(
        f"fe.frontends.tilelang.compile: expected a T.prim_func, but got {brief(function)}{advice}"
    )


def _configs(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping | None):
        raise TypeError(
            f"pass_configs must be a dict, such as {{'tl.disable_tma_lower': True}}, but got "
            f"{brief(given)}"
        )
    return dict(given or {})
