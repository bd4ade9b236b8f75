"""A function's name and parameters, with the names that its symbols have in text.

Invariants (ValueError where they fail): parameter names differ; symbols of one name agree in
width and divisibility; each symbol stands bare, as a whole dim or stride, somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ferrule.specs.expr import Dim, Sym, format_dim, symbols_of
from ferrule.specs.params import REQUIRED, Param, Scalar, Tensor


@dataclass(frozen=True, slots=True)
class Signature:
    """Name and parameters.  `str()` is the short form that messages show.

    `symbols` maps each symbol to its name in text, in the order of first appearance: a named
    symbol keeps its own, sizes are n0, n1, … and symbols that appear only in strides s0, s1, ….
    """

    name: str
    params: tuple[Param, ...]
    symbols: dict[Sym, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", tuple(self.params))
        names = [param.name for param in self.params]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{self.name}: two parameters are named {name!r}")
        _check_symbols(self)
        object.__setattr__(self, "symbols", _name_symbols(self))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.describe(param) for param in self.params)})"

    def __getitem__(self, name: str) -> Param:
        """The parameter with this name.  Raises KeyError naming those that there are."""
        for param in self.params:
            if param.name == name:
                return param
        raise KeyError(f"{name!r} is no parameter of {self}")

    def index(self, name: str) -> int:
        """The position of the parameter with this name."""
        return self.params.index(self[name])

    def describe(self, param: Param) -> str:
        """One parameter as the short form shows it: `a: Tensor([n0, 8], float32)`."""
        match param:
            case Tensor(name, shape, dtype):
                dims = ", ".join(self.format(dim) for dim in shape)
                return f"{name}: Tensor([{dims}], {dtype.name})"
            case Scalar(name, dtype, default):
                tail = "" if default is REQUIRED else f" = {default}"
                return f"{name}: {dtype.name}{tail}"

    def format(self, dim: Dim) -> str:
        """A size with this signature's names of its symbols."""
        return format_dim(dim, self.symbols)

    def renamed(self, name: str) -> Signature:
        """The same parameters under another name."""
        return replace(self, name=name)


def _sizes(params: tuple[Param, ...]) -> Iterator[Dim]:
    for param in params:
        if isinstance(param, Tensor):
            yield from param.shape


def _strides(params: tuple[Param, ...]) -> Iterator[Dim]:
    for param in params:
        if isinstance(param, Tensor):
            yield from param.strides


def _check_symbols(signature: Signature) -> None:
    seen: dict[Sym, Sym] = {}
    dims = [*_sizes(signature.params), *_strides(signature.params)]
    bare = {dim for dim in dims if isinstance(dim, Sym)}
    for symbol in (symbol for dim in dims for symbol in symbols_of(dim)):
        first = seen.setdefault(symbol, symbol)
        if (first.width, first.divisibility) != (symbol.width, symbol.divisibility):
            raise ValueError(
                f"{signature.name}: the symbol {symbol} is used with different widths or "
                f"divisibilities: int{first.width} divisible by {first.divisibility}, and "
                f"int{symbol.width} divisible by {symbol.divisibility}"
            )
        if symbol not in bare:
            raise ValueError(
                f"{signature.name}: the symbol {symbol} stands only inside expressions, so no "
                f"call can tell its value; use it as a whole size or stride of some parameter"
            )


def _name_symbols(signature: Signature) -> dict[Sym, str]:
    names: dict[Sym, str] = {}
    for letter, dims in (("n", _sizes(signature.params)), ("s", _strides(signature.params))):
        ordered = [symbol for dim in dims for symbol in symbols_of(dim)]
        taken = {symbol.name for symbol in (*ordered, *names)} | set(names.values())
        free = (name for i in range(len(ordered) + len(taken) + 1) if (name := f"{letter}{i}"))
        fresh = (name for name in free if name not in taken)
        for symbol in ordered:
            if symbol not in names:
                names[symbol] = symbol.name or next(fresh)
    return names
