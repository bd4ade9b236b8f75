"""The pictures of layouts in the documentation: `python docs/pictures.py` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import ferrule as fe

FOLDER: Final = Path(__file__).with_name("pictures")


def pictures() -> dict[str, str]:
    """The pictures, as SVG, by the names of their files."""
    rows = fe.make_layout((8, 8), stride=(8, 1))
    swizzled = fe.make_composed_layout(fe.make_swizzle(3, 0, 3), 0, rows)
    # Of mma.m16n8k16: the accumulator of a warp, see the PTX manual.
    accumulator = fe.make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8)))
    return {
        "rows.svg": fe.draw(rows).svg(),
        "swizzled_rows.svg": fe.draw(swizzled).svg(),
        "accumulator.svg": fe.draw(accumulator, (16, 8)).svg(),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
