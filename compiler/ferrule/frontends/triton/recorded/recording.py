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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.joining import overload
from ferrule.frontends.triton.levels import Specialise
from ferrule.frontends.triton.offline import architectures
from ferrule.frontends.triton.recorded.calls import sizes_taken
from ferrule.frontends.triton.recorded.checks import (
    General,
    check_drawn,
    check_general,
    check_kind_of_general,
    check_reads,
)
from ferrule.frontends.triton.recorded.functions import functions_watched
from ferrule.frontends.triton.recorded.hosts.drawn import asked_of_memory, states
from ferrule.frontends.triton.recorded.hosts.host import Filled, Host
from ferrule.frontends.triton.recorded.hosts.kept import caches_forgotten
from ferrule.frontends.triton.recorded.hosts.parameters import (
    Given,
    given_to,
    givens,
    names_of_texts,
    texts_of,
)
from ferrule.frontends.triton.recorded.hosts.returned import check_results, plain_results, shown
from ferrule.frontends.triton.recorded.launch import RecordedLaunch
from ferrule.frontends.triton.recorded.numbers.deciding import sides_of
from ferrule.frontends.triton.recorded.patches import launches_told, operations_told
from ferrule.frontends.triton.recorded.several import check_order, together
from ferrule.frontends.triton.recorded.tensors import Recorded, is_torch, recorded
from ferrule.frontends.triton.recorded.watching import Watching
from ferrule.frontends.triton.recorded.whole import Whole
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.frontends.triton.recorded.sizes import Values
    from ferrule.runtime import Function

_Result = TypeVar("_Result")


