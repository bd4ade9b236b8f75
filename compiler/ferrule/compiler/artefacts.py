"""The stages of a compilation: their times, and the data that they pass on between a body and an
object, frozen, with inspectable text.

`Body` is made by a lowering (of the kernel IR for the CPU, later of others); `HostModule` adds the
wrapper; `runtime.ObjectCode` is what both become for one export name and CPU.

`stage` says what a piece of code is for. Where somebody asks, by `recorded`, it is timed, one stage
in another; otherwise it only looks whether somebody does, which takes a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from hashlib import sha256
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.runtime.linking.links import Link
from ferrule.specs import Dim, Signature, Sym
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cuda.code import DeviceCode


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a function is from, in words, and what its key in the cache depends on."""

    text: str
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pages:
    """Makes the page about a function: each of `subjects` collects the facts about one of its
    bodies, and `show` makes the page of all of them."""

    subjects: tuple[Callable[[], Any], ...]
    show: Callable[[Sequence[Any], Kept], str]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source: file, function, 1-based line."""

    file: str
    function: str
    line: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A way in which a body can fail: the class of the error, and its message.

    Each placeholder of the message shows the next of the fault's int64 values (at most
    `FAULT_ROOM`): `{}` a signed number, `{unsigned}` an unsigned number, `{bool}` True or False,
    `{float}` the bits of a float64, formatted like C's `%g`, `{dtype}` and `{device}` the bits of a
    dtype or device, `{type}` the name of a type index, `{text}` the NUL-terminated UTF-8 text at an
    address (nothing for a null pointer), and `{bytes}` the text at an address, with the next value
    as its length.  `{{` and `}}` are braces, see `literal`; any other brace is shown unchanged.
    """

    kind: str
    message: str
    location: Location | None = None


MAX_FAULT_VALUES = 8
"""The number of values that a fault of the kernel language may show."""

FAULT_ROOM = 16
"""The number of values that the buffer holds; faults of generated code may show so many."""

RAISED = -(1 << 30)
"""The status that a body returns after it has set the error itself."""


