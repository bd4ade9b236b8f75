"""Components of the ops of the kernel IR: values, regions, and common words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ferrule.language.ir.types import TensorType, Type
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.language.ir.ops import Op

AXES: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One value, equal only to itself.  `hint` is the preferred name in the text."""

    type: Type
    hint: str = ""

    @property
    def tensor(self) -> TensorType:
        """The type of a value that is a tensor.  Raises TypeError for a scalar."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"%{self.hint} is no tensor: it is {self.type}")
        return self.type


@dataclass(frozen=True, slots=True)
class Region:
    """Ops in order, and the values that they yield to the owner."""

    ops: tuple[Op, ...] = ()
    yields: tuple[Value, ...] = ()
