"""Tiles that are copied as boxes of tensors: the atom of such a copy in a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TmaAtom:
    """A copy of tiles by a tensor map; `fe.nvgpu.cpasync.make_tiled_tma_atom` makes one."""

    tensor_map: Any
    boxes: Any
