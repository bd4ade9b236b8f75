"""One launch in several recordings: its arguments, over the sizes of the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.told import fixed
from ferrule.frontends.triton.arguments import Fixed
from ferrule.frontends.triton.autotuned.configs import versions_of
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.jobs import by_position, names_of_options
from ferrule.frontends.triton.recorded.sizes import Sizes, Values
from ferrule.frontends.triton.recorded.tensors import Recorded, is_torch, recorded
from ferrule.specs import Dim, DType, Tensor, symbols_of
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """A recorded launch with its arguments by name, and Triton's options.

    `positional` are the constants that have the name of an option and were given by position.
    """

    kernel_object: Any
    kernel: Kernel
    given: Mapping[str, Any]
    options: Mapping[str, Any]
    grid: Any
    positional: frozenset[str] = frozenset()

    def constant(self, name: str, value: Any) -> Any:
        """A constant as an example for `compile`."""
        return by_position(value) if name in self.positional else value


def bound(kernel_object: Any, grid: Any, arguments: Sequence[Any], keywords: Any) -> Bound:
    """A launch by the names of the kernel's parameters.  CompileError for too many arguments."""
    kernel = kernel_of(kernel_object)
    if len(arguments) > len(kernel.names):
        raise CompileError(f"{kernel.name}: the launch had more arguments than parameters")
    given = dict(zip(kernel.names, arguments, strict=False))
    options = {key: value for key, value in keywords.items() if key not in kernel.names}
    given |= {key: value for key, value in keywords.items() if key in kernel.names}
    first = kernel.constexprs.intersection(kernel.names[: len(arguments)])
    positional = first & names_of_options() if first else first
    return Bound(kernel_object, kernel, given, options, grid, positional)


@dataclass(frozen=True, slots=True)
class Free:
    """A number that differs between recordings and follows from no size: callers give it."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class View:
    """A tensor of a launch: its form over the sizes, and what it was in each recording."""

    tensor: Tensor
    each: tuple[Recorded, ...]


@dataclass(slots=True)
class Together:
    """The same launch in several recordings, with the sizes that all launches share.

    `config` is the configuration of an autotuned kernel, as for `compile`.
    """

    launches: Sequence[Bound]
    sizes: Sizes
    config: Any = None
    views: dict[str, View] = field(default_factory=dict)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the launch."""
        return self.launches[0].kernel

    @property
    def options(self) -> Mapping[str, Any]:
        """Triton's options, which are those of every recording."""
        options = [dict(each.options) for each in self.launches]
        found: dict[str, Any] = self._same("the options", options)
        return found

    def constants(self) -> dict[str, Any]:
        """The values that are compiled in."""
        names = [name for name in self.launches[0].given if self._is_constant(name)]
        return {name: self._same(name, self._values(name)) for name in names}

    def examples_of_constants(self) -> dict[str, Any]:
        """The constants as examples for `compile`."""
        one = self.launches[0]
        return {name: one.constant(name, value) for name, value in self.constants().items()}

    def tensors(self) -> Iterator[tuple[str, list[Recorded]]]:
        """The tensors among the arguments, as each recording has them."""
        for name in self.launches[0].given:
            values = self._values(name)
            if not self._is_constant(name) and all(map(is_torch, values)):
                yield name, [recorded(name, each) for each in values]

    def read_tensors(self) -> None:
        """Find the views among the arguments, and the symbols of their sizes."""
        self.views |= {name: self._view(name, each) for name, each in self.tensors()}

    def numbers(self) -> dict[str, Dim | float | bool | Free]:
        """The numbers among the arguments: expressions over sizes, constants, free ones."""
        names = self.launches[0].given
        left = [name for name in names if name not in self.views and not self._is_constant(name)]
        return {name: self._number(name, self._values(name)) for name in left}

    def grid(self) -> tuple[Any, ...]:
        """The grid over the sizes; what is the same in every call is marked so."""
        found = [self._launched(each) for each in self.launches]
        axes = max(map(len, found))
        padded = [(*each, 1, 1)[:axes] for each in found]
        where = f"{self.kernel.name}: the grid's size"
        return tuple(
            self._of_grid(tuple(int(each[at]) for each in padded), f"{where} {axis}")
            for at, axis in zip(range(axes), "xyz", strict=False)
        )

    def covered(self) -> frozenset[Values]:
        """The values of the symbols in the grid."""
        self.numbers()
        symbols = {symbol for dim in self.grid() for symbol in symbols_of(dim)}
        return frozenset(self.sizes.symbols[symbol] for symbol in symbols)

    def _of_grid(self, values: Values, what: str) -> Any:
        dim = self.sizes.following(values, what, grid=True)
        return fixed(dim) if isinstance(dim, int) else dim

    def _launched(self, launch: Bound) -> Sequence[Any]:
        """The numbers of a recorded grid; a function gets the arguments and the constants of the
        configuration."""
        grid = launch.grid
        if callable(grid):
            grid = grid(self._meta(launch))
        return grid if isinstance(grid, tuple | list) else (grid,)

    def _meta(self, launch: Bound) -> dict[str, Any]:
        kernel = launch.kernel
        known = {each.name: each.default for each in kernel.parameters if each.has_default}
        known |= launch.given
        if self.config is not None or kernel.configs:
            (version, *_) = versions_of(kernel, self.config)
            known |= version.constants
        for name, heuristic in kernel.heuristics.items():
            known.setdefault(name, heuristic(known))
        return known

    def _is_constant(self, name: str) -> bool:
        values = self._values(name)
        for value in values:
            self._check_kind(name, value)
        others = (bool, int, float)
        is_number = all(isinstance(own(each, name), others) for each in values)
        is_tensor = all(map(is_torch, values))
        return name in self.kernel.constexprs or not (is_number or is_tensor)

    def _check_kind(self, name: str, value: Any) -> None:
        """Raises CompileError for tuples and descriptors, which have tensors inside."""
        if name not in self.kernel.constexprs and (
            isinstance(value, tuple | list) or type(value).__name__.startswith("TensorDescriptor")
        ):
            raise CompileError(
                Diagnostic(
                    f"{self.kernel.name}: {name} is recorded as a {type(value).__name__}",
                    expected="tensors and numbers, of which sizes can be told",
                    hint="the launch alone can be compiled for the recorded sizes, or with "
                    "signature= and grid=",
                )
            )

    def _values(self, name: str) -> list[Any]:
        missing = object()
        found = [each.given.get(name, missing) for each in self.launches]
        if missing in found:
            raise CompileError(f"{self.kernel.name}: one recording has no argument {name!r}")
        return found

    def _same(self, name: str, values: Sequence[Any]) -> Any:
        """A value that every recording has, else a CompileError."""
        for other in values[1:]:
            if type(other) is not type(values[0]) or other != values[0]:
                raise CompileError(
                    Diagnostic(
                        f"{self.kernel.name}: {name} is {values[0]!r} in one recording and "
                        f"{other!r} in another",
                        expected="the same, because it is compiled into the kernel",
                        hint="record sizes for which it is the same, and join the functions with "
                        "fe.overload",
                    )
                )
        return values[0]

    def _view(self, name: str, each: Sequence[Recorded]) -> View:
        first, what = each[0], f"{self.kernel.name}: {name}"
        for other in each[1:]:
            if (other.dtype, len(other.shape)) != (first.dtype, len(first.shape)):
                raise CompileError(
                    f"{what} is a tensor of {first.dtype.name} with {len(first.shape)} dims in one "
                    f"recording, and of {other.dtype.name} with {len(other.shape)} in another"
                )
        return View(tensor_over(name, each, self.sizes), tuple(each))

    def _number(self, name: str, values: Sequence[Any]) -> Dim | float | bool | Free:
        plain = [own(each, name) for each in values]
        what = f"{self.kernel.name}: {name}"
        if all(type(each) is int for each in plain):
            return self.sizes.following(tuple(plain), what)
        if all(isinstance(each, float) for each in plain) and len(set(plain)) > 1:
            return Free(specs.Float32)
        number: float | bool = self._same(name, plain)
        return number


