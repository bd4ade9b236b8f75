"""A tensor map as an argument: the `CUtensorMap` of a tensor, encoded on the call.

    TensorMap(sig["x"], box=(128, 64), swizzle="128B")

A kernel takes it as `const __grid_constant__ CUtensorMap`: 128 bytes, aligned to 64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ferrule.compiler.conventions.arguments import listed, shown
from ferrule.compiler.cuda.launcher.tensor_maps import ALIGN, BYTES, encoding_faults
from ferrule.compiler.cuda.tilings import (
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_SIZE,
    STRIDE_LIMIT,
    DataType,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    Tiling,
    data_type,
    innermost_first,
    named,
)
from ferrule.specs import Dim, DType, Tensor, as_dtype
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, make

if TYPE_CHECKING:
    from llvmlite import ir

    from ferrule.compiler.conventions.base import Call


@dataclass(frozen=True, slots=True, init=False)
class TensorMap:
    """The map of a tensor, for bulk tensor copies of `box` elements.

    `box`, `element_strides`, `shape` and `strides` (in elements) are in the order of the tensor's
    dims; the defaults of the latter two are the tensor's own; others describe a view of its memory.
    In the map the dims are in the driver's order: first the dim whose stride is 1 (the last such
    dim), then the others from the last to the first.  So the dims of a row-major tensor are
    reversed, and the kernel's coordinates with them.

    `interleave`: "none", "16B" or "32B".  `swizzle`: "none", "32B", "64B" or "128B", or on
    architectures since sm_100 "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B" or "128B_ATOM_64B".
    `l2_promotion`: "none", "64B", "128B" or "256B".  `oob_fill`, the values outside of the tensor:
    "zero" or "nan".  `dtype`: another name for elements of the same size, TFloat32 of float32.

    Raises TypeError for invalid tensors and sizes, ValueError for violations of the rules of
    `cuTensorMapEncodeTiled` and for a tensor without a dim that is known to have stride 1.
    Violations that depend on the arguments are a ValueError of the call, and errors of the driver a
    CudaError.  The map of a tensor without elements is all zeros; no copy may use it.
    """

    tensor: Tensor
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    order: tuple[int, ...]
    tiling: Tiling
    size: ClassVar[int] = BYTES
    align: ClassVar[int] = ALIGN

    def __init__(
        self,
        tensor: Tensor,
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        *,
        shape: Sequence[Dim] | None = None,
        strides: Sequence[Dim] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        oob_fill: str = "zero",
        dtype: DType | str | None = None,
    ) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"TensorMap: expected a tensor of the signature, such as sig['x'], but got "
                f"{shown(tensor)}"
            )
        put, name = object.__setattr__, tensor.name
        if (shape is None) != (strides is None):
            raise ValueError(f"TensorMap of {name}: shape and strides go together")
        sizes = _dims(name, "shape", tensor.shape if shape is None else shape)
        steps = _dims(name, "strides", tensor.strides if strides is None else strides)
        rank = len(sizes)
        if not rank:
            raise ValueError(f"TensorMap of {name}: a tensor without dims has no map")
        _require_rank(name, "strides", rank, len(steps))
        box = _numbers(name, "box", box, rank, MAX_BOX)
        if element_strides:
            limit = MAX_ELEMENT_STRIDE
            element_strides = _numbers(name, "element_strides", element_strides, rank, limit)
        try:
            order = innermost_first(steps)
            tiling = Tiling(
                _data_type(tensor, dtype),
                tuple(box[dim] for dim in order),
                tuple(element_strides[dim] for dim in order) if element_strides else (),
                named(Interleave, "interleave", interleave),
                named(Swizzle, "swizzle", swizzle),
                named(L2Promotion, "l2_promotion", l2_promotion),
                named(OobFill, "oob_fill", oob_fill),
            )
        except ValueError as error:
            raise ValueError(f"TensorMap of {name}: {error}") from None
        put(self, "tensor", tensor)
        put(self, "shape", sizes)
        put(self, "strides", steps)
        put(self, "order", order)
        put(self, "tiling", tiling)
        self._check_constants()

    @property
    def byte_strides(self) -> tuple[Dim, ...]:
        """The strides in bytes of all dims but the innermost, in the driver's order."""
        itemsize = self.tiling.dtype.itemsize
        return tuple(make("mul", self.strides[dim], itemsize) for dim in self.order[1:])

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """See `InMemory`.  Raises ValueError outside of a kernel launch."""
        launcher = call.innermost_launcher()
        if launcher is None:
            raise ValueError(f"{what}: only the launch of a kernel can be given a TensorMap")
        name = self.tensor.name
        sizes = [call.size(self.shape[dim], f"shape[{dim}] of {name}") for dim in self.order]
        outer = zip(self.order[1:], self.byte_strides, strict=True)
        strides = [call.size(stride, f"strides[{dim}] of {name}") for dim, stride in outer]
        address = call.address(self.tensor.data)
        given = (self.tiling, place, address, sizes, strides, call.values)
        encoded = launcher.encode_tensor_map(*given)
        where = f"in the call of {call.signature.name}"
        call.require(encoded, encoding_faults(self.tiling, name, where, None))

    def _check_constants(self) -> None:
        """Raise errors for violations by constants when the function is built."""
        name, unit = self.tensor.name, self.tiling.alignment
        for stride in self.byte_strides:
            if isinstance(stride, int) and (stride % unit or not 0 <= stride < STRIDE_LIMIT):
                raise ValueError(
                    f"TensorMap of {name}: a stride is {stride} bytes, but wanted multiples of "
                    f"{unit} less than 2**40"
                )
        for size in self.shape:
            if isinstance(size, int) and size > MAX_SIZE:
                raise ValueError(f"TensorMap of {name}: {size} elements along a dim, at most 2**32")


def _dims(name: str, what: str, dims: Sequence[Dim]) -> tuple[Dim, ...]:
    for dim in listed(dims, f"TensorMap of {name}: {what}"):
        if not is_dim(dim):
            raise TypeError(f"TensorMap of {name}: {what} must be sizes, but got {shown(dim)}")
    return tuple(dims)


def _require_rank(name: str, what: str, rank: int, count: int) -> None:
    if count != rank:
        raise ValueError(
            f"TensorMap of {name}: wanted {rank} of {what}, one for each dim, but got {count}"
        )


def _numbers(name: str, what: str, given: Sequence[int], rank: int, most: int) -> tuple[int, ...]:
    """A constant for each dim, from 1 to a limit."""
    numbers = listed(given, f"TensorMap of {name}: {what}")
    _require_rank(name, what, rank, len(numbers))
    for dim, number in enumerate(numbers):
        where = f"TensorMap of {name}: {what}[{dim}]"
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{where} must be a constant, an int, but got {shown(number)}")
        if not 1 <= number <= most:
            raise ValueError(f"{where} must be in [1, {most}], but got {number}")
    return numbers


def _data_type(tensor: Tensor, dtype: DType | str | None) -> DataType:
    wanted = tensor.dtype if dtype is None else as_dtype(dtype)
    if wanted.bits != tensor.dtype.bits:
        raise ValueError(
            f"{wanted.name} is no name for elements of {tensor.dtype.name}: sizes differ"
        )
    return data_type(wanted)
