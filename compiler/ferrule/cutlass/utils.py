"""`cutlass.utils` of CuTe DSL's programs: `fe.utils`, pictures, orders of matrices."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ferrule.cutlass import names
from ferrule.language.atoms.warpgroup import OperandMajorMode
from ferrule.language.faces.tuples import leading_dim
from ferrule.language.layouts.pictures import print_latex as print_latex
from ferrule.language.layouts.pictures import print_latex_tv as print_latex_tv
from ferrule.specs import DType


class LayoutEnum(Enum):
    """The order of a matrix."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    @staticmethod
    def from_tensor(tensor: Any) -> LayoutEnum:
        """The order of a tensor, by the mode with stride 1."""
        leading = leading_dim(tensor.shape, tensor.stride)
        if leading not in (0, 1):
            raise ValueError(f"neither of the first two modes has stride 1: {tensor.stride}")
        return LayoutEnum.COL_MAJOR if leading == 0 else LayoutEnum.ROW_MAJOR

    def sm90_mma_major_mode(self) -> Any:
        """The major mode of A or B in this order, (m, k) or (n, k), for products of warpgroups."""
        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN

    def is_k_major_a(self) -> bool:
        """Whether k is contiguous in A, (m, k)."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        """Whether m is contiguous in A, (m, k)."""
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        """Whether k is contiguous in B, (n, k)."""
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        """Whether n is contiguous in B, (n, k)."""
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        """Whether n is contiguous in C, (m, n)."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        """Whether m is contiguous in C, (m, n)."""
        return self is LayoutEnum.COL_MAJOR


class HardwareInfo:
    """A GPU of this machine, by its number; without one, the processor."""

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def get_device_multiprocessor_count(self) -> int:
        """The multiprocessors of the GPU, or the cores that this process may use."""
        from ferrule.compiler.workers import cores
        from ferrule.runtime.devices import attribute, cuda_devices

        if not cuda_devices():
            return cores()
        return attribute(self.device_id, _MULTIPROCESSORS)

    def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
        """How many clusters of so many blocks, one a multiprocessor, run at once."""
        if isinstance(cluster_size, bool) or not isinstance(cluster_size, int) or cluster_size < 1:
            raise ValueError(f"a cluster has at least 1 block, but got {cluster_size!r}")
        return max(1, self.get_device_multiprocessor_count() // cluster_size)

    def get_l2_cache_size_in_bytes(self) -> int:
        """The size of the cache that all multiprocessors share; 0 without a GPU."""
        from ferrule.runtime.devices import attribute, cuda_devices

        return attribute(self.device_id, _L2_BYTES) if cuda_devices() else 0


_MULTIPROCESSORS, _L2_BYTES = 16, 38
"""CUdevice_attribute (CUDA Driver API, `cuda.h`)."""


def is_fp8_dtype(dtype: DType) -> bool:
    """Whether this is a float of 8 bits."""
    return dtype.kind == "float" and dtype.bits == 8


def get_divisibility(contiguous_dim_size: int, upper_bound: int = 128) -> int:
    """The largest power of two that divides a size, at most `upper_bound`."""
    # `n & -n` is the lowest bit of n that is set.
    return min(contiguous_dim_size & -contiguous_dim_size, upper_bound)


__getattr__ = names.resolver("cutlass.utils")
