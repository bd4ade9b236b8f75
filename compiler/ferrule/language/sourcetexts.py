"""Functions of a text: `from_source`, for languages that write Python.

    names = fe.from_source("@fe.jit\\ndef f(…): …", {"fe": fe}, filename="layer.py")
    names["f"]

A text has a name, as a file has one: errors of compilations and calls, and Python's tracebacks,
show the lines of the text under it.  A text lives as long as a function of it.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from hashlib import sha256
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic, Span

HELD: Final = "__ferrule_sources__"
"""The name of the list, in a namespace, that keeps the texts of its functions alive."""


class Text:
    """A text that was given to `from_source`, and its lines."""

    __slots__ = ("__weakref__", "lines", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [line if line.endswith("\n") else line + "\n" for line in _lines(text)]


_TEXTS: Final[weakref.WeakValueDictionary[str, Text]] = weakref.WeakValueDictionary()


def from_source(
    text: str, namespace: dict[str, Any] | None = None, *, filename: str | None = None
) -> dict[str, Any]:
    """Run a Python text, whose functions can be compiled; returns the namespace.

    It runs in `namespace`, by default a new one with `fe`, and fills it.  `filename` names the text
    in errors; another text of the same name gets a suffix.  Raises CompileError for a text that is
    no Python, with the place, and whatever the text raises.
    """
    _check(text, namespace, filename)
    names: dict[str, Any] = {"fe": sys.modules["ferrule"]} if namespace is None else namespace
    name, held, is_new = _named(text, filename)
    code = _compiled(text, name, held)
    if is_new:
        _show(name, held)
    names.setdefault("__name__", "__generated__")
    names.setdefault(HELD, []).append(held)
    exec(code, names)
    return names


def lines_of(file: str) -> list[str] | None:
    """The lines of a text by its name; None if there is none."""
    found = _TEXTS.get(file)
    return None if found is None else found.lines


def text_file(text: str, file: str) -> tuple[str, Text | None]:
    """The name under which this process shows the text of a file, and the text to be kept alive.

    The name is that of the file, unless there is a file here with another text.
    """
    here = "".join(lines_of(file) or linecache.getlines(file))
    if here == text and file not in _TEXTS:
        return file, None
    name, held, is_new = _named(text, file if here in ("", text) else f"{file}#{_digest(text)}")
    if is_new:
        _show(name, held)
    return name, held


def _named(text: str, filename: str | None) -> tuple[str, Text, bool]:
    """The name of a text, the text, and whether it is new."""
    held = Text(text)
    name, known = _name(text, filename)
    return name, (_TEXTS.setdefault(name, held) if known is None else known), known is None


def _show(name: str, held: Text) -> None:
    """Let Python's tracebacks show a text as long as it lives."""
    # With no time a text is not looked for on the disk.
    linecache.cache[name] = (len(held.text), None, held.lines, name)
    weakref.finalize(held, linecache.cache.pop, name, None)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _check(text: object, namespace: object, filename: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"from_source: expected a Python text, but got {type(text).__name__}")
    if namespace is not None and type(namespace) is not dict:
        raise TypeError(
            "from_source: expected a dict for the names of the text, such as {'fe': fe}, but got "
            f"{type(namespace).__name__}"
        )
    if filename is not None and not isinstance(filename, str):
        raise TypeError(f"from_source: expected a str as filename, but got {filename!r}")
    if filename == "" or (filename is not None and "\0" in filename):
        raise ValueError(f"from_source: expected a name of the text, but got {filename!r}")


def _name(text: str, filename: str | None) -> tuple[str, Text | None]:
    """The name of a text, which no other text has, and this text if it was given before."""
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    for name in (filename or f"<source {digest[:12]}>", f"{filename or '<source>'}#{digest[:12]}"):
        known = _TEXTS.get(name)
        if known is None or known.text == text:
            return name, known
    return f"{filename}#{digest}", None


def _compiled(text: str, name: str, held: Text) -> Any:
    try:
        return compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno or 1
        shown = held.lines[line - 1].rstrip("\n") if line <= len(held.lines) else ""
        at = max((error.offset or 1) - 1, 0)
        place = Span(name, "from_source", line, at, max(len(shown), at), shown)
        raise CompileError(Diagnostic(f"the text is no Python: {error.msg}", place)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CompileError(f"the text of {name} is no Python: {error}") from None


def _lines(text: str) -> list[str]:
    """The lines as Python counts them, which a form feed does not end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
