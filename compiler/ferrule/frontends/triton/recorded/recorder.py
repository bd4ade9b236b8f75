"""Launches of Triton kernels by another program: they are recorded instead of executed, then
compiled.

    with frontend.recording() as launches:
        liger_rms_norm(x, w)               # tensors on the CPU, fake ones, or on device meta
    print(launches[0].signature())         # the text of a call of `compile`, to start from

`recording` records launches as `kernel[grid](…)` of every library.  `Recorder` is for programs that
call a launcher, as Helion's generated functions do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import seen, tensor_like
from ferrule.frontends.triton.arguments import Descriptor, Fixed
from ferrule.frontends.triton.compiling import compile
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.levels import Specialise
from ferrule.frontends.triton.offline import architectures
from ferrule.frontends.triton.recorded.launches import bound, check_order, example_of, together
from ferrule.frontends.triton.recorded.patches import Written, launches_told, operations_told
from ferrule.frontends.triton.recorded.tensors import is_torch, recorded
from ferrule.frontends.triton.recorded.whole import Filled, Host, Whole
from ferrule.frontends.triton.recorded.writing import Writer
from ferrule.frontends.triton.tuples import nest
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.frontends.triton.recorded.launches import Bound, Together
    from ferrule.frontends.triton.recorded.sizes import Values
    from ferrule.frontends.triton.recorded.tensors import Recorded
    from ferrule.runtime import Function

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch, `kernel[grid](*arguments, **keywords)`; some keywords are Triton's options."""

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def compile(
        self,
        *others: RecordedLaunch,
        target: str | Sequence[str] | None = None,
        signature: Mapping[str, Any] | None = None,
        grid: Any = None,
        **how: Any,
    ) -> Function:
        """The function that executes this launch: it takes tensors of the recorded sizes.

        Numbers keep their recorded values, too, because the grid was computed for them; `signature`
        gives examples for some parameters instead, as for `compile`, and `grid` gives a grid that
        depends on them.  With `others`, the same launch for other sizes, those that differ become
        symbols, and numbers and the grid follow from them.  Raises the errors of `compile`, and
        CompileError for a number that follows from no size.
        """
        launch = self._bound()
        chosen, examples = grid, dict[str, Any]()
        if others:
            one = _together((self, *others), how.get("config"))
            examples = {name: view.tensor for name, view in one.views.items()}
            examples |= one.examples_of_constants()
            examples |= {name: example_of(each) for name, each in one.numbers().items()}
            chosen = one.grid() if grid is None else grid
        else:
            constexprs = launch.kernel.constexprs
            examples = {
                name: launch.constant(name, value) if name in constexprs else _frozen(name, value)
                for name, value in launch.given.items()
            }
            chosen = self.grid if grid is None else grid
        known = {**examples, **(signature or {})}
        options = {**launch.options, **how}
        return compile(self.kernel, signature=known, grid=chosen, target=target, **options)

    def signature(self, *others: RecordedLaunch, config: Any = None) -> str:
        """The text of a call of `compile` for this launch, to start from.

        Sizes are tied by the values that this launch and `others` saw: what is the same in all of
        them is a number, what differs a symbol.  `config` is that of an autotuned kernel, by
        default the first.  Raises CompileError for what follows from no size.
        """
        return Writer(_together((self, *others), config)).text()

    def _bound(self) -> Bound:
        return bound(self.kernel, self.grid, self.arguments, self.keywords)


def _together(launches: Sequence[RecordedLaunch], config: Any) -> Together:
    several = [[each._bound()] for each in launches]
    configs = several[0][0].kernel.configs
    chosen = 0 if config is None and configs else config
    (one,) = together(several, lambda _: chosen)
    one.read_tensors()
    (again,) = together(several, lambda _: chosen, one.covered())
    again.read_tensors()
    return again


@dataclass(frozen=True, slots=True)
class Recorder:
    """A replacement for a launcher, `launcher(kernel, grid, *args, **keywords)`."""

    launches: list[RecordedLaunch] = field(default_factory=list)

    def __call__(self, kernel: Any, grid: Any, *arguments: Any, **keywords: Any) -> None:
        """Records a launch."""
        self.launches.append(RecordedLaunch(kernel, grid, arguments, keywords))


