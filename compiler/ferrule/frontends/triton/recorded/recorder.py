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
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import seen, tensor_like
from ferrule.frontends.triton.arguments import Descriptor, Fixed
from ferrule.frontends.triton.compiling import compile
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.levels import Specialise
from ferrule.frontends.triton.offline import architectures
from ferrule.frontends.triton.recorded.followed import frames, plain, trees_of
from ferrule.frontends.triton.recorded.launches import (
    Followed,
    bound,
    check_order,
    example_of,
    together,
)
from ferrule.frontends.triton.recorded.patches import Written, launches_told, operations_told
from ferrule.frontends.triton.recorded.reading import Reading, functions_watched
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
    from ferrule.specs import Sym

_Result = TypeVar("_Result")
General = bool | Sequence[str]
"""Whether sizes may be others than those between the recorded ones, or which."""


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch, `kernel[grid](*arguments, **keywords)`; some keywords are Triton's options.

    `followed` says how its numbers were made of sizes.
    """

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    followed: Followed = field(default_factory=Followed, repr=False, compare=False)

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
        launch = self._bound()
        options: Mapping[str, Any] = launch.options
        chosen, examples, conditions = grid, dict[str, Any](), [*requires]
        if others:
            one = _together((self, *others), how.get("config"), general)
            examples = {name: view.tensor for name, view in one.views.items()}
            examples |= one.examples_of_constants()
            examples |= {name: example_of(each) for name, each in one.numbers().items()}
            chosen = one.grid() if grid is None else grid
            options = one.options
            conditions += one.following.requirements()
        else:
            check_general(general, ())
            constexprs = launch.kernel.constexprs
            examples = {
                name: launch.constant(name, value) if name in constexprs else _frozen(name, value)
                for name, value in launch.given.items()
            }
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
        return Writer(_together((self, *others), config, general)).text()

    def _bound(self) -> Bound:
        check_reads(self.followed.reading)
        return bound(self.kernel, self.grid, self.arguments, self.keywords, self.followed)


def _together(launches: Sequence[RecordedLaunch], config: Any, general: General) -> Together:
    several = [[each._bound()] for each in launches]
    configs = several[0][0].kernel.configs
    chosen = 0 if config is None and configs else config
    named = general if isinstance(general, bool) else frozenset(general)
    (one,) = together(several, lambda _: chosen, named)
    one.read_tensors()
    (again,) = together(several, lambda _: chosen, named, one.covered())
    again.read_tensors()
    check_general(general, again.sizes.symbols)
    return again


def check_general(general: General, symbols: Iterable[Sym]) -> None:
    """Raises CompileError for a name of `general` that no size has, or for sizes that are all the
    same."""
    names = {str(each) for each in symbols}
    for name in () if isinstance(general, bool) else general:
        if name not in names:
            raise CompileError(
                Diagnostic(
                    f"general names {name!r}, which is no size that differs between recordings",
                    expected=", ".join(sorted(names)) or "two recordings with other sizes",
                )
            )
    if general and not names:
        raise CompileError(
            Diagnostic(
                "general, but all sizes are those of the one recording",
                hint="give another recording, of other sizes",
            )
        )


def check_reads(reading: Reading) -> None:
    """Raises CompileError if the host function read what a recording cannot follow."""
    for read in reading.log.reads[:1]:
        raise CompileError(
            Diagnostic(
                f"the host function reads {read.what} at {read.where}: in every call these would "
                "be those of the recording",
                expected="a host function of sizes alone",
                hint="give what it reads as a number of its own, and read it in a function around "
                "it; or where it is the same in every call, recording(fixed_data=True)",
            )
        )


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
    computed by PyTorch.

    `_around` is the frame of the `with`, and `_foreign` is the memory that was made there, or by
    another function that it calls than the one which launches: by the parameter that takes it.
    """

    _launches: list[RecordedLaunch] = field(default_factory=list)
    _inputs: dict[str, Recorded] = field(default_factory=dict)
    _results: list[Any] | None = None
    _computed: dict[int, str] = field(default_factory=dict)
    _fills: list[Filled] = field(default_factory=list)
    _kept: list[Any] = field(default_factory=list)
    _name: str = ""
    _reading: Reading = field(default_factory=Reading)
    _fixed_data: bool = False
    _around: Any = None
    _makers: dict[int, Any] = field(default_factory=dict)
    _foreign: dict[int, str] = field(default_factory=dict)
    _called: bool = False

    def __getitem__(self, number: int) -> RecordedLaunch:
        return self._launches[number]

    def __len__(self) -> int:
        return len(self._launches)

    def __iter__(self) -> Iterator[RecordedLaunch]:
        return iter(self._launches)

    def call(self, function: Callable[..., _Result], *args: Any, **kwargs: Any) -> _Result:
        """Call a host function while its launches are recorded: its tensors are the inputs of the
        recording, under the names of its parameters, and what it returns are the results.

        Raises CompileError for a second call, and after a launch: that is another recording.
        """
        if self._called or self._launches:
            raise CompileError(
                "a recording is of one host function: call each in a recording of its own, or "
                "all in one function"
            )
        self._called = True
        self._forget()
        given = _named(function, args, kwargs)
        named = {name: each for name, each in given.arguments.items() if is_torch(each)}
        self._inputs = {name: recorded(name, each) for name, each in named.items()}
        name = getattr(function, "__name__", "")
        self._name = name if name.isidentifier() else ""
        for name, each in given.arguments.items():
            given.arguments[name] = self._reading.given(name, each)
        result = function(*given.args, **given.kwargs)
        self._results = list(result) if isinstance(result, tuple | list) else [result]
        return result

    def _forget(self) -> None:
        """What was made until now is the caller's, not the host function's."""
        self._reading.made.clear()
        self._computed.clear()
        self._fills.clear()
        self._reading.log.reads.clear()

    def compile(
        self,
        *others: Launches,
        results: Any = None,
        target: str | Sequence[str] | None = None,
        name: str | None = None,
        doc: str | None = None,
        configs: Mapping[int, Any] | None = None,
        general: General = False,
        specialize: Specialise = "dispatch",
        prune: bool = True,
        options: Any = None,
    ) -> Function:
        """One function of all launches, in their order, with their temporaries and results.

        It takes the tensors that launches take and that were not made in the recording, and returns
        those that the function of `call` returned, or `results`.  Sizes are the recorded ones; with
        `others`, recordings of the same function with other sizes, those that differ are symbols:
        they lie between the smallest and the largest that were recorded.  With `general` they are
        any for which the comparisons of the host function come out as in a recording, or those with
        these names are.  `configs` are the configurations of autotuned kernels by the number of the
        launch, by default 0; `specialize` and `prune` are as for `compile` of a kernel.

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
        sizes = general if isinstance(general, bool) else frozenset(general)
        logs = [each._reading.log for each in recordings]
        fills = self._same_fills(others)

        def whole(covered: frozenset[Values] = frozenset()) -> Whole:
            launches = together(several, config_of, sizes, covered, logs=logs)
            named = name or self._name or launches[0].kernel.name
            return Whole(named, hosts, launches, fills, target, specialize, prune)

        def config_of(at: int) -> Any:
            return (configs or {}).get(at, 0 if several[0][at].kernel.configs else None)

        first = whole()
        covered = first.covered()
        check_general(general, first.sizes.symbols)
        return whole(covered).function(doc, options)

    def _host(self) -> Host:
        results = self._results
        if results is None and self._reading.made:
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
        self._check_foreign(frozenset(each.storage for each in found))
        check_reads(self._reading)
        return Host(self._inputs, found, frozenset(self._reading.made), self._computed)

    def _same_fills(self, others: Sequence[Launches]) -> list[Filled]:
        """The fills, which all recordings have.  CompileError for one that differs."""
        mine = self._used_fills()
        first = [(each.value, each.before) for each in mine]
        for recording in others:
            other = [(each.value, each.before) for each in recording._used_fills()]
            if first != other:
                raise CompileError(
                    Diagnostic(
                        f"one recording fills tensors with {[each for each, _ in first]}, another "
                        f"with {[each for each, _ in other]}",
                        expected="the same numbers, before the same launches",
                    )
                )
        return mine

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

    def _check_foreign(self, results: frozenset[int]) -> None:
        """Raises CompileError for a tensor that may be an argument: it was made in the recording,
        outside of the function that launches."""
        for storage, name in self._foreign.items():
            if storage not in results:
                raise CompileError(
                    Diagnostic(
                        f"{name} is a tensor that was made inside of the recording, and not by the "
                        "function that launches: as an argument it is the caller's, as a temporary "
                        "the function's",
                        hint="make arguments before the `with`, or record launches.call(function, "
                        "…), where everything else is the caller's",
                    )
                )

    # ---- while it records ----

    def _launch(self, kernel: Any, grid: Any, args: tuple[Any, ...], more: dict[str, Any]) -> None:
        numbers = trees_of({**dict(enumerate(args)), **more})
        of_grid = trees_of(dict(enumerate(grid if isinstance(grid, tuple | list) else (grid,))))
        seen = len(self._reading.log.compared)
        followed = Followed(numbers, of_grid, self._reading, seen)
        made = RecordedLaunch(kernel, plain(grid), plain(args), plain(more), followed)
        self._note_makers(made)
        self._reading.derive(each for each in (*args, *more.values()) if is_torch(each))
        self._launches.append(made)

    def _note_makers(self, launch: RecordedLaunch) -> None:
        """Find the tensors of a launch that another function made than the one which launches."""
        if self._called:
            return
        maker = self._maker()
        names = getattr(launch.kernel, "arg_names", None) or ()
        named = {**dict(zip(names, launch.arguments, strict=False)), **launch.keywords}
        for name, each in named.items():
            if is_torch(each):
                storage = recorded(name, each).storage
                by = self._makers.pop(storage, maker)
                if storage in self._reading.made and (by is None or by is not maker):
                    self._foreign.setdefault(storage, name)

    def _maker(self) -> Any:
        """The function that the body of the `with` calls now; None for the body itself."""
        inner = None
        for frame in frames():
            if frame is self._around:
                return inner if inner is None or not _is_ours(inner) else None
            inner = frame if not _is_ours(frame) else inner
        return self

    def _of_data(self, reads: bool, tensors: list[Any], results: list[Any]) -> None:
        """An operation of PyTorch that `reads` numbers in tensors, or derives others of them."""
        if self._reading.is_derived(*tensors):
            if reads and tensors:
                self._reading.read("the numbers", tensors[0])
            self._reading.derive(iter(results))

    def _operation(self, operation: str, written: Recorded, kind: Written) -> None:
        """An operation of PyTorch; the memory that it wrote is kept, so that no other has its
        place."""
        self._kept.append(written.owner)
        storage = written.storage
        if kind.is_new:
            self._reading.made.add(storage)
            self._makers.setdefault(storage, self._maker())
        if kind.value is not None and written.is_whole:
            self._fills.append(Filled(storage, kind.value, len(self._launches)))
        elif kind.is_computed or kind.value is not None:
            self._computed.setdefault(storage, operation)


def _is_ours(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("ferrule", "torch")


def _named(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The arguments of a call, by the names of the parameters."""
    import inspect

    return inspect.signature(function).bind(*args, **kwargs)


def recording(
    target: str = "sm_90a", *, fixed_data: bool = False
) -> contextlib.AbstractContextManager[Launches]:
    """A context in which launches `kernel[grid](…)` of Triton kernels, of any library, are recorded
    instead of made; it gives `Launches`.

    Inside, host functions run as always, on tensors of the CPU, on fake ones or on device meta, and
    no kernel does; what it would have written is not there.  `target` is the GPU that host
    functions see where they ask for one.  What they read of the numbers in a tensor cannot be
    followed: with `fixed_data` it is the same in every call, else such a recording is not compiled.
    While it records, no other thread may launch kernels.
    """
    return _recording(target, fixed_data, sys._getframe(1))


@contextlib.contextmanager
def _recording(target: str, fixed_data: bool, around: Any) -> Iterator[Launches]:
    (arch, *_) = architectures(target)
    found = Launches(_fixed_data=fixed_data, _around=around)
    reading = found._reading
    try:
        with (
            launches_told(found._launch, arch),
            operations_told(found._operation, found._of_data),
            functions_watched(reading),
        ):
            yield found
    finally:
        found._around = None
        found._makers.clear()
        if fixed_data:
            reading.log.reads.clear()


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
