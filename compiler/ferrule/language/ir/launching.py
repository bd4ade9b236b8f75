"""What a launch says besides its sizes that is known while compiling."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How a GPU is to run a launch; no option changes the results of a kernel.

    `cooperative`: all blocks run at the same time.  `programmatic`: it may begin before the launch
    before it on its stream has ended.  `carveout`: the part of an SM's memory that is to be shared
    memory, in percent.  `completion_flags`, `programmatic_flags`: of the events that it records;
    `at_block_start`: the programmatic one when all blocks have begun.  `max_threads`: the most
    threads of a block along x, y and z that the kernel is compiled for, `min_blocks`: the blocks of
    it that an SM is to have room for; 0 where nothing is said.
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
        """The options as the IR's text has them, those that are said."""
        flags = ("cooperative", "programmatic", "at_block_start")
        numbers = ("completion_flags", "programmatic_flags", "min_blocks")
        said = [name for name in flags if getattr(self, name)]
        said += [f"{name}({getattr(self, name)})" for name in numbers if getattr(self, name)]
        if self.carveout is not None:
            said.append(f"carveout({self.carveout})")
        if any(self.max_threads):
            said.append(f"max_threads{self.max_threads}")
        return "".join(f" {word}" for word in said)
