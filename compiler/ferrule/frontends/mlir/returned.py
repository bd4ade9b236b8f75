"""The results of a call of an MLIR function."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.frontends.mlir.kinds import DTYPES, Buffer, Kind, Number
from ferrule.frontends.mlir.signatures import derived
from ferrule.specs import DType, Tensor, as_dtype


def returns(results: Sequence[Kind]) -> DType | list[DType | Tensor] | None:
    """The results in the form that `conventions.Memref` takes: nothing, a number, or a list."""
    if not results:
        return None
    if len(results) == 1 and isinstance(results[0], Number):
        return as_dtype(DTYPES[results[0].kind])
    return [_result(position, each) for position, each in enumerate(results)]


def _result(position: int, kind: Kind) -> DType | Tensor:
    if isinstance(kind, Number):
        return as_dtype(DTYPES[kind.kind])
    assert isinstance(kind, Buffer)
    found = derived(f"result{position}", Buffer(kind.text, kind.element, kind.shape, None))
    assert isinstance(found, Tensor)
    return found
