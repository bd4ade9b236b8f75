"""Components of the ops of the kernel IR: values, regions, and common words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ferrule.language.ir.types import TensorType, Type
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "AXES",
    "Region",
    "Value",
]

if TYPE_CHECKING:
    from ferrule.language.ir.ops import Op

AXES: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One value, equal only to itself.  `hint` is the preferred name in the text."""

    type: Type
    hint: str = ""

    @property
    def tensor(self) -> TensorType:
        """The type of a value that is a tensor.  Raises TypeError for a scalar."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"%{self.hint} is no tensor: it is {self.type}")
        return self.type


@dataclass(frozen=True, slots=True)
class Region:
    """Ops in order, and the values that they yield to the owner."""

    ops: tuple[Op, ...] = ()
    yields: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How a GPU runs a launch; no option changes the results of a kernel.

    `cooperative`: all blocks run at the same time.  `programmatic`: it may begin before the
    previous launch on its stream has ended.  `carveout`: the percentage of an SM's memory for
    shared memory.  `completion_flags`, `programmatic_flags`: the flags of the events that it
    records; `at_block_start`: the programmatic one is recorded when all blocks have begun.
    `max_threads`: the largest block along x, y and z for which the kernel is compiled,
    `min_blocks`: the number of blocks that must fit on an SM; 0 means unspecified.
    """

    cooperative: bool = False
    programmatic: bool = False
    carveout: int | None = None
    completion_flags: int = 0
    programmatic_flags: int = 0
    at_block_start: bool = False
    max_threads: tuple[int, int, int] = (0, 0, 0)
    min_blocks: int = 0

    @property
    def words(self) -> str:
        """The specified options in the text of the IR."""
        flags = ("cooperative", "programmatic", "at_block_start")
        numbers = ("completion_flags", "programmatic_flags", "min_blocks")
        said = [name for name in flags if getattr(self, name)]
        said += [f"{name}({getattr(self, name)})" for name in numbers if getattr(self, name)]
        if self.carveout is not None:
            said.append(f"carveout({self.carveout})")
        if any(self.max_threads):
            said.append(f"max_threads{self.max_threads}")
        return "".join(f" {word}" for word in said)
