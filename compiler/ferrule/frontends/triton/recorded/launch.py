"""One recorded launch, which is compiled or written as text; and a recorder of launchers' calls."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ferrule.frontends.examples import seen, tensor_like
from ferrule.frontends.triton.arguments import Descriptor, Fixed
from ferrule.frontends.triton.compiling import compile
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.recorded.bound import Followed, bound
from ferrule.frontends.triton.recorded.checks import (
    General,
    check_general,
    check_kind_of_general,
    check_reads,
)
from ferrule.frontends.triton.recorded.grids import check_early
from ferrule.frontends.triton.recorded.nodes import leaves_of
from ferrule.frontends.triton.recorded.numbers.exact import Axes, exact_axes, with_axes
from ferrule.frontends.triton.recorded.several import together
from ferrule.frontends.triton.recorded.tensors import is_torch, recorded
from ferrule.frontends.triton.recorded.views import example_of
from ferrule.frontends.triton.recorded.writing import Writer
from ferrule.frontends.triton.tuples import nest
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.frontends.triton.recorded.bound import Asking, Bound
    from ferrule.frontends.triton.recorded.together import Together
    from ferrule.runtime import Function


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch, `kernel[grid](*arguments, **keywords)`; some keywords are Triton's options.

    `followed` says how its numbers were made of sizes, `early` what its grid gave at the launch.
    """

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    followed: Followed = field(default_factory=Followed, repr=False, compare=False)
    early: Mapping[Hashable, Asking] = field(default_factory=dict, repr=False, compare=False)

    def compile(
        self,
        *others: RecordedLaunch,
        target: str | Sequence[str] | None = None,
        signature: Mapping[str, Any] | None = None,
        grid: Any = None,
        general: General = False,
        requires: Sequence[Any] = (),
        **how: Any,
    ) -> Function:
        """The function that executes this launch: it takes tensors of the recorded sizes.

        Numbers keep their recorded values, too, because the grid was computed for them; `signature`
        gives examples for some parameters instead, as for `compile`, and `grid` gives a grid that
        depends on them.  With `others`, the same launch for other sizes, those that differ become
        symbols, and numbers and the grid follow from them; for `general` see `Launches.compile`.
        Raises the errors of `compile`, and CompileError for a number that follows from no size.
        """
        check_kind_of_general(general)
        launch = self._bound()
        options: Mapping[str, Any] = launch.options
        chosen, examples, conditions = grid, dict[str, Any](), [*requires]
        config = how.get("choose", how.get("config"))
        if others:
            one = _together((self, *others), config, general)
            examples = one.examples_of_constants()
            examples |= {name: example_of(each) for name, each in one.numbers().items()}
            chosen = one.grid() if grid is None else grid
            options = one.options
            conditions += one.following.requirements()
            several = {name: view.each for name, view in one.views.items()}
            axes = exact_axes(one.following.strides_read(), one.following.logs, several)
            tensors = {name: view.tensor for name, view in one.views.items()}
            examples |= {name: with_axes(each, axes) for name, each in tensors.items()}
        else:
            check_general(general, ())
            _alone(launch, config).check_blocks(but=signature or ())
            constexprs, axes = launch.kernel.constexprs, _strides_read(launch)
            examples = {
                name: launch.constant(name, value)
                if name in constexprs
                else _frozen(name, value, axes)
                for name, value in launch.given.items()
            }
            check_early(launch)
            chosen = self.grid if grid is None else grid
        known = {**examples, **(signature or {})}
        found = {**options, **how, "requires": conditions}
        return compile(self.kernel, signature=known, grid=chosen, target=target, **found)

    def signature(
        self, *others: RecordedLaunch, config: Any = None, general: General = False
    ) -> str:
        """The text of a call of `compile` for this launch, to start from.

        Sizes are tied by the values that this launch and `others` saw: what is the same in all of
        them is a number, what differs a symbol.  `config` is that of an autotuned kernel, by
        default the first; for `general` see `Launches.compile`.  Raises CompileError for what
        follows from no size.
        """
        check_kind_of_general(general)
        return Writer(_together((self, *others), config, general)).text()

    def _bound(self) -> Bound:
        check_reads(self.followed.reading)
        return self.bound()

    def bound(self) -> Bound:
        """The launch with its arguments by name.  CompileError for too many of them."""
        found = bound(self.kernel, self.grid, self.arguments, self.keywords, self.followed)
        return replace(found, early=self.early)


@dataclass(frozen=True, slots=True)
class Recorder:
    """A replacement for a launcher, `launcher(kernel, grid, *args, **keywords)`."""

    launches: list[RecordedLaunch] = field(default_factory=list)

    def __call__(self, kernel: Any, grid: Any, *arguments: Any, **keywords: Any) -> None:
        """Records a launch."""
        self.launches.append(RecordedLaunch(kernel, grid, arguments, keywords))


def _together(launches: Sequence[RecordedLaunch], config: Any, general: General) -> Together:
    several = [[each._bound()] for each in launches]
    configs = several[0][0].kernel.configs
    chosen = 0 if config is None and configs else config
    named = general if isinstance(general, bool) else frozenset(general)
    (one,) = together(several, lambda _: chosen, named)
    one.read_tensors()
    (again,) = together(several, lambda _: chosen, named, one.covered())
    again.read_tensors()
    check_general(general, map(str, again.sizes.symbols))
    return again


def _alone(launch: Bound, config: Any) -> Together:
    """One launch, of which everything is what it was."""
    (one,) = together([[launch]], lambda _: config, False)
    return one


def _strides_read(launch: Bound) -> Axes:
    """The strides of its tensors of which the numbers of a launch and its grid were made."""
    trees = (*launch.trees.values(), *launch.grid_trees.values())
    leaves = [leaf for tree in trees for leaf in leaves_of(tree)]
    given = {name: value for name, value in launch.given.items() if is_torch(value)}
    tensors = {name: [recorded(name, value)] for name, value in given.items()}
    return exact_axes(leaves, [launch.reading.log], tensors)


def _frozen(name: str, value: Any, axes: Axes) -> Any:
    """An example that accepts only this value, and these of a tensor's strides also where a size
    is 1."""
    if isinstance(value, int | float):
        return Fixed(value)
    if isinstance(value, tuple | list):
        return nest(value, lambda each: _frozen(name, each, axes))
    known = own(value, name)
    if isinstance(known, Descriptor):
        tensor = tensor_like(name, known.example, constant=len(known.example.shape))
        return replace(known, example=tensor)
    if is_torch(value):
        found = recorded(name, value).seen()
    elif hasattr(type(value), "__dlpack__"):
        found = seen(name, value)
    else:
        return value
    return with_axes(tensor_like(name, found, constant=len(found.shape)), axes)
