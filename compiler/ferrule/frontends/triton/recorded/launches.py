"""One launch in several recordings: its arguments, over the sizes of the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.told import fixed
from ferrule.frontends.triton.arguments import Fixed
from ferrule.frontends.triton.autotuned.blocks import check_rows
from ferrule.frontends.triton.autotuned.configs import versions_of
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.jobs import by_position, names_of_options
from ferrule.frontends.triton.recorded.followed import Log, follow, plain, trees_of
from ferrule.frontends.triton.recorded.following import Following
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.reading import Reading, functions_watched
from ferrule.frontends.triton.recorded.sizes import Sizes, Values
from ferrule.frontends.triton.recorded.tensors import Recorded, is_torch, recorded
from ferrule.specs import Dim, DType, Tensor, symbols_of
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Followed:
    """How numbers of a launch were made of sizes: arguments by their place or name, sizes of the
    grid; and what the host function had read, `seen` comparisons of it before the launch."""

    trees: Mapping[int | str, Tree] = field(default_factory=dict)
    grid: Mapping[int, Tree] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """A recorded launch with its arguments by name, and Triton's options.

    `positional` are the constants that have the name of an option and were given by position.
    `trees` say how numbers were made of sizes, by name, `grid_trees` those of the grid, in
    `reading`, which is what the host function had read; `seen` of its comparisons were before.
    """

    kernel_object: Any
    kernel: Kernel
    given: Mapping[str, Any]
    options: Mapping[str, Any]
    grid: Any
    positional: frozenset[str] = frozenset()
    trees: Mapping[str, Tree] = field(default_factory=dict)
    grid_trees: Mapping[int, Tree] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    seen: int = 0

    def constant(self, name: str, value: Any) -> Any:
        """A constant as an example for `compile`."""
        return by_position(value) if name in self.positional else value


def bound(
    kernel_object: Any,
    grid: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    followed: Followed,
) -> Bound:
    """A launch by the names of the kernel's parameters.  CompileError for too many arguments."""
    kernel = kernel_of(kernel_object)
    if len(arguments) > len(kernel.names):
        raise CompileError(f"{kernel.name}: the launch had more arguments than parameters")
    given = dict(zip(kernel.names, arguments, strict=False))
    options = {key: value for key, value in keywords.items() if key not in kernel.names}
    given |= {key: value for key, value in keywords.items() if key in kernel.names}
    first = kernel.constexprs.intersection(kernel.names[: len(arguments)])
    positional = first & names_of_options() if first else first
    trees = {kernel.names[k] if isinstance(k, int) else k: v for k, v in followed.trees.items()}
    more = trees, followed.grid, followed.reading, followed.seen
    return Bound(kernel_object, kernel, given, options, grid, positional, *more)


