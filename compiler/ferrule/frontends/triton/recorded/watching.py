"""What a recording sees while it runs: launches, and what PyTorch does around them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.recorded.bound import Asking, Followed
from ferrule.frontends.triton.recorded.followed import trees_of
from ferrule.frontends.triton.recorded.grids import asked_early
from ferrule.frontends.triton.recorded.hosts.drawn import States, changed, states
from ferrule.frontends.triton.recorded.hosts.host import Filled
from ferrule.frontends.triton.recorded.launch import RecordedLaunch
from ferrule.frontends.triton.recorded.log import frames
from ferrule.frontends.triton.recorded.numbers.base import Number, numbers_inside, plain
from ferrule.frontends.triton.recorded.numbers.floats import Float
from ferrule.frontends.triton.recorded.patches import Data, Written
from ferrule.frontends.triton.recorded.reading import Reading
from ferrule.frontends.triton.recorded.tensors import Recorded, is_torch, recorded
from ferrule.specs.deferred import dataclass


@dataclass(slots=True, eq=False)
class Watching:
    """What is seen while a recording runs: launches, and around them tensors that were made,
    filled, and computed by PyTorch.

    `_around` is the frame of the `with`, and `_foreign` is the memory that was made there, or by
    another function that it calls than the one which launches: by the parameter that takes it.
    """

    _launches: list[RecordedLaunch] = field(default_factory=list)
    _computed: dict[int, str] = field(default_factory=dict)
    _fills: list[Filled] = field(default_factory=list)
    _kept: list[Any] = field(default_factory=list)
    _reading: Reading = field(default_factory=Reading)
    _around: Any = None
    _makers: dict[int, Any] = field(default_factory=dict)
    _foreign: dict[int, str] = field(default_factory=dict)
    _called: bool = False
    _fixed_data: bool = False
    _drawn: States = field(default_factory=dict)
    """The generators of random numbers before the host function."""
    _changed: list[str] = field(default_factory=list)

    def _launch(self, kernel: Any, grid: Any, args: tuple[Any, ...], more: dict[str, Any]) -> None:
        for each in (*args, *more.values()):
            if isinstance(each, Float) and each.as_float() is None:
                each.take()
            elif not isinstance(each, Number):
                for number in numbers_inside(each):  # as of a tuple, which is compiled in
                    self._reading.hold(number)
        numbers = trees_of({**dict(enumerate(args)), **more})
        of_grid = trees_of(dict(enumerate(grid if isinstance(grid, tuple | list) else (grid,))))
        seen = len(self._reading.log.compared)
        followed = Followed(numbers, of_grid, self._reading, seen)
        made = RecordedLaunch(kernel, plain(grid), plain(args), plain(more), followed)
        made = replace(made, early=_early(made))
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

    def _of_data(self, data: Data) -> None:
        """An operation of PyTorch that reads numbers in tensors, or makes others of them."""
        open_ones = [each for each in data.takes if self._reading.is_derived(each)]
        if open_ones and data.reads:
            self._reading.read("the numbers", open_ones[0])
        drawn = (self._reading.drawn_by(each) for each in open_ones)
        random = data.name if data.is_random else next(filter(None, drawn), "")
        if open_ones or data.is_random or data.is_left:
            self._reading.derive(iter(data.makes), random)

    def _operation(self, operation: str, written: Recorded, kind: Written) -> None:
        """An operation of PyTorch; the memory that it wrote is kept, so that no other has its
        place."""
        self._kept.append(written.owner)
        storage = written.storage
        if kind.is_new:
            self._reading.made.add(storage)
            maker = self._maker()
            self._makers.setdefault(storage, maker)
            if maker is None and not self._called:
                self._reading.body.add(storage)
        if kind.value is not None and written.is_whole:
            if not kind.is_new:
                self._reading.refilled.append(storage)
            tree = self._reading.filling if kind.is_given else None
            self._fills.append(Filled(storage, kind.value, len(self._launches), tree))
            self._reading.settle(storage)
        elif kind.is_computed or kind.value is not None:
            self._computed.setdefault(storage, operation)

    def _end(self) -> None:
        """The host function has returned."""
        if not self._fixed_data:
            self._changed = changed(self._drawn, states())

    def _forget(self) -> None:
        """What was made until now is the caller's, not the host function's."""
        self._reading.forget()
        self._computed.clear()
        self._fills.clear()
        self._reading.log.reads.clear()
        self._drawn = states()


def _early(launch: RecordedLaunch) -> Mapping[Hashable, Asking]:
    if not callable(launch.grid):
        return {}
    try:
        return asked_early(launch.bound())
    except CompileError:  # of a kernel that cannot be compiled: whoever compiles it is told
        return {}


def _is_ours(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("ferrule", "torch")
