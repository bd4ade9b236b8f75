"""Where a thread is in a ring of stages: the stage, the phase of its barriers, and how often it
went on."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ferrule.language.faces.vectors import make_fragment, where
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass


class PipelineUserType(Enum):
    """What a thread does with the stages of a pipeline."""

    Producer = "producer"
    Consumer = "consumer"
    ProducerConsumer = "both"


class Agent(Enum):
    """What arrives at the barriers of a pipeline."""

    Thread = "thread"
    ThreadBlock = "block"
    ThreadBlockCluster = "cluster"


@dataclass(frozen=True)
class CooperativeGroup:
    """How many of its agents arrive in each phase of a barrier: `size` threads."""

    agent: Agent
    size: Any = 1

    @property
    def count(self) -> Any:
        """The size; a whole float, of a division such as 128 / 32, is that int."""
        if isinstance(self.size, float) and self.size == int(self.size):
            return int(self.size)
        return self.size


@dataclass(frozen=True)
class PipelineState:
    """A place in a ring of `stages` stages.

    `numbers` are in the thread's registers: how often it was advanced, the stage, and the phase of
    the stage's barrier that is waited for.
    """

    stages: int
    numbers: Any

    @property
    def count(self) -> Any:
        """How often it was advanced, an Int32."""
        return self.numbers[0]

    @property
    def index(self) -> Any:
        """The stage, an Int32 from 0 on."""
        return self.numbers[1]

    @property
    def phase(self) -> Any:
        """The phase that is waited for, 0 or 1, an Int32."""
        return self.numbers[2]

    def advance(self) -> None:
        """Goes on to the next stage; behind the last one to the first, in the other phase."""
        self.move(1)

    def advance_iters(self, num_iterations: Any) -> None:
        """Goes on by so many stages, an int or an Int32 that is not negative."""
        following = self.numbers[1] + Int32(num_iterations)
        self.numbers[0] = self.numbers[0] + Int32(num_iterations)
        self.numbers[2] = (self.numbers[2] + following // self.stages) % 2
        self.numbers[1] = following % self.stages

    def reverse(self) -> None:
        """Goes back to the stage before."""
        self.move(-1)

    def move(self, by: int) -> None:
        """Goes on by 1 or -1."""
        at = self.numbers[1] + by
        over = at == (self.stages if by > 0 else -1)
        self.numbers[0] = self.numbers[0] + by
        self.numbers[1] = where(over, Int32(0 if by > 0 else self.stages - 1), at)
        self.numbers[2] = self.numbers[2] ^ Int32(over)

    def reset_count(self) -> None:
        """Begins to count again at 0."""
        self.numbers[0] = 0

    def clone(self) -> PipelineState:
        """Another state at the same place."""
        return state_at(self.stages, self.count, self.index, self.phase)


def state_at(stages: int, count: Any, index: Any, phase: Any) -> PipelineState:
    """A state at this place."""
    numbers = make_fragment(3, Int32)
    numbers[0] = count
    numbers[1] = index
    numbers[2] = phase
    return PipelineState(stages, numbers)


def make_pipeline_state(type: PipelineUserType, stages: int) -> PipelineState:
    """The first place in a ring of so many stages.

    For a producer all stages are empty at first, as if a phase had ended before.
    """
    return state_at(stages, 0, 0, 1 if type is PipelineUserType.Producer else 0)


def compute_k_tile(stage_idx: Any, stage_count: Any, stage_offset: Any, num_stages: int) -> Any:
    """The number of the tile of K in a stage, an Int32: the stage was filled `stage_count` times
    before, and tile 0 is in the stage `stage_offset`."""
    return Int32(stage_count * num_stages + (stage_idx - stage_offset) % num_stages)
