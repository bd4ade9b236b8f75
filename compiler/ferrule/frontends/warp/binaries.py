"""Warp's compiled code of a kernel: an object for the CPU, cubins for GPUs.

Warp compiles one module at a time, to files.  Here all kernels of the module except one are hidden
during that, because a requirement that one of them lacks would make all of them fail.  On the CPU a
kernel `k` is the function `<mangled>_cpu_forward(launch_bounds*, args*)`, which runs a whole
launch; it needs no other code if the module is compiled for blocks of one thread.  On a GPU it is
`<mangled>_cuda_kernel_forward`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from weakref import WeakSet

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.forks import ForkLock
from ferrule.specs.deferred import dataclass

_WARP: Final = ForkLock()
"""Held while Warp compiles a module with changed options, which only one thread may do at a
time."""

_KERNELS: Final = "_live_kernels"
"""The attribute in which a module of Warp 1.19 holds the kernels that it compiles."""

_CUBIN: Final = re.compile(r"\.sm(\d+[af]?)\.cubin")


@dataclass(frozen=True, slots=True)
class CpuKernel:
    """An object file and the name of the function in it."""

    data: bytes
    function: str


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """Cubins, the name of the kernel in all of them, and its dynamic shared memory in bytes."""

    cubins: tuple[bytes, ...]
    kernel: str
    smem: int


def cpu_kernel(warp: Any, kernel: Any, flags: str | None) -> CpuKernel:
    """A kernel for the CPU.  `flags` are Warp's `cpu_compiler_flags`, None for Warp's own
    choice."""
    options: dict[str, Any] = {"block_dim": 1, "enable_backward": False}
    if flags is not None:
        options["cpu_compiler_flags"] = flags
    with _changed(warp, kernel, options), TemporaryDirectory() as folder:
        _compile(warp, kernel, "cpu", device="cpu", module_dir=folder)
        (path,) = Path(folder).rglob("*.o")
        data = path.read_bytes()
        read = read_object(data)
        function = _named(kernel, "_cpu_forward", read.defined)
        _check_alone(kernel, read.undefined)
    return CpuKernel(data, function)


def _check_alone(kernel: Any, needed: Iterable[str]) -> None:
    """Raises CompileError for code that calls Warp's own library."""
    foreign = sorted(name for name in needed if name.lstrip("_").startswith("wp_"))
    if foreign:
        raise CompileError(
            Diagnostic(
                f"the kernel {kernel.key} needs {', '.join(foreign)} of Warp's library on the CPU",
                hint="launch this kernel through Warp, or compile it for a GPU",
            )
        )


def cuda_kernel(warp: Any, kernel: Any, archs: Sequence[str], block_dim: int) -> CudaKernel:
    """A kernel for these architectures, compiled for blocks of this size."""
    options = {"block_dim": block_dim, "enable_backward": False}
    numbers = [_number(arch) for arch in archs]
    with _changed(warp, kernel, options), TemporaryDirectory() as folder:
        _compile(warp, kernel, ", ".join(archs), arch=numbers, module_dir=folder, use_ptx=False)
        found = {path for path in Path(folder).rglob("*.cubin") if _CUBIN.search(path.name)}
        if len(found) != len(set(numbers)):
            raise CompileError(
                f"Warp compiled no cubin for one of {', '.join(archs)}: it made "
                f"{', '.join(sorted(path.name for path in found)) or 'none'}"
            )
        (meta,) = Path(folder).rglob("*.meta")
        shared: Mapping[str, int] = json.loads(meta.read_text())
        suffix = "_cuda_kernel_forward"
        names = [name.removesuffix("_smem_bytes") for name in shared]
        name = _named(kernel, suffix, names)
        cubins = tuple(path.read_bytes() for path in sorted(found))
    return CudaKernel(cubins, name, int(shared.get(f"{name}_smem_bytes", 0)))


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("af"))


def _compile(warp: Any, kernel: Any, target: str, **chosen: Any) -> None:
    try:
        warp.compile_aot_module(kernel.module, **chosen)
    except Exception as error:
        # The text of a KeyError is the repr of its argument.
        words = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise CompileError(
            Diagnostic(f"Warp cannot compile the kernel {kernel.key} for {target}: {words}")
        ) from error


def _named(kernel: Any, suffix: str, names: Sequence[str]) -> str:
    """The name of the kernel's function: Warp appends a hash of the code to the kernel's name."""
    wanted = kernel.get_mangled_name() + suffix
    if wanted in names:
        return str(wanted)
    raise CompileError(
        f"Warp's code for the kernel {kernel.key} has no {wanted}; it has {', '.join(names)}"
    )


@contextmanager
def _changed(warp: Any, kernel: Any, options: Mapping[str, Any]) -> Iterator[None]:
    """Within this context, the kernel's module has other options and no other kernel."""
    module = kernel.module
    with _WARP:
        before, kernels = dict(module.options), getattr(module, _KERNELS)
        module.options.update(options)
        setattr(module, _KERNELS, WeakSet([kernel]))
        module.mark_modified()
        try:
            yield
        finally:
            module.options.clear()
            module.options.update(before)
            setattr(module, _KERNELS, kernels)
            module.mark_modified()
