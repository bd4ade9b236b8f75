"""How far a long compilation is: a line on a terminal, a bar in a notebook, otherwise nothing.

Nothing is shown in the first half of a second, so that short compilations stay silent. The line
goes to stderr and is gone at the end. A notebook is where IPython has a kernel; nothing of IPython
is imported elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from time import monotonic
from typing import Any, Final

from ferrule.specs.deferred import dataclass

SILENT: Final = 0.5
"""Seconds without anything to see."""
_WIDTH: Final = 24
_NAME: Final = 40

Tell = Callable[[str], None]
"""It is told the name of each job that is done."""


@dataclass(slots=True)
class State:
    """How far it is: a line as text, a bar in HTML."""

    what: str
    total: int
    done: int = 0
    name: str = ""

    def __str__(self) -> str:
        full = _WIDTH * self.done // max(1, self.total)
        bar = "#" * full + "." * (_WIDTH - full)
        return f"{self.what} [{bar}] {self.done} of {self.total} {self.name[:_NAME]}".rstrip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        label = escape(f"{self.what}: {self.done} of {self.total}")
        return (
            f'<progress value="{self.done}" max="{self.total}" aria-label="{label}"></progress> '
            f"{label} <code>{escape(self.name)}</code>"
        )


@contextmanager
def progress(what: str, total: int, wanted: bool = True) -> Iterator[Tell]:
    """A function to call with the name of each job that is done; it shows how many of `total` are.
    `what` is the word for the work, such as "compiling"."""
    show, end = _shown() if wanted else (None, None)
    if show is None or end is None:
        yield lambda name: None
        return
    state, began = State(what, total), monotonic()

    def tell(name: str) -> None:
        state.done, state.name = state.done + 1, name
        if monotonic() - began >= SILENT:
            show(state)

    try:
        yield tell
    finally:
        end()


def _shown() -> tuple[Callable[[State], None], Callable[[], None]] | tuple[None, None]:
    """A function that shows a state, and one that ends the display; None where nobody looks."""
    if _in_notebook():
        return _Notebook().show, lambda: None
    try:
        if sys.stderr.isatty():
            line = _Terminal(sys.stderr)
            return line.show, line.end
    except (AttributeError, ValueError):  # none, or closed
        pass
    return None, None


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@dataclass(slots=True)
class _Terminal:
    stream: Any
    is_begun: bool = False

    def show(self, state: State) -> None:
        self.is_begun = True
        self.stream.write(f"\r{state}\x1b[K")
        self.stream.flush()

    def end(self) -> None:
        if self.is_begun:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


@dataclass(slots=True)
class _Notebook:
    handle: Any = None

    def show(self, state: State) -> None:
        if self.handle is None:
            self.handle = sys.modules["IPython"].display.display(state, display_id=True)
        else:
            self.handle.update(state)
