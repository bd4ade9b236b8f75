"""The parts that all kinds of parameters share, and the base class of the simple kinds."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any, ClassVar, Final

from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_name
from ferrule.specs.params.traits import Payload, Traits


class Required(Enum):
    """The type of `REQUIRED`, the marker of a parameter without a default."""

    REQUIRED = "required"

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = Required.REQUIRED
"""The default of a parameter that every call gives."""

LONGEST_NAME: Final = 512
"""The limit for names of functions and parameters, in characters.

LLVM truncates names of more than 1024 characters; the limit leaves room for prefixes.
"""


class WithTraits:
    """The base of kinds whose facts are the same for all their parameters."""

    __slots__ = ()
    traits: ClassVar[Traits]

    @property
    def indices(self) -> frozenset[int]:
        """The type indices of the values that it takes."""
        return self.traits.indices


def payload_of(param: object) -> Payload | None:
    """How a call hands over the values of a parameter, where its traits say so; else None."""
    return param.traits.payload if isinstance(param, WithTraits) else None


@dataclass(frozen=True, slots=True)
class Plain(WithTraits):
    """The base of kinds whose other fields, if they have any, are literals.

    In the text of a signature, these fields follow the word of the kind in parentheses.  They have
    defaults, since the default of the parameter stands before them.
    """

    name: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)

    @classmethod
    def literal_fields(cls) -> tuple[str, ...]:
        """The names of the fields besides the name and the default."""
        return tuple(each.name for each in fields(cls) if each.name not in ("name", "default"))


def check_name(name: str) -> str:
    """A parameter's name: an identifier, or the position of an item.  Raises ValueError."""
    if not (isinstance(name, str) and (is_name(name) or name.isdecimal())):
        raise ValueError(f"a parameter's name must be an identifier, but got {name!r}")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a parameter's name has {len(name)} characters, more than {LONGEST_NAME}")
    return name
