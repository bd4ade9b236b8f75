"""The target of a function: the argument `target=`, and the options that express the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options
from ferrule.frontends.given import architectures


def with_target(options: Options, target: str | Sequence[str] | None) -> Options:
    """The options with the given target: "cpu", an architecture, several, None to keep the options.

    Raises CompileError for any other value, and if the options contradict it.
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
    """Raises CompileError if kernels are compiled for the CPU, or a function without kernels for a
    GPU."""
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
