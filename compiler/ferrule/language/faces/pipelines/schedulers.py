"""Which tile of a result a block computes next, where blocks stay and take one after the other."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import static_assert
from ferrule.language.faces.maths import min
from ferrule.language.faces.vectors import make_fragment
from ferrule.specs import Boolean, Int32, ceil_div
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True)
class WorkTileInfo:
    """A tile of a cluster: its coordinates (m, n, l) as `tile_idx`, of this block; and whether
    there is one."""

    tile_idx: Any
    is_valid_tile: Any


@dataclass(frozen=True)
class PersistentTileSchedulerParams:
    """The tiles of a problem, and the order in which they are computed.

    `problem_shape_ntile_mnl`: the tiles along m, n and l.  `cluster_shape_mnk`: the blocks of a
    cluster.  Clusters go along m first, or, with `raster_along_m=False`, along n.  With a
    `swizzle_size` s, they go s clusters across, then one along, so that those that run together
    share rows and columns.
    """

    problem_shape_ntile_mnl: Any
    cluster_shape_mnk: tuple[int, int, int]
    swizzle_size: int = 1
    raster_along_m: bool = True

    @property
    def clusters(self) -> Any:
        """The clusters along m, n and l."""
        m, n, layers = self.problem_shape_ntile_mnl
        return (
            ceil_div(m, self.cluster_shape_mnk[0]),
            ceil_div(n, self.cluster_shape_mnk[1]),
            layers,
        )

    def get_grid_shape(self, max_active_clusters: Any) -> Any:
        """The grid of a launch: as many clusters as can be active, or as there are."""
        m, n, layers = self.clusters
        count = min(m * n * layers, max_active_clusters)
        return self.cluster_shape_mnk[0], self.cluster_shape_mnk[1], count


class _Scheduler:
    """What schedulers have in common: `step` tiles lie between those of a cluster, and `numbers`,
    in the thread's registers, are the number of the tile, and how many came before it."""

    params: PersistentTileSchedulerParams
    step: Any
    numbers: Any

    @staticmethod
    def get_grid_shape(params: PersistentTileSchedulerParams, max_active_clusters: Any) -> Any:
        """The grid of a launch; see `PersistentTileSchedulerParams.get_grid_shape`."""
        return params.get_grid_shape(max_active_clusters)

    @property
    def num_tiles_executed(self) -> Any:
        """The tiles before the current one, an Int32."""
        return self.numbers[1]

    def initial_work_tile_info(self) -> WorkTileInfo:
        """The first tile."""
        return self.get_current_work()

    def get_current_work(self) -> WorkTileInfo:
        """The current tile."""
        raise NotImplementedError

    def advance_to_next_work(self, *, advance_count: int = 1) -> None:
        """Goes on to the next tile of this block."""
        self.numbers[0] = self.numbers[0] + advance_count * self.step
        self.numbers[1] = self.numbers[1] + 1


def _first_numbers(block_idx: Any) -> Any:
    """The numbers of the first tile of a block."""
    numbers = make_fragment(2, Int32)
    numbers[0] = block_idx[2]
    numbers[1] = 0
    return numbers


@dataclass(frozen=True)
class StaticPersistentRuntimeTileScheduler(_Scheduler):
    """Each cluster of the grid takes every so-manieth tile, of which there are as many as the
    program finds: `is_valid_tile` is always true, and the program ends the loop.

    A tile is that of a cluster: its coordinates are clusters along m and n, the third is 0.  With
    `inner_mode=1` neighbours lie along n, with 0 along m, and go beyond the problem there.
    """

    params: PersistentTileSchedulerParams
    step: Any
    inner_mode: int
    numbers: Any

    @staticmethod
    def create(
        params: PersistentTileSchedulerParams, block_idx: Any, grid_dim: Any, inner_mode: int = 1
    ) -> StaticPersistentRuntimeTileScheduler:
        """The scheduler of a block, with `arch.block_idx()` and `arch.grid_dim()`."""
        static_assert(inner_mode in (0, 1), "the inner_mode is 0, along m, or 1, along n")
        numbers = _first_numbers(block_idx)
        return StaticPersistentRuntimeTileScheduler(params, grid_dim[2], inner_mode, numbers)

    def get_current_work(self) -> WorkTileInfo:
        """The current tile."""
        number, inner = self.numbers[0], Int32(self.params.clusters[self.inner_mode])
        near, far = number % inner, number // inner
        m, n = (near, far) if self.inner_mode == 0 else (far, near)
        return WorkTileInfo((m, n, Int32(0)), Boolean(True))


@dataclass(frozen=True)
class StaticPersistentTileScheduler(_Scheduler):
    """Each cluster of the grid takes every so-manieth tile, in the order of the parameters."""

    params: PersistentTileSchedulerParams
    step: Any
    place: Any
    numbers: Any

    @staticmethod
    def create(
        params: PersistentTileSchedulerParams, block_idx: Any, grid_dim: Any
    ) -> StaticPersistentTileScheduler:
        """The scheduler of a block, with `arch.block_idx()` and `arch.grid_dim()`."""
        numbers = _first_numbers(block_idx)
        place = block_idx[0], block_idx[1]
        return StaticPersistentTileScheduler(params, grid_dim[2], place, numbers)

    def get_current_work(self) -> WorkTileInfo:
        """The current tile."""
        m, n, layers = self._counts()
        number = self.numbers[0]
        per_layer = m * n
        inside = number % per_layer
        along, across = self._order(inside, m, n)
        x, y = (along, across) if self.params.raster_along_m else (across, along)
        rows, columns = self.params.cluster_shape_mnk[0], self.params.cluster_shape_mnk[1]
        tile = (
            x * rows + self.place[0],
            y * columns + self.place[1],
            number // per_layer,
        )
        return WorkTileInfo(tile, number < per_layer * layers)

    def _counts(self) -> Any:
        """The clusters along m, n and l.  Sizes of tensors can be numbers of 64 bits, whose
        divisions take a hundred instructions."""
        return [Int32(each) for each in self.params.clusters]

    def _order(self, number: Any, m: Any, n: Any) -> Any:
        """Of a cluster of a layer, by its number: along the first direction, and across it."""
        long, wide = (m, n) if self.params.raster_along_m else (n, m)
        s = self.params.swizzle_size
        if s == 1:
            return number % long, number // long
        # Bands of s clusters across; the last band may have fewer.
        band = number // (long * s)
        width = min(s, wide - band * s)
        rest = number % (long * s)
        return rest // width, band * s + rest % width
