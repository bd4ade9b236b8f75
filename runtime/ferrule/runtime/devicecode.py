"""Facts about a function's kernels: for one GPU architecture, or by architecture for several."""

from __future__ import annotations

from ferrule.runtime.artefacts import DeviceOrigin, KernelInfo, Origin
from ferrule.runtime.errors import StageError


def ptx_of(origin: Origin) -> str | dict[str, str]:
    """The PTX of the kernels.  StageError where there are none for a GPU."""
    if not isinstance(origin, DeviceOrigin):
        return origin.text("ptx")
    found = dict(origin.ptx())
    return found if len(found) > 1 else next(iter(found.values()))


def kernel_info_of(origin: Origin) -> dict[str, KernelInfo] | dict[str, dict[str, KernelInfo]]:
    """The resources of each kernel, by its name.  StageError if the origin does not know them."""
    if not isinstance(origin, DeviceOrigin):
        raise StageError("ptx", (), "what it was made from says nothing of its kernels")
    found = {arch: dict(kernels) for arch, kernels in origin.kernel_info().items()}
    return found if len(found) > 1 else next(iter(found.values()))
