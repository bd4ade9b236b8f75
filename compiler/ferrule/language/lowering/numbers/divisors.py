"""`fe.FastDivmodDivisor`, which a host function makes."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces.pipelines import divisors as faces
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Number
from ferrule.specs import Int32, Numeric


def _make(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`FastDivmodDivisor(divisor, is_power_of_2=None)`."""
    given, _ = bound(low, "divisor is_power_of_2=", args, kwargs, node)
    if low.kind != "host":
        low.fail(
            node,
            "FastDivmodDivisor is known only in a host function",
            hint="make it there, and hand it to the kernel",
        )
    known = coercion.plain(given)
    if isinstance(known, int) and not isinstance(known, bool):
        if not 1 <= known <= Int32.range[1]:
            low.fail(node, f"FastDivmodDivisor of {known}", expected="an Int32 from 1 on")
    elif not isinstance(given, (Number, Numeric)) or given.dtype is not Int32:
        low.fail(node, f"FastDivmodDivisor of {describe(given)}", expected="an Int32 from 1 on")
    return low.call(faces.made, [given], {}, node)


TABLE: Final[dict[Any, Intrinsic]] = {faces.FastDivmodDivisor: _make}
"""The emitters of these classes."""
