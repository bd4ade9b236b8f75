"""Free dtypes: a parameter accepts each dtype of a list, and the call determines which one.

For examples with free dtypes a function is compiled once for each combination of dtypes.  The
dtypes of the tensors in a call choose among these compiled versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import DType, as_dtype
from ferrule.specs.expr import is_name


@dataclass(frozen=True, slots=True)
class DTypeSym:
    """A dtype that is known only at the call: one of `dtypes`.  Made by `sym_dtype`.

    Two symbols are equal if their keys are equal.  The key of a named symbol is its name; the key
    of an unnamed symbol is a fresh object.
    """

    key: object
    dtypes: tuple[DType, ...]
    name: str | None = field(default=None, compare=False)


def sym_dtype(*dtypes: DType | str, symbol: str | None = None) -> DTypeSym:
    """A free dtype: one of these, the same one at each occurrence of the symbol.

    `symbol`: its name in messages.  Raises ValueError for an empty list, a dtype that is listed
    twice and a symbol that is not an identifier; TypeError for a value that is not a dtype.
    """
    checked = tuple(as_dtype(dtype) for dtype in dtypes)
    if not checked:
        raise ValueError("sym_dtype: a free dtype needs dtypes to choose from, but got none")
    for dtype in checked:
        if checked.count(dtype) > 1:
            raise ValueError(f"sym_dtype: {dtype.name} stands in the list twice")
    if symbol is not None and not (isinstance(symbol, str) and is_name(symbol)):
        raise ValueError(f"sym_dtype: symbol must be an identifier, but got {symbol!r}")
    return DTypeSym(symbol if symbol is not None else object(), checked, symbol)


def as_dtype_sym(dtypes: DTypeSym | Sequence[DType | str]) -> DTypeSym:
    """The symbol itself, or a fresh one for a list of dtypes."""
    return dtypes if isinstance(dtypes, DTypeSym) else sym_dtype(*dtypes)
