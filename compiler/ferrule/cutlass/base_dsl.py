"""`cutlass.base_dsl` of CuTe DSL's programs: the results of functions of `cuda.bindings`."""

from __future__ import annotations

from typing import Any

from ferrule.cutlass import names
from ferrule.runtime.errors import CudaError


def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """What a function of `cuda.bindings` returns behind its error: nothing, a value, or several.

    Raises CudaError for an error.

    >>> checkCudaErrors((0, 5)), checkCudaErrors((0,)), checkCudaErrors((0, 1, 2))
    (5, None, (1, 2))
    """
    error, *values = result
    if int(error):
        text = getattr(error, "name", None) or str(error)
        raise CudaError(f"a call of cuda.bindings failed with {text} ({int(error)})")
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


__getattr__ = names.resolver("cutlass.base_dsl.runtime.cuda")