class _Asked(dict[str, Any]):
    """The arguments of a grid, which remembers what was read."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The argument of this name."""
        return self[name] if name in self else default


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
    following: Following
    config: Any = None
    views: dict[str, View] = field(default_factory=dict)

    @property
    def sizes(self) -> Sizes:
        """The sizes that all launches share."""
        return self.following.sizes

    @property
    def kernel(self) -> Kernel:
        """The kernel of the launch."""
        return self.launches[0].kernel

    @property
    def options(self) -> Mapping[str, Any]:
        """Triton's options, which are those of every recording."""
        options = [dict(each.options) for each in self.launches]
        self._check_blocks()
        found: dict[str, Any] = self._same("the options", options)
        for name, value in found.items():
            self._pin(name, [value for _ in self.launches])
        return found

    def _check_blocks(self) -> None:
        """Raises CompileError for a configuration whose block a recorded row does not fit."""
        kernel = self.kernel
        if len(kernel.configs) < 2:
            return
        names = [name for name in self.launches[0].given if not self._is_constant(name)]
        values = {name: self._values(name) for name in names if name not in self.views}
        numbers = {k: v for k, v in values.items() if all(type(each) is int for each in v)}
        versions = versions_of(kernel, self.config)
        check_rows(kernel, versions, numbers, frozenset(self._asked_by_grid()))

    def _asked_by_grid(self) -> Iterator[str]:
        """The constants that a recorded grid reads."""
        for launch in self.launches:
            if callable(launch.grid):
                asked, log = _Asked(self._meta(launch)), launch.reading.log
                before = len(log.compared)
                launch.grid(asked)
                del log.compared[before:]
                yield from asked.names

    def constants(self) -> dict[str, Any]:
        """The values that are compiled in."""
        names = [name for name in self.launches[0].given if self._is_constant(name)]
        for name in names:
            self._pin(name, self._values(name))
        return {name: self._same(name, self._values(name)) for name in names}

    def _pin(self, name: str, values: Sequence[Any]) -> None:
        """What is compiled in, and was made of sizes, holds for calls that make the same of it."""
        trees = [each.trees.get(name) for each in self.launches]
        if all(type(each) is int for each in values):
            self.following.pin(trees, values, f"{name} of {self.kernel.name}")

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
        launched = [self._launched(at) for at in range(len(self.launches))]
        axes = max(len(each) for each, _ in launched)
        padded = [(*each, 1, 1)[:axes] for each, _ in launched]
        where = f"{self.kernel.name}: the grid's size"
        return tuple(
            self._of_grid(
                [trees.get(at) for _, trees in launched],
                tuple(int(each[at]) for each in padded),
                f"{where} {axis}",
            )
            for at, axis in zip(range(axes), "xyz", strict=False)
        )

    def covered(self) -> frozenset[Values]:
        """The values of the symbols in the grid."""
        self.numbers()
        symbols = {symbol for dim in self.grid() for symbol in symbols_of(dim)}
        return frozenset(self.sizes.symbols[symbol] for symbol in symbols)

    def _of_grid(self, trees: Sequence[Tree | None], values: Values, what: str) -> Any:
        dim = self._followed(trees, values, what, grid=True)
        return fixed(dim) if isinstance(dim, int) else dim

    def _followed(
        self, trees: Sequence[Tree | None], values: Values, what: str, *, grid: bool = False
    ) -> Dim:
        """A number over sizes: as it was made of these, else by its values."""
        dim = self.following.dim(trees, values)
        if dim is not None:
            return dim
        self.following.pin(trees, values, what)
        return self.sizes.following(values, what, grid=grid)

    def _launched(self, at: int) -> tuple[Sequence[int], Mapping[int, Tree]]:
        """The numbers of a recorded grid, and how they were made of sizes; a function gets the
        arguments and the constants of the configuration."""
        launch = self.launches[at]
        if not callable(launch.grid):
            return _listed(launch.grid), launch.grid_trees
        log, known = launch.reading.log, self._meta(launch)
        known |= {k: follow(known[k], each, log) for k, each in launch.trees.items() if k in known}
        before = len(log.compared)
        with functions_watched(launch.reading):
            grid = _listed(launch.grid(known))
        self.following.compared[at] += log.compared[before:]
        del log.compared[before:]
        return plain(grid), trees_of(dict(enumerate(grid)))

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
        known = [own(each, name) for each in values]
        what = f"{self.kernel.name}: {name}"
        if all(type(each) is int for each in known):
            trees = [each.trees.get(name) for each in self.launches]
            return self._followed(trees, tuple(known), what)
        if all(isinstance(each, float) for each in known) and len(set(known)) > 1:
            return Free(specs.Float32)
        number: float | bool = self._same(name, known)
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
    general: bool | frozenset[str],
    covered: frozenset[Values] = frozenset(),
    *,
    logs: Sequence[Log] | None = None,
) -> list[Together]:
    """The launches of several recordings, one by one, over sizes that they share, for `Sizes` with
    `covered` and `general`.

    `several` has the launches of each recording, `logs` what their host functions did; without
    them, what they did before their first launch.  Raises CompileError unless each has the same
    kernels in the same order.
    """
    check_order(several)
    chosen = [configs(at) for at in range(len(several[0]))]
    constants = frozenset(_constants(several, chosen))
    sizes = Sizes(constants, dict(_names(several)), covered, general=general)
    firsts = [launches[0] for launches in several]
    before = [each.reading.log.compared[: each.seen] for each in firsts]
    found = [each.reading.log for each in firsts] if logs is None else logs
    compared = before if logs is None else [list(each.compared) for each in logs]
    following = Following(sizes, found, compared, alone=logs is None)
    each = zip(*several, strict=True)
    return [Together(launches, following, chosen[at]) for at, launches in enumerate(each)]


def check_order(several: Sequence[Sequence[Bound]]) -> None:
    """Raises CompileError unless each recording has the same kernels, and one at least."""
    orders = [[each.kernel.name for each in launches] for launches in several]
    for other in orders[1:]:
        if other != orders[0]:
            raise CompileError(
                f"one recording launches {', '.join(orders[0]) or 'nothing'}, another "
                f"{', '.join(other) or 'nothing'}: the same kernels in the same order are wanted; "
                "where the host function decides by a size, compile recordings of each side and "
                "join them with fe.overload"
            )
    if not orders[0]:
        raise CompileError("the recording has no launch of a Triton kernel")


def _constants(several: Sequence[Sequence[Bound]], chosen: Sequence[Any]) -> Iterator[int]:
    """The numbers that are compiled into the launches, with those of the chosen configurations."""
    for launches in several:
        for launch, config in zip(launches, chosen, strict=True):
            given = {
                name: launch.given[name] for name in launch.kernel.constexprs & {*launch.given}
            }
            versions = versions_of(launch.kernel, config) if launch.kernel.configs else ()
            for constants in (given, *(each.constants for each in versions)):
                yield from (each for each in constants.values() if type(each) is int)


def _listed(grid: Any) -> Sequence[Any]:
    return grid if isinstance(grid, tuple | list) else (grid,)


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
