"""`fe.nvgpu.cpasync`: copies in the background."""

from __future__ import annotations

from ferrule.language.atoms.ops import CopyG2SOp as CopyG2SOp
from ferrule.language.atoms.ops import LoadCacheMode as LoadCacheMode
