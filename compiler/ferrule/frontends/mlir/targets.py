"""What a function is compiled for: `target=` beside the options that say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options
from ferrule.frontends.given import architectures


def with_target(options: Options, target: str | Sequence[str] | None) -> Options:
    """The options, with what `target` says: "cpu", an architecture, several, None for nothing.

    Raises CompileError for what is none of these, and where the options say something else.
    """
    if target is None:
        return options
    if target == "cpu":
        _agree(target, "--target", options.target, "cpu")
        _agree(target, "--gpu-arch", options.gpu_arch, None)
        return replace(options, target="cpu")
    archs = ",".join(architectures("target", target, "'cpu', or "))
    _agree(target, "--target", options.target, "cuda")
    _agree(target, "--gpu-arch", options.gpu_arch, archs)
    return replace(options, target="cuda", gpu_arch=archs)


def require_target(symbol: str, options: Options, *, launches: bool) -> None:
    """Raises CompileError where kernels, or what is none, are to be compiled for the other."""
    if launches and options.target == "cpu":
        raise CompileError(
            Diagnostic(
                f"@{symbol} launches kernels, but its target is 'cpu'",
                hint="name an architecture, target='sm_90a'",
            )
        )
    if not launches and options.target == "cuda":
        shown = options.gpu_arch or "cuda"
        raise CompileError(
            Diagnostic(
                f"@{symbol} launches no kernels, but its target is {shown!r}",
                hint="write gpu.launch, or have MLIR's passes make launches of parallel loops "
                "before; target='cpu' compiles it for the CPU",
            )
        )


def _agree(target: object, option: str, given: Any, wanted: str | None) -> None:
    if given not in (None, wanted):
        raise CompileError(
            Diagnostic(
                f"target is {target!r}, but the options say {option} {given}",
                hint="say it once",
            )
        )
