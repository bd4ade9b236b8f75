"""Fake tensors, those with a free dtype, and those that replace them for one chosen dtype."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, NoReturn

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import DType, Int8, Uint8
from ferrule.specs.expr import Dim
from ferrule.specs.free_dtypes import DTypeSym
from ferrule.specs.params import AddressSpace, Tensor


@dataclass(frozen=True, slots=True)
class FakeTensor:
    """A tensor without data, made by `make_fake_tensor` and `make_fake_compact_tensor`.

    `device` is a name of a device type, or None for the target's device.  `packed`: two elements
    share a byte, and `shape` counts elements.  To read or write elements is a TypeError.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    assumed_align: int
    device: str | None = None
    packed: bool = False
    read_only: bool = False

    @property
    def element_type(self) -> DType:
        """The dtype, under CuTe's name."""
        return self.dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def memspace(self) -> AddressSpace:
        """Where the elements are: generic for a tensor of the CPU, else global memory."""
        return AddressSpace.generic if self.device == "cpu" else AddressSpace.gmem

    @property
    def leading_dim(self) -> int | None:
        """The dim with stride 1 and a size other than 1; None if there is none."""
        pairs = enumerate(zip(self.shape, self.stride, strict=True))
        return next((i for i, (size, step) in pairs if step == 1 and size != 1), None)

    def __ferrule_spec__(self, name: str) -> Tensor:
        return Tensor(
            name,
            self.shape,
            self.dtype,
            strides=self.stride,
            device=self.device,
            align=self.assumed_align,
            read_only=self.read_only,
            packed=self.packed,
        )

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(
            f"a fake tensor has no data: it cannot be {what}. It stands for a tensor while "
            f"compiling; give the compiled function a real one"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        self._refuse("indexed")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        self._refuse("written")

    def __iter__(self) -> NoReturn:
        self._refuse("iterated")

    def __len__(self) -> NoReturn:
        self._refuse("measured with len(); its sizes are in .shape")

    def __bool__(self) -> NoReturn:
        self._refuse("used as a truth value")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("made into an array")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("exchanged through DLPack")

    def __dlpack_device__(self) -> NoReturn:
        self._refuse("exchanged through DLPack")

    def data_ptr(self) -> NoReturn:
        """A TypeError: there is no data to point to."""
        self._refuse("asked for its data pointer")


@dataclass(frozen=True, slots=True)
class FreeFakeTensor(FakeTensor):
    """A fake tensor whose dtype is free; `dtype` is the first one of the list.

    `given_align` is the alignment that the user gave; None means the element size.
    """

    symbol: DTypeSym = field(kw_only=True)
    given_align: int | None = field(kw_only=True, default=None)

    @classmethod
    def of(cls, fake: FakeTensor, symbol: DTypeSym, align: int | None) -> FreeFakeTensor:
        """Make a fake tensor's dtype free; `align` is the alignment that the user gave, or None."""
        same = {each.name: getattr(fake, each.name) for each in fields(FakeTensor)}
        return cls(**same, symbol=symbol, given_align=align)

    def with_dtype(self, dtype: DType, expected: str | None = None) -> FakeTensor:
        """The tensor with one of its dtypes; messages show `expected` instead of this dtype."""
        align = dtype.itemsize if self.given_align is None else self.given_align
        return ChosenFakeTensor(
            dtype,
            self.shape,
            self.stride,
            align,
            self.device,
            self.packed,
            self.read_only,
            exact={Int8, Uint8} <= set(self.symbol.dtypes),
            expected=expected,
        )

    def __ferrule_spec__(self, name: str) -> Tensor:
        raise ValueError(
            "its dtype is free, which stands for several: only ferrule.compile takes it, as an "
            "argument or inside of a tuple or dataclass"
        )


@dataclass(frozen=True, slots=True)
class ChosenFakeTensor(FakeTensor):
    """A fake tensor after the choice of its dtype; see `params.Tensor` for the fields."""

    exact: bool = field(kw_only=True, default=False)
    expected: str | None = field(kw_only=True, default=None)

    def __ferrule_spec__(self, name: str) -> Tensor:
        spec = FakeTensor.__ferrule_spec__(self, name)
        return spec.chosen(exact=self.exact, expected=self.expected)
