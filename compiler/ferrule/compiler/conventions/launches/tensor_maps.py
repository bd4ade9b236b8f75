"""A tensor map as an argument: the `CUtensorMap` of a tensor, encoded on the call.

    TensorMap(sig["x"], box=(128, 64), swizzle="128B")

A kernel takes it as `const __grid_constant__ CUtensorMap`: 128 bytes, aligned to 64.
`Im2colMap` is one for im2col.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ferrule.compiler.conventions.arguments import listed, shown
from ferrule.compiler.cuda.launcher.tensor_maps import ALIGN, BYTES, encoding_faults
from ferrule.compiler.cuda.tilings import (
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_PIXELS,
    MAX_SIZE,
    STRIDE_LIMIT,
    Columns,
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
    `padded_fp4`: each byte of the tensor has two elements of 4 bits, which `box` and a given
    `shape` count, and 16 of them lie in 16 bytes of shared memory, a gap of 8 bytes behind 8; for
    architectures since sm_100, in boxes of 128 along the innermost dim.

    Raises TypeError for invalid tensors and sizes, ValueError for violations of the rules of
    `cuTensorMapEncodeTiled` and for a tensor without a dim that is known to have stride 1.
    Violations that depend on the arguments are a ValueError of the call, and errors of the driver a
    CudaError.  The map of a tensor without elements is all zeros; no copy may use it.
    """

    tensor: Tensor
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    order: tuple[int, ...]
    tiling: Tiling | Columns
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
        padded_fp4: bool = False,
    ) -> None:
        name = _checked_tensor(tensor)
        sizes, steps = _view(tensor, shape, strides)
        rank = len(sizes)
        box = _numbers(name, "box", box, rank, MAX_BOX)
        if element_strides:
            limit = MAX_ELEMENT_STRIDE
            element_strides = _numbers(name, "element_strides", element_strides, rank, limit)
        try:
            order = innermost_first(steps)
            if padded_fp4 and shape is None:
                sizes = _doubled(sizes, order[0])
            tiling = Tiling(
                _padded(tensor, dtype) if padded_fp4 else _data_type(tensor, dtype),
                tuple(box[dim] for dim in order),
                tuple(element_strides[dim] for dim in order) if element_strides else (),
                named(Interleave, "interleave", interleave),
                named(Swizzle, "swizzle", swizzle),
                named(L2Promotion, "l2_promotion", l2_promotion),
                named(OobFill, "oob_fill", oob_fill),
            )
        except ValueError as error:
            raise ValueError(f"TensorMap of {name}: {error}") from None
        self._keep(tensor, sizes, steps, order, tiling)

    def _keep(
        self,
        tensor: Tensor,
        shape: tuple[Dim, ...],
        strides: tuple[Dim, ...],
        order: tuple[int, ...],
        tiling: Tiling | Columns,
    ) -> None:
        put = object.__setattr__
        put(self, "tensor", tensor)
        put(self, "shape", shape)
        put(self, "strides", strides)
        put(self, "order", order)
        put(self, "tiling", tiling)
        self._check_constants()

    @property
    def byte_strides(self) -> tuple[Dim, ...]:
        """The strides in bytes of all dims but the innermost, in the driver's order."""
        itemsize = self.tensor.dtype.itemsize
        return tuple(make("mul", self.strides[dim], itemsize) for dim in self.order[1:])

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """See `InMemory`.  Raises ValueError outside of a kernel launch."""
        launcher = call.innermost_launcher()
        if launcher is None:
            raise ValueError(f"{what}: only the launch of a kernel can be given a TensorMap")
        name = self.tensor.name
        with call.describing(hands_on=False):
            sizes = [call.size(self.shape[dim], f"shape[{dim}] of {name}") for dim in self.order]
            outer = zip(self.order[1:], self.byte_strides, strict=True)
            strides = [call.size(stride, f"strides[{dim}] of {name}") for dim, stride in outer]
        address = call.address(self.tensor.data)
        call.steps.add(f"encode the tensor map of {name}")
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
        row, first = self.tiling.dtype.row, self.shape[self.order[0]]
        if isinstance(first, int) and first % row:
            raise ValueError(
                f"TensorMap of {name}: rows of {first} elements, but wanted a multiple of {row}"
            )


