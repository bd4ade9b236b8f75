"""`fe.arch.rcp_approx`: a function of numbers with a GPU instruction."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces import arch as faces
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import require_kernel
from ferrule.language.values import Number


def _rcp(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
    """`fe.arch.rcp_approx(a)`."""
    (given,) = bound(low, "a", args, kwargs, node)
    require_kernel(low, "rcp_approx", node)
    if not isinstance(given, Number) or given.dtype.kind != "float":
        low.fail(
            node,
            f"rcp_approx of {describe(given)}",
            expected="a run-time float",
        )
    one = low.builder.constant(given.dtype, 1.0)
    return Number(low.builder.binary("div", one, given.value, fast=True))


TABLE: Final[dict[Any, Intrinsic]] = {faces.rcp_approx: _rcp}
"""The emitters of these functions."""
