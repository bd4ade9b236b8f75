"""Foreign LLVM IR without the functions that cannot be embedded, and without what only they need.

A name reaches what its definition mentions, over any number of steps.  A function that reaches
something unusable cannot be called here, so it is left out, and the rest of the module is as good
as without it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from ferrule.specs.deferred import dataclass

_NAME: Final = re.compile(r'@("[^"]*"|[\w.$-]+)')
_DEFINED: Final = re.compile(r"^@(\"[^\"]*\"|[\w.$-]+) = ")


@dataclass(frozen=True, slots=True)
class Unusable:
    """What cannot be embedded, by the first line of a definition, and the reason."""

    pattern: re.Pattern[str]
    reason: str


@dataclass(frozen=True, slots=True)
class _Definition:
    """A variable or function: its name, and its lines."""

    name: str
    lines: tuple[str, ...]

    @property
    def uses(self) -> set[str]:
        """The names that it mentions."""
        return {match[1] for line in self.lines for match in _NAME.finditer(line)}


def pruned(text: str, unusable: Sequence[Unusable]) -> tuple[str, dict[str, str]]:
    """The text without the definitions that reach something unusable, and for each of these names
    the reason."""
    definitions = {each.name: each for each in _definitions(text)}
    refused = {
        name: each.reason
        for each in unusable
        for name, found in definitions.items()
        if each.pattern.search(found.lines[0])
    }
    users: dict[str, list[str]] = {}
    for name, found in definitions.items():
        for used in found.uses - {name}:
            users.setdefault(used, []).append(name)
    todo = list(refused)
    while todo:
        used = todo.pop()
        for user in users.get(used, ()):
            if user not in refused:
                refused[user] = refused[used]
                todo.append(user)
    spare = {
        name
        for name, found in definitions.items()
        if found.lines[0].startswith("declare ") and refused.keys() >= set(users.get(name, ()))
    }
    kept = "".join(_without(text, refused.keys() | spare))
    return kept, {name.strip('"'): why for name, why in refused.items()}


def _definitions(text: str) -> Iterator[_Definition]:
    for name, lines in _parts(text):
        if name is not None:
            yield _Definition(name, tuple(lines))


def _without(text: str, names: Collection[str]) -> Iterator[str]:
    for name, lines in _parts(text):
        if name is None or name not in names:
            yield from lines


def _parts(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """The lines of the text; the lines of a definition are one item, with its name."""
    lines = iter(text.splitlines(keepends=True))
    for line in lines:
        if line.startswith("define "):
            found = _NAME.search(line)
            body = [line]
            for inner in lines:
                body.append(inner)
                if inner.startswith("}"):
                    break
            yield (found and found[1]), body
        elif line.startswith("declare ") and (found := _NAME.search(line)):
            yield found[1], [line]
        else:
            variable = _DEFINED.match(line)
            yield (variable and variable[1]), [line]
