"""Finds kernels by their names: as in the binary, and as in the C++ source."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mangled import by_spoken_names, spoken_name

_MOST: Final = 50
"""The largest number of kernels that a message lists."""


def find_kernel(name: str, known: Sequence[str]) -> str | None:
    """The kernel with this name, or the only one with this name in the C++ source: `ns::add` and
    `add` are `_ZN2ns3addEPf`, `scale<float, 4>` is `_Z5scaleIfLi4EEvPT_`."""
    if name in known:
        return name
    spoken = {_plain(each): symbol for each, symbol in by_spoken_names(known).items()}
    if _plain(name) in spoken:
        return spoken[_plain(name)]
    last = [symbol for each, symbol in spoken.items() if _last(each) == _plain(name)]
    return last[0] if len(last) == 1 else None


def check_name(kernel: object, what: str) -> str:
    """Raise TypeError unless it is a name; `what` describes it."""
    if isinstance(kernel, str):
        return kernel
    raise TypeError(f"{what} must be the name of a kernel, a str, but got {kernel!r}")


def unknown_kernel(name: str, known: Sequence[str]) -> CompileError:
    """The error for a kernel that a binary does not have, or has several times."""
    alike = [each for each in known if name and _base(spoken_name(each)) == _base(name)]
    message = f"there is no kernel {name!r} in the device code"
    if len(alike) > 1 and _base(name) == name:
        message = f"the device code has {len(alike)} kernels {name!r}"
    return CompileError(
        Diagnostic(
            message,
            expected=_listed(known) or "the device code has no kernel at all",
            hint=_hint(name, alike, known),
        )
    )


def _hint(name: str, alike: Sequence[str], known: Sequence[str]) -> str | None:
    if len(alike) > 1:
        written = ", ".join(repr(each) for each in by_spoken_names(alike))
        return f"write the one that is meant: {written}"
    names = {_plain(spoken_name(each)): each for each in known}
    near = alike or [names[each] for each in difflib.get_close_matches(_plain(name), names, n=1)]
    near = near or [each for each in known if name and name in each]
    return f"did you mean {_shown(near[0])}?" if len(near) == 1 else None


def _listed(known: Sequence[str]) -> str:
    more = f", and {len(known) - _MOST} more" if len(known) > _MOST else ""
    return ", ".join(map(_shown, known[:_MOST])) + more


def _shown(symbol: str) -> str:
    """A symbol with its name in the source."""
    spoken = spoken_name(symbol)
    return symbol if spoken == symbol else f"{symbol} ({spoken})"


def _plain(name: str) -> str:
    """A name without insignificant blanks of C++."""
    return name.replace(", ", ",").strip()


def _last(name: str) -> str:
    """A name without its namespaces."""
    head, bracket, rest = name.partition("<")
    return f"{head.rpartition('::')[2]}{bracket}{rest}"


def _base(name: str) -> str:
    """A name without its namespaces and the arguments of its template."""
    return _last(_plain(name)).partition("<")[0]
