"""What an atom does: the operations of copies and of matrix multiplications.

Each knows the layouts of its values: from (thread, value) to the number of an element of what it
copies, or of the matrix A (M x K), B (N x K) or C (M x N), counted with the first mode fastest.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Final

from ferrule.language.layouts import Layout, make_layout, recast_layout
from ferrule.language.layouts.errors import refuse
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

ROW_BITS: Final = 128
"""A row of a matrix that a warp loads from shared memory."""


@dataclass(frozen=True, slots=True)
class CopyValues:
    """The layouts of a copy: its threads, the values that each reads and writes, and those in whose
    order a tiled copy counts."""

    threads: Layout
    source: Layout
    target: Layout
    reference: Layout


class LoadCacheMode(Enum):
    """Where the lines that a load reads are kept."""

    ALWAYS = "always"
    GLOBAL = "global"
    STREAMING = "streaming"
    LAST_USE = "last_use"
    NONE = "none"


def _one_thread(op: object, dtype: DType, bits: int) -> CopyValues:
    """A copy of neighbours by one thread."""
    count, rest = divmod(bits or dtype.bits, dtype.bits)
    if rest or count < 1 or count & (count - 1):
        refuse(
            "make_copy_atom",
            f"{type(op).__name__} of {bits} bits of {dtype.name}",
            f"give num_bits_per_copy as {dtype.bits} times a power of two",
        )
    values = Layout((1, count), (0, 1 if count > 1 else 0))
    return CopyValues(Layout(1, 0), values, values, values)


@dataclass(frozen=True, slots=True)
class CopyUniversalOp:
    """A copy of neighbours by one thread: a load and a store, as wide as the atom."""

    collective: ClassVar[bool] = False

    def values(self, dtype: DType, bits: int) -> CopyValues:
        """The layouts of a copy of this many bits."""
        if bits > ROW_BITS:
            refuse("make_copy_atom", f"{bits} bits", f"one access has at most {ROW_BITS}")
        return _one_thread(self, dtype, bits)


@dataclass(frozen=True, slots=True)
class CopyG2SOp:
    """A copy in the background from global to shared memory: `cp.async`.  From sm_80 on.

    `cache_mode`: ALWAYS, or, of 16 bytes, GLOBAL, which leaves L1 out.
    """

    cache_mode: Any = LoadCacheMode.ALWAYS
    collective: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.cache_mode not in (LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL):
            refuse("CopyG2SOp", f"the cache mode is {self.cache_mode!r}", "give ALWAYS or GLOBAL")

    def values(self, dtype: DType, bits: int) -> CopyValues:
        """The layouts of a copy of this many bits."""
        sizes = (ROW_BITS,) if self.cache_mode is LoadCacheMode.GLOBAL else (32, 64, ROW_BITS)
        if bits and bits not in sizes:
            what = f"CopyG2SOp with the cache mode {self.cache_mode.name} of {bits} bits"
            refuse("make_copy_atom", what, f"give one of {', '.join(map(str, sizes))}")
        return _one_thread(self, dtype, bits or sizes[0])


@dataclass(frozen=True, slots=True)
class _Matrices:
    transpose: bool = False
    num_matrices: int = 1
    collective: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.num_matrices not in (1, 2, 4) or not isinstance(self.transpose, bool):
            refuse(
                type(self).__name__,
                f"transpose={self.transpose!r}, num_matrices={self.num_matrices!r}",
                "give True or False, and 1, 2 or 4",
            )

    def _layouts(self, dtype: DType, bits: int) -> tuple[Layout, Layout]:
        """Rows in memory, and the values of a lane."""
        known = (16,) if self.transpose else (8, 16, 32)
        if dtype.bits not in known or bits not in (0, ROW_BITS, 32 * self.num_matrices):
            turned = ", transposed" if self.transpose else ""
            refuse(
                "make_copy_atom",
                f"{type(self).__name__} of {bits or dtype.bits} bits of {dtype.name}{turned}",
                f"it is of elements of {' or '.join(map(str, known))} bits; leave "
                "num_bits_per_copy out",
            )
        count = self.num_matrices
        lanes = make_layout((8 * count, 32 // (8 * count)), stride=(ROW_BITS, 0))
        lanes = Layout(32, ROW_BITS) if count == 4 else lanes
        rows = make_layout((lanes.shape, ROW_BITS), stride=(lanes.stride, 1))
        matrix = 64 * 16
        if self.transpose:
            own = make_layout(((4, 8), (16, 2, count)), stride=((256, 16), (1, 128, matrix)))
        else:
            own = make_layout((32, (32, count)), stride=(32, (1, matrix)))
        return recast_layout(dtype.bits, 1, rows), recast_layout(dtype.bits, 1, _flat(own, count))


def _flat(layout: Layout, count: int) -> Layout:
    """The layout of one matrix, without a mode for the number of them."""
    if count > 1:
        return layout
    values, strides = layout.shape[1][:-1], layout.stride[1][:-1]  # type: ignore[index]
    values, strides = (values[0], strides[0]) if len(values) == 1 else (values, strides)
    return Layout((layout.shape[0], values), (layout.stride[0], strides))  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class LdMatrix8x8x16bOp(_Matrices):
    """A warp loads 1, 2 or 4 matrices of 8 x 8 elements of 16 bits: `ldmatrix`.  From sm_75 on.

    Not transposed, a row may also be 16 elements of 8 bits, or 4 of 32.
    """

    def values(self, dtype: DType, bits: int) -> CopyValues:
        """The layouts of a copy."""
        rows, own = self._layouts(dtype, bits)
        return CopyValues(Layout(32, 1), rows, own, own)


@dataclass(frozen=True, slots=True)
class StMatrix8x8x16bOp(_Matrices):
    """A warp stores 1, 2 or 4 matrices of 8 x 8 elements of 16 bits: `stmatrix`.  From sm_90 on.

    Not transposed, a row may also be 16 elements of 8 bits, or 4 of 32.
    """

    def values(self, dtype: DType, bits: int) -> CopyValues:
        """The layouts of a copy."""
        rows, own = self._layouts(dtype, bits)
        return CopyValues(Layout(32, 1), own, rows, own)
