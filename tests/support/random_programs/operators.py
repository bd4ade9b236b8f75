"""Python's operators by name, for the classes of the model."""

from __future__ import annotations

from typing import Any


class Operators:
    """Python's operators on top of `apply` and `compare`."""

    def apply(self, op: str, *operands: Any) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self.apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.apply("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.apply("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.apply("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.apply("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.apply("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.apply("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.apply("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self.apply("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.apply("mod", other, self)

    def __and__(self, other: Any) -> Any:
        return self.apply("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self.apply("and", other, self)

    def __or__(self, other: Any) -> Any:
        return self.apply("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self.apply("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self.apply("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self.apply("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self.apply("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self.apply("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self.apply("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self.apply("shr", other, self)

    def __pow__(self, exponent: int) -> Any:
        result: Any = self
        for _ in range(exponent - 1):
            result = result * self
        return result

    def __neg__(self) -> Any:
        return self.apply("neg", self)

    def __pos__(self) -> Any:
        return self.apply("pos", self)

    def __invert__(self) -> Any:
        return self.apply("not", self)

    def __abs__(self) -> Any:
        return self.apply("abs", self)

    def __eq__(self, other: Any) -> Any:
        return self.apply("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return self.apply("ne", self, other)

    def __lt__(self, other: Any) -> Any:
        return self.apply("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self.apply("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self.apply("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self.apply("ge", self, other)

    __hash__ = None  # type: ignore[assignment]
