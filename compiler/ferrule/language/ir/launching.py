"""The compile-time options of a launch besides its sizes."""

from __future__ import annotations

from ferrule.specs.deferred import dataclass


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
