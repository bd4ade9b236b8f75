"""`cutlass.utils` of CuTe DSL's programs: `fe.utils`, pictures, orders of matrices."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ferrule.cutlass import names
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
        from ferrule.language.faces.tuples import leading_dim

        leading = leading_dim(tensor.shape, tensor.stride)
        if leading not in (0, 1):
            raise ValueError(f"neither of the first two modes has stride 1: {tensor.stride}")
        return LayoutEnum.COL_MAJOR if leading == 0 else LayoutEnum.ROW_MAJOR


def is_fp8_dtype(dtype: DType) -> bool:
    """Whether this is a float of 8 bits."""
    return dtype.kind == "float" and dtype.bits == 8


__getattr__ = names.resolver("cutlass.utils")
