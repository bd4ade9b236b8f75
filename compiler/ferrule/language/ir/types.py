"""Types of values in the kernel IR: a dtype for a scalar, `TensorType`, `HandleType`.

The dims and strides of a tensor type are sizes of `ferrule.specs`: ints and expressions over the
program's symbols, so that two tensors that share a symbol are known to agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.specs import Dim, DType


@dataclass(frozen=True, slots=True)
class TensorType:
    """A view of memory: element (i, j, …) stands at data + sum(index * stride) elements.

    `align`: bytes that the address of the first element is a multiple of.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    align: int


@dataclass(frozen=True, slots=True)
class HandleType:
    """An address that the IR only hands on: a pointer, a stream, an object, a string's bytes.

    `what` says in text what stands there.
    """

    what: str


Type = DType | TensorType | HandleType
