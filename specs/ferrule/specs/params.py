"""The description of one parameter: pure data, a closed union of frozen dataclasses.

`Param` lists the kinds.  Whoever treats kinds differently does it with `match` and
`assert_never`, so that a new kind makes the type checker list every place that must know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, as_dtype
from ferrule.specs.expr import Dim, is_dim, make


class _Required(Enum):
    REQUIRED = "required"

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required.REQUIRED


@dataclass(frozen=True, slots=True, init=False)
class Tensor:
    """A tensor: a DLTensor at the call.

    `shape` and `strides` hold ints and expressions, strides in elements; without strides the
    tensor is compact and row-major.  `device` is a name of `devices.DEVICE_CODES`, or None for the
    device of the target.  `align` is in bytes, a power of two; the element size by default.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    strides: tuple[Dim, ...]
    device: str | None
    align: int

    def __init__(
        self,
        name: str,
        shape: Sequence[Dim],
        dtype: DType | str,
        *,
        strides: Sequence[Dim] | None = None,
        device: str | None = None,
        align: int | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "name", check_name(name))
        put(self, "shape", check_dims("shape", shape))
        put(self, "dtype", as_dtype(dtype))
        order = tuple(reversed(range(len(self.shape))))
        chosen = compact_strides(self.shape, order) if strides is None else strides
        put(self, "strides", check_dims("strides", chosen, signed=True))
        if len(self.strides) != len(self.shape):
            raise ValueError(
                f"strides must have as many entries as shape, {len(self.shape)}, "
                f"but got {len(self.strides)}"
            )
        put(self, "device", None if device is None else as_device_type(device))
        put(self, "align", check_alignment(self.dtype, align))

    @property
    def default(self) -> _Required:
        """A tensor has no default."""
        return REQUIRED


@dataclass(frozen=True, slots=True, init=False)
class Scalar:
    """A number: an int, float or bool at the call.

    `default` is the value where the call gives none, REQUIRED where there is none.
    """

    name: str
    dtype: DType
    default: bool | int | float | _Required

    def __init__(self, name: str, dtype: DType | str, default: Any = REQUIRED) -> None:
        put = object.__setattr__
        put(self, "name", check_name(name))
        put(self, "dtype", check_scalar_dtype(as_dtype(dtype)))
        put(self, "default", default if default is REQUIRED else self.dtype(default).value)


Param = Tensor | Scalar


def check_name(name: str) -> str:
    """A parameter's name: an identifier.  Raises ValueError otherwise."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise ValueError(f"a parameter's name must be an identifier, but got {name!r}")
    return name


def check_scalar_dtype(dtype: DType) -> DType:
    """A dtype that a scalar parameter can have.  Raises ValueError for storage types."""
    if dtype.kind == "complex" or dtype.bits < 8 or (dtype.kind == "float" and dtype.bits < 16):
        raise ValueError(f"a scalar parameter cannot be {dtype.name}: that is a storage type")
    return dtype


def check_dims(what: str, dims: Sequence[Dim], *, signed: bool = False) -> tuple[Dim, ...]:
    """Sizes or strides as a tuple.  Raises TypeError and ValueError for what is none."""
    if isinstance(dims, (str, bytes)) or not isinstance(dims, Sequence):
        raise TypeError(f"{what} must be a tuple of ints and symbolic ints, but got {dims!r}")
    for i, dim in enumerate(dims):
        if not is_dim(dim):
            raise TypeError(f"{what}[{i}] must be an int or a symbolic int, but got {dim!r}")
        if isinstance(dim, int) and dim < 0 and not signed:
            raise ValueError(f"{what}[{i}] must not be negative, but got {dim}")
        if isinstance(dim, int) and not -(1 << 63) <= dim < 1 << 63:
            raise ValueError(f"{what}[{i}] must fit 64 bits, but got {dim}")
    return tuple(dims)


def check_alignment(dtype: DType, align: int | None) -> int:
    """An alignment in bytes.  Raises ValueError for what is no power of two up to 4096."""
    if align is None:
        return dtype.itemsize
    if isinstance(align, bool) or not isinstance(align, int):
        raise TypeError(f"alignment must be an int of bytes, but got {align!r}")
    if not 1 <= align <= 4096 or align & (align - 1):
        raise ValueError(f"alignment must be a power of two from 1 to 4096, but got {align}")
    return align


def compact_strides(shape: Sequence[Dim], order: Sequence[int]) -> tuple[Dim, ...]:
    """Strides without gaps; `order[i]` is the rank of dim i, the lowest varies fastest.

    For shape (2, 3, 4): order (0, 1, 2) gives (1, 2, 6), column-major; (2, 1, 0) gives (12, 4, 1).
    Raises ValueError for an order that is no permutation of the dims.
    """
    if sorted(order) != list(range(len(shape))):
        raise ValueError(
            f"stride_order must be a permutation of {tuple(range(len(shape)))}, but got {order!r}"
        )
    strides: list[Dim] = [1] * len(shape)
    running: Dim = 1
    for axis in sorted(range(len(shape)), key=lambda axis: order[axis]):
        strides[axis] = running
        running = make("mul", running, shape[axis])
    return tuple(strides)