@dataclass(frozen=True, slots=True, init=False)
class Im2colMap(TensorMap):
    """The map of a tensor of images, for bulk tensor copies in the mode im2col.

    The dims of the tensor are (images, width, channels), (images, height, width, channels) or
    (images, depth, height, width, channels), and channels have stride 1.  `lower` and `upper` are
    the corners of the bounding box of pixels in this order, without images and channels: offsets
    from the first and from the last pixel of an image.  One copy has `channels` of each of
    `pixels`: those of the bounding box one after the other, width fastest, in steps of
    `element_strides`, which has a number for each dim.  In the map the dims are reversed, and so
    are the kernel's coordinates and offsets.

    For a convolution of size r with the margin p and the dilation d the corners are `-p` and
    `p - (r - 1) * d`, and the offsets of a copy `i * d`.

    The other arguments, and the errors, are those of `TensorMap`; the rules those of
    `cuTensorMapEncodeIm2col`.
    """

    def __init__(
        self,
        tensor: Tensor,
        channels: int,
        pixels: int,
        lower: Sequence[int],
        upper: Sequence[int],
        element_strides: Sequence[int] | None = None,
        *,
        shape: Sequence[Dim] | None = None,
        strides: Sequence[Dim] | None = None,
        swizzle: str = "none",
        l2_promotion: str = "none",
        oob_fill: str = "zero",
        dtype: DType | str | None = None,
        padded_fp4: bool = False,
    ) -> None:
        try:
            name = _checked_tensor(tensor)
            sizes, steps = _view(tensor, shape, strides)
            order = innermost_first(steps)
            if order[0] != len(sizes) - 1:
                raise ValueError("wanted channels as the last dim, with stride 1")
            if padded_fp4 and shape is None:
                sizes = _doubled(sizes, order[0])
            low, high = _offsets(name, "lower", lower), _offsets(name, "upper", upper)
            _require_rank(name, "dims", len(low) + 2, len(sizes))
            (across,) = _numbers(name, "channels", [channels], 1, MAX_BOX)
            (along,) = _numbers(name, "pixels", [pixels], 1, MAX_PIXELS)
            wanted = element_strides or (1,) * len(sizes)
            each = _numbers(name, "element_strides", wanted, len(sizes), MAX_ELEMENT_STRIDE)
            columns = Columns(
                _padded(tensor, dtype) if padded_fp4 else _data_type(tensor, dtype),
                across,
                along,
                low,
                high,
                tuple(each[dim] for dim in order),
                named(Swizzle, "swizzle", swizzle),
                named(L2Promotion, "l2_promotion", l2_promotion),
                named(OobFill, "oob_fill", oob_fill),
            )
            self._keep(tensor, sizes, steps, order, columns)
        except (TypeError, ValueError) as error:
            text = str(error)
            own = text.startswith("TensorMap")
            text = text.removeprefix("TensorMap") if own else f" of {tensor.name}: {text}"
            raise type(error)(f"Im2colMap{text}") from None


def _checked_tensor(tensor: object) -> str:
    """The name of a tensor; TypeError for something else."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"TensorMap: expected a tensor of the signature, such as sig['x'], but got "
            f"{shown(tensor)}"
        )
    return tensor.name


def _view(
    tensor: Tensor, shape: Sequence[Dim] | None, strides: Sequence[Dim] | None
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """The sizes and strides that a map describes."""
    name = tensor.name
    if (shape is None) != (strides is None):
        raise ValueError(f"TensorMap of {name}: shape and strides go together")
    sizes = _dims(name, "shape", tensor.shape if shape is None else shape)
    steps = _dims(name, "strides", tensor.strides if strides is None else strides)
    if not sizes:
        raise ValueError(f"TensorMap of {name}: a tensor without dims has no map")
    _require_rank(name, "strides", len(sizes), len(steps))
    return sizes, steps


def _doubled(sizes: tuple[Dim, ...], which: int) -> tuple[Dim, ...]:
    """Each byte along this dim has two elements."""
    return tuple(make("mul", n, 2) if dim == which else n for dim, n in enumerate(sizes))


def _padded(tensor: Tensor, dtype: DType | str | None) -> DataType:
    if tensor.dtype.bits != 8 or dtype is not None:
        raise ValueError(
            f"padded_fp4 is for tensors of bytes with two elements each, and has no dtype beside "
            f"it, but this one is of {tensor.dtype.name}"
        )
    return DataType.FLOAT4_PADDED


def _offsets(name: str, what: str, given: Sequence[int]) -> tuple[int, ...]:
    """Those of a corner, the innermost first."""
    offsets = listed(given, f"TensorMap of {name}: {what}")
    for offset in offsets:
        if type(offset) is not int:
            raise TypeError(
                f"TensorMap of {name}: {what} has offsets of pixels, but got {shown(offset)}"
            )
    return tuple(reversed(offsets))


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
