"""One launch in several recordings: its arguments, over the sizes of the tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.told import fixed
from ferrule.frontends.triton.autotuned.blocks import check_rows
from ferrule.frontends.triton.autotuned.configs import PLAIN, Version, versions_of
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.grids import GridOfVersions
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.recorded.bound import Bound
from ferrule.frontends.triton.recorded.followed import trees_of
from ferrule.frontends.triton.recorded.following import Following
from ferrule.frontends.triton.recorded.grids import asked, listed, meta_of
from ferrule.frontends.triton.recorded.hosts.parameters import is_same
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.numbers.base import plain
from ferrule.frontends.triton.recorded.numbers.deciding import lines_told, with_line
from ferrule.frontends.triton.recorded.reading import Reading
from ferrule.frontends.triton.recorded.shaping import is_contiguous
from ferrule.frontends.triton.recorded.sizes import Sizes, Values
from ferrule.frontends.triton.recorded.tensors import Recorded, is_torch, recorded
from ferrule.frontends.triton.recorded.views import Free, View, tensor_like, tensor_over
from ferrule.specs import Dim, symbols_of
from ferrule.specs.deferred import dataclass


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
        self.check_blocks()
        found: dict[str, Any] = self._same("the options", options)
        for name, value in found.items():
            self._pin(name, [value for _ in self.launches])
        return found

    def check_blocks(self, but: Collection[str] = ()) -> None:
        """Raises CompileError for a configuration whose block a recorded row does not fit.

        Numbers of the parameters `but` are left out: calls have others.
        """
        kernel = self.kernel
        if len(kernel.configs) < 2:
            return
        names = [name for name in self.launches[0].given if name not in {*kernel.constexprs, *but}]
        values = {name: self._values(name) for name in names}
        numbers = {k: v for k, v in values.items() if all(type(each) is int for each in v)}
        versions = versions_of(kernel, self.config)
        check_rows(kernel, versions, numbers, frozenset(self._asked_by_grid()))

    def _asked_by_grid(self) -> Iterator[str]:
        """The constants that a recorded grid reads."""
        for launch in self.launches:
            if callable(launch.grid):
                meta, log = meta_of(launch, self._versions()[0]), launch.reading.log
                before = len(log.compared)
                launch.grid(meta)
                del log.compared[before:]
                yield from meta.names

    def constants(self) -> dict[str, Any]:
        """The values that are compiled in."""
        names = [name for name in self.launches[0].given if self._is_constant(name)]
        for name in names:
            self._pin(name, self._values(name))
        return {name: self._same(name, self._values(name)) for name in names}

    def _pin(self, name: str, values: Sequence[Any]) -> None:
        """What is compiled in, and was made of sizes, holds for calls that make the same of it."""
        trees = [each.trees.get(name) for each in self.launches]
        if all(type(each) in (int, float) for each in values):
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

    def read_tensors(self, known: Collection[int] = ()) -> None:
        """Find the views among the arguments, and the symbols of their sizes; of views of `known`
        memory, of which the kernel gets the address alone, nobody asks for them."""
        for name, each in self.tensors():
            self.views[name] = self._view(name, each, is_known=each[0].storage in known)

    def numbers(self) -> dict[str, Dim | float | bool | Free]:
        """The numbers among the arguments: expressions over sizes, constants, free ones."""
        names = self.launches[0].given
        left = [name for name in names if name not in self.views and not self._is_constant(name)]
        return {name: self._number(name, self._values(name)) for name in left}

    def grid(self) -> tuple[Any, ...] | GridOfVersions:
        """The grid over the sizes; what is the same in every call is marked so.

        Where it is made of constants that configurations have, it is one for each of these.
        """
        versions = self._versions()
        found = [self._grid(each) for each in versions]
        if all(each == found[0] for each in found):
            return found[0]
        constants = [each.constants for each in versions]
        return GridOfVersions(tuple(zip(constants, found, strict=True)))

    def _grid(self, version: Version) -> tuple[Any, ...]:
        launched = [self._launched(at, version) for at in range(len(self.launches))]
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
        grids = [self._grid(each) for each in self._versions()]
        symbols = {symbol for grid in grids for dim in grid for symbol in symbols_of(dim)}
        known = self.sizes.symbols
        return frozenset(known[symbol] for symbol in symbols if symbol in known)

    def _of_grid(self, trees: Sequence[Tree | None], values: Values, what: str) -> Any:
        dim = self.followed(trees, values, what, grid=True)
        return fixed(dim) if isinstance(dim, int) else dim

    def followed(
        self, trees: Sequence[Tree | None], values: Values, what: str, *, grid: bool = False
    ) -> Dim:
        """A number over sizes: as it was made of these, else by its values."""
        dim = self.following.dim(trees, values)
        if dim is not None:
            return dim
        self.following.pin(trees, values, what)
        with lines_told(self.following.logs):
            found = self.sizes.following(values, what, grid=grid)
        self.following.explain(trees, values, found)
        return found

    def _launched(self, at: int, version: Version) -> tuple[Sequence[int], Mapping[int, Tree]]:
        """The numbers of a recorded grid, and how they were made of sizes; a function gets the
        arguments, and the constants of a configuration and of heuristics."""
        launch = self.launches[at]
        if not callable(launch.grid):
            return listed(launch.grid), launch.grid_trees
        found = asked(launch, version)
        self.following.compared[at] += found.compared
        return found.grid, found.trees

    def _versions(self) -> Sequence[Version]:
        if self.config is None and not self.kernel.configs:
            return (PLAIN,)
        return versions_of(self.kernel, self.config)

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
            if not is_same(other, values[0]):
                found = CompileError(
                    Diagnostic(
                        f"{self.kernel.name}: {name} is {values[0]!r} in one recording and "
                        f"{other!r} in another",
                        expected="the same, because it is compiled into the kernel",
                        hint="where the host function decides by a size, give two recordings of "
                        "each side; or compile each, and join the functions with fe.overload",
                    )
                )
                raise with_line(found, self.following.logs)
        return values[0]

    def size(self, name: str, kind: str, axis: int) -> Dim:
        """A size or a stride of a tensor among the arguments, which a function of them reads."""
        what = f"{self.kernel.name}: {kind}({axis}) of {name}, which a function of the kernel reads"
        trees, values = list[Tree | None](), list[int]()
        for at, launch in enumerate(self.launches):
            ask = partial(_sizes_of, launch.reading, launch.given[name], kind)
            sizes, compared = launch.reading.log.again(ask)
            self.following.compared[at] += [replace(each, where=what) for each in compared]
            trees.append(trees_of({axis: sizes[axis]}).get(axis))
            values.append(int(plain(sizes[axis])))
        return self.followed(trees, tuple(values), what)

    def is_contiguous(self, name: str) -> bool | None:
        """Whether a tensor among the arguments is compact, in each call; None if only some are."""
        what = f"{self.kernel.name}: {name}.is_contiguous(), which a function of the kernel asks"
        found = set[bool]()
        for at, launch in enumerate(self.launches):
            ask = partial(is_contiguous, launch.reading, launch.given[name])
            outcome, compared = launch.reading.log.again(ask)
            self.following.compared[at] += [replace(each, where=what) for each in compared]
            found.add(outcome)
        return found.pop() if len(found) == 1 else None

    def offset(self, name: str, values: Values, what: str) -> Dim | None:
        """Where a tensor among the arguments begins in the one of which it is a view, in elements;
        None where nobody knows how it was made."""
        trees = list[Tree | None]()
        for at, (launch, value) in enumerate(zip(self.launches, values, strict=True)):
            ask = partial(_offset_of, launch.reading, launch.given[name])
            offset, compared = launch.reading.log.again(ask)
            if (offset is None and any(values)) or plain(offset or 0) != value:
                return None
            self.following.compared[at] += [replace(each, where=what) for each in compared]
            # Of the recorded sizes, which were just compared, it is at the beginning.
            trees.append(value if offset is None else trees_of({0: offset}).get(0, value))
        return self.followed(trees, values, what)

    def is_given(self, name: str) -> bool:
        """Whether a tensor among the arguments is one that the host function was given."""
        return all(id(each.given[name]) in each.reading.names for each in self.launches)

    def _view(self, name: str, each: Sequence[Recorded], *, is_known: bool) -> View:
        first, what = each[0], f"{self.kernel.name}: {name}"
        for other in each[1:]:
            if (other.dtype, len(other.shape)) != (first.dtype, len(first.shape)):
                raise CompileError(
                    f"{what} is a tensor of {first.dtype.name} with {len(first.shape)} dims in one "
                    f"recording, and of {other.dtype.name} with {len(other.shape)} in another"
                )
        if is_known:
            return View(tensor_like(name, each), tuple(each))
        return View(tensor_over(name, each, self.sizes), tuple(each))

    def _number(self, name: str, values: Sequence[Any]) -> Dim | float | bool | Free:
        known = [own(each, name) for each in values]
        what = f"{self.kernel.name}: {name}"
        if all(type(each) is int for each in known):
            trees = [each.trees.get(name) for each in self.launches]
            return self.followed(trees, tuple(known), what)
        if all(isinstance(each, float) for each in known):
            trees = [each.trees.get(name) for each in self.launches]
            found = self.following.real(trees, known)
            if found is not None:
                return Free(specs.Float32, found)
            self.following.pin(trees, known, what)
            if len({*map(repr, known)}) > 1:
                return Free(specs.Float32)
        number: float | bool = self._same(name, known)
        return number


def _offset_of(reading: Reading, tensor: Any) -> Any:
    return reading.offset(tensor)


def _sizes_of(reading: Reading, tensor: Any, kind: str) -> list[Any]:
    return reading.sizes(tensor, kind, tensor.shape if kind == "shape" else tensor.stride())
