"""Kernels that `numba.cuda` compiles, launched without Numba.

numba-cuda makes PTX of a new version, which older drivers refuse, so it is assembled here, with
nvJitLink, which it brings.  The name of a kernel counts what this process compiled before, so it
gets one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ferrule.compiler.conventions.cuda import CudaLaunch
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.numba.types import flattened, numba_type
from ferrule.frontends.packages import load
from ferrule.specs import Dim, Param

_ENTRY: Final = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
_ARCH: Final = re.compile(r"sm_(\d+)(\d)[af]?")
_OPTIONS: Final = ("debug", "lineinfo", "fastmath", "opt", "launch_bounds", "forceinline")
"""Options of `numba.cuda.jit` that mean something when a kernel is compiled."""


def device_call(
    function: Any,
    params: Sequence[Param],
    archs: Sequence[str],
    grid: Any,
    block: Any,
    smem: Dim,
) -> CudaLaunch:
    """The launch of a kernel of Numba, compiled for parameters with these specs."""
    for name, size in (("grid", grid), ("block", block)):
        if size is None:
            raise CompileError(Diagnostic(f"a kernel needs {name}=", hint=f"{name}=(x, y, z)"))
    types = load("numba.cuda.types", "numba", "numba-cuda")
    kinds = tuple(numba_type(types, param) for param in params)
    plain = getattr(function, "py_func", function)
    name = f"{plain.__name__}_kernel"
    options = getattr(function, "targetoptions", {})
    chosen = {each: options[each] for each in _OPTIONS if options.get(each) is not None}
    cubins = [_cubin(plain, kinds, arch, name, chosen) for arch in archs]
    code = DeviceCode.from_cubin(cubins, [name])
    arguments = [argument for param in params for argument in flattened(param)]
    return CudaLaunch(code, name, arguments, grid=grid, block=block, smem=smem)


def _cubin(
    function: Any, kinds: tuple[Any, ...], arch: str, name: str, options: dict[str, Any]
) -> bytes:
    """The kernel for one architecture, under this name."""
    number = _ARCH.fullmatch(arch)
    assert number is not None, arch
    cuda = load("numba.cuda", "numba", "numba-cuda")
    capability = int(number[1]), int(number[2])
    try:
        ptx, _ = cuda.compile_ptx(function, kinds, cc=capability, **options)
    except Exception as error:
        raise CompileError(
            Diagnostic(f"Numba cannot compile {function.__name__} for {arch}: {error}")
        ) from error
    (mangled,) = _ENTRY.findall(ptx)
    return _linked(ptx.replace(mangled, name), arch)


def _linked(ptx: str, arch: str) -> bytes:
    """The cubin of PTX.  Raises CompileError with nvJitLink's words."""
    nvjitlink = load("cuda.bindings.nvjitlink", "numba", "numba-cuda")
    data = ptx.encode()
    options = [f"-arch={arch}"]
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
    except nvjitlink.nvJitLinkError as error:
        words = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, words)
        said = words.rstrip(b"\0").decode("utf-8", "replace")
        raise CompileError(f"the kernel cannot be assembled for {arch}: {error}: {said}") from error
    finally:
        nvjitlink.destroy(handle)
    return bytes(cubin)
