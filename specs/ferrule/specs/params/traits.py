"""The facts of a kind of parameter that are data: every consumer reads them here.

A kind has one record, `Kind.traits`, if its answers are the same for all parameters of it.  What
is left to consumers are the kinds whose answers depend on their fields: numbers, tensors, tuples,
optionals, unions, constants.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from ferrule.specs.deferred import dataclass

LeafType = Literal["i32", "i64", "ptr"]


class Payload(Enum):
    """How a `TVMFFIAny` holds a value of a kind, and so what the body gets."""

    NOTHING = "nothing"
    """No payload and no leaf."""
    BITS = "bits"
    """The low bits of the payload; one leaf, an integer."""
    BYTES = "bytes"
    """In the payload, in an object, or behind the address; two leaves: address and length."""
    ADDRESS = "address"
    """An opaque pointer, an int or None; one leaf, the address."""
    OBJECT = "object"
    """A counted reference; one leaf, the object's address."""
    ANY = "any"
    """Any of these; one leaf, the address of the `TVMFFIAny` itself."""


@dataclass(frozen=True, slots=True)
class CArgument:
    """An argument of a C function: its type, its type index and its field of the `TVMFFIAny`."""

    type: str
    index: str
    field: str


@dataclass(frozen=True, slots=True)
class Traits:
    """The facts of one kind.

    `word`: the kind in a signature's text.  `payload`: how a call hands a value over.  `indices`:
    the type indices that a call takes.  `stored`: those that such a value has as a result or in a
    container; none for an object of any type.  `schema`: the type in tvm-ffi's schemas.  `leaves`:
    the LLVM types of what the body gets.  `description`: what messages of the compiler call a
    value.  `words`: what messages of a call list as wanted; the word alone by default.  `python`:
    the type in stubs.  `c`: the argument of a C function; a `TVMFFIAny` by default.  `accepted`:
    the types of values that tvm-ffi passes on as they are, names of builtins and of classes such as
    `tvm_ffi.Array`.  `forms`: the forms of values that a direct call reads by itself, as
    `runtime.entry.readers.Form` names them; of other values the wrapper decides.
    """

    word: str
    payload: Payload
    indices: frozenset[int]
    stored: tuple[int, ...]
    schema: str
    leaves: tuple[LeafType, ...]
    description: str
    words: tuple[str, ...] = ()
    python: str = "Any"
    c: CArgument | None = None
    accepted: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()

    @property
    def expected(self) -> tuple[str, ...]:
        """The words of a message about a wrong value."""
        return self.words or (self.word,)
