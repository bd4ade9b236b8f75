"""Arrays of records, NumPy's structured arrays, as arrays of bytes with one more dim.

A call has no dtype for records, so callers give their bytes, `r.view("u1").reshape(*r.shape, -1)`,
which are the same memory; Numba's code sees the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import Seen
from ferrule.frontends.packages import load
from ferrule.specs import Dim, Param, Tensor, Uint8

if TYPE_CHECKING:
    from ferrule.compiler.conventions.arguments import Argument

Records = Mapping[str, Any]
"""The dtypes of records by the name of the parameter."""


def is_of_records(example: object) -> bool:
    """Whether this is an array of records of NumPy."""
    return isinstance(example, np.ndarray) and example.dtype.names is not None


def records_of(names: Sequence[str], examples: Sequence[Any]) -> Records:
    """The records among the examples of parameters.  Raises CompileError for arrays with gaps, and
    for objects of Python as fields."""
    found = {}
    for name, example in zip(names, examples, strict=False):
        if not is_of_records(example):
            continue
        if not example.flags.c_contiguous or example.dtype.hasobject or not example.ndim:
            raise CompileError(
                Diagnostic(
                    f"the example of the parameter {name!r} is an array of records "
                    f"{example.dtype} that has gaps, no dims, or objects of Python",
                    expected="a row-major array of numbers in records, without gaps between them",
                )
            )
        found[name] = example.dtype
    return found


def as_numbers(example: Any) -> Seen:
    """What stands for the array where sizes are compared: its shape is that of the records."""
    strides = [1]
    for size in example.shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Seen(tuple(example.shape), tuple(strides), Uint8, aligned=False)


def bytes_of(name: str, dims: Sequence[Dim], dtype: Any, *, read_only: bool) -> Tensor:
    """The parameter for records with these sizes."""
    align = dtype.alignment if dtype.isalignedstruct else 1
    shape = (*dims, dtype.itemsize)
    return Tensor(name, shape, Uint8, align=align, read_only=read_only, exact=True)


def numba_types(types: Any, params: Sequence[Param], records: Records) -> tuple[Any, ...]:
    """The types for which Numba compiles parameters; `types` is its module of types."""
    from ferrule.frontends.numba.types import numba_type  # it needs LLVM

    return tuple(
        _records_type(types, param, records[param.name])
        if isinstance(param, Tensor) and param.name in records
        else numba_type(types, param)
        for param in params
    )


def _records_type(types: Any, spec: Tensor, dtype: Any) -> Any:
    """The type for which Numba compiles a parameter of records."""
    record = load("numba", "numba").from_dtype(dtype)
    return types.Array(record, len(spec.shape) - 1, "C", readonly=spec.read_only)


def numba_arguments(params: Sequence[Param], records: Records) -> list[Argument]:
    """The arguments of Numba's code for these parameters."""
    from ferrule.frontends.numba.types import flattened

    return [
        argument
        for param in params
        for argument in (
            _flattened_records(param)
            if isinstance(param, Tensor) and param.name in records
            else flattened(param)
        )
    ]


def _flattened_records(spec: Tensor) -> list[Argument]:
    from ferrule.compiler.conventions.arguments import NULL, cast

    *sizes, itemsize = spec.shape
    *steps, _ = spec.byte_strides
    count: Dim = 1
    for size in sizes:
        count = count * size
    words = [cast(count, "int64"), cast(itemsize, "int64")]
    dims = [cast(each, "int64") for each in (*sizes, *steps)]
    return [NULL, NULL, *words, spec.data, *dims]