def literal(text: str) -> str:
    """Escape a text for the message of a `Fault`, so that nothing in it is a placeholder."""
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True, slots=True)
class Relation:
    """Two sizes that must be equal before the body runs, and their names in the error."""

    left: Dim
    right: Dim
    left_name: str
    right_name: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """Foreign machine code, as assembly; an object contains it once, even if several parts need it.

    `digest` identifies it, `machine` is its processor, `functions` are the functions that can be
    called, and `undefined` its undefined symbols.  Made by `embedding.embed`.
    """

    digest: str
    machine: str
    functions: tuple[str, ...]
    undefined: tuple[str, ...]
    assembly: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Foreign:
    """Facts about foreign LLVM IR: the triple for which it was compiled once, whether it may be
    compiled for other triples, and the CPU features (LLVM's names) that it needs beyond the
    baseline."""

    triple: str
    is_portable: bool
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """LLVM code that is linked into another module; there its function `entry` is named `symbol`.

    `parts` are the parts that it needs itself, `embedded` is machine code that it needs, `foreign`
    marks foreign LLVM IR.  A part without an entry has functions with unique names.  A part with a
    `machine` is for this processor only: there is one part with this symbol for each processor for
    which the function can be compiled.  `fused`: it multiplies and adds in one operation, which a
    CPU without an instruction for it would do slowly.
    """

    symbol: str
    entry: str
    text: str = field(repr=False)
    parts: tuple[Part, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    foreign: Foreign | None = None
    machine: str = ""
    fused: bool = False

    @property
    def features(self) -> frozenset[str]:
        """The CPU features that the foreign code needs, see `Foreign`."""
        own = () if self.foreign is None else self.foreign.features
        return frozenset(own).union(*(part.features for part in self.parts))

    @property
    def needs_fma(self) -> bool:
        """Whether this or a part of it is `fused`."""
        return self.fused or any(part.needs_fma for part in self.parts)

    @property
    def digest(self) -> str:
        """A hash of the code: equal digests mean the same code."""
        inner = (*(part.digest for part in self.parts), *(each.digest for each in self.embedded))
        said = "\0".join((self.symbol, self.entry, self.text, *inner))
        return sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Body:
    """An unoptimised LLVM module with one external function, which the wrapper calls.

    LLVM verifies it when it makes the object.

    The function `symbol` has the C type `int32_t (int64_t* values, <parameters>, <symbols>)`:
    the leaves of each parameter of the signature, then the value of each of `symbols`, i32 or i64
    by its width, and for each of `objects` a `ptr`: the Tensor object of an argument, borrowed.
    Each of `objects` is a way to a tensor: the position of an argument, then positions in tuples.
    If the signature has a result, `int64_t* results` follows `values`: the function stores the
    result's leaves there, see `wrapper.results`.  With `device_code`, and if the body
    `takes_device`, an i32 follows at the end: the index of the GPU with the call's tensors, or -1
    if there are none.  A *leaf* is a C value that represents a part of an argument:

    * tensor: the address of its first element, `ptr`; pointer, stream, env stream: the address;
    * scalar: bool as i8, intN as iN, float32 as float, float64 as double, 2-byte floats as their
      bits in i16;
    * shape, None, constant: no leaves, because symbols and signature determine the values;
    * tuple: the leaves of its items; optional: i8, 1 where it is present, then the item's leaves;
      union: i32, the position of the actual member, then the leaves of every member; leaves of an
      absent item and of other members are zero;
    * string, bytes: address `ptr` and length i64; dtype: its 4 bytes, i32; device: its 8 bytes,
      i64;
    * function, array, list, map, dict, object, module: the object, `ptr`; any: the address of its
      TVMFFIAny.

    `location` is the source of the function, for the traceback of an error.  `parts` is code that
    the module calls, `links` are its undefined symbols.  With `keeps`, a `TVMFFIAny*` follows
    `results`: an array of so many values, all None at first.  The body may store the result's
    strings there, and the caller releases them after it has made the result.  `fused`: see `Part`.

    The function returns 0 on success.  It returns i + 1 after it has written the values of
    `faults[i]` to `values` (which has room for `FAULT_ROOM`), or `RAISED` after it has set the
    error itself.  If it does not return 0, it has not passed ownership of any object to the caller.
    """

    text: str
    symbol: str
    symbols: tuple[Sym, ...]
    faults: tuple[Fault, ...] = ()
    relations: tuple[Relation, ...] = ()
    location: Location | None = None
    device_code: DeviceCode | None = None
    takes_device: bool = False
    parts: tuple[Part, ...] = ()
    links: tuple[Link, ...] = ()
    keeps: int = 0
    fused: bool = False
    objects: tuple[tuple[int, ...], ...] = ()

    @property
    def part(self) -> Part:
        """The code of the body, for a module that calls it."""
        return Part(self.symbol, self.symbol, self.text, self.parts, fused=self.fused)

    def placed(self, location: Location | None) -> Body:
        """The same body with this location, also for faults without a location of their own; None
        removes all locations."""
        if location is not None:
            faults = tuple(
                fault if fault.location is not None else replace(fault, location=location)
                for fault in self.faults
            )
            return replace(self, location=location, faults=faults)
        faults = tuple(replace(fault, location=None) for fault in self.faults)
        relations = tuple(replace(relation, location=None) for relation in self.relations)
        return replace(self, location=None, faults=faults, relations=relations)


@dataclass(frozen=True, slots=True)
class HostModule:
    """The unoptimised wrapper and body of an object.

    `wrapper` exports `__tvm_ffi_<signature.name>` and calls `body.symbol`.
    `opt_level`, from 0 to 3, is the optimisation level of the body.  An overload has `candidates`;
    its own body has no function, only the bodies of the candidates as parts.  `needed` are the
    handlers of the support code that the wrapper's constants refer to; None means all handlers.
    """

    signature: Signature
    wrapper: str
    body: Body
    opt_level: int = 3
    candidates: tuple[HostModule, ...] = ()
    needed: frozenset[str] | None = None


# ---- times ----


class Stage(NamedTuple):
    """A stage, its seconds, and the stages inside of it in order, which may take less together."""

    name: str
    about: str
    seconds: float
    parts: tuple[Stage, ...] = ()


_FOUND: ContextVar[list[Stage] | None] = ContextVar("stages", default=None)
"""The stages of the one that runs, as far as they are over."""


@contextmanager
def recorded() -> Iterator[list[Stage]]:
    """A list to which the code inside adds its stages."""
    found: list[Stage] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


class stage:
    """`with stage("verify", "…"):` what runs inside is a stage; it is used as a function."""

    __slots__ = ("about", "began", "name", "outer")

    def __init__(self, name: str, about: str = "") -> None:
        self.name = name
        self.about = about

    def __enter__(self) -> None:
        self.outer = _FOUND.get()
        if self.outer is not None:
            _FOUND.set([])
            self.began = perf_counter()

    def __exit__(self, *_: object) -> None:
        if self.outer is not None:
            seconds = perf_counter() - self.began
            parts = tuple(_FOUND.get() or ())
            _FOUND.set(self.outer)
            self.outer.append(Stage(self.name, self.about, seconds, parts))
