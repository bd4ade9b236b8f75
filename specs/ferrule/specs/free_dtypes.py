"""Dtypes that are free: a parameter can have any of a list, and a call says which.

A function that is compiled for examples with free dtypes is compiled once for each combination, and
a call chooses by the dtypes of its tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.specs.dtypes import DType, as_dtype
from ferrule.specs.expr import is_name


@dataclass(frozen=True, slots=True)
class DTypeSym:
    """A dtype that is known only at the call: one of `dtypes`.  Made by `sym_dtype`.

    Two symbols are the same if their keys are: the name of a named one, a fresh object otherwise.
    """

    key: object
    dtypes: tuple[DType, ...]
    name: str | None = field(default=None, compare=False)


def sym_dtype(*dtypes: DType | str, symbol: str | None = None) -> DTypeSym:
    """A free dtype: any of these, the same one wherever the symbol stands.

    `symbol`: what messages call it.  Raises ValueError without dtypes, for one that comes twice and
    for a symbol that is no identifier, TypeError for what is no dtype.
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