def tensor_over(
    name: str, each: Sequence[Recorded], sizes: Sizes, *, aligned: bool = True
) -> Tensor:
    """The spec of a tensor over the sizes; with `aligned` its address is a multiple of 16 if it was
    in every recording."""
    first = each[0]
    shape = tuple(
        sizes.dim(tuple(one.shape[at] for one in each), f"{name}_{at}")
        for at in range(len(first.shape))
    )
    align = 16 if aligned and all(one.aligned for one in each) else None
    if all(one.is_compact for one in each):
        return Tensor(name, shape, first.dtype, align=align)
    strides = tuple(
        sizes.dim(tuple(one.strides[at] for one in each), f"{name}_stride_{at}", 64)
        for at in range(len(first.shape))
    )
    return Tensor(name, shape, first.dtype, strides=strides, align=align)


def together(
    several: Sequence[Sequence[Bound]],
    configs: Callable[[int], Any],
    covered: frozenset[Values] = frozenset(),
) -> list[Together]:
    """The launches of several recordings, one by one, over sizes that they share, for `Sizes` with
    `covered`.

    `several` has the launches of each recording.  Raises CompileError unless each has the same
    kernels in the same order.
    """
    check_order(several)
    flat = [launch for launches in several for launch in launches]
    sizes = Sizes(frozenset(_constants(flat)), dict(_names(several)), covered)
    each = zip(*several, strict=True)
    return [Together(launches, sizes, configs(at)) for at, launches in enumerate(each)]


def check_order(several: Sequence[Sequence[Bound]]) -> None:
    """Raises CompileError unless each recording has the same kernels, and one at least."""
    orders = [[each.kernel.name for each in launches] for launches in several]
    for other in orders[1:]:
        if other != orders[0]:
            raise CompileError(
                f"one recording launches {', '.join(orders[0]) or 'nothing'}, another "
                f"{', '.join(other) or 'nothing'}: the same kernels in the same order are wanted"
            )
    if not orders[0]:
        raise CompileError("the recording has no launch of a Triton kernel")


def _constants(launches: Sequence[Bound]) -> Iterator[int]:
    for launch in launches:
        for name in launch.kernel.constexprs & launch.given.keys():
            if type(launch.given[name]) is int:
                yield launch.given[name]
        for config in launch.kernel.configs:
            yield from (each for each in config.kwargs.values() if type(each) is int)


def _names(several: Sequence[Sequence[Bound]]) -> Iterator[tuple[Values, str]]:
    """Names for symbols: parameters that have their values; those before the last are kept."""
    for each in reversed(list(zip(*several, strict=True))):
        for name in reversed(list(each[0].given)):
            values = [launch.given.get(name) for launch in each]
            if name not in each[0].kernel.constexprs and all(type(v) is int for v in values):
                if "stride" not in name:
                    yield tuple(v for v in values if type(v) is int), name


def example_of(number: Dim | float | bool | Free) -> Any:
    """A number as an example for `compile`."""
    if isinstance(number, Free):
        return number.dtype
    return Fixed(number) if isinstance(number, bool | int | float) else number
