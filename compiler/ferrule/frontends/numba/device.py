"""Kernels that `numba.cuda` compiles, launched without Numba.

numba-cuda makes PTX of a recent version, which older drivers reject, so it is assembled here with
nvJitLink, which is a dependency of numba-cuda.  The name that Numba gives a kernel contains a
counter of this process's compilations, so the kernel gets another name.

Numba compiles the address of an array on a GPU that a kernel reads by its name into the kernel.
The address is valid only in this process, and only while the array exists.

Numba compiles a device function, `@cuda.jit(device=True)`, when a kernel that calls it is compiled,
and asks the driver for the architecture of the current GPU.  Here the target names the
architecture, so this is the answer: in this thread, while the kernel is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import get_ident
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final

from ferrule.compiler.conventions.launches.cuda import CudaLaunch
from ferrule.compiler.cuda.binaries.ptx_text import facts_of_ptx
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.captured import captured
from ferrule.frontends.given import emulates_gpu
from ferrule.frontends.numba.assembling import assembled
from ferrule.frontends.numba.records import Records, numba_arguments, numba_types
from ferrule.frontends.packages import load
from ferrule.runtime.forks import ForkLock
from ferrule.specs import Dim, Param

_ENTRY: Final = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
_ARCH: Final = re.compile(r"sm_(\d+)(\d)[af]?")
_OPTIONS: Final = ("debug", "lineinfo", "fastmath", "opt", "launch_bounds", "forceinline")
"""Options of `numba.cuda.jit` that have an effect when a kernel is compiled."""
_GRID_SYNC: Final = "cudaCGGetIntrinsicHandle"
"""The function that a kernel with a barrier of all blocks calls; such blocks must all run at
once."""


def device_call(
    function: Any,
    params: Sequence[Param],
    records: Records,
    archs: Sequence[str],
    grid: Any,
    block: Any,
    smem: Dim | None,
) -> CudaLaunch:
    """The launch of a kernel of Numba, compiled for parameters with these specs; those in
    `records` are bytes of records."""
    for name, size in (("grid", grid), ("block", block)):
        if size is None:
            raise CompileError(Diagnostic(f"a kernel needs {name}=", hint=f"{name}=(x, y, z)"))
    types = load("numba.cuda.types", "numba", "numba-cuda")
    kinds = numba_types(types, params, records)
    plain = getattr(function, "py_func", function)
    name = re.sub(r"\W", "_", f"{plain.__name__}_kernel")
    check_no_device_array(plain)
    options = getattr(function, "targetoptions", {})
    chosen = {each: options[each] for each in _OPTIONS if options.get(each) is not None}
    if emulates_gpu() and not chosen.get("debug"):  # its errors name the lines of the source
        chosen.setdefault("lineinfo", True)
    texts = [(_ptx(plain, kinds, arch, name, chosen), arch) for arch in archs]
    cooperative = any(_GRID_SYNC in ptx for ptx, _ in texts)
    if emulates_gpu():
        made = DeviceCode.from_images([ptx.encode() for ptx, _ in texts], [name])
    else:
        cubins = [assembled(ptx, arch, name, cooperative) for ptx, arch in texts]
        made = DeviceCode.from_cubin(cubins, [name])
    code = replace(made, facts=facts_of_ptx(texts[0][0]))
    arguments = numba_arguments(params, records)
    return CudaLaunch(
        code, name, arguments, grid=grid, block=block, smem=smem, cooperative=cooperative
    )


def _ptx(
    function: Any, kinds: tuple[Any, ...], arch: str, name: str, options: dict[str, Any]
) -> str:
    """The PTX of the kernel for one architecture, under this name."""
    number = _ARCH.fullmatch(arch)
    assert number is not None, arch
    cuda = load("numba.cuda", "numba", "numba-cuda")
    capability = int(number[1]), int(number[2])
    try:
        with standing_in(capability):
            ptx, _ = cuda.compile_ptx(function, kinds, cc=capability, **options)
    except Exception as error:
        raise CompileError(
            Diagnostic(f"Numba cannot compile {function.__name__} for {arch}: {error}")
        ) from error
    (mangled,) = _ENTRY.findall(ptx)
    return str(ptx).replace(mangled, name)


# ---- arrays that a kernel reads by their names ----


_ON_GPU: Final = "__cuda_array_interface__"
_FEW: Final = 1000
"""The number of items of a tuple or list that are examined."""


def check_no_device_array(function: FunctionType) -> None:
    """Raises CompileError if a function, or one that it calls, refers to an array on a GPU that is
    not a parameter."""
    for where, name, value in captured(function):
        if not _is_on_gpu(value):
            continue
        raise CompileError(
            Diagnostic(
                f"{where} reads {name}, an array on a GPU that is no parameter: its address would "
                "be compiled in, which means something in this process alone",
                hint="hand it over as a parameter",
            )
        )


def _is_on_gpu(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_on_gpu, value[:_FEW]))
    return not isinstance(value, type | ModuleType) and _has_interface(value)


def _has_interface(value: Any) -> bool:
    """Whether a value is an array on a GPU; for a tensor on the CPU, torch raises an error
    instead."""
    try:
        return getattr(value, _ON_GPU, None) is not None
    except Exception:
        return False


# ---- a device for queries, where there is no GPU ----


_ASKED: Final = ForkLock()
_FUNCTION: Final = "get_current_device"


@contextmanager
def standing_in(capability: tuple[int, int]) -> Iterator[None]:
    """Within this context, Numba's dispatchers see a device of this compute capability in this
    thread."""
    dispatcher = load("numba.cuda.dispatcher", "numba", "numba-cuda")
    thread = get_ident()
    with _ASKED:
        own = getattr(dispatcher, _FUNCTION)

        def current() -> Any:
            if get_ident() == thread:
                return SimpleNamespace(compute_capability=capability)
            return own()

        setattr(dispatcher, _FUNCTION, current)
        try:
            yield
        finally:
            setattr(dispatcher, _FUNCTION, own)
