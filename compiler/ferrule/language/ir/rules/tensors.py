"""The verifier's rules for tensors and elements; their text is in the docstring of `verifier`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.scalars import INTEGERS
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.specs import Int64
from ferrule.specs.params import row_major_strides

TensorOp = ops.Load | ops.View | ops.Pointer | ops.Fragment | ops.Table | ops.Alloc | ops.Shrink


def simple(checker: Checker, op: TensorOp) -> None:
    """Checks an op with one result."""
    match op:
        case ops.Load(result, tensor, indices):
            element(checker, tensor, indices, result)
        case ops.View():
            _view(checker, op)
        case ops.Pointer(result, address):
            checker.types([address], [Int64], "addresses")
            holds = isinstance(result.type, TensorType) and not result.type.is_own
            checker.require(holds, "a pointer is to global or shared memory")
        case ops.Fragment(result):
            _fragment(checker, result)
        case ops.Table(result, data):
            _table(checker, result, data)
        case ops.Alloc():
            _alloc(checker, op)
        case ops.Shrink():
            _shrink(checker, op)


def element(
    checker: Checker, tensor: ops.Value, indices: Sequence[ops.Value], element: ops.Value
) -> None:
    """Checks an element that an op reads or writes."""
    _place(checker, tensor, indices)
    checker.types([element], [tensor.tensor.dtype], "elements")


def _place(checker: Checker, tensor: ops.Value, indices: Sequence[ops.Value]) -> None:
    checker.require(isinstance(tensor.type, TensorType), "only a tensor has elements")
    rank = len(tensor.tensor.shape)
    checker.require(len(indices) == rank, "there must be one index for each dim")
    for index in indices:
        checker.scalar(index, INTEGERS, "an index")


def _view(checker: Checker, op: ops.View) -> None:
    checker.require(isinstance(op.result.type, TensorType), "a view is a tensor")
    if op.indices:
        _place(checker, op.tensor, op.indices)
        same = op.result.tensor.dtype is op.tensor.tensor.dtype
        checker.require(same, "a view that begins elsewhere keeps the dtype")
    else:
        known = isinstance(op.tensor.type, (TensorType, HandleType))
        checker.require(known, "a view is of a tensor or a pointer")
    source, result = op.tensor.type, op.result.tensor
    own, shared = False, False
    if isinstance(source, TensorType):
        own, shared = source.is_own, source.is_shared
    same = (result.is_own, result.is_shared) == (own, shared)
    checker.require(same, "a view is where its tensor is")


def _fragment(checker: Checker, result: ops.Value) -> None:
    type_ = result.type
    checker.require(isinstance(type_, TensorType) and type_.is_own, "a fragment is in registers")
    dims = (*result.tensor.shape, *result.tensor.strides)
    constant = all(isinstance(dim, int) and dim >= 0 for dim in dims)
    checker.require(constant, "a fragment has constant sizes and strides, none negative")


def _table(checker: Checker, result: ops.Value, data: bytes) -> None:
    type_ = result.type
    known = isinstance(type_, TensorType) and not (type_.is_own or type_.is_shared)
    checker.require(known and all(isinstance(dim, int) for dim in result.tensor.shape), _OF_TABLES)
    shape = result.tensor.shape
    row_major = row_major_strides(shape)
    size = result.tensor.dtype.itemsize
    for dim in shape:
        assert isinstance(dim, int)
        size *= dim
    checker.require(result.tensor.strides == row_major and size == len(data), _OF_TABLES)


_OF_TABLES: Final = "a Table has the bytes of a compact row-major tensor of constant sizes"


def _alloc(checker: Checker, op: ops.Alloc) -> None:
    checker.require(isinstance(op.result.type, TensorType), "an Alloc is a tensor")
    type_ = op.result.tensor
    row_major = row_major_strides(type_.shape)
    checker.require(type_.strides == row_major, "an Alloc is compact and row-major")
    checker.types(op.sizes, [Int64] * len(type_.shape), "the sizes of an Alloc")


def _shrink(checker: Checker, op: ops.Shrink) -> None:
    both = isinstance(op.result.type, TensorType) and isinstance(op.tensor.type, TensorType)
    checker.require(both and bool(op.tensor.tensor.shape), "a Shrink is of a tensor with rows")
    wanted = replace(
        op.tensor.tensor, shape=(op.result.tensor.shape[0], *op.tensor.tensor.shape[1:])
    )
    checker.require(op.result.tensor == wanted, "a Shrink changes the first size alone")
    checker.types([op.size], [Int64], "the size of a Shrink")
