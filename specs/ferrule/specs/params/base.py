"""What every kind of parameter has, and the base of those that have no more."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final

from ferrule.specs.expr import is_name


class Required(Enum):
    """Its one member stands where a default would."""

    REQUIRED = "required"

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = Required.REQUIRED
"""The default of a parameter that every call gives."""

BIG_INT: Final = 78
"""An int of more than 64 bits: of the right kind, and out of range for all but uint64."""
DYNAMIC: Final = 128
"""The first type index of registered object types; in a union it stands for all of them."""
STRINGS: Final = frozenset({8, 11, 65})

LONGEST_NAME: Final = 512
"""Of functions and parameters, in characters: LLVM cuts off names of more than 1024."""


@dataclass(frozen=True, slots=True)
class Plain:
    """The base of kinds of which there is nothing to say but the name and the default.

    `word` is what their text calls them, `indices` the type indices of the values that they take.
    """

    name: str
    default: Any = REQUIRED
    word: ClassVar[str]
    indices: ClassVar[frozenset[int]]

    def __post_init__(self) -> None:
        check_name(self.name)


def check_name(name: str) -> str:
    """A parameter's name: an identifier, or the position of an item.  Raises ValueError."""
    if not (isinstance(name, str) and (is_name(name) or name.isdecimal())):
        raise ValueError(f"a parameter's name must be an identifier, but got {name!r}")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a parameter's name has {len(name)} characters, more than {LONGEST_NAME}")
    return name
