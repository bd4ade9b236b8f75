"""The pictures of the documentation that code draws: `python docs/pictures.py` writes them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

import ferrule as fe

FOLDER: Final = Path(__file__).with_name("pictures")

_STYLE: Final = """<style>
svg { --ink: #1d2430; --back: #f5f7fa; --line: #7a8594; --own: #3b7dd8; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e3e7ee; --back: #1c222a; --line: #8a95a4; --own: #5a9bf0; } }
text { font: 14px system-ui, sans-serif; fill: var(--ink); }
</style>"""


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
        "way.svg": way(),
        "quickstart.svg": cast("make quickstart", (FOLDER / "quickstart.txt").read_text("utf-8")),
    }


# ---- the way through ----

_COLUMNS: Final = (
    (
        "what you have",
        (
            "kernels in Python",
            "Triton, CUDA C++, C",
            "MLIR, Numba, Warp, …",
            "PTX, cubins, LLVM IR",
        ),
    ),
    ("ferrule", ("kernel IR", "LLVM IR, PTX", "checks of a call", "one object")),
    (
        "a TVM-FFI function",
        ("in this process", ".o, .so, headers", "a wheel", "an operator of PyTorch"),
    ),
    (
        "who calls it",
        ("NumPy, PyTorch, JAX", "C, C++, Rust", "XLA, torch.compile", "anything of tvm-ffi"),
    ),
)
_WIDE: Final = 190
_GAP: Final = 42
_HIGH: Final = 30


def way() -> str:
    """From what somebody has to who calls it."""
    width = len(_COLUMNS) * (_WIDE + _GAP) - _GAP + 20
    height = 5 * (_HIGH + 8) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="The way through ferrule">',
        _STYLE,
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="var(--line)"/></marker>'
        "</defs>",
    ]
    for number, (title, lines) in enumerate(_COLUMNS):
        parts += _column(10 + number * (_WIDE + _GAP), title, lines, is_own=number == 1)
        if number:
            x, y = 10 + number * (_WIDE + _GAP) - _GAP + 4, height / 2 + 8
            parts.append(
                f'<path d="M{x},{y} h{_GAP - 10}" stroke="var(--line)" stroke-width="2" '
                'fill="none" marker-end="url(#head)"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _column(x: int, title: str, lines: Sequence[str], *, is_own: bool) -> Iterator[str]:
    colour = "var(--own)" if is_own else "var(--line)"
    yield f'<text x="{x + 4}" y="20" style="font-weight:600">{escape(title)}</text>'
    for row, line in enumerate(lines):
        y = 32 + row * (_HIGH + 8)
        yield (
            f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="5" fill="var(--back)" '
            f'stroke="{colour}"/>'
        )
        yield f'<text x="{x + 10}" y="{y + 20}">{escape(line)}</text>'


# ---- a terminal ----

_TERMINAL: Final = """<style>
rect.back {{ fill: #14181e; }}
text {{ font: 13px ui-monospace, monospace; fill: #d7dde6; white-space: pre; }}
.prompt {{ fill: #4cb07a; }} .error {{ fill: #e59a4f; }}
.line {{ animation: show {whole}s infinite; }}
@keyframes show {{ 0%, 100% {{ opacity: 1; }} }}
{frames}
@media (prefers-reduced-motion: reduce) {{ .line {{ animation: none !important; }} }}
</style>"""
_LINE: Final = 19
_WORDS: Final = 92
_STEP: Final = 0.8
_REST: Final = 6.0


def cast(command: str, said: str) -> str:
    """A terminal in which a command is given, and what it says comes line by line, again and
    again; all of it at once for readers who want nothing to move."""
    lines = [("prompt", f"$ {command}")]
    for line in said.splitlines():
        kind = "error" if "refused" in line else ""
        lines += [(kind, part) for part in textwrap.wrap(line, _WORDS, subsequent_indent="    ")]
    whole = _STEP * len(lines) + _REST
    frames = "\n".join(_frames(number, whole) for number in range(1, len(lines)))
    width, height = 760, _LINE * len(lines) + 24
    rows = [
        f'<text class="line {kind}" id="l{number}" x="14" y="{26 + _LINE * number}">'
        f"{escape(text)}</text>"
        for number, (kind, text) in enumerate(lines)
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(command)} in a terminal">'
    )
    style = _TERMINAL.format(whole=round(whole, 1), frames=frames)
    box = f'<rect class="back" width="{width}" height="{height}" rx="8"/>'
    return "\n".join([head, style, box, *rows, "</svg>", ""])


def _frames(number: int, whole: float) -> str:
    """The animation of a line, which is there from its turn on."""
    at = round(100 * _STEP * number / whole, 2)
    steps = f"0%, {at}% {{ opacity: 0; }} {round(at + 0.5, 2)}%, 100% {{ opacity: 1; }}"
    return f"@keyframes l{number} {{ {steps} }} #l{number} {{ animation-name: l{number}; }}"


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
