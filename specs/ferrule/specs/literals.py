"""Default values and constants as text: Python literals, which `ast` can read back.

DSL scalars, members of an IntEnum, NumPy scalars, named tuples and dataclasses are written as the
number, text or tuple that they represent, and a dtype as its name.  A value without a literal is
written as `...`, which reads back as Ellipsis.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from typing import Any, Final

from ferrule.specs.dtypes import DType, Numeric

_SPECIAL_FLOATS: Final = {"nan": math.nan, "inf": math.inf}


def literal_text(value: Any) -> str:
    """A value as `read_literal` reads it."""
    match value:
        case Numeric():
            return literal_text(value.value)
        case DType():
            return repr(value.name)
        case None | bool():
            return repr(value)
        case int():
            return int.__repr__(value)
        case float():
            return _float_text(value)
        case str():
            return str.__repr__(value)
        case bytes():
            return bytes.__repr__(value)
        case tuple() | list():
            items = ", ".join(map(literal_text, value))
            return f"({items},)" if len(value) == 1 else f"({items})"
        case dict():
            pairs = (f"{literal_text(k)}: {literal_text(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
    return _other_text(value)


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _other_text(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return literal_text(tuple(getattr(value, each.name) for each in dataclasses.fields(value)))
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        item = value.item()
        if isinstance(item, (bool, int, float)):
            return literal_text(item)
    return "..."


def read_literal(node: ast.expr) -> Any:
    """The value of a literal.  Raises ValueError for another expression."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=word) if word in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[word]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -read_literal(operand)
        case ast.Tuple(elts=elts):
            return tuple(read_literal(item) for item in elts)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            pairs = zip(keys, values, strict=True)
            return {read_literal(key): read_literal(value) for key, value in pairs if key}
    raise ValueError(f"{ast.unparse(node)!r} is no literal")
