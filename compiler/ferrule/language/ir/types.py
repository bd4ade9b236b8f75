"""Types of values in the kernel IR: a dtype for a scalar, `TensorType`, `HandleType`.

The dims and strides of a tensor type are sizes of `ferrule.specs`: ints and expressions over the
program's symbols, so that two tensors that share a symbol are known to agree.
"""

from __future__ import annotations

from ferrule.specs import AddressSpace, Dim, DType, Int32, Int64, Param, params
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class TensorType:
    """A view of memory: element (i, j, …) is at data + sum(index * stride) elements.

    `align`: the alignment of the first element's address, in bytes.  `space`: `gmem`, `smem` for
    memory that the threads of a block share, or `rmem` for a thread's own registers and stack.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    align: int
    space: AddressSpace = AddressSpace.gmem

    @property
    def is_own(self) -> bool:
        """Whether only the running thread can access it."""
        return self.space is AddressSpace.rmem

    @property
    def is_shared(self) -> bool:
        """Whether the block shares it."""
        return self.space is AddressSpace.smem


@dataclass(frozen=True, slots=True)
class HandleType:
    """An address that the IR only passes on: a pointer, a stream, an object, a string's bytes.

    `what` describes it in text.
    """

    what: str


Type = DType | TensorType | HandleType


def result_types(result: Param) -> tuple[Type, ...]:
    """The types of the parts of a program's result, in a `Return`."""
    match result:
        case params.Scalar(dtype=dtype):
            return (dtype,)
        case params.Tuple(items=items):
            return tuple(type_ for item in items for type_ in result_types(item))
        case params.Shape(dims=dims):
            return (Int64,) * len(dims)
        case params.WithTraits(traits=traits):
            return tuple(Int32 if leaf == "i32" else Int64 for leaf in traits.leaves)
        case _:
            return (Int64,)


def object_slots(result: Param | None, first: int = 0) -> list[int]:
    """The slots of a result with handles."""
    match result:
        case None | params.Scalar() | params.Shape():
            return []
        case params.Tuple(items=items):
            found = []
            for item in items:
                found += object_slots(item, first)
                first += len(result_types(item))
            return found
        case params.WithTraits(traits=traits) if traits.payload is not params.Payload.OBJECT:
            return []
    return [first]
