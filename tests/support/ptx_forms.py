"""All names that the table of the emulated GPU has: every pattern, written out."""

from __future__ import annotations

import itertools
import random
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable, Iterator
from typing import Any

from ferrule.emulator.instructions import table
from ferrule.emulator.instructions.forms import FORMS, Form

assert table.found("ret") is None  # the table's parts are loaded


def spelled(pattern: str) -> Iterator[str]:
    """All texts that a pattern without loops matches."""
    return _sequence(parser.parse(pattern))


def _sequence(parts: Iterable[Any]) -> Iterator[str]:
    choices = [list(_one(kind, value)) for kind, value in parts]
    return ("".join(each) for each in itertools.product(*choices))


def _one(kind: Any, value: Any) -> Iterator[str]:
    if kind is constants.LITERAL:
        yield chr(value)
    elif kind is constants.SUBPATTERN:
        yield from _sequence(value[-1])
    elif kind is constants.BRANCH:
        for each in value[1]:
            yield from _sequence(each)
    elif kind is constants.IN:
        for inner, code in value:
            yield from _one(inner, code)
    elif kind is constants.MAX_REPEAT and value[1] == 1:
        yield ""
        yield from _sequence(value[2])
    else:
        raise ValueError(f"a pattern with {kind}")


def forms() -> Iterator[Form]:
    """All forms."""
    for each in FORMS.values():
        yield from each


def names(form: Form) -> list[str]:
    """All names of a form."""
    return [form.opcode + each for each in spelled(form.pattern.pattern)]


def one(pattern: str, rng: random.Random) -> str:
    """One of the texts that a pattern matches."""
    return _drawn(parser.parse(pattern), rng)


def _drawn(parts: Iterable[Any], rng: random.Random) -> str:
    found = ""
    for kind, value in parts:
        if kind is constants.SUBPATTERN:
            found += _drawn(value[-1], rng)
        elif kind is constants.BRANCH:
            found += _drawn(rng.choice(value[1]), rng)
        elif kind is constants.MAX_REPEAT:
            found += _drawn(value[2], rng) if rng.random() < 0.5 else ""
        else:
            found += rng.choice(list(_one(kind, value)))
    return found
