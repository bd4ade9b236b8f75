"""Grids: a tuple of sizes, or a function of the kernel's arguments that is traced to one.

A function gets what Triton's own launcher gives it, a mapping from the names of the parameters to
their values; where these are known only at the call they are `Traced`, on which `+ - * // %`,
`triton.cdiv`, `minimum`, `maximum` and `ceil_div` work.  Whatever needs their value now (a
comparison, `min`, `int`, `/`) is a CompileError that says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Dim, Tensor
from ferrule.specs.expr import ExprOp, is_dim, make

Grid = tuple[Dim, Dim, Dim]


class Traced:
    """A size that is known only at the call, in a function that is traced."""

    __slots__ = ("dim",)

    def __init__(self, dim: Dim) -> None:
        self.dim = dim

    def __add__(self, other: Any) -> Any:
        return _make("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _make("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _make("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _make("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _make("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _make("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _make("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _make("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _make("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _make("mod", other, self)

    def __neg__(self) -> Any:
        return _make("sub", 0, self)

    def __pos__(self) -> Traced:
        return self

    def _refuse(self, *_: Any) -> NoReturn:
        raise CompileError(_undecided(self.dim))

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __int__ = __index__ = __float__ = __hash__ = __round__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _refuse
    __lshift__ = __rshift__ = __and__ = __or__ = __xor__ = __invert__ = __abs__ = _refuse
    __rlshift__ = __rrshift__ = __rand__ = __ror__ = __rxor__ = _refuse
    __trunc__ = __floor__ = __ceil__ = _refuse

    def __repr__(self) -> str:
        return str(self.dim)


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor in a function that is traced: `.shape`, `.stride()`, `.numel()`, `.dtype`."""

    tensor: Tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """Its sizes."""
        return tuple(map(traced, self.tensor.shape))

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.tensor.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of its elements, ferrule's own."""
        return self.tensor.dtype

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one, as PyTorch says it."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """All strides in elements, or one, as PyTorch says it."""
        strides = tuple(map(traced, self.tensor.strides))
        return strides if dim is None else strides[dim]

    def numel(self) -> Any:
        """The number of elements."""
        return traced(self.tensor.numel)

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.tensor.dtype.itemsize


def traced(dim: Dim) -> Any:
    """A size as a traced function sees it: a number as it is."""
    return dim if isinstance(dim, int) else Traced(dim)


def untraced(value: Any) -> Any:
    """The size that a traced value stands for, any other value as it is."""
    return value.dim if isinstance(value, Traced) else value


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller of two sizes, for grids: `min` would have to know them."""
    return _make("min", lhs, rhs)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger of two sizes, for grids: `max` would have to know them."""
    return _make("max", lhs, rhs)


def ceil_div(lhs: Any, rhs: Any) -> Any:
    """`lhs / rhs` rounded up, for grids."""
    return _make("ceildiv", lhs, rhs)


def trace_grid(grid: Any, arguments: Mapping[str, Any], where: str) -> Grid:
    """The three sizes of a grid; `arguments` are those of the kernel by name.

    Raises CompileError for a function that cannot be traced and for what is no grid.
    """
    found = trace(grid, arguments, f"{where}: the grid") if callable(grid) else grid
    found = untraced(found)
    sizes = (found,) if is_dim(found) else found
    if (
        isinstance(sizes, str | bytes)
        or not isinstance(sizes, Sequence)
        or not 1 <= len(sizes) <= 3
    ):
        raise CompileError(
            Diagnostic(
                f"{where}: the grid is {found!r}",
                expected="from one to three sizes, or a function of the kernel's arguments that "
                'gives them, such as lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)',
            )
        )
    x, y, z = (*(_size(size, where) for size in sizes), 1, 1)[:3]
    return x, y, z


def trace(
    function: Callable[[Mapping[str, Any]], Any], arguments: Mapping[str, Any], what: str
) -> Any:
    """What a function of the kernel's arguments gives.

    Raises CompileError, naming `what`, where it needs a value that only a call has, asks for an
    argument that there is not, or fails.
    """
    try:
        return function(arguments)
    except CompileError as error:
        raise CompileError(
            Diagnostic(
                f"{what} cannot be traced: {error.diagnostic.message}",
                expected=error.diagnostic.expected,
                hint=error.diagnostic.hint,
            )
        ) from None
    except KeyError as error:
        raise CompileError(
            Diagnostic(
                f"{what} asks for {error.args[0]!r}, which is no parameter of the kernel",
                expected=", ".join(arguments),
            )
        ) from None
    except Exception as error:
        raise CompileError(f"{what} cannot be traced: {type(error).__name__}: {error}") from error


def _size(size: Any, where: str) -> Dim:
    dim = untraced(getattr(size, "value", size) if not is_dim(size) else size)
    if not is_dim(dim):
        raise CompileError(
            Diagnostic(
                f"{where}: a size of the grid is {size!r}",
                expected="an int or an expression over the sizes of the call",
            )
        )
    found: Dim = dim
    return found


def _make(op: ExprOp, lhs: Any, rhs: Any) -> Any:
    sides = untraced(lhs), untraced(rhs)
    for side in sides:
        if isinstance(side, float):
            raise CompileError(
                Diagnostic(
                    f"{side} is no integer",
                    expected="sizes and integers",
                    hint="write // or triton.cdiv(a, b) instead of a / b",
                )
            )
        if not is_dim(side):
            raise TypeError(f"a size takes integers and sizes, but got {side!r}")
    return traced(make(op, *sides))


def _undecided(dim: Dim) -> Diagnostic:
    return Diagnostic(
        f"the value of {specs.format_dim(dim, {})} is known only at the call",
        expected="+ - * // % of sizes, triton.cdiv, and minimum, maximum and ceil_div of "
        "ferrule.frontends.triton",
        hint="write minimum(a, b) for min(a, b), maximum(a, b) for max(a, b) and triton.cdiv(a, b) "
        "for a division that rounds up; for a choice compile several functions",
    )