@dataclass(slots=True, eq=False)
class Launches:
    """What `recording` recorded: launches, and around them tensors that were made, filled, and
    computed by PyTorch."""

    _launches: list[RecordedLaunch] = field(default_factory=list)
    _inputs: dict[str, Recorded] = field(default_factory=dict)
    _results: list[Any] | None = None
    _made: set[int] = field(default_factory=set)
    _computed: dict[int, str] = field(default_factory=dict)
    _fills: list[Filled] = field(default_factory=list)
    _kept: list[Any] = field(default_factory=list)
    _name: str = ""

    def __getitem__(self, number: int) -> RecordedLaunch:
        return self._launches[number]

    def __len__(self) -> int:
        return len(self._launches)

    def __iter__(self) -> Iterator[RecordedLaunch]:
        return iter(self._launches)

    def call(self, function: Callable[..., _Result], *args: Any, **kwargs: Any) -> _Result:
        """Call a host function while its launches are recorded: its tensors are the inputs of the
        recording, under the names of its parameters, and what it returns are the results."""
        given = _named(function, args, kwargs)
        self._inputs = {name: recorded(name, each) for name, each in given.items()}
        name = getattr(function, "__name__", "")
        self._name = name if name.isidentifier() else ""
        result = function(*args, **kwargs)
        self._results = list(result) if isinstance(result, tuple | list) else [result]
        return result

    def compile(
        self,
        *others: Launches,
        results: Any = None,
        target: str | Sequence[str] | None = None,
        name: str | None = None,
        doc: str | None = None,
        configs: Mapping[int, Any] | None = None,
        specialize: Specialise = "dispatch",
        options: Any = None,
    ) -> Function:
        """One function of all launches, in their order, with their temporaries and results.

        It takes the tensors that launches take and that were not made in the recording, and returns
        those that the function of `call` returned, or `results`.  Sizes are the recorded ones; with
        `others`, recordings of the same function with other sizes, those that differ are symbols.
        `configs` are the configurations of autotuned kernels by the number of the launch, by
        default 0.

        Raises CompileError for a tensor that PyTorch computed, and for numbers and grids that
        follow from no size.
        """
        if results is not None:
            listed = results if isinstance(results, tuple | list) else [results]
            self._results = list(listed)
        recordings = (self, *others)
        hosts = [each._host() for each in recordings]
        several = [[launch._bound() for launch in each] for each in recordings]
        check_order(several)

        def whole(covered: frozenset[Values] = frozenset()) -> Whole:
            launches = together(several, config_of, covered)
            named = name or self._name or launches[0].kernel.name
            return Whole(named, hosts, launches, self._used_fills(), target, specialize)

        def config_of(at: int) -> Any:
            return (configs or {}).get(at, 0 if several[0][at].kernel.configs else None)

        return whole(whole().covered()).function(doc, options)

    def _host(self) -> Host:
        results = self._results
        if results is None and self._made:
            raise CompileError(
                Diagnostic(
                    "the recording makes tensors, and does not say which of them it returns",
                    expected="launches.compile(results=(y, …)), or launches.call(function, …) in "
                    "the recording",
                )
            )
        listed = [each for each in results or () if each is not None]
        for each in listed:
            if not is_torch(each):
                raise CompileError(f"a result of the recording is {each!r}, which is no tensor")
        found = [recorded(f"result {at}", each) for at, each in enumerate(listed)]
        return Host(self._inputs, found, frozenset(self._made), self._computed)

    def _used_fills(self) -> list[Filled]:
        """The fills of tensors that a launch takes, or that are results."""
        used = {
            recorded("a tensor", each).storage
            for launch in self._launches
            for each in (*launch.arguments, *launch.keywords.values())
            if is_torch(each)
        }
        results = (each for each in self._results or () if is_torch(each))
        used |= {recorded("a result", each).storage for each in results}
        return [each for each in self._fills if each.storage in used]

    # ---- while it records ----

    def _launch(self, kernel: Any, grid: Any, args: tuple[Any, ...], more: dict[str, Any]) -> None:
        self._launches.append(RecordedLaunch(kernel, grid, args, more))

    def _operation(self, operation: str, written: Recorded, kind: Written) -> None:
        """An operation of PyTorch; the memory that it wrote is kept, so that no other has its
        place."""
        self._kept.append(written.owner)
        storage = written.storage
        if kind.is_new:
            self._made.add(storage)
        if kind.value is not None and written.is_whole:
            self._fills.append(Filled(storage, kind.value, len(self._launches)))
        elif kind.is_computed or kind.value is not None:
            self._computed.setdefault(storage, operation)


def _named(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The tensors among the arguments of a call, by the names of the parameters."""
    import inspect

    bound_args = inspect.signature(function).bind(*args, **kwargs).arguments
    return {name: each for name, each in bound_args.items() if is_torch(each)}


@contextlib.contextmanager
def recording(target: str = "sm_90a") -> Iterator[Launches]:
    """Record the launches `kernel[grid](…)` of Triton kernels, of any library, instead of making
    them.

    Inside, host functions run as always, on tensors of the CPU, on fake ones or on device meta, and
    no kernel does; what it would have written is not there.  `target` is the GPU that host
    functions see where they ask for one.  While it records, no other thread may launch kernels.
    """
    (arch, *_) = architectures(target)
    found = Launches()
    with launches_told(found._launch, arch), operations_told(found._operation):
        yield found


def _frozen(name: str, value: Any) -> Any:
    """An example that accepts only this value."""
    if isinstance(value, int | float):
        return Fixed(value)
    if isinstance(value, tuple | list):
        return nest(value, lambda each: _frozen(name, each))
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
    return tensor_like(name, found, constant=len(found.shape))
