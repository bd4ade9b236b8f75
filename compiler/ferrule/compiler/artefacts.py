"""What one stage hands to the next between a body and an object: frozen data, inspectable text.

`Body` is made by a lowering (of the kernel IR for the CPU, later of others); `HostModule` adds the
wrapper; `runtime.ObjectCode` is what both become for one export name and CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from ferrule.runtime.links import Link
from ferrule.specs import Dim, Signature, Sym

if TYPE_CHECKING:
    from ferrule.compiler.cuda.code import DeviceCode


@dataclass(frozen=True, slots=True)
class Location:
    """Where something comes from in the user's source: file, function, 1-based line."""

    file: str
    function: str
    line: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A way in which a body can fail: class of the error and its message.

    Each placeholder of the message stands for the next of the int64 values that come with it, at
    most `FAULT_ROOM`: `{}` for the number, `{text}` for the NUL-terminated UTF-8 text at that
    address, nothing for a null pointer.  Others show `{unsigned}` a number without a sign,
    `{bool}` one as True or False, `{float}` the bits of a float64 as C's `%g`, `{dtype}` and
    `{device}` the bits of one, `{type}` the name of a type index, and `{bytes}` the text at an
    address, whose length is the value
    behind it.  `{{` and `}}` stand for braces, see `literal`; any other brace is what it is.
    """

    kind: str
    message: str
    location: Location | None = None


MAX_FAULT_VALUES = 8
"""Values that a fault of a kernel language may show."""

FAULT_ROOM = 16
"""Values that there is room for, which code of the generators may use."""

RAISED = -(1 << 30)
"""What a body returns that has set the error itself."""


def literal(text: str) -> str:
    """A text as part of the message of a `Fault`: none of it is a placeholder."""
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True, slots=True)
class Relation:
    """Two sizes that must be equal before the body may run, and what to call them in the error."""

    left: Dim
    right: Dim
    left_name: str
    right_name: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """Machine code that others made, as assembly: it is in an object once, whoever needs it.

    `digest` names it, `machine` is the processor that it is for, `functions` are those that can be
    called and `undefined` the symbols that it needs.  Made by `embedding.embed`.
    """

    digest: str
    machine: str
    functions: tuple[str, ...]
    undefined: tuple[str, ...]
    assembly: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Foreign:
    """That LLVM IR is not ferrule's own: the triple that it was compiled for once, whether it may
    be for others too, and LLVM's names of what a CPU must have for it beyond the baseline."""

    triple: str
    is_portable: bool
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """LLVM code that becomes a part of another module, whose function `entry` is `symbol` there.

    `parts` are those that it needs itself, `embedded` is machine code that goes with it, `foreign`
    says that others wrote the text.  A part without an entry has functions whose names are unlike
    any other.  One with a `machine` is for that processor alone: there is one of this symbol for
    each that the function can be compiled for.
    """

    symbol: str
    entry: str
    text: str = field(repr=False)
    parts: tuple[Part, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    foreign: Foreign | None = None
    machine: str = ""

    @property
    def features(self) -> frozenset[str]:
        """What a CPU must have for the code that others wrote, see `Foreign`."""
        own = () if self.foreign is None else self.foreign.features
        return frozenset(own).union(*(part.features for part in self.parts))

    @property
    def digest(self) -> str:
        """A name that only the same code has."""
        inner = (*(part.digest for part in self.parts), *(each.digest for each in self.embedded))
        said = "\0".join((self.symbol, self.entry, self.text, *inner))
        return sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Body:
    """An unoptimised LLVM module with one external function, which does the work.

    LLVM verifies it when it makes the object.

    The function `symbol` has the C type `int32_t (int64_t* values, <parameters>, <symbols>)`:
    for each parameter of the signature its leaves, then the value of each of `symbols`, i32 or i64
    by its width.  Where the signature has a result, `int64_t* results` follows `values`, which is
    where the function leaves the result's leaves, see `wrapper.results`.  With `device_code`, and
    where it `takes_device`, an i32 follows: the index
    of the GPU on which the call's tensors are, -1 if it has none.  The leaves of a parameter are

    * tensor: the address of its first element, `ptr`; pointer, stream, env stream: the address;
    * scalar: bool as i8, intN as iN, float32 as float, float64 as double, 2-byte floats as their
      bits in i16;
    * shape, None, constant: nothing, for the symbols and the signature say it all;
    * tuple: the leaves of its items; optional: i8, 1 where it is present, then the item's leaves;
      union: i32, the position of the member that came, then the leaves of every member; leaves of
      what did not come are zero;
    * string, bytes: address `ptr` and length i64; dtype: its 4 bytes, i32; device: its 8 bytes,
      i64;
    * function, array, list, map, dict, object, module: the object, `ptr`; any: the address of its
      TVMFFIAny.

    `location` is where the function comes from, for the traceback of an error.  `parts` is code
    that the module calls, `links` are the symbols that it needs of other objects.  With `keeps`, a
    `TVMFFIAny*` follows `results`, so many values, all None at first: the result's strings may lie
    in them, and the caller releases them when it has made the result.

    It returns 0, or i + 1 after it wrote the values of `faults[i]` to `values` (room for
    `FAULT_ROOM`), or, if it has any fault, `RAISED` where it has set the error itself.  Where
    it does not return 0 it has given nothing away.
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

    @property
    def part(self) -> Part:
        """The code of the body, for a module that calls it."""
        return Part(self.symbol, self.symbol, self.text, self.parts)

    def placed(self, location: Location | None) -> Body:
        """The same body with the place that its function comes from, which is also that of faults
        without one; without any place for None."""
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
    """Wrapper and body, unoptimised: what an object is made from.

    `wrapper` exports `__tvm_ffi_<signature.name>` and calls `body.symbol`.
    `opt_level`, from 0 to 3, is how far the body is optimised.  An overload has
    `candidates`, and their bodies as the parts of its own, which has no function.  `needed` are the
    handlers of the support code that the wrapper's constants mean, None for all.
    """

    signature: Signature
    wrapper: str
    body: Body
    opt_level: int = 3
    candidates: tuple[HostModule, ...] = ()
    needed: frozenset[str] | None = None
