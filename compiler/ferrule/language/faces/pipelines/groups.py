"""Which tile of which problem a block computes next, where a launch has a group of problems."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.vectors import make_fragment
from ferrule.specs import Int32, ceil_div
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True)
class GroupedGemmGroupSearchState:
    """Where the search for a tile's problem begins: in registers of the thread, the number of the
    problem and the tiles of all problems before it."""

    numbers: Any


@dataclass(frozen=True)
class GroupSearchResult:
    """A tile of a problem: the problem's number and sizes, the tile's coordinates in tiles of a
    block, and how many tiles there are along k."""

    group_idx: Any
    cta_tile_idx_m: Any
    cta_tile_idx_n: Any
    problem_shape_m: Any
    problem_shape_n: Any
    problem_shape_k: Any
    cta_tile_count_k: Any


def create_initial_search_state() -> GroupedGemmGroupSearchState:
    """The state of a thread that has not searched yet."""
    numbers = make_fragment(2, Int32)
    numbers[0] = 0
    numbers[1] = 0
    return GroupedGemmGroupSearchState(numbers)


@dataclass(frozen=True)
class GroupedGemmTileSchedulerHelper:
    """The tiles of a group of problems in one order: those of the first problem, then the next.

    `group_count`: of problems.  `tile_sched_params`: of the scheduler, whose clusters of blocks
    each compute `cluster_tile_shape_mnk` elements at a time.
    """

    group_count: int
    tile_sched_params: Any
    cluster_tile_shape_mnk: tuple[int, int, int]
    search_state: GroupedGemmGroupSearchState

    def delinearize_z(self, cta_tile_coord: tuple[Any, Any, Any], problem_shape_mnkl: Any) -> Any:
        """The tile of the block whose cluster has this number, `cta_tile_coord[2]`.

        `cta_tile_coord`: of the block in the tiles of the scheduler.  `problem_shape_mnkl`: the
        sizes (m, n, k, l) of each problem, a tensor (problem, 4).  Numbers at and past the last
        tile count on in the last problem.
        """
        number = cta_tile_coord[2]
        state = self.search_state.numbers
        if number < state[1]:
            state[0] = 0
            state[1] = 0
        count = self._tiles(state[0], problem_shape_mnkl)
        while number >= state[1] + count and state[0] < self.group_count - 1:
            state[1] = state[1] + count
            state[0] = state[0] + 1
            count = self._tiles(state[0], problem_shape_mnkl)
        group = state[0]
        m, n, k = (problem_shape_mnkl[group, mode] for mode in range(3))
        rows = ceil_div(m, self.cluster_tile_shape_mnk[0])
        inside = number - state[1]
        blocks = self.tile_sched_params.cluster_shape_mnk
        return GroupSearchResult(
            group,
            inside % rows * blocks[0] + cta_tile_coord[0] % blocks[0],
            inside // rows * blocks[1] + cta_tile_coord[1] % blocks[1],
            m,
            n,
            k,
            ceil_div(k, self.cluster_tile_shape_mnk[2]),
        )

    def _tiles(self, group: Any, problem_shape_mnkl: Any) -> Any:
        """The tiles of clusters of a problem."""
        rows = ceil_div(problem_shape_mnkl[group, 0], self.cluster_tile_shape_mnk[0])
        columns = ceil_div(problem_shape_mnkl[group, 1], self.cluster_tile_shape_mnk[1])
        return rows * columns
