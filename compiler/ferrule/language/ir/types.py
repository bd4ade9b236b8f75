"""Types of values in the kernel IR: a dtype for a scalar, `TensorType`, `HandleType`.

The dims and strides of a tensor type are sizes of `ferrule.specs`: ints and expressions over the
program's symbols, so that two tensors that share a symbol are known to agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.specs import AddressSpace, Dim, DType


@dataclass(frozen=True, slots=True)
class TensorType:
    """A view of memory: element (i, j, …) stands at data + sum(index * stride) elements.

    `align`: bytes that the address of the first element is a multiple of.  `space`: `gmem`, or
    `rmem` for a thread's own registers and stack.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    align: int
    space: AddressSpace = AddressSpace.gmem

    @property
    def is_own(self) -> bool:
        """Whether only the running thread can reach it."""
        return self.space is AddressSpace.rmem


@dataclass(frozen=True, slots=True)
class HandleType:
    """An address that the IR only hands on: a pointer, a stream, an object, a string's bytes.

    `what` says in text what stands there.
    """

    what: str


Type = DType | TensorType | HandleType
