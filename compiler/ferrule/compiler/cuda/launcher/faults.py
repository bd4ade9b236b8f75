"""The classes and messages of errors for the statuses of launching."""

from __future__ import annotations

from typing import Final

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.compiler.cuda.launcher.driver import LIBRARY, SINCE
from ferrule.compiler.cuda.launcher.state import Status
from ferrule.runtime.devices import EMULATE

_SIZES: Final = (
    "grid ({}, {}, {}), block ({}, {}, {}), {} bytes of shared memory a block, stream {}"
)


def failures(doing: str, location: Location | None) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …; `doing` ends their messages: `in the launch of f`."""
    messages = _messages(literal(doing))
    beyond = (Status.TOO_MANY_THREADS, Status.TOO_MUCH_SHARED)
    return tuple(
        Fault("LaunchError" if each in beyond else "CudaError", messages[each], location)
        for each in Status
        if each > Status.DONE
    )


def _messages(where: str) -> dict[Status, str]:
    said = "failed with {text} ({}: {text})"
    return {
        Status.CALL_FAILED: f"{{text}} {said} {where}{{text}}",
        Status.NO_KERNEL: f"cuLibraryGetKernel of the kernel {{text}} {said} {where}{{text}}",
        Status.NO_LIBRARY: f"the CUDA driver cannot be loaded {where}: {{text}}; "
        f"{LIBRARY} comes with the NVIDIA driver: install that; without one, {EMULATE}",
        Status.NO_FUNCTION: f"the CUDA driver has no {{text}}, which is needed {where}: "
        f"wanted the driver of CUDA {SINCE} or later, but this is that of CUDA {{}}.{{}}; update "
        "the NVIDIA driver",
        Status.NO_DEVICE: f"there is no GPU cuda:{{}} {where}: the CUDA driver has {{}}, counted "
        "from cuda:0; CUDA_VISIBLE_DEVICES says which it shows",
        Status.FORKED: f"this process was forked while another thread loaded the kernels, {where}: "
        "CUDA cannot be used in it; start it with multiprocessing.get_context('spawn')",
        Status.CLOSED: f"the kernels were unloaded {where}: the process is ending",
        Status.LAUNCH_FAILED: f"{{text}} {said} {where}: {_SIZES}{{text}}",
        Status.TOO_MANY_THREADS: f"a block has {{}} threads {where}, but of this kernel the "
        "registers of cuda:{} are enough for {}",
        Status.NO_IMAGE: "the GPU cuda:{} has compute capability {}.{}, but the kernels were "
        f"compiled for {{text}}, which it does not run, {where}: compile them for it too, with "
        "--gpu-arch or as another image of their DeviceCode",
        Status.TOO_MUCH_SHARED: f"smem is {{}} bytes {where}, but cuda:{{}} has {{}} for a block "
        "of this kernel",
    }
