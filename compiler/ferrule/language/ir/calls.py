"""The ops of host functions that call other functions and receive their results."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from ferrule.compiler.artefacts import Fault, Location, Part
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.language.ir.objects import DTypeText, Keep, Member
from ferrule.language.ir.operation import Operation, Result
from ferrule.language.ir.types import object_slots
from ferrule.language.ir.values import Value
from ferrule.runtime.entry.key import CallTraits
from ferrule.runtime.linking.links import Link
from ferrule.specs import Param, Sym
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "ArgumentKind",
    "Call",
    "CallBody",
    "Callee",
    "Extern",
    "Imported",
    "Linked",
    "Outgoing",
    "Receive",
    "Received",
]

ArgumentKind = Literal[
    "none",
    "bool",
    "int",
    "unsigned",
    "float",
    "text",
    "bytes",
    "dtype",
    "device",
    "pointer",
    "object",
    "any",
    "tensor",
]


@dataclass(frozen=True, slots=True)
class Extern:
    """A function with the packed ABI in another object.  `source` is its origin in this process: a
    function, or None for the library of the link."""

    link: Link
    name: str
    source: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Imported:
    """A function of a module that the program's module imports, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Linked:
    """A compiled function whose code becomes a part of the program's.

    `body` is the code of its host function, which returns `result` and may fail with `faults`; it
    `takes_device`, and stores `keeps` values after its result.  `wrapper` is the code of its
    wrapper.  `written` are the positions of the body's tensor arguments that it writes.  `sources`
    are functions of this process for its links, by symbol; `code` are its kernels.
    """

    name: str
    body: Part
    wrapper: Part
    faults: tuple[Fault, ...]
    result: Param | None
    takes_device: bool
    keeps: int
    traits: CallTraits
    links: tuple[Link, ...] = ()
    written: frozenset[int] = frozenset()
    sources: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    code: DeviceCode | None = None


Foreign = str | Extern | Imported | Linked | Member | Keep | DTypeText
"""A callee of a `Call` that is not a value."""
Callee = Value | Foreign
"""The callee of a `Call`."""


@dataclass(frozen=True, slots=True, eq=False)
class Call(
    Operation,
    text="call {callee:callee}({kinds}; {arguments})",
    effects=("reads", "writes", "makes", "shows", "fails", "blocks", "calls", "asks"),
    place="host",
):
    """Calls a function of tvm-ffi (host only): one that is registered under a name, a handle, one
    of another object, of an imported module, a linked one through its wrapper, a member of a
    registered type, `Keep`, or `DTypeText`.

    `kinds` are the kinds of the arguments, `arguments` their values in order: for `none` no value,
    for `text` and `bytes` the handle and the length, for others one value.  `wanted` is the
    expected result: an Int64 for `int`, `bool` (0 or 1) and `uint` (the bits of a Uint64), a
    Float64 for `float`; 0 for `nothing`, which accepts any result; for `any` a handle of the value,
    which is valid until the call of the program ends, or the same op runs again.
    """

    result: Result
    callee: Value | Foreign
    kinds: tuple[ArgumentKind, ...]
    arguments: tuple[Value, ...]
    wanted: Literal["nothing", "int", "uint", "bool", "float", "any"]
    location: Location | None = None

    @property
    def kept(self) -> int:
        """See `Operation`."""
        return int(self.wanted == "any")


@dataclass(frozen=True, slots=True, eq=False)
class CallBody(
    Operation,
    text="call_body @{callee.name}({arguments})",
    effects=("reads", "writes", "makes", "shows", "fails", "calls", "asks"),
    place="host",
):
    """Calls the body of a linked function (host only), whose checks are known to succeed.

    `arguments` are the leaves of its parameters, then the values of its symbols, each with the
    body's type.  The result is a handle of the parts that it stores.  `made` are symbols of the
    program that get their values here: each is the size of the tensor at this position of the
    parts, along this dim.
    """

    result: Result
    callee: Linked
    arguments: tuple[Value, ...]
    made: tuple[tuple[Sym, int, int], ...] = ()
    location: Location | None = None

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The sizes of tensors that the body returns."""
        return tuple(symbol for symbol, _, _ in self.made)

    @property
    def objects(self) -> int:
        """The objects among the results."""
        return len(object_slots(self.callee.result))

    @property
    def kept(self) -> int:
        """The values that the results are inside of."""
        return self.callee.keeps

    @property
    def written(self) -> tuple[Value, ...]:
        """The arguments that the body writes to."""
        return tuple(self.arguments[position] for position in sorted(self.callee.written))


@dataclass(frozen=True, slots=True, eq=False)
class Receive(
    Operation, text="receive {value} as {shown!r}", effects=("reads", "fails", "asks"), place="host"
):
    """Ends the call with an error unless a received value matches its spec (host only).

    `shown` is the call in messages.  The result is a handle of the leaves of the value, followed by
    the values of the spec's symbols.  `made` are the program's symbols that get their values here,
    each with its position.
    """

    result: Result
    value: Value
    param: Param
    shown: str
    made: tuple[tuple[Sym, int], ...] = ()
    location: Location | None = None

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The sizes in the value."""
        return tuple(symbol for symbol, _ in self.made)


@dataclass(frozen=True, slots=True, eq=False)
class Received(Operation, text="part {position} of {parts}", effects=("reads",), place="host"):
    """One part of a received result, by its position.

    For a `CallBody`, a tensor is its object, which is known then.  For a `Receive` the object of a
    tensor is known if it has an `owner`, the handle of the value, in which `path` leads to the
    tensor: the positions of items of tuples.
    """

    result: Result
    parts: Value
    position: int
    owner: Value | None = None
    path: tuple[int, ...] = ()


Outgoing = Call | CallBody | Receive | Received
"""Ops that call and receive, with one result and no region."""
