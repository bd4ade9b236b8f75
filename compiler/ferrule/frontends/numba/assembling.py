"""Cubins of the PTX that `numba.cuda` makes, through nvJitLink."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.packages import load

_RUNTIME: Final = "cudadevrt"
"""CUDA's library of device code, which implements the barrier of all blocks of a launch."""
_UNDEFINED: Final = "Undefined reference"
_OUTSIDE: Final = (
    "code that Numba takes from CUDA C++ is not linked here: that of link= and declare_device, and "
    "arithmetic with float16 and bfloat16, for which convert to float32 first"
)


def assembled(ptx: str, arch: str, name: str, cooperative: bool) -> bytes:
    """The cubin of PTX for an architecture.

    Raises CompileError with nvJitLink's message for an architecture that it does not know, and for
    PTX that it cannot assemble or link.
    """
    nvjitlink = load("cuda.bindings.nvjitlink", "numba", "numba-cuda")
    libraries = [_runtime(name)] if cooperative else []
    try:
        handle = nvjitlink.create(1, [f"-arch={arch}"])
    except nvjitlink.nvJitLinkError as error:
        raise CompileError(
            Diagnostic(
                f"nvJitLink makes no code for {arch}: {error}",
                expected="the architecture of a GPU that the installed CUDA knows, such as 'sm_90'",
            )
        ) from error
    try:
        return _linked(nvjitlink, handle, ptx, libraries)
    except nvjitlink.nvJitLinkError as error:
        words = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, words)
        said = words.rstrip(b"\0").decode("utf-8", "replace").strip()
        raise CompileError(
            Diagnostic(
                f"{name} cannot be assembled for {arch}: {error}: {said}",
                hint=_OUTSIDE if _UNDEFINED in said else None,
            )
        ) from error
    finally:
        nvjitlink.destroy(handle)


def _linked(nvjitlink: Any, handle: Any, ptx: str, libraries: list[str]) -> bytes:
    data = ptx.encode()
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel")
    for path in libraries:
        nvjitlink.add_file(handle, nvjitlink.InputType.LIBRARY, path)
    nvjitlink.complete(handle)
    cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, cubin)
    return bytes(cubin)


def _runtime(name: str) -> str:
    """The path of CUDA's library of device code, which comes with its runtime."""
    libs = load("numba.cuda.cudadrv.libs", "numba", "numba-cuda")
    path = str(libs.get_cudalib(_RUNTIME, static=True))
    if not Path(path).is_file():
        raise CompileError(
            Diagnostic(
                f"{name} needs CUDA's library {_RUNTIME}, which is not at {path}",
                hint="pip install nvidia-cuda-runtime, which brings it",
            )
        )
    return path
