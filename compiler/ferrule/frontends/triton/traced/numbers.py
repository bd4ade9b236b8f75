"""Floats and bools that a caller passes, in traced functions."""

from __future__ import annotations

from typing import Any, NoReturn

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.refusals import undecided
from ferrule.specs import Scalar, compare_float
from ferrule.specs.conditions import Comparison, ComparisonOp, Computed, FloatRelation, Real


class Unseen:
    """A float or a bool that a caller passes: the call decides comparisons with numbers.

    Any other use is refused, also a comparison without `scalar` and `path`.  A computed float is
    compared in float64, as Triton would compare it.
    """

    __slots__ = ("name", "path", "scalar")

    def __init__(
        self, name: str, scalar: Scalar | Computed | None = None, path: Path | None = None
    ) -> None:
        self.name = name
        self.scalar = scalar
        self.path = path

    @property
    def is_bool(self) -> bool:
        """Whether it is a bool, each value of which the call can decide."""
        return isinstance(self.scalar, Scalar) and self.scalar.dtype.kind != "float"

    def refuse(self, *_: Any) -> NoReturn:
        """Raises CompileError: its value is not known."""
        raise CompileError(undecided(self.name))

    def _compared(self, op: ComparisonOp, other: Any) -> bool:
        if self.scalar is None or self.path is None or not isinstance(other, int | float):
            self.refuse()
        if isinstance(self.scalar, Computed):
            relation = FloatRelation(op, self.scalar, Real.of(float(other)))
            return self.path.decide(relation)
        if not self.is_bool:
            return self.path.decide(compare_float(op, self.scalar, float(other)))
        if not isinstance(other, int):
            self.refuse()
        return self.path.decide(Comparison(op, self.scalar.value, int(other)))

    def __lt__(self, other: Any) -> bool:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> bool:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> bool:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> bool:
        return self._compared("ge", other)

    def __eq__(self, other: Any) -> bool:
        return False if other is None else self._compared("eq", other)

    def __ne__(self, other: Any) -> bool:
        return True if other is None else self._compared("ne", other)

    def __bool__(self) -> bool:
        return self._compared("ne", 0)

    __int__ = __index__ = __float__ = __hash__ = __round__ = __trunc__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __abs__ = refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = refuse
    __pow__ = __rpow__ = __floor__ = __ceil__ = refuse

    def __repr__(self) -> str:
        return self.name


class Given(dict[str, Any]):
    """The arguments that a traced function gets: a bool that it reads is True or False."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        known = isinstance(found, Unseen) and found.is_bool and found.path is not None
        return bool(found) if known else found

    def get(self, name: str, default: Any = None) -> Any:
        """The argument of this name."""
        return self[name] if name in self else default