@dataclass(slots=True, eq=False)
class Launches(Watching):
    """What `recording` recorded: launches, and around them tensors that were made, filled, and
    computed by PyTorch."""

    _inputs: dict[str, Recorded] = field(default_factory=dict)
    _given: list[Given] = field(default_factory=list)
    _results: list[Any] | None = None
    _name: str = ""

    def __getitem__(self, number: int) -> RecordedLaunch:
        return self._launches[number]

    def __len__(self) -> int:
        return len(self._launches)

    def __iter__(self) -> Iterator[RecordedLaunch]:
        return iter(self._launches)

    def call(self, function: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> _Result:
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
        self._given = givens(given)
        named = [one for one in self._given if is_torch(one.value) and not one.is_rest]
        self._inputs = {one.name: recorded(one.name, one.value) for one in named}
        name = getattr(function, "__name__", "")
        self._name = name if name.isidentifier() else ""
        given_to(self._reading, given)
        try:
            result = function(*given.args, **given.kwargs)
        finally:
            self._end()
        several = result if isinstance(result, tuple | list) else (result,)
        self._results = [] if result is None else list(several)
        return result

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
        fixed: Sequence[str] = (),
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

        Parameters of the function of `call` keep their places, names and defaults; one that no
        launch takes has the recorded value in each call.  `fixed` names those that calls do not
        give, although what was recorded is not their default.

        Recordings with other texts are functions of their own, among which a call's text chooses;
        and so are those on each side of a comparison of sizes, where one function cannot do both
        and each side has two recordings.

        Raises CompileError for a tensor that PyTorch computed, and for numbers and grids that
        follow from no size.
        """
        check_kind_of_general(general)
        if results is not None:
            listed = results if isinstance(results, tuple | list) else [results]
            self._results = list(listed)
        how = _How(target, name, doc, configs, general, specialize, prune, fixed, options)
        several = _functions(_by_texts((self, *others), fixed), how)
        return several[0] if len(several) == 1 else overload(several)

    def _names(self, others: Sequence[Launches], how: _How) -> list[str]:
        """The names of what differs between recordings."""
        first = self._whole(others, how)
        first.covered()
        return first.names

    def _compile(self, others: Sequence[Launches], how: _How) -> Function:
        """The function of recordings with the same texts."""
        first = self._whole(others, how)
        covered = first.covered()
        check_general(how.general, first.names)
        return self._whole(others, how, covered).function(how.doc, how.options)

    def _whole(
        self, others: Sequence[Launches], how: _How, covered: frozenset[Values] = frozenset()
    ) -> Whole:
        recordings = (self, *others)
        hosts = [each._host() for each in recordings]
        several = [[launch._bound() for launch in each] for each in recordings]
        check_order(several)
        sizes = how.general if isinstance(how.general, bool) else frozenset(how.general)
        logs = [each._reading.log for each in recordings]
        fills = self._same_fills(others)
        is_called = all(each._called for each in recordings)

        def config_of(at: int) -> Any:
            return (how.configs or {}).get(at, 0 if several[0][at].kernel.configs else None)

        launches = together(several, config_of, sizes, covered, logs=logs, is_called=is_called)
        named = how.name or self._name or launches[0].kernel.name
        more = how.target, how.specialize, how.prune, how.fixed
        return Whole(named, hosts, launches, fills, *more)

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
        listed = list(results or ())
        check_results(listed)
        plain, _ = self._reading.log.again(partial(plain_results, listed))
        found = [
            recorded(f"result {at}", each) if is_torch(each) else known
            for at, (each, known) in enumerate(zip(listed, plain, strict=True))
        ]
        tensors = (each for each in found if isinstance(each, Recorded))
        self._check_foreign(frozenset(each.storage for each in tensors))
        check_reads(self._reading)
        check_drawn(self._changed)
        made, shapes = frozenset(self._reading.made), self._reading.shapes
        told = [shown(self._reading, each) if is_torch(each) else None for each in listed]
        called = self._given, self._called
        computed = {**self._reading.shared, **self._computed}
        return Host(self._inputs, found, made, computed, shapes, told, *called)

    def _same_fills(self, others: Sequence[Launches]) -> list[Filled]:
        """The fills, which all recordings have.  CompileError for one that differs."""
        several = [each._used_fills() for each in (self, *others)]
        mine = several[0]
        for filled in several[1:]:
            if [each.same for each in mine] != [each.same for each in filled]:
                raise CompileError(
                    Diagnostic(
                        f"one recording fills tensors with {[each.value for each in mine]}, "
                        f"another with {[each.value for each in filled]}",
                        expected="the same numbers, before the same launches",
                    )
                )
        together = zip(*several, strict=True)
        return [replace(one, others=tuple(more)) for one, *more in together]

    def _used_fills(self) -> list[Filled]:
        """The fills of tensors that a launch takes, that are results, or the caller's."""
        used = {
            recorded("a tensor", each).storage
            for launch in self._launches
            for each in (*launch.arguments, *launch.keywords.values())
            if is_torch(each)
        }
        results = (each for each in self._results or () if is_torch(each))
        used |= {recorded("a result", each).storage for each in results}
        made = self._reading.made
        return [each for each in self._fills if each.storage in used or each.storage not in made]

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


@dataclass(frozen=True, slots=True)
class _How:
    """How recordings are compiled: see `Launches.compile`."""

    target: str | Sequence[str] | None
    name: str | None
    doc: str | None
    configs: Mapping[int, Any] | None
    general: General
    specialize: Specialise
    prune: bool
    fixed: Sequence[str]
    options: Any


def _by_texts(recordings: Sequence[Launches], fixed: Sequence[str]) -> list[list[Launches]]:
    """The recordings with the same texts together, in the order in which these come."""
    names = names_of_texts([each._given for each in recordings]) - {*fixed}
    found: dict[tuple[Any, ...], list[Launches]] = {}
    for each in recordings:
        found.setdefault(texts_of(each._given, names), []).append(each)
    return [*found.values()]


def _functions(groups: Sequence[Sequence[Launches]], how: _How) -> list[Function]:
    """The functions of groups of recordings, one for each way that the host function goes."""
    chosen = [how.general] if len(groups) == 1 else _general_of(groups, how)
    found = list[Any]()
    for (first, *more), each in zip(groups, chosen, strict=True):
        own = replace(how, general=each)
        try:
            found.append(first._compile(more, own))
        except CompileError:
            sides = sides_of([one._reading.log for one in (first, *more)])
            if sides is None or min(map(len, sides)) < 2:
                raise
            several = [first, *more]
            found += _functions([[several[at] for at in side] for side in sides], own)
    return found


def _general_of(groups: Sequence[Sequence[Launches]], how: _How) -> list[General]:
    """What `general` says of each group.  Raises CompileError for a name that none has."""
    if isinstance(how.general, bool) and not how.general:
        return [False for _ in groups]
    several = [_names_of(group, how) for group in groups]
    names = [each for each in several if each is not None]
    if len(names) == len(several):
        check_general(how.general, [each for one in names for each in one])
    if isinstance(how.general, bool):
        return [how.general and (each is None or bool(each)) for each in several]
    listed = how.general
    return [listed if one is None else [each for each in listed if each in one] for one in several]


def _names_of(group: Sequence[Launches], how: _How) -> list[str] | None:
    """What differs in a group of recordings; None if they go several ways, and are divided."""
    first, *more = group
    try:
        return first._names(more, how)
    except CompileError:
        return None


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
    reading.log.begin()
    try:
        with (
            launches_told(found._launch, arch),
            operations_told(found._operation, found._of_data),
            functions_watched(reading),
            sizes_taken(),
            asked_of_memory(reading),
        ):
            found._drawn = states()
            yield found
            if not found._called:
                found._end()
    finally:
        reading.log.end()
        caches_forgotten(reading.log)
        found._around = None
        found._makers.clear()
        if fixed_data:
            reading.log.reads.clear()
