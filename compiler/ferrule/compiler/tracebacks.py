"""A `CompileError` as IPython and notebooks show it: the calls of the user, and the message.

The source excerpt has the colours of Python's words, where Pygments is installed, which IPython
brings along, and what is wrong is underlined in red. The calls inside of ferrule are left out: the
message has the place. Colours are left out where IPython shows none.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ferrule.compiler.errors import CompileError

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_RED: Final = "\x1b[1;31m"
_BOLD: Final = "\x1b[1m"
_CYAN: Final = "\x1b[36m"
_END: Final = "\x1b[0m"


def coloured(error: CompileError, diagnostic: str) -> list[str]:
    """The lines of a traceback; `diagnostic` is the text of the error's own."""
    return list(_lines(error, diagnostic, _shows_colours()))


def _lines(error: CompileError, diagnostic: str, in_colour: bool) -> Iterator[str]:
    paint = _paint if in_colour else _plain
    for frame in traceback.extract_tb(error.__traceback__):
        if _is_users(frame.filename):
            yield f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
            if frame.line:
                yield f"    {_python(frame.line) if in_colour else frame.line}"
    said = diagnostic if type(error).__str__ is Exception.__str__ else str(error)
    first, *rest = said.splitlines() or [""]
    yield f"{paint(type(error).__name__, _RED)}: {paint(first, _BOLD)}"
    for line in rest:
        yield _detail(line) if in_colour else line


def _is_users(file: str) -> bool:
    """Whether a file is neither of ferrule nor of IPython's own running of cells."""
    path = Path(file)
    is_shell = "IPython" in path.parts or "ipykernel" in path.parts
    return not (path.is_relative_to(_PACKAGE) or is_shell or file.startswith("<frozen"))


def _detail(line: str) -> str:
    """A line behind the first: an excerpt, its carets, or one that begins with a word."""
    gutter, bar, text = line.partition(" | ")
    if bar and not gutter.strip() and set(text) <= {" ", "^"}:
        return f"{gutter}{bar}{_paint(text, _RED)}"
    if bar and gutter.strip().isdigit():
        return f"{_paint(gutter, _CYAN)}{bar}{_python(text)}"
    word, colon, rest = line.partition(": ")
    is_word = colon and word.startswith("  ") and word.strip().isalpha()
    return f"{_paint(word, _CYAN)}{colon}{rest}" if is_word else line


def _paint(text: str, colour: str) -> str:
    return f"{colour}{text}{_END}"


def _plain(text: str, colour: str) -> str:
    return text


def _python(text: str) -> str:
    """A line of Python with colours; as it is without Pygments."""
    try:
        lexers = import_module("pygments.lexers")
        formatters = import_module("pygments.formatters")
        highlight = import_module("pygments").highlight
    except ImportError:
        return text
    lexer = lexers.PythonLexer(stripnl=False, ensurenl=False)
    shown: str = highlight(text, lexer, formatters.TerminalFormatter())
    return shown


def _shows_colours() -> bool:
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return str(getattr(shell, "colors", "NoColor")).lower() != "nocolor"
