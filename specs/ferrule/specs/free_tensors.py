"""Fake tensors with a free dtype, and the fake tensors that replace them for one chosen dtype."""

from __future__ import annotations

from dataclasses import field, fields

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import DType, Int8, Uint8
from ferrule.specs.fakes import FakeTensor
from ferrule.specs.free_dtypes import DTypeSym
from ferrule.specs.params import Tensor


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
