"""What Warp compiles a kernel to: an object for the CPU, cubins for GPUs.

Warp compiles a module at a time, to files.  On the CPU a kernel `k` is the function
`<mangled>_cpu_forward(launch_bounds*, args*)`, which runs all of a launch; it stands alone where
the module is compiled for blocks of one thread.  On a GPU it is `<mangled>_cuda_kernel_forward`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime.objectfile import read_object

_WARP: Final = Lock()
"""Options of a module are changed while Warp compiles it, by one thread at a time."""

_CUBIN: Final = re.compile(r"\.sm(\d+[af]?)\.cubin")


@dataclass(frozen=True, slots=True)
class CpuKernel:
    """An object and the function in it."""

    data: bytes
    function: str


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """Cubins, the kernel in all of them, and its dynamic shared memory in bytes."""

    cubins: tuple[bytes, ...]
    kernel: str
    smem: int


def cpu_kernel(warp: Any, kernel: Any, flags: str | None) -> CpuKernel:
    """A kernel for the CPU.  `flags` are Warp's `cpu_compiler_flags`, None for its own choice."""
    options: dict[str, Any] = {"block_dim": 1, "enable_backward": False}
    if flags is not None:
        options["cpu_compiler_flags"] = flags
    with _changed(warp, kernel, options), TemporaryDirectory() as folder:
        _compile(warp, kernel, device="cpu", module_dir=folder)
        (path,) = Path(folder).rglob("*.o")
        data = path.read_bytes()
        function = _named(kernel, "_cpu_forward", read_object(data).defined)
    return CpuKernel(data, function)


def cuda_kernel(warp: Any, kernel: Any, archs: Sequence[str], block_dim: int) -> CudaKernel:
    """A kernel for these architectures, compiled for blocks of this size."""
    options = {"block_dim": block_dim, "enable_backward": False}
    numbers = [_number(arch) for arch in archs]
    with _changed(warp, kernel, options), TemporaryDirectory() as folder:
        _compile(warp, kernel, arch=numbers, module_dir=folder, use_ptx=False)
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


def _compile(warp: Any, kernel: Any, **chosen: Any) -> None:
    try:
        warp.compile_aot_module(kernel.module, **chosen)
    except Exception as error:
        # The text of a KeyError is its argument's repr.
        words = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise CompileError(
            Diagnostic(
                f"Warp cannot compile the kernel {kernel.key}: {words}",
                notes=(f"Warp compiles all kernels of the module {kernel.module.name} at once",),
            )
        ) from error


def _named(kernel: Any, suffix: str, names: Sequence[str]) -> str:
    """The name of the kernel's function: Warp puts a hash of its code behind that of the kernel."""
    wanted = kernel.get_mangled_name() + suffix
    if wanted in names:
        return str(wanted)
    raise CompileError(
        f"Warp's code for the kernel {kernel.key} has no {wanted}; it has {', '.join(names)}"
    )


@contextmanager
def _changed(warp: Any, kernel: Any, options: Mapping[str, Any]) -> Iterator[None]:
    """The kernel's module with other options, for as long as it is compiled."""
    module = kernel.module
    with _WARP:
        before = dict(module.options)
        module.options.update(options)
        module.mark_modified()
        try:
            yield
        finally:
            module.options.clear()
            module.options.update(before)
            module.mark_modified()
