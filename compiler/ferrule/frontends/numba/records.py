"""Arrays of records: NumPy's structured arrays, which calls get as bytes.

DLPack, and so a call, has no dtype with fields: an array of records of 24 bytes is one of uint8
with a last dim of 24, `x.view(np.uint8).reshape(*x.shape, x.itemsize)`, and Numba's code sees the
records in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ferrule.compiler.conventions.arguments import NULL, Argument, cast
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import Seen
from ferrule.specs import Dim, Uint8, compact_strides
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Tensor


@dataclass(frozen=True, slots=True)
class Records:
    """An example of a compact array of records, with the shape without their bytes."""

    shape: tuple[Dim, ...]
    dtype: np.dtype[Any]

    def __ferrule_spec__(self, name: str) -> Tensor:
        return _of_bytes(Tensor(name, self.shape, "uint8"), self.dtype)


def records(shape: Dim | Sequence[Dim], dtype: Any) -> Records:
    """An example of an array of records with this structured dtype of NumPy.

    Raises TypeError for a dtype without fields.
    """
    found = np.dtype(dtype)
    if found.fields is None:
        raise TypeError(f"records: expected a dtype with fields, but got {found}")
    listed = shape if isinstance(shape, tuple | list) else (shape,)
    return Records(tuple(listed), found)


def is_records(example: object) -> bool:
    """Whether an example is an array of records."""
    kind = getattr(example, "dtype", None)
    return isinstance(example, Records | np.ndarray) and getattr(kind, "fields", None) is not None


def as_seen(name: str, example: Any) -> Any:
    """A real array of records as one of their first bytes; all other examples as they are."""
    if not (isinstance(example, np.ndarray) and is_records(example)):
        return example
    if not example.flags.c_contiguous:
        raise CompileError(
            Diagnostic(
                f"the example of the parameter {name!r} is a part of an array of records",
                expected="a whole one: numpy.ascontiguousarray(…)",
            )
        )
    order = tuple(reversed(range(example.ndim)))
    return Seen(example.shape, compact_strides(example.shape, order), Uint8, False)  # type: ignore[arg-type]


def of_records(spec: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """The spec of records from that of a tensor of as many bytes."""
    return _of_bytes(spec, dtype)


def _of_bytes(spec: Tensor, dtype: np.dtype[Any]) -> Tensor:
    shape, align = (*spec.shape, dtype.itemsize), max(1, dtype.alignment)
    return Tensor(spec.name, shape, "uint8", align=align, read_only=spec.read_only)


def numba_records(numba: Any, types: Any, spec: Tensor, dtype: np.dtype[Any]) -> Any:
    """The type for which Numba compiles.  Raises CompileError for fields that Numba has not."""
    try:
        record = numba.from_dtype(dtype)
    except Exception as error:
        raise CompileError(
            f"the parameter {spec.name!r} has records of {dtype}: Numba: {error}"
        ) from None
    return types.Array(
        record,
        len(spec.shape) - 1,
        "C",
        readonly=spec.read_only,
        aligned=bool(dtype.isalignedstruct),
    )


def flattened_records(spec: Tensor) -> list[Argument]:
    """The arguments of Numba's code: an array of the dims without the bytes."""
    shape, steps = spec.shape[:-1], spec.byte_strides[:-1]
    sizes = (prod(shape, start=1), spec.shape[-1])
    return [
        NULL,
        NULL,
        *(cast(size, "int64") for size in sizes),
        spec.data,
        *(cast(dim, "int64") for dim in (*shape, *steps)),
    ]


def told(dtypes: Mapping[str, np.dtype[Any]]) -> list[str]:
    """What callers must know of the bytes, in words."""
    return [f"{name} has the bytes of records {dtype}" for name, dtype in dtypes.items()]
