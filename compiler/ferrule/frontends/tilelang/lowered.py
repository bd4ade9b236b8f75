"""TileLang's output for a function: CUDA C++, its kernels, and their launches.

TileLang 0.1.15 gives for each kernel its parameters, in `thread_extent` the sizes of grid and
block, and in `dyn_shared_memory_buf` the dynamic shared memory; the host function contains the
order of the launches, and in `tma_descriptor_args` the arguments of `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs.deferred import dataclass

_CALLS: Final = re.compile(r'T\.call_packed\("([^"]+)"')
_BRANCHES: Final = re.compile(r"^ *(?:if|for|while) ", re.M)
_START: Final = '"__tvm_set_device"'
_KNOWN: Final = frozenset({"tirx.use_dyn_shared_memory"})
_PDL: Final = "tirx.use_programtic_dependent_launch"
_COOPERATIVE: Final = "tirx.use_cooperative_launch"
AXES: Final = "xyz"
_CLUSTERED: Final = frozenset(f"tir.cluster_dim_{axis}" for axis in AXES)
"""The sizes of a cluster, which are in `cluster_dims`."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A launch.  Sizes and parameters are TVM's expressions and variables."""

    name: str
    params: tuple[Any, ...]
    grid: tuple[Any, ...]
    block: tuple[Any, ...]
    cluster: tuple[int, ...] | None
    smem: Any
    use_pdl: bool
    cooperative: bool
    written: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lowered:
    """The source of all kernels, their launches in order, and the arguments of tensor maps."""

    source: str
    kernels: tuple[Kernel, ...]
    maps: Mapping[str, tuple[Any, ...]]


def lower(tilelang: Any, function: Any, arch: str, configs: Mapping[str, Any]) -> Lowered:
    """Lowers a function of TileLang for an architecture, with these options of its passes.

    Raises CompileError with TileLang's message, and for launches that depend on more than sizes.
    """
    name = str(function.attrs["global_symbol"])
    try:
        target = tilelang.tvm.target.Target({"kind": "cuda", "arch": arch})
        passes = tilelang.tvm.transform.PassContext(opt_level=3, config=dict(configs))
        with target, passes:
            found = tilelang.lower(function, target=target, enable_device_compile=False)
    except Exception as error:
        raise CompileError(
            Diagnostic(f"TileLang cannot compile {name} for {arch}: {error}")
        ) from error
    (host,) = found.host_mod.functions.values()
    device = {
        str(each.attrs["global_symbol"]): each for each in found.device_mod.functions.values()
    }
    kernels = [_kernel(each, device[each]) for each in _order(name, str(host), device)]
    maps = dict(host.attrs).get("tma_descriptor_args", {})
    given = {str(key.name): tuple(value) for key, value in maps.items()}
    return Lowered(str(found.kernel_source), tuple(kernels), given)


def _order(name: str, host: str, device: Mapping[str, Any]) -> Sequence[str]:
    """The kernels in the order in which the host function launches them."""
    body = host[host.find(_START) :]
    if _BRANCHES.search(body):
        raise CompileError(
            Diagnostic(
                f"{name} launches its kernels in a loop or under a condition",
                expected="kernels that are launched one after the other",
            )
        )
    order = [each for each in _CALLS.findall(body) if each in device]
    if sorted(order) != sorted(device):
        raise CompileError(
            f"{name} has the kernels {', '.join(device)}, but launches {', '.join(order) or 'none'}"
        )
    return order


def _kernel(name: str, function: Any) -> Kernel:
    attrs = dict(function.attrs)
    extents = {str(key): value for key, value in attrs["thread_extent"].items()}
    tags = {str(tag) for tag in attrs["tirx.kernel_launch_params"]}
    cluster = tuple(int(each) for each in attrs.get("cluster_dims", ()))
    clustered = _CLUSTERED if cluster else frozenset[str]()
    known = _KNOWN | {_PDL, _COOPERATIVE} | clustered | extents.keys()
    if unknown := sorted(tags - known):
        raise CompileError(f"the launch of {name} needs {', '.join(unknown)}, which is not known")
    read = {int(each) for each in attrs.get("tl.readonly_param_indices", ())}
    return Kernel(
        name,
        tuple(function.params),
        tuple(extents.get(f"blockIdx.{axis}", 1) for axis in AXES),
        tuple(extents.get(f"threadIdx.{axis}", 1) for axis in AXES),
        cluster or None,
        attrs.get("dyn_shared_memory_buf", 0),
        _PDL in tags,
        _COOPERATIVE in tags,
        frozenset(str(p.name) for i, p in enumerate(function.params) if i not in read),
    )
